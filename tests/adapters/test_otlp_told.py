"""Spans that tell of the same response again are found, however often a trace holds the same run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.adapters._otlp_facts import Facts
from etl.adapters._otlp_span import Span
from etl.adapters._otlp_threads import Call
from etl.adapters._otlp_told import Told
from etl.adapters._otlp_turn import Turn
from etl.adapters.otlp import Otlp
from etl.conversation import Conversation
from tests.adapters.traces import batch, chat, parsed, stored, text

_TIMES = st.one_of(st.none(), st.integers(1, 6))
_SPANS = st.lists(
    st.tuples(_TIMES, _TIMES, st.sampled_from([None, None, "r1", "r2"]), st.integers(1, 2)), min_size=1, max_size=8
)


def _calls(spans: list[tuple[int | None, int | None, str | None, int]]) -> list[Call]:
    calls = []
    for number, (start, end, response, choices) in enumerate(spans):
        span = Span("t", str(number), "s", start=start, end=end)
        calls += [Call(span, Turn(), Facts(response_id=response), choice) for choice in range(choices)]
    return sorted(calls, key=lambda call: (*call.span.at(), call.choice))


def _compared(call: Call, placed: set[int], calls: list[Call]) -> Call | None:
    """What `Told.same` says, by comparing with every call."""
    for other in calls:
        if id(other) in placed and other.span is not call.span:
            one, two = call.facts.response_id, other.facts.response_id
            if one is not None and two is not None:
                if one == two:
                    return other
            elif call.span.spans(other.span) or other.span.spans(call.span):
                return other
    return None


@given(_SPANS, st.data())
def test_the_first_call_that_tells_of_the_same_response_is_found(
    spans: list[tuple[int | None, int | None, str | None, int]], data: st.DataObject
) -> None:
    calls = _calls(spans)
    told, placed = Told(calls), set[int]()
    for call in data.draw(st.permutations(calls)):
        assert told.same(call) is _compared(call, placed, calls)
        told.place(call)
        placed.add(id(call))


def _steps(work: Callable[[], Any]) -> int:
    """How many functions are called in some work, ours and built-in ones."""
    count = 0

    def counting(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def _put_together(runs: int, answer: str | None) -> int:
    """The work of a trace that holds the same question and answer so many times."""
    said = None if answer is None else [text("assistant", answer)]
    spans = [chat(number, number, number + 0.5, [text("user", "Hi")], said) for number in range(1, runs + 1)]
    events = stored(parsed(batch(spans)))
    made: list[Any] = []
    work = _steps(lambda: made.extend(Otlp().assemble(events)))
    assert sum(isinstance(outcome, Conversation) for outcome in made) >= 1
    return work


def test_equal_runs_in_one_trace_cost_what_they_are() -> None:
    for answer in ("Hello", None):
        assert _put_together(400, answer) < 2.4 * _put_together(200, answer)
