"""Samples of lm-evaluation-harness: what several filters scored is one row, what nobody wrote is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import read_in
from tests.lakes import rows


def _sample(**more: Any) -> dict[str, Any]:
    return {
        "doc_id": 0,
        "doc": {"question": "How many?"},
        "target": "3",
        "arguments": {"gen_args_0": {"arg_0": "How many?", "arg_1": {"until": ["\n"]}}},
        "resps": [["Three."]],
        "filtered_resps": ["3"],
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": 1.0,
        **more,
    }


def _written(path: Path, *samples: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8")
    return path


def test_filters_of_one_answer_are_rewards_of_one_row(tmp_path: Path, lake: Path) -> None:
    strict, loose = _sample(filter="strict", exact_match=0.0), _sample(filter="loose")
    report = read_in(lake, _written(tmp_path / "s.jsonl", strict, _sample(doc_id=1), loose))
    assert report["records_in"] == 3
    by_id = {row["conversation_id"]: row for row in rows(lake)}
    assert json.loads(by_id["0"]["rewards"]) == {"exact_match,strict": 0.0, "exact_match,loose": 1.0}
    assert (by_id["0"]["reward"], by_id["1"]["reward"]) == (None, 1.0)


def test_a_sample_that_ran_twice_stays_two(tmp_path: Path, lake: Path) -> None:
    read_in(lake, _written(tmp_path / "s.jsonl", _sample(), _sample()))
    assert len({row["rollout_id"] for row in rows(lake)}) == 2


def test_repeats_are_a_group_and_their_common_score_is_no_reward_of_one(tmp_path: Path, lake: Path) -> None:
    read_in(lake, _written(tmp_path / "s.jsonl", _sample(resps=[["Two.", "Three."]])))
    found = sorted(rows(lake), key=lambda row: row["sample_index"])
    assert [(row["sample_index"], row["final_text"], row["reward"]) for row in found] == [
        (0, "Two.", None),
        (1, "Three.", None),
    ]
    assert len({row["group_id"] for row in found}) == len({row["task_id"] for row in found}) == 1


@pytest.mark.parametrize("resps", [[[["-1.5", "True"]], [["-4.0", "False"]]], [[[-7.25, True]]], []])
def test_likelihoods_of_given_texts_are_counted_and_no_rows(resps: list[Any], tmp_path: Path, lake: Path) -> None:
    report = read_in(lake, _written(tmp_path / "s.jsonl", _sample(), _sample(doc_id=1, resps=resps)))
    assert report["ignored"] == {"loglikelihood": 1}
    assert len(rows(lake)) == 1
