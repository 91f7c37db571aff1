"""What a staging writer makes of rows: one file a partition, one schema, row groups of a fair size, nothing visible."""

from __future__ import annotations

import contextlib
import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from etl.errors import LakeError
from etl.lake import Lake, StagingWriter
from etl.lake.parquet import ROW_GROUP_BYTES
from etl.redact import Redactor
from etl.schema import arrow_schema
from tests.lake.rows import event, redacted, reject, rollout, rows_of, source_file, stage

LONG = "a long answer " * 20_000
"""About 280 kB: some fifty rows of it fill a row group."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")


def test_one_file_for_each_partition(lake: Lake) -> None:
    rows = [rollout(f"r{i}", source="ab"[i % 2], day=["unknown", "2026-03-01", "2026-03-02"][i % 3]) for i in range(12)]
    with lake.batch("b"):
        staged = stage(lake, "b", "rollouts", rows)
        assert [file.partition for file in staged] == sorted(
            (file.partition for file in staged), key=lambda p: tuple(p.values())
        )
        assert [file.rows for file in staged] == [2] * 6
        for file in staged:
            read = pq.ParquetFile(file.path).read()
            assert read.schema.equals(arrow_schema("rollouts"))
            assert Path(file.path).stat().st_size == file.size
            for key, value in file.partition.items():
                assert set(read[key].to_pylist()) == {value}
            ids = [int(name[1:]) for name in read["rollout_id"].to_pylist()]
            assert ids == sorted(ids), "the order of arrival is kept"
        assert rows_of(lake) == []


def test_every_table_can_be_staged(lake: Lake) -> None:
    made = {"rollouts": rollout("r"), "rejects": reject("j"), "sources": source_file("/a"), "events": event("e")}
    with lake.batch("b"):
        for table, row in made.items():
            [file] = stage(lake, "b", table, [row])
            read = pq.ParquetFile(file.path).read().to_pylist()[0]
            assert {key: value for key, value in read.items() if key in row} == {
                key: value for key, value in row.items() if not isinstance(value, list)
            } | {key: read[key] for key in row if isinstance(row[key], list)}


def test_rows_of_many_days_become_one_file_each(lake: Lake) -> None:
    """Rows that come in no order of days wait on disk for their partition: no file or row group is of a few rows."""
    days = [str(dt.date(2026, 1, 1) + dt.timedelta(days=i)) for i in range(40)]
    with lake.batch("b") as folder:
        writer = StagingWriter(lake.root, "b", "rollouts")
        for round_ in range(4):
            writer.write(redacted("rollouts", [rollout(f"{round_}-{day}", day=day, final_text=LONG) for day in days]))
        assert list(folder.glob("*.arrow")), "rows were parked"
        staged = writer.close()
        assert not list(folder.glob("*.arrow"))
        assert [file.partition["day"] for file in staged] == days
        for file in staged:
            read = pq.ParquetFile(file.path)
            assert read.num_row_groups == 1
            ids = read.read(["rollout_id"])["rollout_id"].to_pylist()
            assert ids == [f"{round_}-{file.partition['day']}" for round_ in range(4)]
        assert lake.commit_rollouts(staged).added == 160
    assert len(rows_of(lake)) == 160


def test_row_groups_are_of_a_fair_size(lake: Lake) -> None:
    with lake.batch("b"):
        writer = StagingWriter(lake.root, "b", "rollouts")
        for part in range(5):
            writer.write(redacted("rollouts", [rollout(f"r{part}-{i}", final_text=LONG) for i in range(50)]))
        [file] = writer.close()
        metadata = pq.ParquetFile(file.path).metadata
        sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
        assert metadata.num_rows == 250
        assert 2 <= len(sizes) <= 10
        whole = redacted("rollouts", [rollout("r", final_text=LONG)] * 250)
        [file] = stage(lake, "b", "rollouts", [rollout("r", final_text=LONG)] * 250)
        assert pq.ParquetFile(file.path).metadata.num_row_groups == round(whole.table.nbytes / ROW_GROUP_BYTES)


def test_values_survive(lake: Lake) -> None:
    row = rollout(
        "r1",
        prompt="",
        final_text=None,
        extra='{"n": 9007199254740993, "f": 0.1}',
        reward=0.1 + 0.2,
        seed=2**62 + 1,
        error="a\x00b 1e5",
        token_ids=[1, 2**31 - 1],
        logprobs=[-0.5, None],
        scenario={"tool": "t"},
        usage={"cost_usd": 1e-300},
        seeded=[],
        started_at=dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        ended_at=dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    )
    with lake.batch("b"):
        lake.commit_rollouts(stage(lake, "b", "rollouts", [row]))
    written = pa.Table.from_pylist([row], schema=arrow_schema("rollouts")).to_pylist()
    assert rows_of(lake) == written


def test_only_redacted_rows_of_the_table_are_taken(lake: Lake) -> None:
    plain = pa.Table.from_pylist([rollout("r")], schema=arrow_schema("rollouts"))
    with lake.batch("b"):
        writer = StagingWriter(lake.root, "b", "rollouts")
        for given in (plain, [rollout("r")], redacted("rejects", [reject("j")])):
            with pytest.raises(LakeError, match="takes redacted rows of rollouts"):
                writer.write(given)  # type: ignore[arg-type]
        other = plain.set_column(0, "rollout_id", pa.array([1], pa.int64()))
        with pytest.raises(LakeError, match="rollout_id"):
            writer.write(Redactor("none").table("rollouts", other))
        assert writer.close() == writer.close() == []
        with pytest.raises(LakeError, match="closed"):
            writer.write(redacted("rollouts", [rollout("r")]))


def test_a_failed_run_leaves_no_file(lake: Lake) -> None:
    with lake.batch("b") as folder:
        with contextlib.suppress(ZeroDivisionError), StagingWriter(lake.root, "b", "rollouts") as writer:
            writer.write(redacted("rollouts", [rollout(f"r{i}", final_text=LONG) for i in range(80)]))
            assert list(folder.iterdir())
            raise ZeroDivisionError
        assert list(folder.iterdir()) == []
    assert list(Path(lake.root, ".staging").iterdir()) == []


def test_staging_needs_an_open_batch(lake: Lake) -> None:
    with pytest.raises(LakeError, match=r"use `with lake\.batch"):
        StagingWriter(lake.root, "nobody", "rollouts")
    with pytest.raises(LakeError, match="no table is called 'rows'"):
        StagingWriter(lake.root, "nobody", "rows")
