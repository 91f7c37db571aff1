"""Stored calls as they are read back: copies of one call, polls of one response and parts of one record made one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from etl.adapters._api_form import Body
from etl.conversation import Record, StoredEvent


class Call(msgspec.Struct, gc=False):
    """A stored call; see `_api_calls.py`."""

    call: str
    api: str
    path: list[int] = msgspec.field(default_factory=list)
    states: list[tuple[int, int]] = msgspec.field(default_factory=list)
    said: dict[str, Body] = msgspec.field(default_factory=dict)
    asked: int = 0
    outs: list[int] = msgspec.field(default_factory=list)
    answers: list[Body] = msgspec.field(default_factory=list)
    kit: int | None = None
    kits: dict[str, Any] = msgspec.field(default_factory=dict)
    """Tool definitions that were new with this call, by digest; `kit` names those of the call."""
    tools: Any = None
    model: str | None = None
    asked_model: str | None = None
    provider: str | None = None
    at: Any = None
    ended_at: Any = None
    created: Any = None
    error: str | None = None
    done: bool = True
    usage: Body | None = None
    response_id: str | None = None
    previous: str | None = None
    thread: str | None = None
    request: Body = msgspec.field(default_factory=dict)
    response: Body = msgspec.field(default_factory=dict)
    log: Body = msgspec.field(default_factory=dict)
    flags: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    mended: list[tuple[str, str]] = msgspec.field(default_factory=list)
    captured: bool = True
    key: str = ""
    """The conversation that it was stored under."""
    moment: int | None = None
    """Microseconds since the epoch."""
    record: str = ""
    """Digest of the record that it was read from."""
    line: bool = False
    """Whether its request is a record of its own, which may be read before there is a response."""
    events: list[StoredEvent] = msgspec.field(default_factory=list)
    unsure: bool = False
    """Where what it continues is not there, or one of several."""

    def order(self) -> tuple[bool, int, str]:
        """By time, then by name: the same for the same set of calls."""
        return self.moment is None, self.moment or 0, self.call

    def named(self) -> str | None:
        """Its name, where that is not only ours."""
        return None if self.call.startswith("call:") else self.call

    def records(self) -> list[Record]:
        """What it was read from."""
        return [event.record for event in self.events]


def stored_calls(family: Sequence[StoredEvent], messages: dict[int, Body]) -> dict[str, Call]:
    """Calls by name, copies and polls of one response made one; what they sent goes to `messages`."""
    found: dict[str, list[Call]] = {}
    bridges: dict[str, list[StoredEvent]] = {}
    kits: dict[str, Any] = {}
    for event in family:
        value = event.record.value
        if "bridge" in value:
            bridges.setdefault(value["bridge"], []).append(event)
            continue
        call = msgspec.convert(value, Call)
        call.key, call.moment, call.events = event.key, event.at, [event]
        event.record.notes, event.record.mended = tuple(call.notes), tuple(call.mended)
        messages.update((int(name), form) for name, form in call.said.items())
        kits.update(call.kits)
        found.setdefault(call.call, []).append(call)
    answered = {call.record for same in found.values() for call in same if call.answers or call.error}
    for name, same in list(found.items()):
        # A request line whose response came a night later: it is in the answered call again.
        found[name] = same = [
            call for call in same if call.answers or call.error or not call.line or call.record not in answered
        ]
        for call in same:
            call.tools = kits.get(str(call.kit))
    calls: dict[str, Call] = {}
    for name, same in sorted(item for item in found.items() if item[1]):
        for number, call in enumerate(_distinct(same)):
            call.events += _once(bridges.get(name, ()))
            if number:
                # One id under two requests (a replayed recording): calls of their own, told apart by what they asked.
                call.call = f"{name}#{call.asked}"
            calls[call.call] = call
    return calls


def _once(bridges: Iterable[StoredEvent]) -> list[StoredEvent]:
    """Bridges that are records of their own, copies dropped; those that only link are the call's own record again."""
    found: dict[str, StoredEvent] = {}
    for event in bridges:
        record = event.record.value.get("record")
        if type(record) is str:
            found.setdefault(record, event)
    return list(found.values())


def _distinct(same: list[Call]) -> list[Call]:
    """Calls of one name, one for each request; polls, which send none, are added to the first."""
    asked: dict[int, list[Call]] = {}
    polls: list[Call] = []
    for call in same:
        if call.path or call.request:
            asked.setdefault(call.asked, []).append(call)
        else:
            polls.append(call)
    if not asked:
        return [_merged(polls)]
    merged = [_merged(calls) for calls in asked.values()]
    merged.sort(key=lambda call: (call.order(), call.asked))
    if polls:
        merged[0] = _merged([merged[0], *polls])
    return merged


def _merged(calls: list[Call]) -> Call:
    """The fullest of several logs of one call, with the request of the one that has it and the records of all."""
    ranked = sorted(calls, key=_fullness, reverse=True)
    best = ranked[0]
    first = min(calls, key=Call.order)
    sent = next((call for call in ranked if call.path or call.request), best)
    if sent is not best:
        outs = best.outs if best.asked == sent.asked or not sent.outs else sent.outs
        for name in ("path", "states", "asked", "request", "tools", "previous", "thread", "asked_model", "key"):
            setattr(best, name, getattr(sent, name))
        best.outs = outs
    else:
        best.key = min(call.key for call in calls if call.asked == best.asked)
    best.at, best.moment = first.at, first.moment
    logs: dict[str, StoredEvent] = {}
    for call in calls:
        for event in call.events:
            logs.setdefault(event.record.value["record"], event)
    best.events = sorted(logs.values(), key=_place)
    return best


def _place(event: StoredEvent) -> tuple[int, str, int]:
    return event.at or 0, event.source_uri, event.record.offset or 0


def _fullness(call: Call) -> tuple[Any, ...]:
    return (
        call.done and call.error is None,
        bool(call.answers),
        len(call.answers),
        sum(len(answer.get("messages", ())) for answer in call.answers),
        call.usage is not None,
        call.moment or 0,
        msgspec.json.encode((call.answers, call.request, call.log, call.flags)),
    )
