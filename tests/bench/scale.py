"""Inputs of extreme shape, each once: `python -m tests.bench.scale --gigabytes 20 --files 1000000 --keep`.

One large file, many tiny ones (read, and read again unchanged), one line of 200 MB in the middle of others. The peak is
that of each process, looked up five times a second.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench import results
from tests.bench.corpus import openai_conversations

REPO = Path(__file__).parents[2]
HEADING = "Scale"
COLUMNS = ["input", "command", "CPU s", "wall s", "peak MB of each process", "rows", "rejects"]
VARIED = 9_000
"""Conversations that are made; a larger file has them again, with other ids and other words at the beginning."""
LONG = 200_000_000


class Run(NamedTuple):
    """One command: seconds, bytes, and what it said."""

    cpu: float
    wall: float
    peaks: list[int]
    report: dict[str, Any]


def run(*arguments: object) -> Run:
    """One ingest in processes of its own."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "etl", "ingest", *map(str, arguments), "--json"]
    peaks: dict[int, int] = {}
    with tempfile.TemporaryFile() as out:
        with subprocess.Popen(command, cwd=REPO, stdout=out) as process:
            while process.poll() is None:
                for pid in _family(process.pid):
                    peaks[pid] = max(_peak(pid), peaks.get(pid, 0))
                time.sleep(0.2)
        out.seek(0)
        report = json.load(out)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    small = 20_000_000  # what only keeps track of the others
    return Run(cpu, time.monotonic() - began, sorted((p for p in peaks.values() if p > small), reverse=True), report)


def _family(pid: int) -> list[int]:
    found = [pid]
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [each for child in (thread / "children").read_text().split() for each in _family(int(child))]
    return found


def _peak(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0]) << 10
    return 0


def write_large(path: Path, size: int) -> None:
    """Chats up to a size."""
    made = [json.dumps(chat).partition('"role": "user", "content": "') for chat in _chats(VARIED)]
    written = 0
    with path.open("w", encoding="utf-8", buffering=1 << 22) as file:
        for turn in itertools.count():
            for head, marker, rest in made:
                line = f"{head.replace('conv-', f'conv-{turn}-', 1)}{marker}{turn} {rest}\n"
                written += file.write(line)
                if written >= size:
                    return


def _chats(count: int) -> list[dict[str, Any]]:
    return list(itertools.islice(openai_conversations(), count))


def write_tiny(folder: Path, files: int) -> None:
    """Files of one record of 300 bytes, a thousand in a folder."""
    for number in range(files):
        place = folder / f"{number // 1_000:04}"
        if number % 1_000 == 0:
            place.mkdir(parents=True)
        asked = f"Where is my parcel {number}? I ordered it on day {number % 31} and nobody has told me anything since."
        answer = f"Parcel {number} has left the warehouse of region {number % 77} this morning and arrives tomorrow."
        messages = [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
        (place / f"{number}.jsonl").write_text(json.dumps({"id": f"c{number}", "messages": messages}) + "\n")


def write_long(path: Path) -> None:
    """A line longer than a record may be, between others."""
    chats = _chats(3_000)
    endless = {"id": "long", "messages": [{"role": "user", "content": "x y " * (LONG // 4)}]}
    with path.open("w", encoding="utf-8") as file:
        for chat in [*chats[:1_500], endless, *chats[1_500:]]:
            file.write(json.dumps(chat) + "\n")


def cells(what: str, command: str, ran: Run) -> list[str]:
    """One line of the table."""
    peaks = ", ".join(f"{peak / 1e6:.0f}" for peak in ran.peaks)
    rejects = ", ".join(f"{count:,} {reason}" for reason, count in ran.report["rejects"].items())
    rows = f"{ran.report['rows']['added']:,}"
    return [what, command, f"{ran.cpu:.1f}", f"{ran.wall:.0f}", peaks, rows, rejects]


def section(gigabytes: float, files: int, scratch: Path) -> str:
    """The section of RESULTS.md."""
    large, tiny, long = scratch / "large.jsonl", scratch / "tiny", scratch / "long.jsonl"
    write_large(large, int(gigabytes * 1e9))
    rows = [cells(f"one file, {gigabytes:g} GB", "--workers 2", run(large, "--workers", 2, "--lake", scratch / "a"))]
    large.unlink()
    write_tiny(tiny, files)
    for what in (f"{files:,} tiny files", f"{files:,} tiny files, unchanged"):
        rows.append(cells(what, "", run(tiny, "--lake", scratch / "b")))
    write_long(long)
    rows.append(cells("one line of 200 MB among 3,000", "", run(long, "--lake", scratch / "c")))
    return f"{results.machine()}. Each once (`python -m tests.bench.scale`).\n\n{results.table(COLUMNS, rows)}"


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--gigabytes", type=float, default=5)
    arguments.add_argument("--files", type=int, default=200_000)
    arguments.add_argument("--keep", action="store_true", help="write the section into RESULTS.md")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="etl-scale-") as scratch:
        text = section(given.gigabytes, given.files, Path(scratch))
    print(text)
    if given.keep:
        results.keep({HEADING: text})


if __name__ == "__main__":
    main()
