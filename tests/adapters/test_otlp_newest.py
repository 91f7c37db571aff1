"""What the GenAI conventions and their writers say since 2026: tools of the provider, odd places of results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from etl.adapters._otlp_dialects import turn_of
from etl.adapters._otlp_facts import facts_of
from etl.adapters._otlp_indexed import openinference
from etl.adapters._otlp_messages import messages
from etl.adapters._otlp_semconv import current
from etl.adapters._otlp_shapes import units
from etl.adapters._otlp_span import Span
from etl.adapters._otlp_turn import Reader
from etl.conversation import Message


def _span(**attributes: Any) -> Span:
    return Span("t", "s", "t", attributes={name.replace("__", "."): value for name, value in attributes.items()})


def _say(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _told(found: list[Message]) -> list[tuple[str, str, str | None]]:
    return [(each.role, each.content, each.call_id) for each in found]


def test_what_follows_the_result_of_a_providers_tool_is_said_after_it() -> None:
    parts = [
        {"type": "text", "content": "I look."},
        {"type": "server_tool_call", "id": "s1", "name": "search", "server_tool_call": {"type": "search", "q": "tide"}},
        {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": {"type": "search", "hits": 2}},
        {"type": "text", "content": "Two hits."},
    ]
    found = messages([{"role": "assistant", "parts": parts, "finish_reason": "stop"}])
    assert _told(found) == [
        ("assistant", "I look.", None), ("tool", '{"type":"search","hits":2}', "s1"), ("assistant", "Two hits.", None),
    ]  # fmt: skip
    assert [call.actor for call in found[0].calls or ()] == ["server"]
    assert [each.finish_reason for each in found] == [None, None, "stop"]


@pytest.mark.parametrize("key", ["response", "result"])
@pytest.mark.parametrize("role", ["tool", "user"])
def test_results_are_found_in_any_role_under_any_name_with_blanks_around_their_ids(key: str, role: str) -> None:
    said = {"role": role, "parts": [{"type": "tool_call_response", "id": " c1 ", key: "17:42"}]}
    assert _told(messages([said])) == [("tool", "17:42", "c1")]


def test_a_result_that_stands_in_the_users_role_is_the_tools() -> None:
    said = {"role": "user", "tool_call_id": "c1", "content": "17:42"}
    assert _told(messages([said])) == [("tool", "17:42", "c1")]


@pytest.mark.parametrize(
    ("given", "roles"),
    [
        ("Know the tides.", ["system", "user", "assistant"]),
        ("Be brief.", ["system", "system", "user", "assistant"]),
    ],
)
def test_instructions_that_the_history_begins_with_are_told_once(given: str, roles: list[str]) -> None:
    span = _span(
        gen_ai__system_instructions=json.dumps([{"type": "text", "content": given}]),
        gen_ai__input__messages=json.dumps([_say("system", "Know the tides."), _say("user", "Low water?")]),
        gen_ai__output__messages=json.dumps([_say("assistant", "At noon.")]),
    )
    turn = current(Reader(span))
    assert turn is not None
    assert [each.role for each in [*turn.inputs, *turn.answers[0]]] == roles


def test_tokens_written_to_the_cache_have_their_newest_name() -> None:
    usage = facts_of(_span(gen_ai__usage__input_tokens=9, gen_ai__usage__cache_write__input_tokens=4)).usage
    assert usage is not None
    assert (usage.input_tokens, usage.cache_write_tokens) == (9, 4)


_USE: list[dict[str, Any]] = [{"type": "tool_use", "id": name, "name": "tide", "input": {}} for name in ("t1", "t2")]
_RESULTS = [{"type": "tool_result", "tool_use_id": name, "content": f"of {name}"} for name in ("t1", "t2")]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (_RESULTS, [("tool", "of t1", "t1"), ("tool", "of t2", "t2")]),
        (_RESULTS[:1], [("tool", "of t2", "t2")]),  # the request tells another story: the attributes stand
    ],
)
def test_results_that_one_attribute_cannot_hold_are_read_from_the_request(results: Any, expected: Any) -> None:
    said = (("user", "Tides?"), ("assistant", _USE), ("user", results))
    request = {"messages": [{"role": role, "content": content} for role, content in said]}
    name = "llm.input_messages."
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM", "input.value": json.dumps(request), f"{name}0.message.role": "user",
        f"{name}0.message.content": "Tides?", f"{name}1.message.role": "assistant",
        f"{name}2.message.role": "user", f"{name}2.message.tool_call_id": "t2", f"{name}2.message.content": "of t2",
    }  # fmt: skip
    for place, call in enumerate(_USE):
        at = f"{name}1.message.tool_calls.{place}.tool_call."
        attributes |= {f"{at}id": call["id"], f"{at}function.name": "tide", f"{at}function.arguments": "{}"}
    turn = openinference(Reader(_span(**attributes)))
    assert turn is not None
    assert [each for each in _told(turn.inputs) if each[0] == "tool"] == expected


_ASKED = json.dumps([{"role": "user", "content": "Low water?"}])
_WORDS = {"gen_ai.request.messages": _ASKED, "gen_ai.response.text": json.dumps(["At noon."])}
_AT = {"startTime": "2026-06-02T09:00:00Z", "name": "chat"}
_SENTRY = {
    "op": "gen_ai.chat",
    "trace_id": "a1" * 16,
    "span_id": "b1" * 8,
    "start_timestamp": 1.7e9,
    "timestamp": 1.7e9,
}


@pytest.mark.parametrize(
    "value",
    [
        {"type": "transaction", "spans": [{**_SENTRY, "description": "chat", "data": _WORDS}]},
        {"traceId": "a1" * 16, "spans": [{**_AT, "spanId": "17", "labels": _WORDS}]},
        {"hits": {"hits": [{"_source": {**_AT, "trace_id": "a1" * 16, "span_id": "b1" * 8, "attributes": _WORDS}}]}},
    ],
)
def test_stores_give_spans_with_their_words(value: dict[str, Any]) -> None:
    (unit,) = units(value)
    assert unit.form is not None
    assert (unit.form["trace"], unit.form["name"]) == ("a1" * 16, "chat")
    turn = turn_of(_span(**unit.form["attributes"]))
    assert _told([*turn.inputs, *turn.answers[0]]) == [("user", "Low water?", None), ("assistant", "At noon.", None)]
