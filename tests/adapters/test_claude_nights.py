"""Claude Code sessions that arrive in pieces over nights end in the rows of one run over all of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from etl.pipeline import ingest
from tests.lakes import NOW, rows, said


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_pieces_over_nights_give_the_rows_of_one_night(samples: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    files = sorted((samples / "claude_code").rglob("*.jsonl"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    # A line that names no session belongs to that of its file: such lines stay out of this.
    lines = [line for text in texts for line in text.splitlines() if '"sessionId"' in line]
    (tmp_path / "all.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
    ingest([tmp_path / "all.jsonl"], lake=tmp_path / "whole", now=NOW, strict=True)
    chance.shuffle(lines)
    for night in range(3):
        for number in range(2):
            piece = tmp_path / f"night{night}" / f"{number}.jsonl"
            piece.parent.mkdir(exist_ok=True)
            piece.write_text("\n".join([*lines[night * 2 + number :: 6], ""]), encoding="utf-8")
        ingest([tmp_path / f"night{night}"], lake=tmp_path / "pieces", now=NOW, format="claude_code", strict=True)
    assert said(tmp_path / "pieces") == said(tmp_path / "whole")
    assert (
        sum((row["usage"] or {}).get("output_tokens") or 0 for row in rows(tmp_path / "pieces")) == 427
    )  # 187 + 85 + 36 + 14 + 16 + 10 + 53 + 26


def test_a_session_read_after_its_sub_agent_does_not_change_it(samples: Path, tmp_path: Path) -> None:
    folder = samples / "claude_code"
    lake = tmp_path / "lake"
    ingest([folder / "houses" / "subagents"], lake=lake, now=NOW, strict=True)
    (alone,) = rows(lake)
    ingest([folder / "houses.jsonl"], lake=lake, now=NOW, strict=True)
    first, second = sorted(rows(lake), key=lambda row: row["parent_id"] is not None)
    assert second["rollout_id"] == alone["rollout_id"]
    assert second["parent_id"] == alone["parent_id"] == first["rollout_id"]
    assert (alone["agent"], second["agent"]) == ("claude-code", "inspector")
