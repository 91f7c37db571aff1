"""A run on a lake that cannot be written: `python -m tests.lake.unwritable DIR lake|log|partition|staging|full`.

Prints the line that the run fails with, and looks whether the lake is as it was. A process of its own: it gives up its
rights: the superuser may write everywhere.
"""

from __future__ import annotations

import os
import resource
import signal
import stat
import sys
from pathlib import Path

from etl.errors import LakeError
from etl.lake import Lake
from tests.lake.rows import put, rollout, rows_of, stage

NOBODY = 65534
LONG = os.urandom(200_000).hex()


def lock(folder: Path) -> None:
    """Nobody may write into the folder."""
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)


def unlock(root: Path) -> None:
    for folder, _, _ in os.walk(root):
        Path(folder).chmod(stat.S_IRWXU)


def give_up_rights(root: Path) -> None:
    """From now on a user like any other, to whom the lake belongs."""
    if os.geteuid() == 0:
        for folder, _, files in os.walk(root):
            for path in (folder, *(os.path.join(folder, name) for name in files)):  # noqa: PTH118
                os.chown(path, NOBODY, NOBODY)
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def fault(root: Path, kind: str) -> None:
    """Makes a part of the lake unwritable."""
    if kind == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        return
    partition = root / "rollouts" / "source=support"
    lock(
        {"lake": root, "log": root / "rollouts" / "_delta_log", "partition": partition, "staging": root / ".staging"}[
            kind
        ]
    )


def write(root: Path, kind: str) -> None:
    """The run: new rows, in a new partition."""
    if kind == "lake":
        Lake.create(root / "below")
    lake = Lake.create(root)
    with lake.batch("b"):
        lake.commit_rollouts(
            stage(lake, "b", "rollouts", [rollout("r1", n_records=9, final_text=LONG), rollout("r2", day="unknown")])
        )


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    root = folder / "lake"
    put(Lake.create(root), [rollout("r1")])
    folder.chmod(0o755)
    give_up_rights(root)
    fault(root, kind)
    try:
        write(root, kind)
    except LakeError as error:
        print(error)
    else:
        sys.exit("the run ended well")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    unlock(root)
    lake = Lake.open(root)
    assert [(row["rollout_id"], row["n_records"]) for row in rows_of(lake)] == [("r1", 2)]
    assert lake.verify() == [], lake.verify()
    assert list((root / ".staging").iterdir()) == []


if __name__ == "__main__":
    main()
