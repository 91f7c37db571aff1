"""The lines of Codex rollout files: what each is, and which of them a fork copied from the session it came from.

A line is `{timestamp, type, payload}`. Old files have bare lines: a header `{id, timestamp, instructions}` and the
items of the Responses API. A forked session and a sub-agent's may begin with the lines of their parent, the times old
or new; they carry the parent's `session_meta` after their own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from etl.adapters._codex_turn_items import DONE, event_of
from etl.adapters._session import canonical, dict_of, stored, text_of
from etl.conversation import Record, StoredEvent
from etl.times import instant

META, CONTEXT, ITEM, EVENT, COMPACTED, NOTE = "meta", "context", "item", "event", "compacted", "note"
USAGE = "token_usage_record"
_BETWEEN = "inter_agent_communication"
"""What one agent told another, in versions that did not write it as an item."""
_ENVELOPES = {
    "session_meta": META,
    "turn_context": CONTEXT,
    "response_item": ITEM,
    "event_msg": EVENT,
    "compacted": COMPACTED,
    "inter_agent_communication_metadata": NOTE,
    _BETWEEN: ITEM,
    USAGE: EVENT,
}
BARE_ITEMS = frozenset(
    {
        "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
        "local_shell_call", "web_search_call", "tool_search_call", "tool_search_output", "tool_call", "tool_result",
        "image_generation_call",
    }
)  # fmt: skip


class Line(msgspec.Struct, gc=False, eq=False):
    """One line of a session."""

    kind: str
    type: str
    """The type of the payload."""
    payload: dict[str, Any]
    record: Record
    time: Any
    """As logged."""
    at: int | None
    """Microseconds since the epoch."""
    ordinal: int | None = None
    """Its place in its thread, where the file numbers its lines."""
    done: bool = False
    """True for an event that the file tells as an item of a turn."""
    copied: bool = False
    """True where an earlier session owns it."""
    lent: bool = False
    """True where it lies with an earlier session alone, which this one goes on from."""
    repeats: bool = False
    """True for an event whose text an item says."""


def classify(value: Any) -> tuple[str, str, dict[str, Any]] | None:
    """(kind, payload type, payload) of a line; None where it is none of a rollout."""
    if not isinstance(value, dict):
        return None
    kind = text_of(value, "type")
    if kind is None:
        bare = text_of(value, "id") and text_of(value, "timestamp")
        return (META, "session_meta", value) if bare and ("instructions" in value or "git" in value) else None
    payload = value.get("payload", value.get("item"))
    if kind in _ENVELOPES:
        return (_ENVELOPES[kind], *_told(kind, payload)) if isinstance(payload, dict) else None
    if kind in BARE_ITEMS and payload is None:
        return (ITEM, kind, value)
    return None


def _told(kind: str, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(payload type, payload) of a line of that envelope."""
    if kind == _BETWEEN:
        return "agent_message", _between(payload)
    if kind == USAGE:
        return USAGE, payload
    inner = text_of(payload, "type") or ""
    return event_of(payload) if kind == "event_msg" and inner == DONE else (inner, payload)


def _between(payload: dict[str, Any]) -> dict[str, Any]:
    """What one agent told another, as the item that newer versions write."""
    sealed = text_of(payload, "encrypted_content")
    content = payload.get("content") or (sealed and [{"type": "encrypted_content", "encrypted_content": sealed}])
    return {**payload, "content": content, "encrypted_content": None}


def lines_of(events: Iterable[StoredEvent]) -> list[Line]:
    """The lines of one session, in the order of its events."""
    found = []
    for event in events:
        value = stored(event)
        classified = classify(value)
        if classified is not None:
            number, done = value.get("ordinal"), text_of(value.get("payload"), "type") == DONE
            ordinal = number if type(number) is int else None
            found.append(Line(*classified, event.record, value.get("timestamp"), event.at, ordinal, done))
    return found


def session_of(payload: dict[str, Any]) -> str | None:
    """The session that a header names: of a sub-agent its own `id`, not the `session_id` that it shares."""
    return text_of(payload, "id", "session_id")


def parent_of(payload: dict[str, Any]) -> str | None:
    """The session that a header says this one came from."""
    spawn = dict_of(dict_of(dict_of(payload, "source"), "subagent"), "thread_spawn")
    named = text_of(payload, "forked_from_id", "parent_thread_id") or text_of(spawn, "parent_thread_id")
    base = text_of(dict_of(payload, "history_base"), "thread_id")
    return named or (base if base != session_of(payload) else None)


