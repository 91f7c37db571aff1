"""The dialects, in order of precedence: the first that finds messages on a span wins.

A span can carry several (Logfire writes `request_data` beside `gen_ai.input.messages`, Vercel both its own and GenAI
attributes). The current conventions come first, then what keeps the structure of a conversation, then requests and
responses that only a provider's format explains.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from etl.adapters._otlp_facts import Facts, facts_of
from etl.adapters._otlp_frameworks import logfire, vercel
from etl.adapters._otlp_indexed import EXCHANGES, exchange, openinference, openllmetry
from etl.adapters._otlp_semconv import CHOICE, ROLES, current, events, prompt
from etl.adapters._otlp_span import Span
from etl.adapters._otlp_turn import Memory, Reader, Turn


class Dialect(NamedTuple):
    """One way of writing a conversation into spans."""

    name: str
    marks: tuple[str, ...]
    """How the names of the attributes (or events) begin that hold its messages."""
    read: Callable[[Reader], Turn | None]


DIALECTS = (
    Dialect("semconv", ("gen_ai.input.messages", "gen_ai.output.messages"), current),
    Dialect("semconv_events", (*ROLES, CHOICE), events),
    Dialect(
        "openinference", ("llm.input_messages", "llm.output_messages", "llm.prompts", "llm.choices"), openinference
    ),
    Dialect("vercel", ("ai.prompt", "ai.response.", "ai.result."), vercel),
    Dialect("openllmetry", ("gen_ai.prompt.", "gen_ai.completion."), openllmetry),
    Dialect("logfire", ("request_data", "response_data", "events", "all_messages_events", "pydantic_ai."), logfire),
    Dialect("semconv_prompt", ("gen_ai.prompt", "gen_ai.completion"), prompt),
    Dialect("exchange", tuple(name for pair in EXCHANGES for name in pair), exchange),
)
"""All of them; the order is the precedence."""


@functools.lru_cache(4096)
def _marked(name: str) -> frozenset[int]:
    """The dialects, by number, that an attribute or event of this name may be of."""
    return frozenset(number for number, dialect in enumerate(DIALECTS) if name.startswith(dialect.marks))


def turn_of(span: Span, memory: Memory | None = None) -> Turn:
    """What a model (or agent) span says; an empty turn where it says nothing."""
    marked = [_marked(name) for name in (*span.attributes, *(log.name for log in span.events))]
    for number, dialect in enumerate(DIALECTS):
        if any(number in numbers for numbers in marked if numbers):
            reader = Reader(span, memory)
            turn = dialect.read(reader)
            if turn is not None:
                turn.dialect = dialect.name
                return turn
    return Turn()


class Readings:
    """What the spans of one family say, each read once; `read` where a tool that keeps spans has words of its own."""

    def __init__(self, read: Callable[[Span, Memory], Turn] = turn_of) -> None:
        self._read = read
        self._memory = Memory()
        self._turns: dict[int, Turn] = {}
        self._facts: dict[int, Facts] = {}

    def turn(self, span: Span) -> Turn:
        """The turn of a span."""
        if id(span) not in self._turns:
            self._turns[id(span)] = self._read(span, self._memory)
        return self._turns[id(span)]

    def facts(self, span: Span) -> Facts:
        """The facts of a span."""
        if id(span) not in self._facts:
            self._facts[id(span)] = facts_of(span)
        return self._facts[id(span)]
