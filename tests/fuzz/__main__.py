"""Fuzzing by hand: `python -m tests.fuzz [TARGET…] [--minutes N] [--folder DIR] [--table]`, or `make fuzz`.

Each target has a process of its own, one after another; one that ends early (a hang, a crash of a library) is started
again for the time that is left. Every stretch is a line of FOLDER/runs.jsonl, and `--table` adds them up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.fuzz.targets import READERS, targets
from tests.lakes import REPO

READERS_MINUTES, ADAPTER_MINUTES = 30.0, 2.0
"""How long a target is fuzzed where nobody says."""


def main() -> int:
    """Run, then print the table; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz adapters and readers.")
    parser.add_argument("target", nargs="*", help="targets (all), or the groups: readers, adapters")
    parser.add_argument("--minutes", type=float, help="minutes each (30 for a reader, 2 for an adapter)")
    parser.add_argument("--folder", type=Path, default=REPO / ".fuzz", help="corpus, crashes and counts (.fuzz)")
    parser.add_argument("--table", action="store_true", help="only print what was run so far")
    given = parser.parse_args()
    if not given.table:
        readers = [target.name for target in READERS]
        groups = {"readers": readers, "adapters": [name for name in targets() if name not in readers]}
        names = [name for asked in given.target or ["readers", "adapters"] for name in groups.get(asked, [asked])]
        if unknown := set(names) - targets().keys():
            parser.error(f"no target is called {', '.join(sorted(unknown))}; targets: {', '.join(targets())}")
        given.folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            minutes = given.minutes or (READERS_MINUTES if name in readers else ADAPTER_MINUTES)
            _fuzz(name, 60 * minutes, given.folder)
    return _table(given.folder)


def _fuzz(name: str, seconds: float, folder: Path) -> None:
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 5:
        command = [sys.executable, "-m", "tests.fuzz.engine", name, f"{left:.0f}", str(folder)]
        stats = folder / f"{name}.stats.json"
        stats.unlink(missing_ok=True)
        with (folder / f"{name}.log").open("ab") as log:
            code = subprocess.run(command, cwd=REPO, stdout=log, stderr=log, check=False).returncode
        told: dict[str, Any] = json.loads(stats.read_text()) if stats.exists() else {}
        stats.unlink(missing_ok=True)
        line = {"target": name, "exit": code, **told}
        with (folder / "runs.jsonl").open("a") as runs:
            runs.write(json.dumps(line) + "\n")
        print(line, file=sys.stderr, flush=True)
        if not told:
            break


def _table(folder: Path) -> int:
    """Minutes, executions, the peak of memory and what failed, by target."""
    total: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0, 0])
    runs = folder / "runs.jsonl"
    for line in runs.read_text().splitlines() if runs.exists() else ():
        run = json.loads(line)
        so_far = total[run["target"]]
        so_far[0] += run.get("seconds", 0) / 60
        so_far[1] += run.get("executions", 0)
        so_far[2] = max(so_far[2], run.get("peak_mb", 0))
    print(f"{'target':<22}{'minutes':>8}{'executions':>12}{'peak MB':>9}  failures")
    failed = 0
    for name, (minutes, executions, peak) in sorted(total.items()):
        crashes = folder / "crashes" / name
        found = sorted(file.name for file in crashes.iterdir() if file.suffix != ".txt") if crashes.is_dir() else []
        failed += len(found)
        print(f"{name:<22}{minutes:>8.1f}{executions:>12.0f}{peak:>9.0f}  {', '.join(found) or 'none'}")
    sums = [sum(each[number] for each in total.values()) for number in (0, 1)]
    print(f"{'all':<22}{sums[0]:>8.1f}{sums[1]:>12.0f}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
