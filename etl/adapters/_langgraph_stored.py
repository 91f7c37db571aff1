"""What LangGraph's SQLite saver keeps, as JSON: MessagePack with its own types, or JSON; nothing of it is built again.

Every checkpoint holds the whole list of messages. A message is given once, where it first stands or was changed;
after that its name stands for it, so that a long thread costs what it says and not its square.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec

from etl.adapters._chat import ROLES
from etl.adapters._langchain import message_of
from etl.conversation import Record
from etl.decode import Decoded, JsonError, decode, encode
from etl.framing import Broken, Framed, Limits
from etl.identity import digest

KEYS = ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id")
TOLD = ("__error__", "__interrupt__")
"""Channels of what no later checkpoint repeats."""
OPENED = "opened"
"""The type of a value that is opened already."""
_START = "__start__"
MESSAGES = ("messages", "chat_history", "history")
_SINGLE, _METHOD = (0, 3), (1, 2, 4, 5)
"""Types of MessagePack: (module, class, one argument), and (module, class, arguments)."""
FAULTS = (msgspec.DecodeError, RecursionError, ValueError, TypeError, OverflowError)


class Tables(Protocol):
    """What has rows by table: a database, or a dump of one."""

    def rows(self, table: str, only: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """The rows of a table by column, or `only` by these; none where there is no such table."""


def framed(stored: Tables, limits: Limits) -> Iterator[Framed]:
    """The rows of both tables, of each thread in the order they were written."""
    above = {_place(row): row.get("parent_checkpoint_id") for row in stored.rows("checkpoints", KEYS)}
    followed = {(*place[:2], parent) for place, parent in above.items()}
    given: set[tuple[Any, ...]] = set()
    number = 0
    for table, shape in (("checkpoints", _checkpoint), ("writes", _write)):
        for row in stored.rows(table):
            last = _place(row) not in followed
            try:
                found = decode(encode(shape(row, last, given)).encode("utf-8", "surrogatepass"))
                raw = encode(found.value).encode("utf-8", "surrogatepass")
                yield Record(found.value, raw, number + 1, number, found.notes, found.mended)
            except FAULTS as error:
                raw = encode({key: row.get(key) for key in (*KEYS, "type", "channel") if key in row}).encode()
                message = f"a row of the table {table} cannot be opened ({str(error)[:80]}); see what wrote it"
                yield Broken("bad_state", message, raw, number + 1, number)
            number += 1


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(key) or "" for key in KEYS[:3])


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in KEYS if isinstance(row.get(key), (str, int))}


def _checkpoint(row: dict[str, Any], last: bool, given: set[tuple[Any, ...]]) -> dict[str, Any]:
    """A checkpoint: its messages, and, where no other follows it, all that it holds."""
    held = opened(row.get("type"), row.get("checkpoint"))
    values = held.get("channel_values") if isinstance(held, dict) else None
    made: dict[str, Any] = {**_told(row), "ts": held.get("ts") if isinstance(held, dict) else None}
    if not isinstance(values, dict):
        return {**made, "messages": []}
    channel = channel_of(values)
    listed = values[channel] if channel is not None else []
    places = _place(row)[:2]
    made |= {"channel": channel, "messages": [_once(places, name, item, given) for name, item in named(listed)]}
    if last:
        metadata = row.get("metadata")
        made["metadata"] = opened(
            "json" if not isinstance(metadata, bytes) or metadata[:1] == b"{" else "msgpack", metadata
        )
        made["state"] = {key: item for key, item in values.items() if key not in (channel, _START) and _says(key, item)}
        start = values.get(_START)
        asked = start.get(channel_of(start)) if isinstance(start, dict) else start
        made["asked"] = [item for item in asked if is_message(item)] if isinstance(asked, list) else []
    return made


def _says(key: str, item: Any) -> bool:
    return item not in (None, "", [], {}) and not key.startswith("branch:")


def _write(row: dict[str, Any], last: bool, given: set[tuple[Any, ...]]) -> dict[str, Any]:
    """What a task wrote: the next checkpoint has it, where there is one."""
    made = {**_told(row), "task_id": row.get("task_id"), "channel": row.get("channel")}
    if not last and row.get("channel") not in TOLD:
        return made
    return {**made, "value": opened(row.get("type"), row.get("value"))}


def _once(places: tuple[Any, ...], name: str, item: Any, given: set[tuple[Any, ...]]) -> Any:
    known = (*places, name, digest(encode(item).encode("utf-8", "surrogatepass")))
    if known in given:
        return name
    given.add(known)
    return item


def named(listed: list[Any]) -> Iterator[tuple[str, Any]]:
    """The messages with a name each: their id, else a hash of what they say and how often that was said before."""
    seen: dict[str, int] = {}
    for item in listed:
        if isinstance(item, str):
            yield item, None
            continue
        if not isinstance(item, dict):
            continue
        found = message_of(item)[1].get("id")
        name = (
            found if isinstance(found, str) and found else f"h_{digest(encode(item).encode('utf-8', 'surrogatepass'))}"
        )
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name}#{seen[name]}"), item


def is_message(item: Any) -> bool:
    """Whether it is a message: LangChain's, or a plain one with a role."""
    if not isinstance(item, dict):
        return False
    role = item.get("role")
    return message_of(item)[0] is not None or (isinstance(role, str) and role in ROLES and "content" in item)


def channel_of(values: dict[str, Any]) -> str | None:
    """The channel of a state that holds the conversation."""
    for key in (*MESSAGES, *values):
        listed = values.get(key)
        if key != _START and isinstance(listed, list) and listed and all(map(is_message, listed)):
            return key
    return None


def opened(kind: Any, data: Any) -> Any:
    """A stored value. What only Python can build again (pickle), and what is encrypted, is not opened."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if kind == OPENED:
        return data
    if raw is None or kind == "null":
        return None
    if kind in ("bytes", "bytearray"):
        return {"bytes": len(raw)}
    if kind == "msgpack":
        return _plain(msgspec.msgpack.decode(raw, ext_hook=_extension))
    if kind in ("json", None) and isinstance(raw, bytes):
        found: Decoded = decode(raw)
        return _revived(found.value)
    raise JsonError(f"it is stored as {str(kind)[:40]}", 0, True)


def _extension(code: int, data: memoryview) -> Any:
    """A value of a type of its own: its class, and what it is made of."""
    told = msgspec.msgpack.decode(data, ext_hook=_extension)
    if not isinstance(told, list) or len(told) < 3:
        return {"extension": code, "value": told}
    module, name, held = told[:3]
    if code in _SINGLE:
        return held
    if code in _METHOD and isinstance(held, dict):
        return held if message_of(held)[0] is not None else {"class": f"{module}.{name}", **held}
    return {"class": f"{module}.{name}", "value": held}


def _plain(value: Any) -> Any:
    """A value as JSON has it: keys are text, bytes are counted."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": len(value)}
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _revived(value: Any) -> Any:
    """JSON whose objects of other types stand as what makes them (`lc: 2`)."""
    if isinstance(value, list):
        return [_revived(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("lc") == 2 and value.get("type") == "constructor" and isinstance(value.get("id"), list):
        held, given = value.get("kwargs"), value.get("args")
        if isinstance(held, dict):
            held = _revived(held)
            return held if message_of(held)[0] is not None else {"class": ".".join(map(str, value["id"])), **held}
        return _revived(given[0]) if isinstance(given, list) and len(given) == 1 else _revived(given)
    return {key: _revived(item) for key, item in value.items()}
