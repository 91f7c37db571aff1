"""What the τ-bench adapter makes of attempts, beyond the contract: tasks, groups, verdicts; and real results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from etl import ingest
from etl.adapter import adapters
from tests.contract.harness import read
from tests.lakes import NOW, rows

TAU = adapters()["tau_bench"]
POLICY = {"role": "system", "content": "# Desk policy"}
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}


def _attempt(task_id: Any = 0, trial: Any = 0, **more: Any) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "trial": trial,
        "reward": 1.0,
        "info": {"source": "user", "reward_info": {"reward": 1.0, "info": {}, "actions": []}},
        "traj": [POLICY, {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}],
        **more,
    }


def _rows(*attempts: Any, uri: str = "/runs/a.json") -> list[dict[str, Any]]:
    return read(json.dumps(attempts).encode(), TAU, uri).rows


def test_attempts_at_one_task_share_task_and_group() -> None:
    found = _rows(_attempt(0, 0), _attempt(0, 1), _attempt(1, 0), _attempt("0", 2))
    assert [row["sample_index"] for row in found] == [0, 1, 0, 2]
    assert found[0]["task_id"] == found[1]["task_id"] == found[3]["task_id"] != found[2]["task_id"]
    assert found[0]["group_id"] == found[1]["group_id"] != found[2]["group_id"]
    assert [row["conversation_id"] for row in found] == ["0/0", "0/1", "1/0", "0/2"]


def test_a_domain_has_tasks_of_its_own() -> None:
    other = {"role": "system", "content": "# Another policy"}
    here, there = _rows(_attempt(), _attempt(traj=[other, {"role": "user", "content": "Hello"}]))
    assert here["task_id"] != there["task_id"]
    named = _rows(_attempt(domain="retail"), _attempt(env="airline"), _attempt(env="retail", traj=[other]))
    assert named[0]["task_id"] == named[2]["task_id"] != named[1]["task_id"]


def test_a_logged_model_keeps_runs_apart_and_a_file_name_only_fills_it() -> None:
    one, two = _rows(_attempt(model="m-1"), _attempt(model="m-2"), uri="/runs/gpt-4o-airline.json")
    assert (one["model"], two["model"]) == ("m-1", "m-2")
    assert one["group_id"] != two["group_id"]
    assert one["task_id"] == two["task_id"]
    names = {
        "/runs/gpt-4o-airline.json": "gpt-4o",
        "/runs/x__claude-3.5-retail.json.gz": "claude-3.5",
        "/runs/react-org_model-1-0.7_range_0-50_user-gpt-4o-llm_0101.json": "org_model-1",
        "/runs/results.json": None,
    }
    assert {uri: _rows(_attempt(), uri=uri)[0]["model"] for uri in names} == names
    assert len({_rows(_attempt(), uri=uri)[0]["rollout_id"] for uri in names}) == 1


def test_an_attempt_that_failed_before_it_began_belongs_to_the_tasks_of_its_file() -> None:
    failed = _attempt(0, 3, reward=0.0, traj=[], info={"error": "429", "traceback": "Traceback: 429"})
    first, second, third = _rows(failed, _attempt(0, 0), {**failed, "trial": 4})
    assert first["task_id"] == second["task_id"] == third["task_id"]
    assert first["group_id"] == second["group_id"]
    assert (first["status"], first["error"], first["reward"], first["messages"]) == ("error", "429", 0.0, [])
    assert json.loads(first["extra"]) == {"info": {"traceback": "Traceback: 429"}}


@pytest.mark.parametrize(
    ("info", "status"),
    [
        ({"source": "user", "reward_info": {"reward": 1.0}}, "completed"),
        ({"source": "look", "reward_info": None}, "truncated"),
        ({"error": "boom"}, "error"),
    ],
)
def test_how_an_attempt_ended(info: dict[str, Any], status: str) -> None:
    (row,) = _rows(_attempt(info=info))
    assert (row["status"], row["finish_reason"]) == (status, info.get("source"))


def test_the_checks_behind_a_reward_are_verdicts() -> None:
    actions = [{"name": "look", "kwargs": {}}]
    database = {"reward": 0.0, "info": {"r_actions": 0.0, "gt_data_hash": "ab12"}, "actions": actions}
    outputs = {"reward": 1.0, "info": {"r_outputs": 1.0, "outputs": {"42": True, "17": False}}, "actions": [{}]}
    task = {"user_id": "u", "actions": actions, "instruction": "Ask.", "outputs": []}
    first, second = (
        _rows(_attempt(reward=r["reward"], info={"task": task, "reward_info": r}))[0] for r in (database, outputs)
    )
    assert [(v["name"], v["kind"], v["value"], v["label"]) for v in first["judgments"]] == [
        ("r_actions", "rule", 0.0, None)
    ]
    assert json.loads(first["judgments"][0]["reason"]) == {"gt_data_hash": "ab12"}
    assert [(v["name"], v["value"], v["label"]) for v in second["judgments"]] == [
        ("r_outputs", 1.0, None),
        ("output", 1.0, "42"),
        ("output", 0.0, "17"),
    ]
    assert (json.loads(first["rewards"]), json.loads(second["rewards"])) == ({"r_actions": 0.0}, {"r_outputs": 1.0})
    assert json.loads(first["extra"]) == {"info": {"task": task}}
    assert json.loads(second["extra"]) == {"info": {"task": task, "reward_info": {"actions": [{}]}}}


@pytest.mark.parametrize(
    ("text", "status", "condition"),
    [
        ("{}", "ok", "success"),
        ("Error: user not found", "error", "not_found"),
        ("Error: not enough seats", "error", "error"),
        ("Unknown action fly", "error", "error"),
        ("An Error: inside", "ok", "success"),
    ],
)
def test_the_environment_says_what_failed(text: str, status: str, condition: str) -> None:
    answer = {"role": "tool", "tool_call_id": "c", "name": "look", "content": text}
    (row,) = _rows(_attempt(traj=[POLICY, {"role": "user", "content": "Hello"}, CALL, answer]))
    assert [(step["status"], step["condition"]) for step in row["steps"]] == [(status, condition)]


def test_nothing_of_an_attempt_is_thrown_away() -> None:
    turns = [
        POLICY,
        {"role": "user", "content": "Hello"},
        {**CALL, "mood": "calm", "tool_calls": [7, CALL["tool_calls"][0]]},
    ]
    (row,) = _rows(_attempt(traj=turns, total_cost=0.5, info={"reward_info": "odd", "user_cost": 0.25}))
    assert json.loads(row["extra"]) == {"total_cost": 0.5, "info": {"user_cost": 0.25, "reward_info": "odd"}}
    assert json.loads(row["message_info"][2]["extra"]) == {"mood": "calm", "tool_calls": [7]}
    assert row["n_steps"] == 1


def test_a_few_shot_file_is_recognised_and_refused(samples: Path, lake: Path) -> None:
    report = ingest([samples / "tau_bench" / "few-shot.jsonl"], lake=lake, now=NOW, strict=True).to_json()
    assert (report["records_in"], report["rejects"]) == (2, {"calls_not_logged": 2})
    assert all(b"assistant" in reject["raw"] for reject in rows(lake, "rejects"))


def test_real_results(shared: Path, lake: Path) -> None:
    folder = shared / "corpora" / "tau-bench"
    report = ingest([folder], lake=lake, now=NOW, strict=True).to_json()
    found = rows(lake)
    assert (len(found), report["files"]["failed"]) == (200, 0)
    assert Counter(row["reward"] for row in found) == {0.0: 116, 1.0: 84}
    attempts = Counter(row["task_id"] for row in found)
    assert (len(attempts), set(attempts.values())) == (50, {4})
    assert len({row["group_id"] for row in found}) == 50
    steps = [step for row in found for step in row["steps"]]
    assert (len(steps), sum(step["result_index"] is None for step in steps)) == (1164, 0)
    assert sum("reused_call_id" in row["flags"] for row in found) > 0
    assert sum("#" in step["call_id"] for step in steps) == 73
    assert Counter(row["status"] for row in found) == {"completed": 195, "truncated": 5}
    assert not {"missing_result", "orphan_result"} & {flag for row in found for flag in row["flags"]}
    again = ingest([folder], lake=lake, now=NOW, strict=True, reparse=True).to_json()
    assert (again["rows"]["added"], again["rows"]["replaced"]) == (0, 0)
