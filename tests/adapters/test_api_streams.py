"""Streams as careless servers and loggers leave them: indices missing or given twice, lines without the empty ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl import ingest
from etl.adapters._api_bodies import read_body
from etl.adapters._api_choice import CODECS
from etl.adapters._api_form import Answered
from etl.conversation import Message
from tests.lakes import rows


def _delta(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": arguments}}


def _chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _answered(codec: str, events: list[Any]) -> Answered:
    return CODECS[codec].answered(CODECS[codec].joined(events))


def _messages(codec: str, events: list[Any]) -> list[Message]:
    return [message for choice in _answered(codec, events).choices for message in choice.messages]


TWO = [("f", {"x": 1}), ("g", {"y": 2})]


@pytest.mark.parametrize(
    "chunks",
    [
        # no index: an id or a name begins a call, what has neither goes on
        [[_delta("f", '{"x":', id="a")], [_delta(None, "1}")], [_delta("g", '{"y":', id="b")], [_delta(None, "2}")]],
        [[_delta("f", '{"x":1}', id=""), _delta("g", '{"y":2}', id="")]],
        [[_delta("f", '{"x":1}')], [_delta("g", '{"y":2}')]],
        # one index for two calls, the rest of the second at the next one
        [[_delta("f", '{"x":1}', id="a", index=0)], [_delta("g", "", id="b", index=0)],
         [_delta("", '{"y":2}', index=1)]],
        [[_delta("f", '{"x":1}', id="a", index=0)], [_delta("g", '{"y":2}', id="b", index=0)]],
        # id and name every time, indices from 1
        [[_delta("f", "", id="a", index=1)], [_delta("f", '{"x":1}', id="a", index=1)],
         [_delta("g", '{"y"', id="b", index=2)], [_delta("g", ":2}", id="b", index=2)]],
        # interleaved
        [[_delta("f", '{"x"', id="a", index=0)], [_delta("g", '{"y"', id="b", index=1)],
         [_delta(None, ":1}", index=0)], [_delta(None, ":2}", index=1)]],
        # told whole once more at the end
        [[_delta("f", '{"x":1}', id="a", index=0), _delta("g", '{"y":2}', id="b", index=1)],
         [_delta("f", '{"x":1}', id="a", index=0), _delta("g", '{"y":2}', id="b", index=1)]],
        # an object, and another id with every fragment
        [[_delta("f", {"x": 1}, id="a", index=0)], [_delta("g", '{"y":', id="b", index=1)],
         [_delta(None, "2}", id="c", index=1)]],
    ],
)  # fmt: skip
def test_fragments_of_two_calls_are_two_calls(chunks: list[list[dict[str, Any]]]) -> None:
    events = [_chunk(tool_calls=deltas) for deltas in chunks] + [_chunk("tool_calls")]
    (message,) = _messages("openai_chat", events)
    calls = [(call.name, call.arguments) for call in message.calls or ()]
    assert [(name, json.loads(said) if isinstance(said, str) else said) for name, said in calls] == TWO


def test_what_was_spoken_is_the_text_and_the_sound_a_part() -> None:
    deltas = [{"id": "s"}, {"transcript": "It is "}, {"transcript": "four."}, {"data": "AA"}, {"data": "BB"}]
    (message,) = _messages("openai_chat", [*(_chunk(audio=delta) for delta in deltas), _chunk("stop")])
    assert message.content == "It is four."
    assert message.parts == [{"type": "audio", "audio": {"id": "s", "data": "AABB"}}]


@pytest.mark.parametrize(
    "body",
    [
        "".join(f"data: {json.dumps({'n': n})}\n" for n in (1, 2)) + "data: [DONE]\n",
        [f"data: {json.dumps({'n': n})}" for n in (1, 2)] + ["data: [DONE]"],
        [f"data: {json.dumps({'n': n})}\n\n" for n in (1, 2)],
        [json.dumps({"n": n}) for n in (1, 2)],
    ],
)
def test_events_are_read_where_the_lines_between_them_were_lost(body: Any) -> None:
    read = read_body(body)
    assert (read.events, read.whole) == ([{"n": 1}, {"n": 2}], True)


def test_a_torn_line_among_lines_without_empty_ones_is_told() -> None:
    read = read_body('data: {"n": 1}\ndata: {"n": ')
    assert (read.events, read.whole) == ([{"n": 1}], False)


def test_names_of_events_go_to_their_own_data() -> None:
    read = read_body('event: a\ndata: {"n": 1}\nevent: b\ndata: {"n": 2}\n')
    assert read.events == [{"type": "a", "n": 1}, {"type": "b", "n": 2}]


def test_a_fragment_whose_beginning_was_lost_is_no_turn_of_the_user() -> None:
    fragment = {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a"'}
    said = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Ha"}
    messages = _messages("openai_responses", [{"type": "response.created", "response": {"id": "r"}}, said, fragment])
    assert [(message.role, message.content) for message in messages] == [("assistant", "Ha"), ("assistant", "")]
    assert messages[1].parts == [{"type": "function_call", "arguments": '{"a"'}]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "shell_call_output", "output": [{"stdout": "a\n", "stderr": "no", "outcome": {"exit_code": 2}}]},
         ("a\n\nno", True)),
        ({"type": "shell_call_output", "output": [{"stdout": "a", "outcome": {"type": "exit", "exit_code": 0}}]},
         ("a", None)),
        ({"type": "shell_call_output", "output": [{"stdout": "", "outcome": {"type": "timeout"}}]}, ("", True)),
        ({"type": "code_interpreter_call", "id": "i", "code": "p", "outputs": [{"type": "logs", "logs": "1\n"}]},
         ("1\n", None)),
        ({"type": "file_search_call", "id": "i", "queries": ["q"], "results": [{"text": "found", "score": 0.5}]},
         ("found", None)),
        ({"type": "mcp_call", "id": "i", "name": "t", "arguments": "{}", "output": "hi", "error": None}, ("hi", None)),
        ({"type": "mcp_call", "id": "i", "name": "t", "arguments": "{}",
          "error": {"type": "e", "content": [{"type": "text", "text": "boom"}]}}, ("boom", True)),
        ({"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": "u"}}, ("", None)),
        ({"type": "function_call_output", "call_id": "c", "output": {"ok": True}}, ('{"ok":true}', None)),
    ],
)  # fmt: skip
def test_what_a_tool_of_the_responses_api_gave_is_its_result(item: Any, expected: tuple[str, bool | None]) -> None:
    result = CODECS["openai_responses"].message(item)[-1]
    assert (result.role, result.content, result.failed) == ("tool", *expected)


def test_an_approval_that_is_asked_for_is_no_second_call() -> None:
    asked = {"type": "mcp_approval_request", "id": "r1", "name": "t", "arguments": "{}"}
    ran = {"type": "mcp_call", "id": "m1", "name": "t", "arguments": "{}", "output": "ok", "approval_request_id": "r1"}
    messages = [message for item in (asked, ran) for message in CODECS["openai_responses"].message(item)]
    assert [call.id for message in messages for call in message.calls or ()] == ["m1"]


def test_an_error_of_a_choice_is_the_answers() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "error"}
    answered = CODECS["openai_chat"].answered({"choices": [{**choice, "error": {"code": 502, "message": "upstream"}}]})
    assert answered.error == "upstream"


@pytest.mark.parametrize("kind", ["expired", "canceled"])
def test_a_request_of_a_batch_that_was_never_sent_says_why(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    said = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Yes"}]}
    results = [{"type": kind}, {"type": "succeeded", "message": said}]
    path.write_text("".join(json.dumps({"custom_id": f"{n}", "result": each}) + "\n" for n, each in enumerate(results)))
    ingest([path], lake=tmp_path / "lake")
    found = {row["status"]: row["error"] for row in rows(tmp_path / "lake")}
    assert found == {"error": kind, "completed": None}
