"""Rows of `logs.db`, the log of the command `llm`, with what other tables say of each: a response as `llm logs --json`
gives it (before 0.32), a message of the store of messages with its parts, a turn, a thread (since).

Attachments are told, their bytes are not given out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from etl.adapters._chat import parsed
from etl.adapters._sqlite import Stored
from etl.conversation import Record
from etl.decode import decode, encode
from etl.framing import Framed, Limits

_LINKS = {
    "prompt_fragments": ("fragment_id", "fragments"),
    "system_fragments": ("fragment_id", "fragments"),
    "attachments": ("attachment_id", "attachments"),
    "tools": ("tool_id", "tools"),
}
_TABLES = {"attachments": "prompt_attachments", "tools": "tool_responses"}
"""Which table joins them to responses, where it is not of the same name."""


def framed(stored: Stored, limits: Limits) -> Iterator[Framed]:
    """Responses, then threads, turns and messages."""
    for number, value in enumerate(_values(stored)):
        found = decode(encode(value).encode("utf-8", "surrogatepass"))
        raw = encode(found.value).encode("utf-8", "surrogatepass")
        yield Record(found.value, raw, number + 1, number, found.notes, found.mended)


def _values(stored: Stored) -> Iterator[dict[str, Any]]:
    held = {name: {row["id"]: _told(row) for row in stored.rows(name) if "id" in row} for name in _HELD}
    yield from _responses(stored, held)
    for table in ("threads", "turns"):
        tools = _joined(stored, "turn_tools", "turn_id", "tool_id", held["tools"]) if table == "turns" else {}
        for row in stored.rows(table):
            more = {"tools": tools[row["id"]]} if row.get("id") in tools else {}
            yield {table.removesuffix("s"): {**_told(row), **_schema(row, held), **more}}
    parts: dict[Any, list[dict[str, Any]]] = {}
    for row in stored.rows("parts"):
        parts.setdefault(row.get("message_hash"), []).append(_part(row, held))
    for row in stored.rows("messages"):
        own = sorted(parts.get(row.get("hash"), ()), key=lambda part: part.get("position") or 0)
        yield {"message": {**_told(row), "parts": own}}


_HELD = ("fragments", "attachments", "tools", "schemas", "conversations")


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what is empty; bytes are counted."""
    return {
        key: {"bytes": len(item)} if isinstance(item, bytes) else item for key, item in row.items() if item is not None
    }


def _joined(
    stored: Stored, table: str, owner: str, key: str, held: dict[Any, dict[str, Any]]
) -> dict[Any, list[dict[str, Any]]]:
    """What a table of links joins to each owner, in its order."""
    rows = sorted(stored.rows(table), key=lambda row: row["order"] if isinstance(row.get("order"), int) else 0)
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        if row.get(key) in held:
            found.setdefault(row.get(owner), []).append(held[row[key]])
    return found


def _responses(stored: Stored, held: dict[str, dict[Any, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    links = {
        name: _joined(stored, _TABLES.get(name, name), "response_id", key, held[table])
        for name, (key, table) in _LINKS.items()
    }
    for name in ("tool_calls", "tool_results"):
        links[name] = {}
        for row in stored.rows(name):
            links[name].setdefault(row.get("response_id"), []).append(_told(row))
    for row in stored.rows("responses"):
        about = held["conversations"].get(row.get("conversation_id"), {})
        named = {f"conversation_{key}": about[key] for key in ("name", "model") if key in about}
        more = {name: found[row.get("id")] for name, found in links.items() if row.get("id") in found}
        yield {**_told(row), "prompt": row.get("prompt"), **_schema(row, held), **named, **more}
    for row in stored.rows("logs"):
        chat = row.get("chat_id") or row.get("id")
        yield {**_told(row), "prompt": row.get("prompt"), "conversation_id": f"log {chat}"}


def _schema(row: dict[str, Any], held: dict[str, dict[Any, dict[str, Any]]]) -> dict[str, Any]:
    schema = held["schemas"].get(row.get("schema_id"))
    return {} if schema is None else {"schema_json": schema.get("content")}


def _part(row: dict[str, Any], held: dict[str, dict[Any, dict[str, Any]]]) -> dict[str, Any]:
    """A part with the fragments and attachments that its payload names."""
    payload = parsed(row["payload"]) if isinstance(row.get("payload"), str) else None
    made = _told({key: item for key, item in row.items() if key not in ("payload", "id", "message_hash")})
    if not isinstance(payload, dict):
        return made | ({"payload": row["payload"]} if row.get("payload") is not None else {})
    made |= {key: item for key, item in payload.items() if key not in ("text_ref", "attachment", "attachments")}
    refs = payload.get("text_ref")
    if isinstance(refs, list):
        pieces = [held["fragments"].get(ref.get("fragment"), ref) for ref in refs if isinstance(ref, dict)]
        made["text"] = "".join(str(piece.get("content", piece.get("literal", ""))) for piece in pieces)
        made["literal"] = "".join(str(ref["literal"]) for ref in refs if isinstance(ref, dict) and "literal" in ref)
    given = payload.get("attachments") if isinstance(payload.get("attachments"), list) else [payload.get("attachment")]
    found = [held["attachments"].get(each.get("id"), each) for each in given or () if isinstance(each, dict)]
    return made | ({"attachments": found} if found else {})
