"""The dialects of traces: each reads the same words, and of two the first counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from etl.adapters._otlp_dialects import DIALECTS, turn_of
from etl.adapters._otlp_span import Span, kind_of
from etl.adapters._otlp_turn import salvaged
from tests.adapters.traces import (
    asks,
    gives,
    text,
)

HI = text("user", "Hi")
HELLO = text("assistant", "Hello.", "stop")


def _span(**attributes: Any) -> Span:
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return Span("t", "s", "t", attributes=named, kind=kind_of(named))


SEMCONV = {"gen_ai__input__messages": [HI], "gen_ai__output__messages": json.dumps([HELLO])}
OPENINFERENCE = {
    "llm__input_messages": [{"message": {"role": "user", "content": "Hi"}}],
    "llm__output_messages__0__message__role": "assistant",
    "llm__output_messages__0__message__content": "Hello.",
}
VERCEL = {"ai__prompt__messages": '[{"role": "user", "content": "Hi"}]', "ai__response__text": "Hello."}
OPENLLMETRY = {
    "gen_ai__prompt__0__content": "Hi",
    "gen_ai__prompt__0__role": "user",
    "gen_ai__completion__0__content": "Hello.",
}
LOGFIRE = {
    "request_data": '{"messages": [{"role": "user", "content": "Hi"}]}',
    "response_data": '{"message": {"role": "assistant", "content": "Hello."}}',
}
SENTRY = {
    "gen_ai__request__messages": '[{"role": "user", "content": "Hi"}]',
    "gen_ai__response__text": '["Hello."]',
}
PYDANTIC = {
    "events": json.dumps(
        [
            {"event.name": "gen_ai.user.message", "content": "Hi", "role": "user"},
            {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Hello."}},
        ]
    )
}
PROMPT = {"gen_ai__prompt": '[{"role": "user", "content": "Hi"}]', "gen_ai__completion": '[{"content": "Hello."}]'}
EXCHANGE = {
    "input__value": '{"messages": [{"role": "user", "content": "Hi"}]}',
    "output__value": '{"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}',
}
PLAIN = {"traceloop__entity__input": "Hi", "traceloop__entity__output": "Hello."}
ADK = {
    "gcp__vertex__agent__llm_request": json.dumps({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
    "gcp__vertex__agent__llm_response": json.dumps({"content": {"role": "model", "parts": [{"text": "Hello."}]}}),
}


@pytest.mark.parametrize(
    ("attributes", "dialect"),
    [
        (SEMCONV, "semconv"),
        (OPENINFERENCE, "openinference"),
        (VERCEL, "vercel"),
        (OPENLLMETRY, "openllmetry"),
        (LOGFIRE, "logfire"),
        (PYDANTIC, "logfire"),
        (SENTRY, "sentry"),
        (PROMPT, "semconv_prompt"),
        (EXCHANGE, "exchange"),
        (PLAIN, "exchange"),
        (ADK, "exchange"),
    ],
)
def test_every_dialect_reads_the_same_words(attributes: dict[str, Any], dialect: str) -> None:
    turn = turn_of(_span(**attributes))
    assert turn.dialect == dialect
    assert [(message.role, message.content) for message in turn.inputs] == [("user", "Hi")]
    assert [[(message.role, message.content) for message in answer] for answer in turn.answers] == [
        [("assistant", "Hello.")]
    ]


def test_the_precedence_of_dialects_is_declared_and_holds() -> None:
    names = [dialect.name for dialect in DIALECTS]
    assert names == [
        "semconv",
        "semconv_events",
        "openinference",
        "vercel",
        "openllmetry",
        "logfire",
        "sentry",
        "semconv_prompt",
        "exchange",
    ]
    told: list[dict[str, Any]] = [SEMCONV, OPENINFERENCE, VERCEL, OPENLLMETRY, LOGFIRE, SENTRY, PROMPT, EXCHANGE]
    expected = ["semconv", "openinference", "vercel", "openllmetry", "logfire", "sentry", "semconv_prompt", "exchange"]
    for number, name in enumerate(expected):
        together = {key: value for attributes in reversed(told[number:]) for key, value in attributes.items()}
        assert turn_of(_span(**together)).dialect == name
    assert not turn_of(_span(gen_ai__request__model="m-1")).said()


def test_numbers_in_names_are_numbers() -> None:
    many = {f"gen_ai__prompt__{n}__content": f"turn {n}" for n in sorted(range(12), key=str)}
    many |= {"gen_ai__prompt__prompt_filter_results": "[]", "gen_ai__completion__0__content": "end"}
    turn = turn_of(_span(**many))
    assert [message.content for message in turn.inputs] == [f"turn {n}" for n in range(12)]


def test_calls_and_results_of_every_dialect_are_paired() -> None:
    looked = {"toolCallId": "k", "toolName": "look"}
    vercel_history = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool-call", **looked, "input": {"x": 1}}]},
        {"role": "tool", "content": [{"type": "tool-result", **looked, "output": {"type": "text", "value": "found"}}]},
    ]
    openllmetry = {
        "gen_ai__prompt__0__content": "Hi",
        "gen_ai__prompt__1__role": "assistant",
        "gen_ai__prompt__1__tool_calls__0__id": "k",
        "gen_ai__prompt__1__tool_calls__0__name": "look",
        "gen_ai__prompt__1__tool_calls__0__arguments": '{"x": 1}',
        "gen_ai__prompt__2__role": "tool",
        "gen_ai__prompt__2__tool_call_id": "k",
        "gen_ai__prompt__2__content": "found",
    }
    responses_items = [
        {"role": "user", "content": "Hi"},
        {"type": "function_call", "call_id": "k", "name": "look", "arguments": '{"x": 1}'},
        {"type": "function_call_output", "call_id": "k", "output": "found"},
    ]
    gemini = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "k", "name": "look", "args": {"x": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "k", "name": "look", "response": "found"}}]},
    ]
    anthropic = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "k", "name": "look", "input": {"x": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "k", "content": "found"}]},
    ]
    spans = [
        _span(gen_ai__input__messages=[HI, asks("k", "look", x=1), gives("k", "found")]),
        _span(ai__prompt__messages=json.dumps(vercel_history)),
        _span(**openllmetry),
        _span(input__value=json.dumps({"input": responses_items})),
        _span(input__value=json.dumps({"contents": gemini})),
        _span(gen_ai__prompt=json.dumps({"messages": anthropic})),
    ]
    for each in spans:
        said_user, called, answered = turn_of(each).inputs
        assert (said_user.role, said_user.content) == ("user", "Hi")
        assert called.calls is not None
        (call,) = called.calls
        assert (call.id, call.name) == ("k", "look")
        assert call.arguments in ({"x": 1}, '{"x": 1}')
        assert (answered.role, answered.call_id, answered.content) == ("tool", "k", "found")


@pytest.mark.parametrize("keep", range(20, 118, 7))
def test_a_cut_off_attribute_is_read_as_far_as_it_goes(keep: int) -> None:
    whole = json.dumps([text("user", 'A "quoted" wörd'), text("assistant", "and an answer")])
    turn = turn_of(_span(gen_ai__input__messages=whole[:keep]))
    value = salvaged(whole[:keep])
    assert value is None or isinstance(value, list)
    assert turn.cut == (value is not None and turn.said())
    for message, full in zip(turn.inputs, ('A "quoted" wörd', "and an answer"), strict=False):
        assert full.startswith(message.content)
