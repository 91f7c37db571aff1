"""Kiro CLI: lines and the state beside them, in any order and under any name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import read_in, told
from tests.lakes import rows, said

_NAME = "c0ffee00-0000-4000-8000-000000000001"


def _row(lake: Path) -> dict[str, Any]:
    (row,) = rows(lake)
    return row


def test_lines_and_their_state_are_one_row(samples: Path, lake: Path) -> None:
    report = read_in(lake, samples / "kiro_cli")
    assert (report["rejects"], report["ignored"]) == ({"torn_tail": 1}, {"state_without_session": 1})
    row = _row(lake)
    assert [(step[0], step[3]) for step in told(row)["steps"]] == [
        ("shell", "error"),
        ("read", "ok"),
        ("shell", "error"),
    ]
    assert (row["prompt"], row["steps"][0]["error"]) == ("Is the kiln cold?", "exit 3")
    assert (row["model"], row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == ("demo-kiro", 900, 40)
    assert row["messages"][1]["reasoning_content"] == "Read the gauge."


@pytest.mark.parametrize("named", [True, False])
def test_the_state_may_come_a_night_later(named: bool, samples: Path, tmp_path: Path, lake: Path) -> None:
    state = json.loads((samples / "kiro_cli" / f"{_NAME}.json").read_text(encoding="utf-8"))
    if named:  # by the session that the file of lines is called for
        for turn in state["session_state"]["conversation_metadata"]["user_turn_metadatas"]:
            del turn["message_ids"]
    shutil.copy(samples / "kiro_cli" / f"{_NAME}.jsonl", tmp_path / f"{_NAME if named else 'log'}.jsonl")
    read_in(lake, tmp_path)
    before = _row(lake)
    assert before["model"] is None
    (tmp_path / "state.json").write_text(json.dumps(state), encoding="utf-8")
    read_in(lake, tmp_path)
    assert (_row(lake)["rollout_id"], _row(lake)["model"]) == (before["rollout_id"], "demo-kiro")
    read_in(tmp_path / "once", tmp_path / "state.json", *tmp_path.glob("*.jsonl"))
    assert said(lake) == said(tmp_path / "once")
