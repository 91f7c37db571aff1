"""NeMo Gym rollouts: tasks, groups, output as states, turns of a user inside the output."""

from __future__ import annotations

import json
from typing import Any

from etl.adapter import adapters
from tests.contract.harness import read

NEMO = adapters()["nemo_gym"]


def _said(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def _row(given: Any, output: Any, **more: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": given}, "response": {"output": output}, "reward": 0.5, **more}


def _rows(*values: dict[str, Any]) -> list[dict[str, Any]]:
    return read(b"".join(json.dumps(value).encode() + b"\n" for value in values), NEMO).rows


def test_a_task_is_what_was_asked_and_its_rollouts_are_a_group() -> None:
    answer = [_said("assistant", "4")]
    found = _rows(
        _row("2+2?", answer, _ng_task_index=0, _ng_rollout_index=0),
        _row("2+2?", answer, _ng_task_index=7, _ng_rollout_index=1),
        _row("1+1?", answer, _ng_task_index=0, _ng_rollout_index=0),
    )
    assert found[0]["task_id"] == found[1]["task_id"] != found[2]["task_id"]
    assert found[0]["group_id"] == found[1]["group_id"] != found[2]["group_id"]
    assert [row["sample_index"] for row in found] == [0, 1, 0]


def test_what_only_the_environment_asks_is_told_by_number() -> None:
    output = [[_said("user", "A maze."), _said("assistant", "North.")]]
    found = _rows(*(_row([], output, task_idx=number) for number in (0, 1, 1)), _row([], output))
    assert found[1]["task_id"] == found[2]["task_id"] != found[0]["task_id"]
    assert found[3]["task_id"] is None
    assert {row["group_id"] for row in found} == {None}


def test_a_list_of_states_is_read_once() -> None:
    given = [_said("system", "Play."), _said("user", "Go.")]
    first = [*given, _said("assistant", "North."), _said("user", "A wall.")]
    (row,) = _rows(_row(given, [first, [*first, _said("assistant", "South.")]]))
    assert [message["content"] for message in row["messages"]] == ["Play.", "Go.", "North.", "A wall.", "South."]
    assert row["n_turns"] == 2


def test_rewards_are_never_coerced() -> None:
    answer = [_said("assistant", "4")]
    found = _rows(*(_row("2+2?", answer, reward=reward) for reward in (-100, 0, 2.5, None)))
    assert [row["reward"] for row in found] == [-100.0, 0.0, 2.5, None]
