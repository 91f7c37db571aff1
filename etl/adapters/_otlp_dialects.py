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
from etl.adapters._otlp_frameworks import logfire, sentry, vercel
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
    Dialect("sentry", ("gen_ai.request.messages", "gen_ai.response.text", "gen_ai.response.tool_calls"), sentry),
    Dialect("semconv_prompt", ("gen_ai.prompt", "gen_ai.completion"), prompt),
    Dialect("exchange", tuple(name for pair in EXCHANGES for name in pair), exchange),
)
"""All of them; the order is the precedence."""


@functools.lru_cache(4096)
def _marked(names: tuple[str, ...]) -> tuple[Dialect, ...]:
    """The dialects that attributes or events of these names may be of: spans of a kind have the same."""
    return tuple(dialect for dialect in DIALECTS if any(name.startswith(dialect.marks) for name in names))


def turn_of(span: Span, memory: Memory | None = None) -> Turn:
    """What a model (or agent) span says; an empty turn where it says nothing."""
    for dialect in _marked((*span.attributes, *[log.name for log in span.events])):
        turn = dialect.read(Reader(span, memory))
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
        turn = self._turns.get(id(span))
        if turn is None:
            turn = self._turns[id(span)] = self._read(span, self._memory)
        return turn

    def facts(self, span: Span) -> Facts:
        """The facts of a span."""
        facts = self._facts.get(id(span))
        if facts is None:
            facts = self._facts[id(span)] = facts_of(span)
        return facts
