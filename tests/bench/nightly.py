"""What a night costs on a lake that is full, beside the same night on an empty one: `python -m tests.bench.nightly`.

CPU seconds of the whole command, children included. The full lake gets made-up rows through the lake's own writer.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.corpus import openai_conversations, write
from tests.bench.exploring import make_lake

KB_OF_A_ROW = 22
"""About what a conversation of the corpus takes, so that the new ones are one in a hundred."""
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
    for number in range(files):
        write(folder / f"{number}.jsonl", openai_conversations(seed=number), 0)
    lake = scratch / "many-lake"
    return cpu_of("ingest", folder, "--lake", lake), cpu_of("ingest", folder, "--lake", lake)


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--files", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=2)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="etl-nightly-") as folder:
        scratch = Path(folder)
        full = scratch / "full"
        make_lake(full, given.rows)
        logs = scratch / "new.jsonl"
        new = write(logs, openai_conversations(seed=9), max(1, given.rows * KB_OF_A_ROW // 100_000))
        empty, more = night(full, logs, scratch, given.rounds)
        print(
            f"{new:,} new rows: {empty:.2f} CPU s on an empty lake, {more:.2f} on one of {given.rows:,}: "
            f"{more / empty:.2f}"
        )
        if given.files:
            first, again = many_files(scratch / "many", given.files, scratch)
            print(f"{given.files:,} files: {first:.2f} CPU s at first, {again:.2f} unchanged: {again / first:.1%}")


if __name__ == "__main__":
    main()
