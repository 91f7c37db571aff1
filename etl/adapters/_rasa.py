"""Events of one Rasa conversation into sessions, and each session into what was said, done and undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from etl.adapters._blocks import identifier, plain
from etl.conversation import Message, ToolCall
from etl.decode import encode

_LISTEN = frozenset({"action_listen", "action_session_start"})
"""Actions that mark where a turn or a session begins."""
_HELD = frozenset({"event", "timestamp", "sender_id"})


class Turn(NamedTuple):
    """One event that is a message, with those that came of it."""

    event: dict[str, Any]
    after: list[dict[str, Any]]


class Line(NamedTuple):
    """What was said on one line: `turns[:own]` belong to the line it left."""

    turns: list[Turn]
    own: int


class Session:
    """The events from one start of a session to the next."""

    def __init__(self) -> None:
        self.start: Any = None
        self.before: list[dict[str, Any]] = []
        """Events before the first message."""
        self.turns: list[Turn] = []
        self.undone: list[Line] = []

    def take(self, event: dict[str, Any]) -> None:
        """Add an event; one that undoes turns takes them off the line."""
        kind = event.get("event")
        if kind in ("user", "bot") or (kind == "action" and not _marks(event.get("name"))):
            self.turns.append(Turn(event, []))
            return
        if kind == "restart":
            self._undo(0)
        elif kind == "rewind":
            self._undo(self._last("user"))
        elif kind == "undo":
            self._undo(self._last("action"))
        (self.turns[-1].after if self.turns else self.before).append(event)

    def lines(self) -> list[Line]:
        """The line that stands, then those that were undone."""
        return [Line(self.turns, 0), *self.undone]

    def _last(self, kind: str) -> int | None:
        places = [index for index, turn in enumerate(self.turns) if turn.event.get("event") == kind]
        return places[-1] if places else None

    def _undo(self, place: int | None) -> None:
        if place is None or place >= len(self.turns):
            return
        self.undone.append(Line(self.turns, place))
        self.turns = [Turn(turn.event, list(turn.after)) for turn in self.turns[:place]]


def _marks(name: Any) -> bool:
    """Whether an action marks a place, or only says what a bot event has."""
    return isinstance(name, str) and (name in _LISTEN or name.startswith("utter_"))


def sessions(events: Sequence[dict[str, Any]]) -> list[Session]:
    """The sessions of a conversation. The action that starts one stands just before its `session_started`."""
    found = [Session()]
    held: dict[str, Any] | None = None
    for event in events:
        if held is not None:
            if event.get("event") == "session_started":
                found.append(Session())
            found[-1].take(held)
            held = None
        elif event.get("event") == "session_started":
            found.append(Session())
        if event.get("event") == "action" and event.get("name") == "action_session_start":
            held = event
            continue
        if event.get("event") == "session_started":
            found[-1].start = event.get("timestamp")
        found[-1].take(event)
    if held is not None:
        found[-1].take(held)
    return [session for session in found if session.turns or session.undone or session.before]


def messages(line: Line) -> list[Message]:
    """The messages of a line. What an action changed is its result; an action at the very end has none yet."""
    found: list[Message] = []
    for index, turn in enumerate(line.turns):
        said = _message(turn.event)
        inherited = index < line.own
        said.inherited = inherited
        found.append(said)
        if said.calls and (turn.after or index + 1 < len(line.turns)):
            changed = [{key: item for key, item in event.items() if key not in _HELD} for event in turn.after]
            told = [{"event": event.get("event"), **left} for event, left in zip(turn.after, changed, strict=True)]
            call = said.calls[0]
            failed = any(event.get("event") == "action_execution_rejected" for event in turn.after)
            result = Message("tool", encode(told), call_id=call.id, name=call.name, inherited=inherited)
            result.failed = True if failed else None
            found.append(result)
        elif turn.after:
            said.extra = {**(said.extra or {}), "events": turn.after}
    _name_calls(found)
    return found


def _name_calls(found: list[Message]) -> None:
    """Ids for calls, which the log has none of, and for their results."""
    number = 0
    for index, message in enumerate(found):
        for call in message.calls or ():
            number += 1
            call.id = f"call_{number}"
            if index + 1 < len(found) and found[index + 1].role == "tool":
                found[index + 1].call_id = call.id


def _message(event: dict[str, Any]) -> Message:
    kind = event.get("event")
    extra = {key: item for key, item in event.items() if key not in _HELD and item is not None}
    if kind == "action":
        name = plain(extra.pop("name", None))
        made = Message("assistant", calls=[ToolCall(name, {}, at=event.get("timestamp"))])
    else:
        made = Message("user" if kind == "user" else "assistant", plain(extra.pop("text", None)))
        made.id = identifier(extra.pop("message_id", None))
        data = extra.get("data")
        if isinstance(data, dict):
            shown = {key: item for key, item in data.items() if item is not None}
            del extra["data"]
            made.parts = [shown] if shown else None
    made.at = event.get("timestamp")
    made.extra = extra or None
    return made
