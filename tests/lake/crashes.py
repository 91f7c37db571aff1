"""Kills runs at file operations and at random moments, and looks what the next run finds.

`python -m tests.lake.crashes DIR STEP TIMES`: a process of its own, which starts no thread, so that it can fork runs
that die, before every STEP-th operation and TIMES times at random moments.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from etl.lake import Lake
from etl.lake.place import Place
from tests.lake.rows import event, reject, rollout, rows_of, source_file, stage

CHANGING = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "fcntl.flock"}
"""Audit events of operations that change the lake's folder."""


def in_fork(run: Callable[[], None]) -> int:
    """Runs it in a forked process and gives the wait status."""
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            failed = sys.exc_info()[0] is not None
            if failed:
                traceback.print_exc()
            os._exit(int(failed))
    return os.waitpid(child, 0)[1]


def sure(run: Callable[[], None]) -> None:
    """Runs it in a forked process that must end well."""
    assert in_fork(run) == 0


def kill_at(point: int) -> None:
    """From now on, the process kills itself right before its n-th operation that changes a folder."""
    numbers = count(1)

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        opens = name == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if (opens or name in CHANGING) and next(numbers) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def create(root: Path) -> None:
    """An empty lake."""
    Lake.create(root)


def dying_run(root: Path, point: int) -> None:
    """The second run, killed before its n-th operation."""
    kill_at(point)
    second_run(root, "dies")


def first_run(root: Path) -> None:
    """What is in the lake before the run that dies."""
    lake = Lake.create(root)
    with lake.batch("first"):
        lake.commit_events(stage(lake, "first", "events", [event("e1")]))
        lake.commit_rollouts(
            stage(lake, "first", "rollouts", [rollout("r1"), rollout("r2")], [rollout("r3", day="unknown")])
        )
        lake.replace_rejects(stage(lake, "first", "rejects", [reject("j1")]), {("support", "/logs/a.jsonl")})
        lake.upsert_sources(stage(lake, "first", "sources", [source_file("/logs/a.jsonl")]))


def second_run(root: Path, batch_id: str) -> None:
    """A night: what dead runs left goes, then rows are added, replaced, moved to their day, and left as they are."""
    lake = Lake.create(root)
    lake.sweep()
    grown = [rollout("r1", n_records=9, row_hash="grown"), rollout("r3", n_records=9, row_hash="dated")]
    with lake.batch(batch_id):
        lake.commit_events(stage(lake, batch_id, "events", [event("e1"), event("e2")]))
        lake.commit_rollouts(stage(lake, batch_id, "rollouts", [rollout("r2"), *grown, rollout("r4")]))
        lake.replace_rejects(stage(lake, batch_id, "rejects", [reject("j2")]), {("support", "/logs/a.jsonl")})
        lake.upsert_sources(stage(lake, batch_id, "sources", [source_file("/logs/a.jsonl", size=200)]))


def contents(lake: Lake) -> dict[str, list[str]]:
    """The rows of each table, in short."""
    found = {
        "rollouts": [f"{row['rollout_id']} {row['n_records']} {row['day']}" for row in rows_of(lake)],
        "events": [row["record_key"] for row in rows_of(lake, "events")],
        "rejects": [row["reject_id"] for row in rows_of(lake, "rejects")],
        "sources": [f"{row['uri']} {row['size']}" for row in rows_of(lake, "sources")],
    }
    return {table: sorted(rows) for table, rows in found.items()}


OLD = {
    "events": ["e1"],
    "rollouts": ["r1 2 2026-03-01", "r2 2 2026-03-01", "r3 2 unknown"],
    "rejects": ["j1"],
    "sources": ["/logs/a.jsonl 100"],
}
"""Before the second run, in the order of its commits."""
NEW = {
    "events": ["e1", "e2"],
    "rollouts": ["r1 9 2026-03-01", "r2 2 2026-03-01", "r3 9 2026-03-01", "r4 2 2026-03-01"],
    "rejects": ["j2"],
    "sources": ["/logs/a.jsonl 200"],
}


def look_and_run_again(root: Path) -> None:
    """Each table is as before or as after, in order; a sweep leaves it clean; the run done again gives all."""
    found = contents(Lake.open(root))
    done = [table for table in OLD if found[table] == NEW[table]]
    assert done == list(OLD)[: len(done)], (done, found)
    assert all(found[table] == OLD[table] for table in OLD if table not in done), found
    Lake.open(root).sweep()
    assert_clean(root)
    second_run(root, "again")
    assert contents(Lake.open(root)) == NEW
    assert_clean(root)


def assert_clean(root: Path) -> None:
    """Nothing in the folder but what is live, and nothing to find."""
    lake = Lake.open(root)
    assert lake.verify() == []
    assert list((root / ".staging").iterdir()) == []
    for table in OLD:
        on_disk = sorted(str(path) for path in (root / table).glob("source=*/**/*.parquet"))
        assert on_disk == [file.path for file in lake.live(table)]


def at_every_operation(folder: Path, step: int) -> int:
    """Kills a run before each `step`-th operation; gives how many operations a whole run has."""
    sure(partial(first_run, folder / "first"))
    for point in count(1, step):
        root = folder / str(point)
        shutil.copytree(folder / "first", root)
        status = in_fork(partial(dying_run, root, point))
        sure(partial(look_and_run_again, root))
        shutil.rmtree(root)
        if status == 0:
            return point
        assert os.WTERMSIG(status) == signal.SIGKILL, status
    raise AssertionError


def at_random_moments(folder: Path, times: int) -> int:
    """Kills a run that commits again and again; gives how many commits survived."""
    root = folder / "random"

    def commits() -> None:
        lake = Lake.create(root)
        lake.sweep()
        start = max((row["n_records"] for row in rows_of(lake)), default=1)
        for number in count(start + 1):
            batch_id = f"b{number}-{os.getpid()}"
            with lake.batch(batch_id):
                rows = [
                    rollout(f"r{i}", n_records=number, row_hash=str(number), day=f"2026-03-0{1 + i % 3}")
                    for i in range(6)
                ]
                lake.commit_rollouts(stage(lake, batch_id, "rollouts", rows))

    def look() -> None:
        lake = Lake.open(root)
        lake.sweep()
        assert_clean(root)
        versions = {row["n_records"] for row in rows_of(lake)}
        assert len(versions) <= 1, f"a commit was seen in part: {versions}"
        assert len(rows_of(lake)) in (0, 6)

    sure(partial(create, root))
    for number in range(times):
        child = os.fork()
        if child == 0:
            try:
                commits()
            finally:
                os._exit(1)
        time.sleep(0.35 + 0.083 * (number % 7))
        while number == 0 and not Place(root).log_file("rollouts", 1).exists():
            time.sleep(0.05)  # a machine in use takes longer to get there; whoever started this is bounded in time
        os.kill(child, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        sure(look)
    return Lake.open(root).version("rollouts")


def main() -> None:
    folder = Path(sys.argv[1])
    operations = at_every_operation(folder, int(sys.argv[2]))
    versions = at_random_moments(folder, int(sys.argv[3]))
    print(f"{operations} operations, {versions} versions")


if __name__ == "__main__":
    main()
