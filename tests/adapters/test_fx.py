"""fx: turns of a checkpoint, the calls of an interrupted one left open."""

from __future__ import annotations

from pathlib import Path

from tests.cases.reading import agrees, read_in, told
from tests.lakes import rows


def test_a_checkpoint_is_a_session(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "fx" / "checkpoint.json")
    (row,) = rows(lake)
    agrees(told(row), {"prompt": "Ring the bell.", "status": "aborted", "model": "demo/bell-1"})
    assert [(step["tool"], step["status"]) for step in row["steps"]] == [
        ("run_command", "ok"),
        ("read_file", "error"),
        ("run_command", "missing"),
    ]
    assert {"compacted", "interrupted", "missing_result"} <= set(row["flags"])
    assert row["n_turns"] == 2
