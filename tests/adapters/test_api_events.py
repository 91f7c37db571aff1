"""Answers without what was asked: the same rows from every layout that streams are saved in, mixed or one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl import ingest
from etl.adapters._api_bodies import read_body
from etl.adapters._api_choice import CODECS, kind_of
from etl.adapters._api_events import Streamed, streams
from etl.adapters._api_form import Answered
from etl.conversation import Message, Record, Tokens
from tests.lakes import rows, table

_START = {"type": "message_start", "message": {"id": "m1", "type": "message", "role": "assistant", "content": []}}
_TEXT = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Rye, "}}
_MORE = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "today."}}
_STOP = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn"},
    "usage": {"input_tokens": 9, "output_tokens": 4},
}
ANTHROPIC = [_START, _TEXT, _MORE, _STOP, {"type": "message_stop"}]


def _sse(events: list[Any], end: str = "\n") -> str:
    return "".join(f"event: {event['type']}{end}data: {json.dumps(event)}{end}{end}" for event in events)


LAYOUTS = [
    _sse(ANTHROPIC), _sse(ANTHROPIC, "\r\n"), ": open\n\n" + _sse(ANTHROPIC), "\ufeff" + _sse(ANTHROPIC),
    _sse(ANTHROPIC).replace("\n\n", "\n"), "".join(f"data: {json.dumps(event)}\n" for event in ANTHROPIC),
    "\n".join(map(json.dumps, ANTHROPIC)), json.dumps(ANTHROPIC), json.dumps(ANTHROPIC, indent=2),
    json.dumps(ANTHROPIC) + "\n" + json.dumps(ANTHROPIC).replace("m1", "m2"),
]  # fmt: skip


def test_a_stream_is_the_same_row_however_it_was_saved(tmp_path: Path) -> None:
    for number, layout in enumerate(LAYOUTS):
        (tmp_path / f"saved{number}").write_text(layout, encoding="utf-8", newline="")
    report = ingest(sorted(tmp_path.glob("saved*")), lake=tmp_path / "lake")
    assert {file.adapter for file in report.files} == {"api_streams"}
    found = rows(tmp_path / "lake")
    assert [(row["final_text"], row["finish_reason"], row["prompt"]) for row in found] == [
        ("Rye, today.", "end_turn", None)
    ] * 2
    assert {row["usage"]["input_tokens"] for row in found} == {9}
    assert all("content_not_captured" in row["flags"] for row in found)
    assert table(tmp_path / "lake", "rejects") is None


def _chunks(name: str, pieces: list[str]) -> list[dict[str, Any]]:
    deltas = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces), {}]
    return [
        {"id": name, "object": "chat.completion.chunk",
         "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}]}
        for delta in deltas
    ]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(["a", "b", " "]), max_size=4), min_size=1, max_size=3), st.randoms())
def test_chunks_of_answers_at_once_are_told_apart_by_their_ids(said: list[list[str]], luck: Any) -> None:
    waiting = [_chunks(f"c{number}", pieces) for number, pieces in enumerate(said)]
    mixed = []
    while waiting:
        chosen = luck.choice(waiting)
        mixed.append(chosen.pop(0))
        waiting = [chunks for chunks in waiting if chunks]
    found = list(streams(Record(chunk, b"") for chunk in mixed))
    texts = {}
    for stream in found:
        assert isinstance(stream, Streamed)
        joined = CODECS[stream.codec].joined([record.value for record in stream.records])
        texts[stream.id] = CODECS[stream.codec].answered(joined).choices[0].messages[0].content
    assert texts == {f"c{number}": "".join(pieces) for number, pieces in enumerate(said)}


_CALL = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": ""}}
_COUNTS = {"input_tokens": 8.0, "output_tokens": 3.0}


def _piece(kind: str, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": 0, "delta": {"message": message}}


_PLAN: list[dict[str, Any]] = [
    {"type": "message-start", "id": "c1", "delta": {"message": {"role": "assistant", "content": [], "tool_plan": ""}}},
    _piece("tool-plan-delta", tool_plan="I "),
    _piece("tool-plan-delta", tool_plan="look."),
    _piece("tool-call-start", tool_calls=_CALL),
    _piece("tool-call-delta", tool_calls={"function": {"arguments": '{"x": '}}),
    _piece("tool-call-delta", tool_calls={"function": {"arguments": "1}"}}),
    {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": {"tokens": _COUNTS}}},
]
_WHOLE = {"text": "Rye, today.", "generation_id": "g1", "meta": {"tokens": _COUNTS}}
_SAID: list[dict[str, Any]] = [
    {"event_type": "stream-start", "generation_id": "g1"},
    {"event_type": "text-generation", "text": "Rye, "},
    {"event_type": "text-generation", "text": "today."},
    {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": _WHOLE},
]


def _cohere(events: list[dict[str, Any]]) -> Answered:
    return CODECS["cohere"].answered(CODECS["cohere"].joined(events))


def test_streams_of_cohere_are_put_together_from_their_pieces() -> None:
    answered, cut = _cohere(_PLAN), _cohere(_PLAN[:-1])
    message = answered.choices[0].messages[0]
    assert [call.arguments for call in message.calls or ()] == ['{"x": 1}']
    assert message.extra == {"tool_plan": "I look."}
    assert answered.usage == Tokens(8, 3)
    assert (answered.done, cut.done) == (True, False)


def test_streams_of_the_older_version_of_cohere_end_with_the_whole() -> None:
    answered, cut = _cohere(_SAID), _cohere(_SAID[:2])
    assert [choice.messages[0].content for choice in (answered.choices[0], cut.choices[0])] == ["Rye, today.", "Rye, "]
    assert answered.choices[0].finish_reason == "COMPLETE"
    assert answered.usage == Tokens(8, 3)
    assert (answered.done, cut.done) == (True, False)


@pytest.mark.parametrize(
    ("events", "codec"),
    [
        (ANTHROPIC, "anthropic_messages"), (_PLAN, "cohere"), (_SAID, "cohere"),
        ([{"type": "response.created", "response": {"id": "r1", "output": []}}], "openai_responses"),
        ([{"messageStart": {"role": "assistant"}}], "bedrock_converse"), (_chunks("c1", ["a"]), "openai_chat"),
    ],
)  # fmt: skip
def test_a_stream_tells_whose_it_is_though_no_address_does(events: list[Any], codec: str) -> None:
    asked = {"model": "demo", "messages": [{"role": "user", "content": "Which flour?"}]}
    told = read_body("".join(f"data: {json.dumps(event)}\n\n" for event in events)).events or []
    assert kind_of(None, asked, told[0]) == codec


@pytest.mark.parametrize("before", [[], [{"type": "ping"}]])
def test_the_answer_of_a_pair_without_an_address_is_the_one_that_was_streamed(
    tmp_path: Path, before: list[Any]
) -> None:
    asked = {"model": "demo", "stream": True, "messages": [{"role": "user", "content": "Which flour?"}]}
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"request": asked, "response": _sse([*before, *ANTHROPIC])}))
    ingest([tmp_path / "pairs.jsonl"], lake=tmp_path / "lake")
    (row,) = rows(tmp_path / "lake")
    assert (row["final_text"], row["provider"], row["finish_reason"]) == ("Rye, today.", "anthropic", "end_turn")


def _chat(*deltas: dict[str, Any], **more: Any) -> Answered:
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return CODECS["openai_chat"].answered(CODECS["openai_chat"].joined([*chunks, {"choices": [], **more}]))


def _thought(text: str) -> dict[str, Any]:
    return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}


@given(
    st.lists(st.text("ab ", min_size=1), max_size=3), st.lists(st.text("ab ", min_size=1), max_size=3), st.booleans()
)
def test_an_answer_that_thinks_in_blocks_and_speaks_in_text_keeps_both(
    thoughts: list[str], said: list[str], blank: bool
) -> None:
    begun = [{"role": "assistant", "content": ""}] if blank else []
    answered = _chat(*begun, *map(_thought, thoughts), *({"content": piece} for piece in said))
    message = answered.choices[0].messages[0] if answered.choices else Message("assistant")
    assert message.content == "".join(said)
    assert (message.reasoning or "") == "".join(thoughts)


def test_calls_of_a_turn_are_in_the_order_of_their_indices() -> None:
    calls = [
        {"index": 1, "id": "b"}, {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
        {"index": 1, "function": {"name": "g", "arguments": "{}"}},
    ]  # fmt: skip
    answered = _chat(*({"tool_calls": [call]} for call in calls))
    assert [call.name for call in answered.choices[0].messages[0].calls or ()] == ["f", "g"]


def test_counts_that_a_gateway_puts_beside_a_stream_are_its_usage() -> None:
    counts = {"prompt_tokens": 11, "completion_tokens": 2}
    assert _chat({"content": "Hm"}, x_groq={"usage": counts}).usage == Tokens(11, 2)
