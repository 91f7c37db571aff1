"""Memory follows neither the length of a file nor that of a line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lakes import rows
from tests.measured import cost
from tests.reading.nights import chat

MB = 1 << 20


def _read(log: Path, lake: Path) -> tuple[int, dict[str, int], int]:
    """Rows, rejects, and the most megabytes that a process of its own needed."""
    spent = cost(log, lake)
    ((_, _, rejects, added),) = spent.files
    return added, rejects, spent.mb


@pytest.mark.slow
def test_a_file_six_times_as_long_needs_no_more(tmp_path: Path) -> None:
    """Records of two kilobytes, each of which occurs again."""
    lines = b"".join(chat(number, note=os.urandom(900).hex()) + b"\n" for number in range(8 * MB // 1_900))
    peaks = []
    for times in (8, 48):
        log = tmp_path / "log.jsonl"
        with log.open("wb") as file:
            for _ in range(times):
                file.write(lines)
        added, _, peak = _read(log, tmp_path / f"lake{times}")
        assert added == times * lines.count(b"\n")
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 150, "the file is 320 MB longer"
    assert peaks[1] < 500


@pytest.mark.slow
def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    """200 MB without an end: rejected with its place and length, the lines around it are read."""
    log = tmp_path / "log.jsonl"
    with log.open("wb") as file:
        file.write(chat(1) + b"\n" + b'{"messages": [{"role": "user", "content": "')
        for _ in range(200):
            file.write(b"x" * MB)
        file.write(b'"}]}\n' + chat(2) + b"\n")
    added, rejects, peak = _read(log, tmp_path / "lake")
    assert (added, rejects) == (2, {"too_long": 1})
    assert peak < 400
    (reject,) = rows(tmp_path / "lake", "rejects")
    assert (reject["source_line"], reject["length"] > 200 * MB, len(reject["raw"]) <= 1024) == (2, True, True)
    assert sorted(row["source_line"] for row in rows(tmp_path / "lake")) == [1, 3]
