"""Support dialogues: service calls are steps before the reply, whatever a set puts them into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cases.reading import read_in, told
from tests.lakes import REPO, rows

_SAMPLES = REPO / "sample_logs"


def _told(lake: Path, *paths: Path) -> list[dict[str, Any]]:
    read_in(lake, *paths)
    return [told(row) for row in sorted(rows(lake), key=lambda row: (row["source_offset"], row["rollout_id"]))]


def test_frames_of_sgd(tmp_path: Path) -> None:
    first, second, last = _told(tmp_path / "lake", _SAMPLES / "sgd")
    assert first["messages"][2:] == [("tool", '[{"plant":"leek","price":"2"}]'), ("assistant", "Yes, at two pounds.")]
    assert first["steps"] == [("FindSeed", {"plant": "leek"}, '[{"plant":"leek","price":"2"}]', "ok")]
    assert [(step[0], step[3]) for step in second["steps"]] == [("Order", "ok"), ("Send", "missing")]
    assert last["final_text"] == "Hello, what do you need?"
    assert {row["conversation_id"] for row in rows(tmp_path / "lake")} == {"1_00000", "1_00002"}


def test_calls_of_taskmaster(tmp_path: Path) -> None:
    first, *_ = _told(tmp_path / "lake", _SAMPLES / "taskmaster" / "dialogues.json")
    assert [(step[0], step[2], step[3]) for step in first["steps"]] == [
        ("find_seed", '{"stock":"7"}', "ok"),
        ("price", None, "missing"),
    ]
    assert first["final_text"] == "They are in stock."


def test_scored_answers_of_taskmaster(tmp_path: Path) -> None:
    good, bad = _told(tmp_path / "lake", _SAMPLES / "taskmaster" / "scored.json")
    assert (good["reward"], good["final_text"], good["prompt"]) == (1.0, "Seven packets are left.", "Leeks.")
    assert (bad["reward"], [step[3] for step in bad["steps"]]) == (0.0, ["ok", "missing"])
    assert [row["prompt_len"] for row in rows(tmp_path / "lake")] == [4, 4]
    assert [reject["reason"] for reject in rows(tmp_path / "lake", "rejects")] == ["bad_message"]
