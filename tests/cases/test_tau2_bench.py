"""τ²-bench results: a missing reward, tools of the simulated user, a repeated simulation (B50)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import etl
from tests.cases.reading import Given, Shared, given
from tests.lakes import NOW, REPO, rows

__all__ = ["given"]


def _by_trial(log: Path, lake: Path) -> dict[int, dict[str, Any]]:
    etl.ingest([log], lake=lake, now=NOW, strict=True)
    return {row["sample_index"]: row for row in rows(lake)}


def test_the_shared_case(given: Given, tmp_path: Path) -> None:
    found = _by_trial(given(Shared("B50.tau2.json")), tmp_path / "lake")
    assert {trial: row["reward"] for trial, row in found.items()} == {0: 1.0, 1: None}
    assert found[1]["finish_reason"] == "too_many_errors"
    whole = found[0]
    assert [(step["tool"], step["arguments"]) for step in whole["steps"] if step["actor"] == "agent"] == [
        ("get_line", '{"line":"L1"}')
    ]
    assert [step["tool"] for step in whole["steps"] if step["actor"] == "user"] == ["toggle_data"]
    assert whole["prompt"] == "My data is off."
    assert whole["final_text"] == "Please toggle data."
    assert (whole["usage"]["input_tokens"], whole["usage"]["output_tokens"]) == (230, 18)
    assert whole["model"] == "demo-ta"
    assert "naive_time" in whole["flags"]
    assert [reject["reason"] for reject in rows(tmp_path / "lake", "rejects")] == ["duplicate"]


def test_a_sibling_of_ours(tmp_path: Path) -> None:
    found = _by_trial(REPO / "sample_logs" / "tau2_bench" / "results.json", tmp_path / "lake")
    assert {trial: row["reward"] for trial, row in found.items()} == {0: 1.0, 1: None}
    assert [step["actor"] for step in found[0]["steps"]] == ["agent", "user"]
    assert [step["status"] for step in found[1]["steps"]] == ["error", "missing"]
    assert (found[0]["usage"]["input_tokens"], found[0]["usage"]["output_tokens"]) == (230, 18)


def test_a_copied_file_gives_no_second_row(tmp_path: Path) -> None:
    samples = REPO / "sample_logs" / "tau2_bench"
    etl.ingest([samples / "results.json"], lake=tmp_path / "lake", now=NOW)
    report = etl.ingest([samples / "copied.json"], lake=tmp_path / "lake", now=NOW)
    assert report.rows.added == 0
