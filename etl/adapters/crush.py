"""Crush (and the first OpenCode, from which it comes): its database, `.crush/crush.db`.

A session's messages are rows with a list of parts as JSON; results of tools are messages of their own. Sub-agents are
sessions that name their parent. The tokens of a session are those of its last request; its cost is of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import parsed
from etl.adapters._claude_lines import is_global
from etl.adapters._records import left
from etl.adapters._rollouts import obj, text
from etl.adapters._session import real
from etl.adapters._sqlite import has_column, records
from etl.conversation import Conversation, Identity, Ignored, Message, Outcome, Record, Tokens, ToolCall, Unusable
from etl.decode import Decoded, decode, encode
from etl.framing import Framed, Limits
from etl.identity import digest
from etl.times import instant

_ROLES = frozenset({"user", "assistant", "system", "tool"})
_CANCELED, _DENIED = "Tool execution canceled by user", "User denied permission"
_ENDS = {"canceled": "aborted", "error": "error", "max_tokens": "truncated"}
_ROW = frozenset({"id", "session_id", "role", "parts", "model", "provider", "created_at", "updated_at", "finished_at",
                  "is_summary_message"})  # fmt: skip
_SESSION = ("id", "parent_session_id", "created_at", "updated_at", "cost", "message_count")
_SILENT = "silent_session"


class Crush(Adapter):
    """The database of Crush."""

    name = "crush"
    about = "Crush: sessions and messages of crush.db, parts as JSON; sub-agents name their parent"
    ignores: ClassVar[dict[str, str]] = {_SILENT: "a session in which nobody says anything"}

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of the database, or JSON."""
        return records(blocks, limits, {"sessions": _session_row, "messages": _message_row})

    def score(self, sample: Sample) -> float:
        """By its tables."""
        sessions = has_column(sample.head, "sessions", "parent_session_id")
        return 0.95 if sessions and has_column(sample.head, "messages", "parts") else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A row for each session."""
        sessions: dict[str, list[Record]] = {}
        for record in records:
            value = record.value
            name = value.get("row_of") if isinstance(value, dict) else None
            if not isinstance(name, str) or not (obj(value, "session") or obj(value, "message")):
                yield Unusable(record, "no_session", "a row is a session or a message of one; this is none")
            elif "message" in value and not _is_message(obj(value, "message")):
                yield Unusable(record, "bad_message", "a message has a known role and a list of parts; this has not")
            else:
                sessions.setdefault(name, []).append(record)
        for name, found in sessions.items():
            listed = [record.value["message"] for record in found if "message" in record.value]
            yield _conversation(name, found, listed) if listed else Ignored(_SILENT, len(found))


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in row.items() if item is not None and not isinstance(item, bytes)}


def _session_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `sessions`, under its name."""
    name = row.get("id")
    return Decoded({"row_of": name, "session": _told(row)}) if isinstance(name, str) and name else None


def _message_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `messages`, under its session, with its parts opened."""
    parts = row.get("parts")
    found = decode(parts.encode("utf-8", "surrogatepass")) if isinstance(parts, str) else Decoded(None)
    return Decoded(
        {"row_of": row.get("session_id"), "message": {**_told(row), "parts": found.value}}, found.notes, found.mended
    )


def _is_message(value: dict[str, Any]) -> bool:
    role = value.get("role")
    return isinstance(role, str) and role in _ROLES and isinstance(value.get("parts"), list)


def _conversation(name: str, records: list[Record], listed: list[dict[str, Any]]) -> Outcome:
    session: dict[str, Any] = {}
    for record in records:
        session |= obj(record.value, "session")
    listed = sorted(listed, key=lambda message: instant(message.get("created_at")).micros or 0)
    messages: list[Message] = []
    ended: dict[str, Any] = {}
    flags: set[str] = set()
    for value in listed:
        said = _Said(value)
        messages += said.done()
        ended = said.finish if value["role"] == "assistant" else {}
        if value.get("is_summary_message") in (1, True):
            flags.add("compacted")
    parent = identifier(session.get("parent_session_id"))
    reason, cost = text(ended.get("reason")), real(session.get("cost"))
    failed = " ".join(filter(None, (text(ended.get("message")), text(ended.get("details")))))
    rest = {key: item for key, item in (left(session, _SESSION) or {}).items() if item not in ("", 0, [], {})}
    return Conversation(
        messages,
        records,
        native_id=_key(name, listed[0]),
        conversation_id=name,
        parent=None if parent is None else Identity(_key(parent, None)),
        task_from_prompt=True,
        agent="crush",
        provider=next((found for value in listed[::-1] if (found := text(value.get("provider")))), None),
        status=_ENDS.get(reason or ""),
        finish_reason=reason,
        error=(failed or "error") if reason == "error" else None,
        started_at=session.get("created_at"),
        ended_at=session.get("updated_at"),
        usage=Tokens(cost_usd=cost) if cost else None,
        flags=flags or None,
        extra=rest or None,
    )


def _key(name: str, first: dict[str, Any] | None) -> str:
    """A session's id, which begins with one that is unique by its making; else with what was said first."""
    if first is None or is_global(name.partition("$$")[0]):
        return name
    told = encode([name, first.get("id"), first.get("created_at"), first.get("parts")])
    return f"crush:{digest(told.encode('utf-8', 'surrogatepass'))}"


