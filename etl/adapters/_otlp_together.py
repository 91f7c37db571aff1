"""Calls that one answer made together, and that later requests tell one after the other, each before its result.

Some frameworks (Koog) send a model the history so: it would begin as no answer did, and be a conversation of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from etl.adapters._otlp_threads import Call
from etl.conversation import Message, ToolCall

Together = dict[str, dict[str, str]]
"""Id of a call → the calls of its answer: id → name."""


def tell_together(calls: Sequence[Call]) -> None:
    """Put calls that histories tell apart back into the message that made them."""
    made = _made(calls)
    done: set[int] = set()
    for call in calls if made else ():
        if id(call.turn) not in done:
            done.add(id(call.turn))
            if any(_apart(message, made) for message in call.turn.inputs):
                call.turn.inputs = _joined(call.turn.inputs, made)


def _made(calls: Iterable[Call]) -> Together:
    """Calls that answers made together; none whose ids stand in several answers that differ."""
    found: Together = {}
    several: set[str] = set()
    for call in calls:
        for message in call.answer():
            named = {made.id: made.name for made in message.calls or () if made.id}
            if len(named) < 2 or len(named) != len(message.calls or ()):
                continue
            for own in named:
                if found.setdefault(own, named) != named:
                    several.add(own)
    return {own: named for own, named in found.items() if not several.intersection(named)}


def _apart(message: Message, made: Together) -> bool:
    """Whether a message has some of the calls of an answer, and not all."""
    calls = message.calls or []
    named = made.get(calls[0].id or "") if calls and message.role == "assistant" else None
    return named is not None and len(calls) < len(named) and all(named.get(c.id or "") == c.name for c in calls)


def _joined(history: Sequence[Message], made: Together) -> list[Message]:
    told: list[Message] = []
    place = 0
    while place < len(history):
        first = history[place]
        place += 1
        if not _apart(first, made):
            told.append(first)
            continue
        calls: list[ToolCall] = list(first.calls or ())
        named = made[calls[0].id or ""]
        results: list[Message] = []
        while place < len(history) and _goes_on(history[place], named, calls):
            message = history[place]
            if message.role == "tool":
                before = history[place - 1].calls or []  # a result without an id is that of the one call before it
                own = message.call_id or (before[0].id if len(before) == 1 else None)
                results.append(msgspec.structs.replace(message, call_id=own))
            calls += message.calls or ()
            place += 1
        order = list(named)
        calls.sort(key=lambda call: order.index(call.id or ""))
        told += [msgspec.structs.replace(first, calls=calls), *results]
    return told


def _goes_on(message: Message, named: dict[str, str], calls: Sequence[ToolCall]) -> bool:
    """Whether it is a result of these calls, or nothing but more calls of the same answer."""
    if message.role == "tool":
        return message.call_id is None or message.call_id in named
    if message.role != "assistant" or message.content or message.reasoning or message.parts or not message.calls:
        return False
    known = {call.id for call in calls}
    return all(call.id not in known and named.get(call.id or "") == call.name for call in message.calls)
