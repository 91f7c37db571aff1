"""Rows of Google ADK's session databases: of its SQLite service, and of its database service before and since 1.22.

An event lies in one column (`event_data`), or, before, in a column for each of its fields; there its actions are
pickled and are not opened, and its time is the machine's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etl.adapters._chat import parsed
from etl.conversation import Record
from etl.decode import Decoded, decode
from etl.framing import Limits
from etl.times import instant

TABLES = ("sessions", "events")
_PLACE = ("app_name", "user_id", "session_id")
_OWN = frozenset({*_PLACE, "event_data"})
_FLAGS = ("partial", "turn_complete", "interrupted")
"""Columns of truth, which SQLite keeps as numbers."""
_EVENT, _SESSION = "stored_event", "stored_session"


def session_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `sessions`, under what names it."""
    told = {key: _opened(item) for key, item in row.items() if item is not None and not isinstance(item, bytes)}
    place = {key: told.get("id" if key == "session_id" else key) for key in _PLACE}
    return Decoded({**place, _SESSION: {key: item for key, item in told.items() if item not in ({}, [], "")}})


def event_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `events`, under its session."""
    place = {key: row.get(key) for key in _PLACE}
    data = row.get("event_data")
    if isinstance(data, str):
        found = decode(data.encode("utf-8", "surrogatepass"))
        told = {"timestamp": row.get("timestamp"), "id": row.get("id"), "invocation_id": row.get("invocation_id")}
        event = {**told, **found.value} if isinstance(found.value, dict) else found.value
        return Decoded({**place, _EVENT: event}, found.notes, found.mended)
    own = {key: _opened(item) for key, item in row.items() if key not in _OWN and item is not None}
    own |= {key: bool(own[key]) for key in _FLAGS if own.get(key) in (0, 1)}
    return Decoded({**place, _EVENT: {key: item for key, item in own.items() if not isinstance(item, bytes)}})


def _opened(value: Any) -> Any:
    """A column of JSON."""
    found = parsed(value) if isinstance(value, str) and value[:1] in ("{", "[") else None
    return value if found is None else found


def is_row(value: Any) -> bool:
    """Whether it is a row of either table."""
    if not isinstance(value, dict) or not isinstance(value.get("session_id"), str):
        return False
    return isinstance(value.get(_EVENT), dict) or isinstance(value.get(_SESSION), dict)


def place_of(value: dict[str, Any]) -> tuple[str, str, str]:
    """The session that a row belongs to."""
    app, user, name = (value.get(key) for key in _PLACE)
    return str(app), str(user), str(name)


def joined(rows: Sequence[Record]) -> dict[str, Any]:
    """A session as ADK itself dumps it, its events in the order of their times; those of one time as they lie."""
    about: dict[str, Any] = {}
    events: list[Any] = []
    for row in rows:
        session = row.value.get(_SESSION)
        if isinstance(session, dict):
            about |= session
        if isinstance(row.value.get(_EVENT), dict):
            events.append(row.value[_EVENT])
    events.sort(key=lambda event: instant(event.get("timestamp")).micros or 0)
    first = rows[0].value
    made = {"app_name": first.get("app_name"), "user_id": first.get("user_id"), "id": first["session_id"]}
    rest = {key: item for key, item in about.items() if key not in ("create_time", "update_time")}
    updated = about.get("update_time")
    return {**made, **rest, "events": events, **({"last_update_time": updated} if updated is not None else {})}