def base_of(payload: dict[str, Any]) -> tuple[str, int] | None:
    """(session, ordinal) up to which a header says that the history lies there and not in its own file."""
    base = dict_of(payload, "history_base")
    session, end = text_of(base, "thread_id"), base.get("end_ordinal_exclusive")
    return (session, end) if session is not None and type(end) is int else None


def with_base(key: str, found: dict[str, list[Line]], within: frozenset[str] = frozenset()) -> list[Line]:
    """The lines of a session, after its header those that it goes on from, which lie with the session that has them."""
    lines = found[key]
    own = header(key, lines)
    base = None if own is None else base_of(own.payload)
    if base is None or base[0] == key or base[0] not in found or base[0] in within:
        return lines
    before = with_base(base[0], found, within | {key})
    lent = [msgspec.structs.replace(line, copied=True, lent=True) for line in before if _is_before(line, base[1])]
    start = 1 if lines[0] is own else 0
    return [*lines[:start], *lent, *lines[start:]]


def _is_before(line: Line, end: int) -> bool:
    return line.lent or (line.ordinal is not None and line.ordinal < end)


def header(key: str, lines: Iterable[Line]) -> Line | None:
    """The header of the session itself: the first that names it, else the first of all."""
    headers = [line for line in lines if line.kind == META]
    return next((line for line in headers if session_of(line.payload) == key), headers[0] if headers else None)


def mark_copied(key: str, lines: list[Line], parent: list[Line] | None) -> None:
    """Mark the lines that a session has from its parent: where its own begin it may say, else by what the parent says;
    without the parent, by their times.
    """
    own = header(key, lines)
    if own is None or parent_of(own.payload) is None:
        return
    for line in lines:
        if line.kind == META and session_of(line.payload) not in (None, key):
            line.copied = True
    rest = [line for line in lines if line.kind != META]
    first = _first_own(key, own, rest)
    if first is not None:
        for line in rest[:first]:
            line.copied = True
        return
    for line in _as_in(rest, parent) if parent is not None else _before(own, rest, any(line.copied for line in lines)):
        line.copied = True


def _first_own(key: str, own: Line, lines: list[Line]) -> int | None:
    """Where a session's own lines begin, by the number in its header or by the settings that end what was copied."""
    start = own.payload.get("subagent_history_start_ordinal")
    if type(start) is int and any(line.ordinal is not None for line in lines):
        owned = (n for n, line in enumerate(lines) if line.ordinal is not None and line.ordinal >= start)
        return next(owned, len(lines))
    for number, line in enumerate(lines):
        if line.type == "thread_settings_applied" and text_of(line.payload, "thread_id") == key:
            soon = line.at is not None and own.at is not None and line.at - own.at < _COPYING
            return number if soon else None
    return None


_COPYING = 30_000_000
"""Microseconds within which a session that begins has copied its parent's lines."""


def _as_in(lines: list[Line], parent: list[Line]) -> Iterator[Line]:
    """The first lines, as long as the parent has their like in the same order; it may have more."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(parent):
        places.setdefault(_said(line), []).append(number)
    last = -1
    for line in lines:
        found = places.get(_said(line), [])
        place = bisect_right(found, last)
        if place == len(found):
            return
        last = found[place]
        yield line


def _said(line: Line) -> str:
    return canonical([line.kind, line.payload])


def _before(own: Line, lines: list[Line], replayed: bool) -> Iterator[Line]:
    """The lines of turns that began before the session did; the ids of turns are UUIDs with a time in them."""
    start = instant(own.payload.get("timestamp", own.time)).micros
    start = start if start is not None else own.at
    if start is None:
        return
    old = False
    for number, line in enumerate(lines):
        turn = _begun(text_of(line.payload, "turn_id")) if replayed else None
        if turn is not None:
            old = turn < start - 1_000_000
        elif number == 0 and replayed:
            later = (_begun(text_of(each.payload, "turn_id")) for each in lines)
            old = (next((at for at in later if at is not None), start)) < start - 1_000_000
        if old or (line.at is not None and line.at < start - 1_000_000):
            yield line


def _begun(name: str | None) -> int | None:
    """When a UUID of version 7 was made, in microseconds.

    >>> _begun("019fc8be-0000-7000-8000-000000000001"), _begun("turn-1")
    (1785779322880000, None)
    """
    if name is None or len(name) != 36 or name[14] != "7":
        return None
    try:
        return int(name[:8] + name[9:13], 16) * 1000
    except ValueError:
        return None
