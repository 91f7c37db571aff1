"""Turns of training sets: none lost, none moved, none relabelled; a result answers the calls just before it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.adapters._preference import transcript
from etl.adapters._sharegpt import ROLES, turns
from etl.adapters._training import Pairs, calls_of
from etl.conversation import Message

_words = st.text(st.characters(codec="utf-8"), max_size=20)
_spoken = st.tuples(st.sampled_from(["human", "gpt", "system", "observation"]), _words)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | _words, lambda inner: st.lists(inner) | st.dictionaries(_words, inner)
)


def _read(said: list[tuple[str, Any]]) -> list[Message]:
    messages = turns([{"from": who, "value": what} for who, what in said], Pairs())
    assert not isinstance(messages, str)
    return messages


@given(st.lists(_spoken))
def test_what_is_said_stays_in_its_order(said: list[tuple[str, str]]) -> None:
    assert [(message.role, message.content) for message in _read(said)] == [(ROLES[who], what) for who, what in said]


@given(st.lists(st.sampled_from(["human", "call", "observation"])))
def test_a_result_answers_a_call_of_the_turn_before_it(kinds: list[str]) -> None:
    said: list[tuple[str, Any]] = [
        ("function_call", json.dumps({"name": f"f{index}", "arguments": {"n": index}}))
        if kind == "call"
        else (kind, "x")
        for index, kind in enumerate(kinds)
    ]
    asked: list[str] = []
    answered: list[str] = []
    for message in _read(said):
        if message.role == "user":
            asked = []
        for call in message.calls or ():
            assert call.id is not None
        if message.calls:
            asked = [call.id or "" for call in message.calls]
        if message.role == "tool" and message.call_id is not None:
            assert message.call_id == asked.pop(0)
            answered.append(message.call_id)
    assert len(answered) == len(set(answered))


@given(_values)
def test_anything_is_calls_or_none(value: Any) -> None:
    found = calls_of(value)
    again = calls_of(json.dumps(value))
    assert (found is None) == (again is None)
    assert calls_of(repr(value)) is None or found is not None or isinstance(value, str)


@given(st.lists(_words.filter(lambda text: "\n\n" not in text and not text.startswith(" ")), min_size=1))
def test_a_transcript_is_its_turns(texts: list[str]) -> None:
    speakers = ["Human", "Assistant"] * len(texts)
    written = "".join(f"\n\n{who}: {text}" for who, text in zip(speakers, texts, strict=False))
    found = transcript(written)
    assert found is not None
    assert [message.content for message in found] == texts
