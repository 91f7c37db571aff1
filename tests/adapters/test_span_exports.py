"""Exports of Datadog and PostHog: the same rows from every layout, and tokens as each says they are counted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.adapter import Adapter, adapters
from etl.conversation import Conversation
from tests.adapters.api_lines import events, rows

DATADOG, POSTHOG = adapters()["datadog"], adapters()["posthog"]
NS = 1_780_390_800_000_000_000


def _dd(own: str, parent: str, kind: str, given_: Any, said: Any, start: int = NS, **more: Any) -> dict[str, Any]:
    return {
        "span_id": own, "trace_id": "t1", "parent_id": parent, "span_kind": kind, "name": kind, "ml_app": "desk",
        "input": given_, "output": said, "start_ns": start, "duration": 2e9, "status": "ok", **more,
    }  # fmt: skip


CALL = {"name": "tide", "arguments": {"port": "Brest"}, "tool_id": "c1", "type": "function"}
RESULT = {"role": "tool", "content": "", "tool_results": [{"name": "tide", "result": "17:42", "tool_id": "c1"}]}
ASK = {"role": "user", "content": "High water?"}
CALLING = {"role": "assistant", "content": "", "tool_calls": [CALL]}
SPANS = [
    _dd("1", "undefined", "agent", {"value": "High water?"}, {"value": "At 17:42."}),
    _dd("2", "1", "llm", {"messages": [ASK]}, {"messages": [CALLING]},
        NS + 10**9, model_name="coast-1", metrics={"input_tokens": 20.0, "output_tokens": 8}),
    _dd("3", "1", "tool", {"value": '{"port": "Brest"}'}, {"value": "17:42"}, NS + 2 * 10**9, name="tide"),
    _dd("4", "1", "llm", {"messages": [ASK, CALLING, RESULT]},
        {"messages": [{"role": "assistant", "content": "At 17:42."}]}, NS + 3 * 10**9, model_name="coast-1",
        metrics={"input_tokens": 40, "output_tokens": 4, "cache_read_input_tokens": 16}),
]  # fmt: skip


def _resource(span: dict[str, Any]) -> dict[str, Any]:
    return {"id": span["span_id"], "type": "span", "attributes": span}


def _intake(span: dict[str, Any]) -> dict[str, Any]:
    """The span as the intake takes it: kind, words and model in `meta`."""
    meta = {"kind": span["span_kind"], "input": span["input"], "output": span["output"]}
    if "model_name" in span:
        meta["metadata"] = {"model_name": span["model_name"]}
    kept = ("span_id", "trace_id", "parent_id", "name", "start_ns", "duration", "status", "metrics")
    return {**{key: span[key] for key in kept if key in span}, "meta": meta}


LAYOUTS: list[list[Any]] = [
    list(SPANS), [_resource(span) for span in SPANS], [{"data": [_resource(span) for span in SPANS], "meta": {}}],
    [{"data": {"type": "span", "attributes": {"ml_app": "desk", "spans": [_intake(span) for span in SPANS]}}}],
    [{"event_type": "span", "spans": [_intake(span) for span in SPANS]}],
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_spans_of_datadog_are_one_row_in_every_layout(layout: list[Any]) -> None:
    (row,) = rows(events(layout, DATADOG), DATADOG)
    assert [message["content"] for message in row["messages"]] == ["High water?", "", "17:42", "At 17:42."]
    assert [(step["tool"], step["status"], step["result_index"]) for step in row["steps"]] == [("tide", "ok", 2)]
    usage = {name: count for name, count in row["usage"].items() if count}
    assert usage == {"input_tokens": 60, "output_tokens": 12, "cached_tokens": 16}
    assert str(row["started_at"]) == "2026-06-02 09:00:00+00:00"


def test_a_time_in_milliseconds_is_one() -> None:
    span = _dd("9", "undefined", "llm", {"messages": [ASK]}, {"messages": []}, NS // 10**6)
    (row,) = rows(events([span], DATADOG), DATADOG)
    assert [str(row[side]) for side in ("started_at", "ended_at")] == [
        "2026-06-02 09:00:00+00:00", "2026-06-02 09:00:02+00:00",
    ]  # fmt: skip


def _ph(name: str, at: int, kind: str = "$ai_generation", **told: Any) -> dict[str, Any]:
    properties = {"$ai_trace_id": "p1", "$ai_span_id": name, **{f"$ai_{key}": value for key, value in told.items()}}
    stamp = f"2026-06-02T09:00:{at:02}Z"
    return {"uuid": name, "event": kind, "distinct_id": "d", "timestamp": stamp, "properties": properties}


FUNCTION = {"type": "function", "id": "c1", "function": {"name": "tide", "arguments": '{"port": "Brest"}'}}
HISTORY = [ASK, {"role": "assistant", "content": None, "tool_calls": [FUNCTION]}]
GENERATIONS = [
    _ph("g1", 2, model="coast-1", input=[ASK], output_choices=[{"role": "assistant", "content": [FUNCTION]}],
        input_tokens=20, output_tokens=8, latency=1.0),
    _ph("g2", 6, model="coast-1", input=[*HISTORY, {"role": "tool", "tool_call_id": "c1", "content": "17:42"}],
        output_choices=[{"role": "assistant", "content": "At 17:42."}], input_tokens=40, output_tokens=4, latency=1.5),
    _ph("s1", 4, "$ai_span", span_name="tide", input_state={"port": "Brest"}, output_state="17:42"),
    _ph("p1", 7, "$ai_trace", span_name="harbour", input_state={"q": "High water?"}, output_state="At 17:42."),
    _ph("v1", 1, "$pageview"),
]  # fmt: skip


@given(st.permutations(GENERATIONS), st.booleans(), st.booleans())
def test_events_of_posthog_are_one_row_in_any_order_and_layout(order: list[Any], text: bool, page: bool) -> None:
    told = [{**event, "properties": json.dumps(event["properties"])} if text else event for event in order]
    values: list[Any] = [{"results": told}] if page else told
    (row,) = rows(events(values, POSTHOG), POSTHOG)
    assert [message["content"] for message in row["messages"]] == ["High water?", "", "17:42", "At 17:42."]
    assert [(step["tool"], step["status"], step["result_index"]) for step in row["steps"]] == [("tide", "ok", 2)]
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (60, 12)


@pytest.mark.parametrize(
    ("says", "model", "provider", "whole"),
    [
        (True, "coast-1", "openai", 150),
        (False, "claude-demo", "anthropic", 100),
        (None, "claude-demo", "gateway", 150),
        (None, "coast-1", "anthropic", 150),
        (None, "coast-1", "openai", 100),
        (None, "coast-1", None, 100),
    ],
)
def test_posthog_counts_what_was_cached_as_it_says(says: Any, model: str, provider: str | None, whole: int) -> None:
    counts: dict[str, Any] = {"input_tokens": 100, "cache_read_input_tokens": 50, "output_tokens": 1}
    told = {
        "model": model,
        "provider": provider,
        "input": [ASK],
        "output_choices": [],
        "cache_reporting_exclusive": says,
    }
    (row,) = rows(events([_ph("g1", 2, **told, **counts)], POSTHOG), POSTHOG)
    assert (row["usage"]["input_tokens"], row["usage"]["cached_tokens"]) == (whole, 50)


def _judged(kind: str, **told: Any) -> Iterable[tuple[Any, ...]]:
    (row,) = rows(events([GENERATIONS[0], _ph("m1", 9, kind, **told)], POSTHOG), POSTHOG)
    return [(each["name"], each["label"], each["reason"]) for each in row["judgments"]]


def test_metrics_and_feedback_are_judgments_of_the_trace() -> None:
    assert _judged("$ai_metric", metric_name="accuracy", metric_value="good", span_id=None) == [
        ("accuracy", "good", None)
    ]
    assert _judged("$ai_feedback", feedback_text="Right.", span_id=None) == [("feedback", None, "Right.")]


@pytest.mark.parametrize(("adapter", "values"), [(DATADOG, SPANS), (POSTHOG, GENERATIONS[:4])])
def test_every_span_is_a_fragment_of_its_trace(adapter: Adapter, values: list[Any]) -> None:
    stored = events(values, adapter)
    assert len(stored) == len(values)
    assert len({event.key for event in stored}) == 1
    assert all(isinstance(made, Conversation) for made in adapter.assemble(stored))
