"""The dialects, in order of precedence: the first that finds messages on a span wins.

A span can carry several (Logfire writes `request_data` beside `gen_ai.input.messages`, Vercel both its own and GenAI
attributes). The current conventions come first, then what keeps the structure of a conversation, then requests and
responses that only a provider's format explains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from etl.adapters._otlp_facts import Facts, facts_of
from etl.adapters._otlp_frameworks import logfire, vercel
from etl.adapters._otlp_indexed import exchange, openinference, openllmetry
from etl.adapters._otlp_semconv import current, events, prompt
from etl.adapters._otlp_span import Span
from etl.adapters._otlp_turn import Memory, Reader, Turn


class Dialect(NamedTuple):
    """One way of writing a conversation into spans."""

    name: str
    read: Callable[[Reader], Turn | None]


DIALECTS = (
    Dialect("semconv", current),
    Dialect("semconv_events", events),
    Dialect("openinference", openinference),
    Dialect("vercel", vercel),
    Dialect("openllmetry", openllmetry),
    Dialect("logfire", logfire),
    Dialect("semconv_prompt", prompt),
    Dialect("exchange", exchange),
)
"""All of them; the order is the precedence."""


def turn_of(span: Span, memory: Memory | None = None) -> Turn:
    """What a model (or agent) span says; an empty turn where it says nothing."""
    for dialect in DIALECTS:
        reader = Reader(span, memory)
        turn = dialect.read(reader)
        if turn is not None:
            turn.dialect = dialect.name
            return turn
    return Turn()


class Readings:
    """What the spans of one family say, each read once."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._turns: dict[int, Turn] = {}
        self._facts: dict[int, Facts] = {}

    def turn(self, span: Span) -> Turn:
        """The turn of a span."""
        if id(span) not in self._turns:
            self._turns[id(span)] = turn_of(span, self._memory)
        return self._turns[id(span)]

    def facts(self, span: Span) -> Facts:
        """The facts of a span."""
        if id(span) not in self._facts:
            self._facts[id(span)] = facts_of(span)
        return self._facts[id(span)]
