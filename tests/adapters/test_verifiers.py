"""Results of verifiers: groups of rollouts, results without ids, and what the metadata beside them says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl import ingest
from etl.adapter import adapters
from tests.contract.harness import read
from tests.lakes import NOW, rows

VERIFIERS = adapters()["verifiers"]


def _rollout(question: str, answer: str, **more: Any) -> dict[str, Any]:
    prompt, completion = [{"role": "user", "content": question}], [{"role": "assistant", "content": answer}]
    return {"id": 0, "prompt": prompt, "completion": completion, "task": "sums", "answer": "4", "reward": 1.0, **more}


def _lines(*values: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_rollouts_of_one_example_are_a_group_whatever_their_id() -> None:
    found = read(_lines(_rollout("2+2?", "4"), _rollout("1+3?", "4"), _rollout("2+2?", "5", id=1)), VERIFIERS).rows
    assert [row["sample_index"] for row in found] == [0, 0, 1]
    assert found[0]["group_id"] == found[2]["group_id"] != found[1]["group_id"]
    assert found[0]["task_id"] == found[2]["task_id"] != found[1]["task_id"]


def test_the_metadata_beside_the_results_names_the_model(tmp_path: Path) -> None:
    for name, model in (("a", "demo-1"), ("b", "demo-2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.jsonl").write_bytes(_lines(_rollout("2+2?", "4")))
        (tmp_path / name / "metadata.json").write_text(json.dumps({"env_id": "sums", "model": model, "avg_reward": 1}))
    report = ingest([tmp_path / "a", tmp_path / "b"], lake=tmp_path / "lake", now=NOW, strict=True).to_json()
    assert report["files"]["skipped"] == 2
    found = rows(tmp_path / "lake")
    assert {row["model"] for row in found} == {"demo-1", "demo-2"}
    assert len({row["task_id"] for row in found}) == 1
    assert len({row["group_id"] for row in found}) == 2


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**40), 2**40))
def test_rewards_are_as_logged(reward: float, metric: int) -> None:
    (row,) = read(_lines(_rollout("2+2?", "4", reward=reward, turns=metric)), VERIFIERS).rows
    assert row["reward"] == reward
    assert json.loads(row["rewards"]) == {"turns": metric}


def test_results_without_ids_answer_calls_made_at_once_in_order() -> None:
    calls = [json.dumps({"id": key, "function": {"name": "add", "arguments": "{}"}}) for key in ("c1", "c2")]
    asked = {"role": "assistant", "content": "", "tool_calls": calls}
    results = [{"role": "tool", "content": text, "tool_calls": None} for text in ("first", "second")]
    (row,) = read(_lines(_rollout("2+2?", "", completion=[asked, *results])), VERIFIERS).rows
    assert [(step["call_id"], step["result_index"]) for step in row["steps"]] == [("c1", 2), ("c2", 3)]
    (row,) = read(_lines(_rollout("2+2?", "", completion=[asked, results[0]])), VERIFIERS).rows
    assert [step["status"] for step in row["steps"]] == ["ok", "missing"]
