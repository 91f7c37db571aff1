"""Conversations whose structure stands in their text: calls in tags, chat templates, marks of pictures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from etl.adapter import adapter_named
from etl.adapters._rendered import conversation_in
from tests.contract.harness import read

CALL = '<tool_call>\n{"name": "look", "arguments": {"n": %d}}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]


def _row(adapter: str, value: Any) -> dict[str, Any]:
    (row,) = read(json.dumps(value).encode() + b"\n", adapter_named(adapter)).rows
    return row


def _say(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


@pytest.mark.parametrize("role", ["tool", "user"])
def test_calls_and_results_in_tags_are_steps(role: str) -> None:
    given = "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
    asked = "I look.\n" + CALL % 1 + "\n" + CALL % 2
    row = _row("openai_messages", {"messages": [_say("user", "?"), _say("assistant", asked), _say(role, given)]})
    assert [message["content"] for message in row["messages"]] == ["?", "I look.", "one", "two"]
    assert [(step["arguments"], step["result_index"]) for step in row["steps"]] == [('{"n":1}', 2), ('{"n":2}', 3)]


def test_a_last_call_in_tags_is_a_call_where_tools_are_offered_and_text_where_nothing_says_so() -> None:
    said = [_say("user", "?"), _say("assistant", CALL % 1)]
    assert [step["tool"] for step in _row("openai_messages", {"messages": said, "tools": TOOLS})["steps"]] == ["look"]
    assert _row("openai_messages", {"messages": said})["final_text"] == CALL % 1


def test_calls_of_glaive_are_calls() -> None:
    asked = '<functioncall> {"name": "look", "arguments": \'{"n": 1}\'} <|endoftext|>'
    turns = [{"from": "human", "value": "?"}, {"from": "gpt", "value": asked}, {"from": "function", "value": "one"}]
    (step,) = _row("sharegpt", {"conversations": turns})["steps"]
    assert (step["tool"], json.loads(step["arguments"]), step["result_index"]) == ("look", {"n": 1}, 2)


def test_roles_in_any_case_are_roles() -> None:
    row = _row("openai_messages", {"messages": [_say("User", "Hi"), _say("ASSISTANT", "Yes")]})
    assert [message["role"] for message in row["messages"]] == ["user", "assistant"]


def test_the_one_picture_of_a_row_stands_where_its_mark_is() -> None:
    turns = [{"from": "human", "value": "<image>\nWhat?"}, {"from": "gpt", "value": "A cat."}]
    row = _row("sharegpt", {"image": "cat.jpg", "conversations": turns})
    assert json.loads(row["message_info"][0]["parts"]) == [{"type": "image", "image": "cat.jpg"}]


@pytest.mark.parametrize(
    "text",
    [
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes<|im_end|>\n",
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nYes<|eot_id|>",
        "<s>[INST] Hi [/INST] Yes </s>",
        "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nYes<end_of_turn>\n",
        "<|user|>\nHi</s>\n<|assistant|>\nYes</s>\n",
        "### Human: Hi### Assistant: Yes",
    ],
)
def test_a_text_that_a_template_made_is_its_turns(text: str) -> None:
    found = conversation_in(text)
    assert found is not None
    assert [(message.role, message.content) for message in found.messages] == [("user", "Hi"), ("assistant", "Yes")]
    assert _row("alpaca", {"text": text})["final_text"] == "Yes"


def test_what_stands_after_the_end_of_a_turn_stays() -> None:
    turn = "<|im_start|>{}\n{}<|im_end|>{}\n"
    found = conversation_in(turn.format("user", "Hi", "") + turn.format("assistant", "Yes", " or no"))
    assert found is not None
    assert [message.content for message in found.messages] == ["Hi", "Yes<|im_end|> or no\n"]
    found = conversation_in(turn.format("user", "Hi", "") + turn.format("assistant", "Yes", "<|endoftext|>" * 3))
    assert found is not None
    assert [message.content for message in found.messages] == ["Hi", "Yes"]


@pytest.mark.parametrize(
    "text", ["Once upon a time", "He said [INST] and left", "## Human: no", "", "<|user|> in a line"]
)
def test_other_texts_are_no_conversation(text: str) -> None:
    assert conversation_in(text) is None
