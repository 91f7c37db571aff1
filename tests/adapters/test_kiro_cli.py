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


def _state(session: str, *turns: tuple[list[str], int, int], named: bool = True) -> str:
    """A state; each turn (its messages, tokens in and out), the messages only where they are named."""
    listed = [
        {
            **({"message_ids": ids} if named else {}),
            "result": {"Ok": {"id": ids[-1]}},
            "end_timestamp": f"2026-08-12T08:0{number}:20.123456789Z",
            "input_token_count": tokens_in,
            "output_token_count": tokens_out,
            "metering_usage": [{"value": 0.3, "unit": "credit"}],
        }
        for number, (ids, tokens_in, tokens_out) in enumerate(turns)
    ]
    told_of = {"model_info": {"model_id": "demo-kiro"}}
    state = {"rts_model_state": told_of, "conversation_metadata": {"user_turn_metadatas": listed}}
    session_of = {"session_id": session, "cwd": "/srv/kiln", "created_at": "2026-08-12T08:00:00.000000001Z"}
    return json.dumps({**session_of, "session_state": state})


_TURNS = ((["k-1", "k-2", "k-3", "k-4"], 900, 40), (["k-6", "k-7", "k-8"], 0, 0))
"""Of the second only credits are known: its counts are nought."""


def test_lines_and_their_state_are_one_row(samples: Path, tmp_path: Path, lake: Path) -> None:
    shutil.copy(samples / "kiro_cli" / "kiln.jsonl", tmp_path)
    (tmp_path / "state.json").write_text(_state(_NAME, *_TURNS), encoding="utf-8")
    (tmp_path / "alone.json").write_text(_state("another"), encoding="utf-8")
    report = read_in(lake, tmp_path)
    assert (report["rejects"], report["ignored"]) == ({"torn_tail": 1}, {"state_without_session": 1})
    row = _row(lake)
    assert [step[3] for step in told(row)["steps"]] == ["error", "ok", "error", "missing"]
    assert (row["prompt"], row["steps"][0]["error"]) == ("Is the kiln cold?", "exit 3")
    assert (row["model"], row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == ("demo-kiro", 900, 40)
    assert row["messages"][1]["reasoning_content"] == "Read the gauge."


@pytest.mark.parametrize("named", [True, False])
def test_the_state_may_come_a_night_later(named: bool, samples: Path, tmp_path: Path, lake: Path) -> None:
    """It names the messages, else the session for which the file of lines is called."""
    shutil.copy(samples / "kiro_cli" / "kiln.jsonl", tmp_path / f"{'log' if named else _NAME}.jsonl")
    read_in(lake, tmp_path)
    before = _row(lake)
    assert before["model"] is None
    (tmp_path / "state.json").write_text(_state(_NAME, *_TURNS, named=named), encoding="utf-8")
    read_in(lake, tmp_path)
    assert (_row(lake)["rollout_id"], _row(lake)["model"]) == (before["rollout_id"], "demo-kiro")
    read_in(tmp_path / "once", tmp_path / "state.json", *tmp_path.glob("*.jsonl"))
    assert said(lake) == said(tmp_path / "once")
