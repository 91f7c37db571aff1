"""Speed and memory as ratios, measured side by side: `make bench`, or `python -m tests.bench.bench --megabytes 50`.

CPU seconds, the best of three runs that take turns. The table is printed, and kept in RESULTS.md with machine and date.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.bench import exploring, first_load, peers
from tests.bench.calls import api_calls
from tests.bench.corpus import openai_conversations, sessions, spans, write, write_sessions, write_spans
from tests.bench.simulation import section

HERE = Path(__file__).parent
REPO = HERE.parent.parent
MB = 1_000_000
KEPT = (first_load.HEADING, "## What the time is spent on")
"""Sections of RESULTS.md that are written elsewhere."""


class Cost(NamedTuple):
    """What one contender took. Seconds, bytes."""

    cpu: float
    wall: float
    peak: int
    written: int


class Measured(NamedTuple):
    """One line of the table."""

    what: str
    contender: str
    megabytes: float
    cost: Cost
    floor: Cost | None

    def cells(self) -> list[str]:
        """As text, speed per CPU second, and as a share of the floor."""
        speed = self.megabytes / self.cost.cpu
        share = "" if self.floor is None else f"{self.floor.cpu / self.cost.cpu:.2f}"
        return [
            self.what,
            self.contender,
            f"{speed:.1f}",
            share,
            f"{self.cost.wall:.2f}",
            f"{self.cost.peak / MB:.0f}",
            f"{self.cost.written / MB:.1f}",
        ]


HEADINGS = ["input", "contender", "MB per CPU s", "of the floor", "wall s", "peak MB", "written MB"]


def run(name: str, source: Path, scratch: Path, workers: int = 1) -> Cost:
    """One run in a process of its own."""
    target = Path(tempfile.mkdtemp(dir=scratch)) / "out"
    command = [sys.executable, "-m", "tests.bench.contenders", name, str(source), str(target), str(workers)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True, timeout=1_800)
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def compare(what: str, source: Path, names: Iterable[str], scratch: Path, rounds: int) -> list[Measured]:
    """The best of some rounds for each contender, taking turns."""
    names = list(names)
    best: dict[str, Cost] = {}
    for _ in range(rounds):
        for name in names:
            contender, _, workers = name.partition(" --workers ")
            cost = run(contender, source, scratch, int(workers or 1))
            if name not in best or cost.cpu < best[name].cpu:
                best[name] = cost
    size = sum(file.stat().st_size for file in source.rglob("*")) if source.is_dir() else source.stat().st_size
    return [Measured(what, name, size / MB, best[name], best.get("floor")) for name in names]


def table(headings: list[str], rows: Iterable[Measured | exploring.Asked]) -> str:
    """The rows as a Markdown table."""
    lines = [headings, ["---"] * len(headings), *(row.cells() for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def measure(megabytes: int, rounds: int, scratch: Path) -> list[Measured]:
    """Everything that the table shows."""
    chats = scratch / "chats.jsonl"
    count = write(chats, openai_conversations(), megabytes)
    rows = compare(f"openai_messages, {count} rows", chats, ["floor", "duckdb", "etl"], scratch, rounds)
    parts = scratch / "parts"
    parts.mkdir()
    for number in range(8):
        write(parts / f"{number}.jsonl", openai_conversations(seed=number), megabytes // 8)
    rows += compare("openai_messages, 8 files", parts, ["etl", "etl --workers 2"], scratch, rounds)
    sessions_folder = scratch / "sessions"
    write_sessions(sessions_folder, sessions(), megabytes // 2)
    rows += compare("claude_code sessions", sessions_folder, ["floor", "etl"], scratch, rounds)
    traces = scratch / "traces.jsonl"
    write_spans(traces, spans(), megabytes // 2)
    rows += compare("otlp spans", traces, ["floor", "etl"], scratch, rounds)
    calls = scratch / "calls.jsonl"
    write(calls, api_calls(), megabytes // 2)
    rows += compare("api_calls, whole histories", calls, ["floor", "etl"], scratch, rounds)
    for size in (50, 1_000):
        memory = scratch / f"memory{size}.jsonl"
        write(memory, openai_conversations(), size)
        rows += compare(f"openai_messages, {size} MB", memory, ["etl"], scratch, 1)
        memory.unlink()
    return rows


def main() -> None:
    """Measure, print, keep."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=200)
    arguments.add_argument("--rows", type=int, default=200_000, help="of the lake that questions are asked of")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--no-keep", action="store_true", help="print only")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="etl-bench-") as scratch:
        text = table(HEADINGS, measure(given.megabytes, given.rounds, Path(scratch)))
        asked = exploring.measure(given.rows, Path(scratch), rounds=given.rounds)
        simulated = section(Path(scratch))
        others = peers.measure(min(given.megabytes, 50), Path(scratch, "peers"), REPO / ".peers")
    text += (
        f"\n\n## Questions over a lake of {given.rows:,} rows\n\nCPU time, the best of {given.rounds} tries in turns "
        f"with a native DuckDB table of the same rows; both warm.\n\n{table(exploring.HEADINGS, asked)}"
    )
    text += "\n" + simulated.rstrip() + "\n\n" + others
    print(text)
    if not given.no_keep:
        today = dt.datetime.now(dt.UTC).date().isoformat()
        machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
        head = (
            f"# Benchmarks\n\nWritten by `make bench` on {today} ({machine}). CPU seconds, best of {given.rounds}.\n\n"
        )
        results = HERE / "RESULTS.md"
        before = results.read_text(encoding="utf-8") if results.exists() else ""
        kept = [first_load.kept(before, heading) for heading in KEPT]
        results.write_text("\n".join([head + text + "\n", *(f"{part}\n" for part in kept if part)]), encoding="utf-8")


if __name__ == "__main__":
    main()
