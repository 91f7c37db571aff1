"""Inputs and outputs of runs: whatever they hold is read, and nothing of it is lost or changed."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.adapters._langchain import chat_form, opened_all
from etl.adapters._run_tools import tool_words
from etl.adapters._run_values import answered, asked, turn
from tests.examples import examples

_KEYS = ("role", "content", "messages", "type", "kwargs", "id", "lc", "tool_calls", "generations", "message", "text")
_MORE = (
    "output",
    "input",
    "choices",
    "data",
    "name",
    "args",
    "parts",
    "function",
    "human",
    "ai",
    "tool",
    "constructor",
)
_WORDS = st.sampled_from((*_KEYS, *_MORE))
_LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | _WORDS
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS | st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@examples(150)
@given(_JSON, _JSON)
def test_anything_can_be_asked_and_answered(given_value: Any, said: Any) -> None:
    for value in (given_value, json.dumps(given_value), repr(given_value)):
        made = turn(asked(value), answered(said))
        for message in [*made.inputs, *(each for answer in made.answers for each in answer)]:
            assert isinstance(message.content, str)
            assert message.role in ("system", "developer", "user", "assistant", "tool")
        tool_words(value, said)


@examples(60)
@given(_JSON)
def test_opening_json_text_gives_its_value(value: Any) -> None:
    if isinstance(value, (dict, list)):
        assert opened_all(json.dumps(value)) == value
        assert opened_all(json.dumps(json.dumps(value))) == value


@examples(60)
@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=3))
def test_arguments_that_look_like_messages_are_left_alone(arguments: dict[str, Any]) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    assert chat_form({"messages": [message]}) == {"messages": [message]}
