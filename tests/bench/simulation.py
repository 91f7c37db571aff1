"""The simulator on one core: rows a second, memory by budget, and how much its asks repeat each other.

`python -m tests.bench.simulation BUDGET FOLDER` runs one budget in a process of its own and prints a JSON object.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import rensa

import etl
from etl.simulator.leaks import NEAR, minhash
from tests.bench import results
from tests.bench.peer_contenders import peak_bytes
from tests.simulator.shop import PROMPT, TOOLS

REPO = Path(__file__).parents[2]
BUDGETS = (10_000, 100_000)
HEADING = "Simulation"
COLUMNS = [
    "budget",
    "rows per CPU s",
    "rows per wall s",
    "peak MB",
    "asks",
    "equal asks",
    "near-duplicates",
    "tools that succeed and fail",
]


class Simulated(NamedTuple):
    """One budget."""

    rows: int
    cpu: float
    wall: float
    peak: int
    """Bytes."""
    asks: int
    equal: int
    near: float
    """Share of asks that are near-duplicates (Jaccard 0.8 on word trigrams) of an earlier one."""
    tools: int

    def cells(self) -> list[str]:
        """As text."""
        return [
            f"{self.rows:,}", f"{self.rows / self.cpu:,.0f}", f"{self.rows / self.wall:,.0f}", f"{self.peak / 1e6:.0f}",
            f"{self.asks:,}", f"{self.equal:,}", f"{self.near:.2%}", f"{self.tools} of {len(TOOLS)}",
        ]  # fmt: skip


def run(budget: int, folder: Path) -> Simulated:
    """One run in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.simulation", str(budget), str(folder / f"lake{budget}")]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True, timeout=1_800)
    return Simulated(**json.loads(done.stdout.splitlines()[-1]))


def section(folder: Path, budgets: Sequence[int]) -> str:
    """The section of RESULTS.md."""
    rows = [run(budget, folder).cells() for budget in budgets]
    return f"{results.machine()}. CPU seconds are of one process.\n\n{results.table(COLUMNS, rows)}"


def near_share(asks: list[str]) -> float:
    """The share of asks that are near-duplicates of an earlier one."""
    index, near = rensa.RMinHashLSH(NEAR, 128, 16), 0
    hashes: list[rensa.RMinHash] = []
    for number, ask in enumerate(asks):
        made = minhash(ask)
        near += any(made.jaccard(hashes[other]) >= NEAR for other in index.query(made))
        index.insert(number, made)
        hashes.append(made)
    return near / len(asks)


def measured(budget: int, lake: Path) -> dict[str, Any]:
    """Simulate into a lake, then look at what came."""
    cpu, wall = time.process_time(), time.monotonic()
    report = etl.simulate(tools=TOOLS, system_prompt=PROMPT, lake=lake, budget=budget).report
    spent, took = time.process_time() - cpu, time.monotonic() - wall
    peak = peak_bytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    asks = [
        text for (text,) in etl.connect(lake).execute("SELECT DISTINCT prompt FROM rollouts ORDER BY prompt").fetchall()
    ]
    met = {(tool, condition == "success") for tool, condition in report.steps}
    both = sum((tool, True) in met and (tool, False) in met for tool in {tool for tool, _ in met})
    return {
        "rows": report.rows.added, "cpu": spent, "wall": took, "peak": peak, "asks": report.asks,
        "equal": report.asks - len(asks), "near": near_share(asks), "tools": both,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]), Path(sys.argv[2]))))
