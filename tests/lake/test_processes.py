"""Several processes at once, and processes that are killed: the rows are those of one that was left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from etl.errors import LakeError
from etl.lake import Lake, StagingWriter
from etl.lake.batch import Batch
from etl.lake.place import Place
from tests.lake.contend import IDS, rows
from tests.lake.rows import put, redacted, rollout, rows_of, stage
from tests.lakes import REPO


def start(module: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.lake.{module}", *arguments],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_three_writers_of_overlapping_rows_end_in_the_rows_of_one(tmp_path: Path) -> None:
    names, rounds = ["a", "bb", "ccc"], 2
    writers = [start("contend", str(tmp_path / "lake"), name, str(rounds)) for name in names]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    answers = [writer.communicate("go\n", timeout=600) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0], [said for _, said in answers]

    alone = Lake.create(tmp_path / "alone")
    for round_ in range(rounds):
        for name in names:
            put(alone, rows(name, round_))
    lake = Lake.open(tmp_path / "lake")
    assert said(lake) == said(alone)
    assert len(said(lake)) == IDS
    counts = [list(map(int, answer.split())) for answer, _ in answers]
    assert sum(added for added, *_ in counts) == IDS, "every row was added by exactly one writer"
    assert sorted(row["record_key"] for row in rows_of(lake, "events")) == sorted(str(i) for i in range(rounds + 4))
    assert len(rows_of(lake, "rejects")) == len(rows_of(lake, "sources")) == 1
    assert lake.verify() == []
    assert lake.sweep() == ([], [])
    for log in Path(lake.root).glob("*/_delta_log"):
        assert sum("CREATE TABLE" in path.read_text() for path in log.glob("*.json")) == 1, "made once, by one of them"
    on_disk = sorted(str(path) for path in Path(lake.root, "rollouts").glob("source=*/day=*/*.parquet"))
    assert on_disk == [file.path for file in lake.live("rollouts")]


def said(lake: Lake) -> list[tuple[str, int, str]]:
    """What the rows say, in the order of their ids."""
    return sorted((row["rollout_id"], row["n_records"], row["day"]) for row in rows_of(lake))


def test_runs_that_are_killed_leave_whole_tables_and_nothing_that_stays(tmp_path: Path, thorough: bool) -> None:
    process = start("crashes", str(tmp_path), *(("9", "3") if thorough else ("31", "1")))
    answer, error = process.communicate(timeout=600)
    assert process.returncode == 0, error
    operations, versions = (int(word) for word in answer.split() if word.isdigit())
    assert operations > 30
    assert versions > 0


def test_a_live_batch_is_not_swept_by_another_run(tmp_path: Path) -> None:
    lake, other = Lake.create(tmp_path / "lake"), Lake.open(tmp_path / "lake")
    with lake.batch("mine") as folder:
        staged = stage(lake, "mine", "rollouts", [rollout("r1")])
        assert other.sweep() == ([], [])
        with other.batch("yours"):
            assert lake.sweep() == ([], [])
        assert other.verify() == []
        assert folder.exists()
        assert lake.commit_rollouts(staged).added == 1
    assert not folder.exists()


def test_a_batch_lives_as_long_as_a_worker_of_it(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    batch = Batch(Place(lake.root), "b")
    writer = StagingWriter(lake.root, "b", "rollouts")
    os.close(batch._lock_file)  # as when the process of the run is killed and its worker is not
    assert lake.sweep() == ([], [])
    writer.write(redacted("rollouts", [rollout("r1")]))
    assert len(writer.close()) == 1
    assert lake.sweep() == (["b"], [])
    with pytest.raises(LakeError, match="not open"):
        StagingWriter(lake.root, "b", "rollouts")


def test_what_dead_runs_left_goes(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    put(lake, [rollout("r1")])
    [live] = lake.live("rollouts")
    orphan = Path(live.path).with_name("left-behind.parquet")
    orphan.write_bytes(Path(live.path).read_bytes())
    stale = Path(lake.root, ".staging", "dead")
    stale.mkdir()
    (stale / "rollouts-0-x.parquet").write_bytes(b"half")
    Path(lake.root, ".staging", "stray.txt").write_text("whatever")
    unmoved = Path(lake.root, "rollouts", "notes.parquet")
    unmoved.write_text("no file of a partition")
    codes = [(finding.code, finding.repaired) for finding in lake.verify()]
    assert codes == [("stale_staging", False), ("stale_staging", False), ("orphan_file", False)]
    assert lake.sweep() == (["dead", "stray.txt"], [str(orphan)])
    assert list(Path(lake.root, ".staging").iterdir()) == []
    assert not orphan.exists()
    assert unmoved.exists()
    assert Path(live.path).exists()
    assert lake.verify() == []
