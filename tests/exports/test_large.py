"""Memory does not grow with the lake: rows pass through, one file's worth at a time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from etl.lake import Lake
from tests.exports.talk import Message, agent, row, system, tool, user
from tests.lake.rows import put
from tests.lakes import REPO

_MEGABYTE = 1 << 20


def long_talk(draw: random.Random, words: list[str]) -> list[Message]:
    """About 60 kB: a dozen calls with long results."""

    def text(count: int) -> str:
        return " ".join(draw.choices(words, k=count))

    said = [system(text(50)), user(text(40))]
    for number in range(12):
        said += [agent(text(20), (f"c{number}", "look", {"q": text(4)})), tool(f"c{number}", text(700))]
    return [*said, agent(text(60))]


@pytest.mark.slow
def test_a_lake_of_many_long_conversations_streams(tmp_path: Path) -> None:
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(3, 9))) for _ in range(20_000)]
    lake = Lake.create(tmp_path / "lake")
    peaks = []
    for rows in (500, 3_500):
        for first in range(0, rows, 500):
            name = f"{rows}-{first}"
            made = [row(f"{name}-{n}", *long_talk(draw, words), task_id=f"{name}-{n // 4}") for n in range(500)]
            put(lake, made)
        out = tmp_path / f"out{rows}"
        command = [sys.executable, "-c", _EXPORT, "sft", str(out), str(tmp_path / "lake")]
        told = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": str(REPO)}, capture_output=True, text=True, check=True
        )
        peaks.append(int(told.stdout))
    text = sum(path.stat().st_size for path in (tmp_path / "out3500").glob("*.parquet"))
    assert text > 80 * _MEGABYTE
    assert peaks[1] < peaks[0] + 250 * _MEGABYTE, f"{peaks[0] >> 20} MB for 500 rows, {peaks[1] >> 20} MB for 4,000"


_EXPORT = f"""
import resource, sys, etl
target, out, lake = sys.argv[1:]
etl.export(target, out, lake=lake, shards=3)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * {1 if sys.platform == "darwin" else 1024})
"""
