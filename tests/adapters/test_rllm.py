"""rLLM trajectories: chats that repeat themselves step by step are read once."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.adapter import adapters
from tests.contract.harness import read

RLLM = adapters()["rllm"]


def _row(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    (row,) = read(json.dumps({"task": "Go", "reward": 1.0, "steps": steps, **more}).encode(), RLLM).rows
    return row


def _step(chat: list[str], **more: Any) -> dict[str, Any]:
    turns = [{"role": "user" if number % 2 else "assistant", "content": said} for number, said in enumerate(chat, 1)]
    return {"action": None, "model_response": "", "chat_completions": turns, **more}


@given(st.integers(1, 6))
def test_what_each_step_repeats_is_read_once(number: int) -> None:
    chat = [f"turn {turn}" for turn in range(2 * number)]
    steps = [_step(chat[: 2 * step], model_response=chat[2 * step - 1]) for step in range(1, number + 1)]
    row = _row(*steps)
    assert [message["content"] for message in row["messages"]] == chat


def test_an_answer_beside_the_chat_is_a_turn_of_it() -> None:
    row = _row(_step(["Go"], model_response="Going."), _step(["Go", "Going.", "And?", "Gone."]))
    assert [message["content"] for message in row["messages"]] == ["Go", "Going.", "And?", "Gone."]


def test_tokens_that_do_not_go_on_stay_with_their_steps() -> None:
    tokens = {"prompt_ids": [1, 2], "response_ids": [3], "logprobs": [-0.5]}
    row = _row(_step(["Go", "a"], **tokens), _step(["Go", "a", "On", "b"], **tokens))
    assert row["token_ids"] is None
    assert json.loads(row["extra"])["steps"][1]["prompt_ids"] == [1, 2]
