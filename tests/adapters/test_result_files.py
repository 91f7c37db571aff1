"""Terminal-Bench and impossible-bench: trials in two files, what nobody scored, columns of unequal length."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl import ingest
from etl.adapter import adapters
from tests.contract.harness import read
from tests.lakes import NOW, REPO, by_id

TERMINAL, IMPOSSIBLE = adapters()["terminal_bench"], adapters()["impossible_bench"]
SAMPLES = REPO / "sample_logs" / "terminal_bench"


def test_a_trial_in_two_files_is_one_row(tmp_path: Path) -> None:
    ingest([SAMPLES / "trial.json"], lake=tmp_path / "lake", now=NOW, strict=True)
    ingest([SAMPLES / "run.json"], lake=tmp_path / "lake", now=NOW, strict=True)
    found = by_id(tmp_path / "lake")
    assert {name: row["reward"] for name, row in found.items()} == {
        "make-cert.1-of-3.run-a": 1.0,
        "make-cert.2-of-3.run-a": 0.0,
        "5b0f6a64-2b1e-4a0c-9d55-0c2f7a1e9b13": None,
    }
    first, second = found["make-cert.1-of-3.run-a"], found["make-cert.2-of-3.run-a"]
    assert (first["sample_index"], second["sample_index"]) == (0, 1)
    assert first["group_id"] == second["group_id"]
    assert first["task_id"] == second["task_id"]
    assert (first["usage"]["input_tokens"], second["usage"]) == (900, None)


@pytest.mark.parametrize(
    ("failure", "status"), [("unset", "completed"), ("agent_timeout", "truncated"), ("parse_error", "error")]
)
def test_how_a_trial_ended(failure: str, status: str) -> None:
    trial = {"id": "a", "task_id": "t", "is_resolved": None, "failure_mode": failure, "instruction": "Do."}
    (row,) = read(json.dumps(trial).encode(), TERMINAL).rows
    assert (row["status"], row["reward"]) == (status, None)


def test_entries_of_one_position_belong_together() -> None:
    convos = [[{"role": "user", "content": text}, {"role": "assistant", "content": text.upper()}] for text in "abc"]
    run: dict[str, Any] = {"convos": convos, "full_responses": [{"model": "m"}], "scores": [1.0, 0.5]}
    found = read(json.dumps(run).encode(), IMPOSSIBLE).rows
    assert [(row["prompt"], row["final_text"], row["reward"], row["model"]) for row in found] == [
        ("a", "A", 1.0, "m"),
        ("b", "B", 0.5, None),
        ("c", "C", None, None),
    ]
    assert len({row["rollout_id"] for row in found}) == 3


def test_a_judge_is_heard_and_not_counted() -> None:
    answer = {"choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": "Hm"}}]}
    judge = {"model": "judge", "choices": [{"message": {"content": "no"}}], "usage": {"prompt_tokens": 99}}
    run = {"msg_data": [[{"role": "user", "content": "a"}]], "responses": [answer], "judgements": [judge]}
    (row,) = read(json.dumps(run).encode(), IMPOSSIBLE).rows
    (verdict,) = row["judgments"]
    assert (verdict["kind"], verdict["label"], verdict["value"]) == ("judge", "no", None)
    assert (row["status"], row["usage"], row["model"]) == ("truncated", None, None)
