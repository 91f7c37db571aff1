"""Speed and memory, measured side by side: `make bench`, or `python -m tests.bench.bench --megabytes 50 --rows 200000`.

CPU seconds, the best of some rounds that take turns. The tables are printed, and kept in RESULTS.md (`results.py`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tests.bench import coding, exploring, nightly, peers, redaction, results, simulation
from tests.bench.calls import api_calls
from tests.bench.corpus import attempts, openai_conversations, sessions, spans, write, write_sessions, write_spans

REPO = Path(__file__).parents[2]
MB = 1_000_000
HEADING, COST = "Speed", "Cost of redaction"
COLUMNS = ["input", "contender", "MB per CPU s", "of the floor", "wall s", "peak MB", "written MB"]


class Cost(NamedTuple):
    """What one contender took. Seconds, bytes, rows."""

    cpu: float
    wall: float
    peak: int
    written: int
    out: int | None = None


class Measured(NamedTuple):
    """One line of the table."""

    what: str
    contender: str
    megabytes: float
    cost: Cost
    floor: Cost | None

    def cells(self) -> list[str]:
        """As text, speed per CPU second, and as a share of the floor."""
        share = "" if self.floor is None else f"{self.floor.cpu / self.cost.cpu:.2f}"
        return [
            self.what, self.contender, f"{self.megabytes / self.cost.cpu:.1f}", share, f"{self.cost.wall:.2f}",
            f"{self.cost.peak / MB:.0f}", f"{self.cost.written / MB:.1f}",
        ]  # fmt: skip


def run(name: str, source: Path, scratch: Path, workers: int = 1) -> Cost:
    """One run in a process of its own."""
    target = Path(tempfile.mkdtemp(dir=scratch)) / "out"
    command = [sys.executable, "-m", "tests.bench.contenders", name, str(source), str(target), str(workers)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True, timeout=3_600)
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


def measure(megabytes: int, rounds: int, scratch: Path) -> list[Measured]:
    """Everything that the table shows: each format against the floor and DuckDB's copy, then files, workers, memory."""
    rows: list[Measured] = []
    formats: list[tuple[str, Callable[[Path], int]]] = [
        ("openai_messages, {:,} rows", lambda path: write(path, openai_conversations(), megabytes)),
        ("tau_bench, {:,} attempts", lambda path: write(path, attempts(), megabytes // 2)),
        ("claude_code, {:,} sessions", lambda path: write_sessions(path, sessions(), megabytes // 2)),
        ("otlp, {:,} spans", lambda path: write_spans(path, spans(), megabytes // 2)),
        ("api_calls, {:,} whole histories", lambda path: write(path, api_calls(), megabytes // 2)),
    ]
    for what, made in formats:
        name = what.partition(",")[0]
        path = scratch / (name if name == "claude_code" else f"{name}.jsonl")
        count = made(path)
        rows += compare(what.format(count), path, ["floor", "duckdb", "needed", "etl"], scratch, rounds)
    parts = scratch / "parts"
    parts.mkdir()
    for number in range(8):
        write(parts / f"{number}.jsonl", openai_conversations(seed=number), megabytes // 8)
    rows += compare("openai_messages, 8 files", parts, ["etl", "etl --workers 2"], scratch, rounds)
    for size in (max(1, megabytes // 4), megabytes * 5):
        memory = scratch / f"memory{size}.jsonl"
        write(memory, openai_conversations(), size)
        rows += compare(f"openai_messages, {size:,} MB", memory, ["etl"], scratch, 1)
        memory.unlink()
    return rows


def speed(megabytes: int, rounds: int, scratch: Path) -> str:
    """The first section of RESULTS.md."""
    text = results.table(COLUMNS, [row.cells() for row in measure(megabytes, rounds, scratch)])
    return f"{results.machine()}. The best of {rounds} by CPU, one process unless said; start-up is counted.\n\n{text}"


def redaction_cost(megabytes: int, rounds: int, scratch: Path) -> str:
    """What each policy takes of an ingest, of made-up words and of real code."""
    policies = ["none", "secrets", "pii"]
    inputs: list[tuple[str, Callable[[Path], int]]] = [
        ("chats", lambda path: write(path, openai_conversations(), megabytes)),
        ("Claude Code sessions", lambda path: write_sessions(path, sessions(), megabytes)),
        ("Claude Code sessions that show real code", lambda path: write_sessions(path, coding.sessions(), megabytes)),
        ("OTLP spans", lambda path: write_spans(path, spans(), megabytes)),
    ]
    rows: list[list[str]] = []
    for what, made in inputs:
        path = scratch / (what if "sessions" in what else f"{what}.jsonl")
        made(path)
        costs = {row.contender: row.cost for row in compare(what, path, policies, scratch, rounds)}
        for policy in policies:
            share = "" if policy == "none" else f"{1 - costs['none'].cpu / costs[policy].cpu:.0%}"
            rows.append([what, policy, f"{costs[policy].cpu:.2f}", share])
    text = results.table(["input", "policy", "CPU s", "of which redaction"], rows)
    return f"{results.machine()}. {megabytes} MB of each, the best of {rounds}, start-up counted.\n\n{text}"


def main() -> None:
    """Measure, print, keep."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=200)
    arguments.add_argument("--rows", type=int, default=1_000_000, help="of the lake that is asked and has a night")
    arguments.add_argument("--files", type=int, default=10_000, help="that do not change overnight")
    arguments.add_argument("--budget", type=int, nargs="*", default=simulation.BUDGETS, help="of the simulator")
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--only", nargs="*", choices=results.MADE, default=results.MADE)
    arguments.add_argument("--no-keep", action="store_true", help="print only")
    given = arguments.parse_args()
    made: dict[str, Callable[[Path], str]] = {
        HEADING: lambda scratch: speed(given.megabytes, given.rounds, scratch),
        peers.HEADING: lambda scratch: peers.section(min(given.megabytes, 50), scratch, REPO / ".peers"),
        exploring.HEADING: lambda scratch: exploring.section(given.rows, scratch, given.rounds),
        simulation.HEADING: lambda scratch: simulation.section(scratch, given.budget),
        COST: lambda scratch: redaction_cost(min(given.megabytes, 50), given.rounds, scratch),
        redaction.HEADING: lambda scratch: redaction.section(),
        nightly.HEADING: lambda scratch: nightly.section(given.rows, given.files, scratch, given.rounds),
    }
    for heading in given.only:
        with tempfile.TemporaryDirectory(prefix="etl-bench-") as scratch:
            text = made[heading](Path(scratch))
        print(f"## {heading}\n\n{text}\n", flush=True)
        if not given.no_keep:
            results.keep({heading: text})


if __name__ == "__main__":
    main()
