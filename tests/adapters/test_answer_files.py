"""Results that benchmarks leave behind: OSWorld's trajectories, answers of GAIA, states of HELM."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.cases.reading import read_in
from tests.lakes import rows


def _row(lake: Path) -> dict[str, Any]:
    (row,) = rows(lake)
    return row


def test_a_response_that_acts_twice_is_one_message(samples: Path, tmp_path: Path, lake: Path) -> None:
    shutil.copy(samples / "osworld" / "atlas.jsonl", tmp_path / "traj.jsonl")
    (tmp_path / "result.txt").write_text("0.5\n", encoding="utf-8")
    read_in(lake, tmp_path / "traj.jsonl")
    row = _row(lake)
    calls = [len(message["tool_calls"] or ()) for message in row["messages"] if message["role"] == "assistant"]
    assert (calls, row["n_steps"], row["reward"], row["finish_reason"]) == ([2, 1, 1], 4, 0.5, "DONE")
    assert row["started_at"].isoformat().startswith("2026-09-10T08:00:01.123456")


def test_a_trajectory_that_grows_stays_one_row(samples: Path, tmp_path: Path, lake: Path) -> None:
    lines = (samples / "osworld" / "atlas.jsonl").read_bytes().splitlines(keepends=True)
    for end in (2, len(lines)):
        (tmp_path / "traj.jsonl").write_bytes(b"".join(lines[:end]))
        read_in(lake, tmp_path / "traj.jsonl")
    assert _row(lake)["n_steps"] == 4


def test_steps_of_gaia_are_read_in_each_form(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "gaia")
    found = {(row["conversation_id"], row["final_text"]): row for row in rows(lake)}
    assert found["t-1", "9"]["task_id"] == found["t-1", "8"]["task_id"]
    assert [step["tool"] for row in rows(lake) for step in row["steps"]] == ["python_interpreter", "final_answer"]
    assert "ActionStep" in json.loads(found["t-2", "9"]["extra"])["intermediate_steps"][0]
    assert {row["status"] for row in rows(lake)} == {"completed", "truncated", "error"}


def test_completions_of_a_request_of_helm_share_a_group_and_what_was_found(
    samples: Path, tmp_path: Path, lake: Path
) -> None:
    shutil.copy(samples / "helm" / "scenario_state.json", tmp_path)
    found = [
        {"instance_id": "id1", "train_trial_index": 0, "stats": [{"name": {"name": "exact"}, "count": 1, "mean": mean}]}
        for mean in (1.0, 0.0)
    ]
    found[1]["perturbation"] = {"name": "typos"}
    (tmp_path / "per_instance_stats.json").write_text(json.dumps(found), encoding="utf-8")
    (tmp_path / "stats.json").write_text('[{"name": {"name": "exact"}, "count": 2, "sum": 1.0}]', encoding="utf-8")
    report = read_in(lake, tmp_path)
    assert (report["files"]["skipped"], report["files"]["failed"], report["rejects"]) == (2, 0, {"no_request": 1})
    by_text = {row["final_text"]: row for row in rows(lake)}
    one, two, failed = by_text["9"], by_text["ten"], by_text[None]
    assert one["group_id"] == two["group_id"] != by_text[" 9"]["group_id"] is None
    assert [row["judgments"][0]["value"] for row in (by_text[" 9"], one, two)] == [1.0, 0.0, 0.0]
    assert (two["finish_reason"], failed["status"]) == ("length", "error")
    assert two["messages"][-1]["reasoning_content"] == "The ninth hides one."
