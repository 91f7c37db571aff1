"""What single frameworks write into spans, and what is easily mistaken for something else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.adapters.traces import TRACE, batch, rows_of, span, spoken

MODEL = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
COMPLETION = {**MODEL, "llm.token_count.prompt": 3, "llm.token_count.completion": 8}


def _choices(*texts: str) -> dict[str, Any]:
    return {f"llm.choices.{number}.completion.text": text for number, text in enumerate(texts)}


def test_several_prompts_of_one_completion_are_rows_with_their_share_of_the_choices() -> None:
    prompts = {"llm.prompts.0.prompt.text": "a", "llm.prompts.1.prompt.text": "b"}
    asked = {**COMPLETION, **prompts, **_choices("a1", "a2", "b1", "b2")}
    made = rows_of(batch([span(1, 0, 1, asked)]))
    assert sorted(tuple(text for _, text in spoken(row)) for row in made) == [
        ("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2"),
    ]  # fmt: skip
    assert [row.usage.input_tokens for row in made if row.usage is not None] == [3]
    assert len({row.group for row in made}) == 2
    assert sorted(row.sample_index or 0 for row in made) == [0, 0, 1, 1]


def test_prompts_given_as_tokens_are_kept_as_tokens() -> None:
    asked = {**COMPLETION, **_choices("x", "y"), "input.value": json.dumps({"prompt": [[1, 2], [3]]})}
    made = rows_of(batch([span(1, 0, 1, asked)]))
    assert [row.messages[0].parts for row in made] == [
        [{"type": "token_ids", "token_ids": [1, 2]}],
        [{"type": "token_ids", "token_ids": [3]}],
    ]


def test_choices_without_a_prompt_are_repeats_and_no_conversation() -> None:
    made = rows_of(batch([span(1, 0, 1, {**COMPLETION, **_choices("x", "y", "z")})]))
    assert [spoken(row) for row in made] == [[("assistant", "x")], [("assistant", "y")], [("assistant", "z")]]
    assert len({row.group for row in made}) == 1
    assert [row.sample_index for row in made] == [0, 1, 2]


@pytest.mark.parametrize(
    ("answer", "uncaptured"),
    [
        ({"role": "assistant", "content": None}, False),
        ({"role": "assistant", "content": []}, False),
        ({"role": "assistant", "content": ""}, False),
        ({"role": "assistant", "parts": []}, True),
        ({"role": "assistant"}, True),
    ],
)
def test_an_empty_answer_is_empty_and_one_without_content_not_captured(answer: Any, uncaptured: bool) -> None:
    asked = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([{"role": "user", "content": "Hi"}])}
    (row,) = rows_of(batch([span(1, 0, 1, {**asked, "gen_ai.output.messages": json.dumps([answer])})]))
    assert ("content_not_captured" in (row.flags or ())) is uncaptured


@pytest.mark.parametrize(
    "content",
    [
        [{"toolResult": {"toolUseId": f"k{n}", "content": [{"text": f"r{n}"}]}} for n in (1, 2)],
        [{"type": "tool_result", "tool_use_id": f"k{n}", "content": f"r{n}"} for n in (1, 2)],
        [{"type": "tool_call_response", "id": f"k{n}", "response": f"r{n}"} for n in (1, 2)],
    ],
)
def test_several_results_in_one_tool_message_are_messages_of_their_own(content: Any) -> None:
    calls = [{"id": f"k{n}", "function": {"name": "look", "arguments": "{}"}} for n in (1, 2)]
    history = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "content": json.dumps(content)},
    ]
    (row,) = rows_of(batch([span(1, 0, 1, {**MODEL, "input.value": json.dumps({"messages": history})})]))
    assert [(m.call_id, m.content) for m in row.messages if m.role == "tool"] == [("k1", "r1"), ("k2", "r2")]


def test_a_vercel_envelope_in_another_trace_of_the_session_counts_nothing_twice() -> None:
    said = {"ai.response.text": "Hello.", "ai.usage.promptTokens": 9, "ai.usage.completionTokens": 4}
    said |= {"ai.telemetry.metadata.sessionId": "s"}
    outer = {"ai.operationId": "ai.generateText", "ai.prompt": json.dumps({"prompt": "Hi"}), **said}
    asked = json.dumps([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
    inner = {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": asked, **said}
    (row,) = rows_of(batch([span(1, 0, 3, outer)]), batch([span(2, 1, 2, inner, trace=TRACE[::-1])]))
    assert spoken(row) == [("user", "Hi"), ("assistant", "Hello.")]
    assert row.usage is not None
    assert (row.usage.input_tokens, row.usage.output_tokens) == (9, 4)


def test_an_evaluation_called_reward_is_the_reward() -> None:
    judged = {"gen_ai.evaluation.name": "reward", "gen_ai.evaluation.score.value": 0.25}
    event = {"name": "gen_ai.evaluation.result", "timeUnixNano": "1773478801000000000",
             "attributes": [{"key": key, "value": {"doubleValue": value} if isinstance(value, float) else
                             {"stringValue": value}} for key, value in judged.items()]}  # fmt: skip
    asked = {**MODEL, "input.value": "Hi", "output.value": "Hello."}
    (row,) = rows_of(batch([span(1, 0, 1, asked, events=[event])]))
    assert (row.reward, [verdict.name for verdict in row.judgments or ()]) == (0.25, ["reward"])


def test_a_graph_that_gives_back_its_state_says_its_history_once() -> None:
    history = [{"type": "human", "content": "Hi"}]
    state = [*history, {"type": "ai", "content": "Hello."}]
    chain = {"openinference.span.kind": "CHAIN", "input.value": json.dumps({"messages": history})}
    (row,) = rows_of(batch([span(1, 0, 1, {**chain, "output.value": json.dumps({"messages": state})})]))
    assert spoken(row) == [("user", "Hi"), ("assistant", "Hello.")]


def test_a_span_called_zeros_is_a_parent_and_zeros_without_a_span_none() -> None:
    zeros = "0" * 16
    asked = {**MODEL, "input.value": "Hi", "output.value": "Hello."}
    (row,) = rows_of(batch([{**span(2, 1, 2, asked), "parentSpanId": zeros}]))
    assert "ambiguous_parent" not in (row.flags or ())
    agent = {**span(1, 0, 3, {"openinference.span.kind": "AGENT", "agent.name": "guide"}), "spanId": zeros}
    (row,) = rows_of(batch([agent, {**span(2, 1, 2, asked), "parentSpanId": zeros}]))
    assert row.agent == "guide"


def test_a_trace_of_the_agents_sdk_with_its_spans_inside_is_the_same_as_its_parts() -> None:
    asked = {
        "type": "generation",
        "input": [{"role": "user", "content": "Hi"}],
        "model": "m",
        "output": [{"role": "assistant", "content": "Hello."}],
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    times = {"started_at": "2026-03-14T09:00:00+00:00", "ended_at": "2026-03-14T09:00:01+00:00"}
    part = {"id": "span_1", "parent_id": None, "span_data": asked, "error": None, **times}  # fmt: skip
    whole = {"object": "trace", "id": "trace_1", "workflow_name": "Desk", "group_id": "talk-1", "spans": [part]}
    apart = [{**whole, "spans": []}, {"object": "trace.span", "trace_id": "trace_1", **part}]
    (one,), (other,) = rows_of(whole), rows_of(*apart)
    for row in (one, other):
        assert (row.native_id, spoken(row)) == ("talk-1", [("user", "Hi"), ("assistant", "Hello.")])
        assert row.extra is not None
        assert row.extra["traces"] == [{"workflow_name": "Desk"}]
