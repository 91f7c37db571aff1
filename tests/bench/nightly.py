"""What a night costs on a lake that is full, beside the same night on an empty one: `python -m tests.bench.nightly`.

CPU seconds of the whole command, children included. The full lake gets made-up rows through the lake's own writer.
`--keep` writes the section into RESULTS.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import results
from tests.bench.corpus import openai_conversations, write
from tests.bench.exploring import make_lake

KB_OF_A_ROW = 22
"""About what a conversation of the corpus takes, so that the new ones are one in a hundred."""
HEADING = "A night on a full lake"
REPO = Path(__file__).parents[2]


def cpu_of(*arguments: object) -> float:
    """CPU seconds of one command line of the product."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "etl", *map(str, arguments), "--json"]
    subprocess.run(command, cwd=REPO, check=True, capture_output=True, timeout=1_800)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def night(full: Path, logs: Path, scratch: Path, rounds: int) -> tuple[float, float]:
    """The best of some rounds on an empty lake and on copies of the full one, taking turns."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for place, is_full in enumerate((False, True)):
            lake = scratch / "night"
            if is_full:
                shutil.copytree(full, lake)
            best[place] = min(best[place], cpu_of("ingest", logs, "--lake", lake))
            shutil.rmtree(lake)
    return best[0], best[1]


def many_files(folder: Path, files: int, scratch: Path) -> tuple[float, float]:
    """First ingest of many files of one conversation, and the next night, in which none has changed."""
    folder.mkdir()
    for number, conversation in enumerate(itertools.islice(openai_conversations(), files)):
        (folder / f"{number}.jsonl").write_text(json.dumps(conversation) + "\n", encoding="utf-8")
    lake = scratch / "many-lake"
    return cpu_of("ingest", folder, "--lake", lake), min(cpu_of("ingest", folder, "--lake", lake) for _ in range(3))


def section(rows: int, files: int, scratch: Path, rounds: int) -> str:
    """The section of RESULTS.md."""
    full, logs = scratch / "full", scratch / "new.jsonl"
    make_lake(full, rows)
    new = write(logs, openai_conversations(seed=9), max(1, rows * KB_OF_A_ROW // 100_000))
    empty, more = night(full, logs, scratch, rounds)
    first, again = many_files(scratch / "many", files, scratch)
    return (
        f"{results.machine()}. CPU seconds of the whole command, the best of {rounds} "
        f"(`python -m tests.bench.nightly --rows {rows}`).\n\n"
        + results.table(
            ["what", "CPU s", "against", "CPU s", "ratio"],
            [
                [f"{new:,} new rows, on a lake of {rows:,}", f"{more:.2f}", "on an empty lake", f"{empty:.2f}",
                 f"{more / empty:.2f}"],
                [f"{files:,} files, unchanged", f"{again:.2f}", "their first ingest", f"{first:.2f}",
                 f"{again / first:.3f}"],
            ],
        )
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--files", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--keep", action="store_true", help="write the section into RESULTS.md")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="etl-nightly-") as scratch:
        text = section(given.rows, given.files, Path(scratch), given.rounds)
    print(text)
    if given.keep:
        results.keep({HEADING: text})


if __name__ == "__main__":
    main()