class _Said:
    """The parts of one message, being told."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.finish: dict[str, Any] = {}
        self._value = value
        self._results: list[Message] = []
        self._message = Message(value["role"], id=identifier(value.get("id")), at=value.get("created_at"))
        self._rest = left(value, _ROW) or {}
        for part in value["parts"]:
            kind = text(part.get("type")) if isinstance(part, dict) else None
            data = obj(part, "data")
            if kind is None or not data or not self._take(kind, data):
                self._add(part)

    def _add(self, part: Any) -> None:
        self._message.parts = [*(self._message.parts or ()), part]

    def _take(self, kind: str, data: dict[str, Any]) -> bool:
        message = self._message
        if kind == "text" and isinstance(data.get("text"), str):
            message.content = f"{message.content}\n{data['text']}" if message.content else data["text"]
            message.synthetic = message.synthetic or (data.get("hidden") is True and message.role == "user")
        elif kind == "reasoning":
            thought = text(data.get("thinking"))
            message.reasoning = "\n".join(filter(None, (message.reasoning, thought))) or None
            rest = left(data, ("thinking", "started_at", "finished_at")) or {}
            if rest := {key: item for key, item in rest.items() if item != ""}:
                self._add({"type": "reasoning", **rest})
        elif kind == "tool_call":
            actor = "server" if data.get("provider_executed") is True else "agent"
            call = ToolCall(plain(data.get("name")), data.get("input"), identifier(data.get("id")), actor)
            message.calls = [*(message.calls or ()), call]
        elif kind == "tool_result":
            self._results.append(self._result(data))
        elif kind == "finish":
            self.finish = data
            message.finish_reason = text(data.get("reason"))
        else:
            return False
        return True

    def _result(self, data: dict[str, Any]) -> Message:
        made = Message("tool", plain(data.get("content")), call_id=identifier(data.get("tool_call_id")))
        made.name, made.at = text(data.get("name")), self._value.get("created_at")
        if isinstance(data.get("is_error"), bool):
            made.failed = data["is_error"]
        made.cancelled = made.failed is True and made.content == _CANCELED
        made.condition = "permission_denied" if made.failed and made.content == _DENIED else None
        if text(data.get("data")):
            made.parts = [{"type": "media", "data": data["data"], "mime_type": data.get("mime_type")}]
        told = data.get("metadata")
        told = (parsed(told) or told) if isinstance(told, str) and told else told
        made.extra = {"metadata": told} if told else None
        return made

    def done(self) -> list[Message]:
        """The message, and results as messages of their own; those alone where it is theirs."""
        message = self._message
        message.model = text(self._value.get("model")) if message.role == "assistant" else None
        if self._value.get("is_summary_message") in (1, True):
            self._rest["summary"] = True
        message.extra = self._rest or None
        if message.role == "tool" and self._results and not (message.content or message.parts):
            self._results[0].id = message.id
            self._results[0].extra = {**(self._results[0].extra or {}), **self._rest} or None
            return self._results
        return [message, *self._results]
