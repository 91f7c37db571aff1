"""Rasa trackers: events of a conversation, one a line or in the `events` of a tracker.

A session is a row. What `rewind`, `undo` and `restart` took back is a row of its own, flagged `abandoned`, with what
came before it inherited. Actions that only utter are what the bot said; other actions are steps, and the events that
they caused are their results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from etl.adapter import FileContext
from etl.adapters._blocks import identifier
from etl.adapters._claude_lines import is_global
from etl.adapters._rasa import Line, Session, messages, sessions
from etl.adapters._records import ClaimAdapter
from etl.conversation import Conversation, Fragment, Identity, Ignored, Outcome, Record, StoredEvent, Unusable

_STATE = "tracker"
"""Event type under which the state of a whole tracker is stored."""
_KINDS = frozenset(
    {
        "user", "bot", "action", "slot", "session_started", "restart", "rewind", "undo", "active_loop", "form",
        "followup", "reminder", "cancel_reminder", "pause", "resume", "export", "agent", "reset_slots",
        "user_featurization", "entities", "action_execution_rejected", "loop_interrupted", "flow_started",
        "flow_completed",
    }
)  # fmt: skip


class RasaTracker(ClaimAdapter):
    """Conversations as Rasa tracks them."""

    name = "rasa_tracker"
    version = 1
    about = "Rasa trackers: events one a line or in a tracker's `events`; sessions are rows, what was undone is too"
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {"no_words": "events of a session in which nobody said or did anything"}

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of events of known types with a sender, and of trackers of them."""
        events = value.get("events")
        if isinstance(events, list) and "sender_id" in value:
            return 0.95 if events and all(map(_is_event, events[:8])) else 0.0
        return 0.9 if _is_event(value) and "timestamp" in value and "sender_id" in value else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every event, and one for the rest of a tracker."""
        for record in records:
            value = record.value
            if isinstance(value, dict) and isinstance(value.get("events"), list):
                yield from _tracker(record, value)
                continue
            sender = identifier(value.get("sender_id")) if isinstance(value, dict) else None
            if sender is None or not isinstance(value.get("event"), str):
                yield Unusable(record, "bad_event", "an event is an object with `event` and `sender_id`; this is none")
            else:
                yield Fragment(record, sender, at=value.get("timestamp"))

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The sessions of one sender, and what was undone in them."""
        yield from _Sender(family).rows()


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("event"), str) and value["event"] in _KINDS


def _tracker(record: Record, value: dict[str, Any]) -> Iterator[Outcome]:
    """The events of a whole tracker, each with the sender, and its state."""
    sender = identifier(value.get("sender_id"))
    if sender is None:
        yield Unusable(record, "bad_event", "a tracker names its conversation in `sender_id`; this one does not")
        return
    state = {key: item for key, item in value.items() if key not in ("events", "sender_id")}
    yield Fragment(record, sender, at=value.get("latest_event_time"), payload={"event": _STATE, "state": state})
    for event in value["events"]:
        raw = msgspec.json.encode(event)
        own = Record(event, raw, record.line, record.offset, record.notes, record.mended)
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            yield Fragment(own, sender, at=event.get("timestamp"))
        else:
            yield Unusable(own, "bad_event", "an event is an object with `event`; this is none")


class _Sender:
    """One conversation, put together from its events."""

    def __init__(self, family: Sequence[StoredEvent]) -> None:
        self.id = family[0].key
        self.key = self.id if is_global(self.id) else f"rasa:{self.id}"
        self.n_records = len(family)
        self.records: dict[int, Record] = {}
        self.state: Any = None
        self.names: set[str] = set()
        events: dict[bytes, dict[str, Any]] = {}
        for event in family:
            value = event.record.value
            if value.get("event") == _STATE and "state" in value:
                self.state = value["state"]
                continue
            told = msgspec.json.encode({key: item for key, item in value.items() if key != "sender_id"})
            if told not in events:
                events[told] = value
                self.records[id(value)] = event.record
        self.sessions = sessions(list(events.values()))

    def rows(self) -> Iterator[Conversation | Ignored]:
        """A row for each line on which something was said or done."""
        silent = 0
        for session in self.sessions:
            made = list(self._session(session, session is self.sessions[-1]))
            yield from made
            silent += 0 if made else len(session.before)
        if silent:
            yield Ignored("no_words", silent)

    def _session(self, session: Session, last: bool) -> Iterator[Conversation]:
        main = Identity(self.key, branch=self._unique("" if session.start is None else str(session.start)))
        for number, line in enumerate(session.lines()):
            if len(line.turns) == line.own:
                continue
            first = line.turns[line.own].event
            branch = self._unique(f"{main.branch}/{first.get('timestamp')}") if number else main.branch
            extra: dict[str, Any] = {"events": session.before} if session.before and not number else {}
            if last and not number and self.state:
                extra["tracker"] = self.state
            yield Conversation(
                messages(line),
                self._records(line),
                native_id=self.key,
                conversation_id=self.id,
                branch=branch,
                parent=main if number else None,
                policy_version=_latest(line, "model_id"),
                agent=_latest(line, "assistant_id"),
                started_at=session.start if number == 0 else None,
                flags={"abandoned"} if number else None,
                extra=extra or None,
            )

    def _records(self, line: Line) -> list[Record]:
        events = [event for turn in line.turns for event in (turn.event, *turn.after)]
        return [self.records[id(event)] for event in events if id(event) in self.records]

    def _unique(self, name: str) -> str:
        unique, number = name, 2
        while unique in self.names:
            unique = f"{name}#{number}"
            number += 1
        self.names.add(unique)
        return unique


def _latest(line: Line, key: str) -> str | None:
    return next((found for turn in reversed(line.turns) if (found := identifier(turn.event.get(key)))), None)
