"""Threads that go on from one another although no history says so in full.

A trace of a session goes on from an earlier one; a call that names the response before it (`previous_response_id`), or
begins with the result of a call that another one made, goes on from there: its provider kept the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from etl.adapters._langchain import opened_all
from etl.adapters._otlp_threads import Atom, Call, Thread, atoms
from etl.conversation import Message

_INSTRUCTIONS = frozenset({"system", "developer"})


def strung(made: list[Thread]) -> list[Thread]:
    """Threads that go on from one another as one, in order of time; owners come before their heirs."""
    ends = _Ends()
    joined: dict[int, Thread] = {}
    kept: list[Thread] = []
    for thread in sorted(made, key=lambda thread: (*thread.calls[0].span.at(), thread.calls[0].choice)):
        before = ends.before(thread) if thread.captured and thread.parent is None else None
        if before is None:
            kept.append(thread)
        else:
            joined[id(thread)] = before
            before.calls += thread.calls
            thread = before
        if thread.captured:
            ends.add(thread)
    for thread in kept:
        while thread.parent is not None and id(thread.parent) in joined:
            thread.parent = joined[id(thread.parent)]
    return _owners_first(kept)


class _Ends:
    """How the threads met so far end: by all that was said, by the calls that wait for a result, by the response."""

    def __init__(self) -> None:
        self._told: dict[tuple[Atom, ...], Thread] = {}
        self._waiting: dict[tuple[str, str], Thread] = {}
        self._responses: dict[str, Thread] = {}

    def add(self, thread: Thread) -> None:
        """Remember the end of a thread."""
        last = thread.calls[-1]
        self._told.setdefault(tuple(_atoms([*last.turn.inputs, *last.answer()])), thread)
        for call in (call for message in last.answer() for call in message.calls or ()):
            if call.id is not None:
                self._waiting[thread.scope, call.id] = thread
        if last.facts.response_id is not None:
            self._responses[last.facts.response_id] = thread

    def before(self, thread: Thread) -> Thread | None:
        """The thread that this one goes on from; its calls then have the whole history."""
        first = thread.calls[0]
        spoken = [message for message in first.turn.inputs if message.role not in _INSTRUCTIONS]
        named = _previous_response(first)
        before = self._responses.get(named) if named is not None else None
        if before is None and spoken and spoken[0].role == "tool" and spoken[0].call_id is not None:
            before = self._waiting.get((thread.scope, spoken[0].call_id))
        if before is not None and before is not thread:
            last = before.calls[-1]
            _lead(thread, [*last.turn.inputs, *last.answer()])
            return before
        return self._continued(thread)

    def _continued(self, thread: Thread) -> Thread | None:
        """The thread of an earlier trace whose whole is the beginning of this history.

        Instructions are no part of this where the later one has none (the state of a graph has not).
        """
        first = thread.calls[0].turn.inputs
        history = _atoms(first)
        for end in range(len(history), 1, -1) if self._told else ():
            before = self._told.get(tuple(history[:end]))
            if before is None or before.scope == thread.scope:
                continue
            instructions = _instructions(first)
            leading = [message for message in before.calls[0].turn.inputs if message.role in _INSTRUCTIONS]
            if not instructions or instructions == _instructions(leading):
                del self._told[tuple(history[:end])]
                if not instructions and leading:
                    _lead(thread, leading)
                return before
        return None


def _lead(thread: Thread, leading: Sequence[Message]) -> None:
    """Put what went before at the beginning of every history of a thread, in the place of its own instructions."""
    for call in thread.calls:
        own = call.turn.inputs
        if any(message.role in _INSTRUCTIONS for message in leading):
            own = [message for message in own if message.role not in _INSTRUCTIONS]
        call.turn = msgspec.structs.replace(call.turn, inputs=[*leading, *own])
        call.lengths = [len(atoms(message)) for message in call.turn.inputs]
        size = sum(call.lengths)
        call.path = [*[-1] * (size + 1 - len(call.path)), *call.path[-(size + 1) :]]
        call.depth = size + sum(len(atoms(message)) for message in call.answer())


def _previous_response(call: Call) -> str | None:
    """The response that a call says it goes on from."""
    for holder in (call.span.attributes.get("input"), *(call.span.rest.get(key) for key in _PARAMETERS)):
        if isinstance(holder, str) and "previous_response_id" not in holder:
            continue
        value: Any = opened_all(holder)
        named = value.get("previous_response_id") if isinstance(value, dict) else None
        if isinstance(named, str) and named:
            return named
    return None


_PARAMETERS = ("model_parameters", "invocation_params")


def _owners_first(kept: list[Thread]) -> list[Thread]:
    """In the order of conversations, a thread after the one it branched off."""
    ordered = sorted(kept, key=lambda thread: (thread.scope, thread.branch != "", *thread.calls[0].span.at()))
    placed: set[int] = set()
    made: list[Thread] = []
    while ordered:
        ready = [thread for thread in ordered if thread.parent is None or id(thread.parent) in placed] or ordered
        made += ready
        placed.update(id(thread) for thread in ready)
        ordered = [thread for thread in ordered if id(thread) not in placed]
    return made


def _instructions(told: Sequence[Message]) -> list[Atom]:
    return [atom for message in told if message.role in _INSTRUCTIONS for atom in atoms(message)]


def _atoms(told: Sequence[Message]) -> list[Atom]:
    """What is said, instructions aside."""
    return [atom for message in told if message.role not in _INSTRUCTIONS for atom in atoms(message)]
