"""`etl.scan`: the stored columns, lazily, of the files live when it is collected."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import etl
from etl.errors import LakeError
from etl.schema import arrow_schema
from tests.lake.rows import rollout, rows_of, stage
from tests.query.support import attempts, make_lake, refund


def test_it_has_the_stored_columns_and_rows(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [refund(), *attempts([1.0, None], task="t", source="a b/007")])
    frame = etl.scan(tmp_path / "lake")
    assert frame.collect_schema().names() == arrow_schema("rollouts").names
    assert frame.collect_schema()["source"] == pl.String
    rows = frame.sort("rollout_id").collect().to_dicts()
    assert rows == sorted(rows_of(lake), key=lambda row: str(row["rollout_id"]))


def test_filters_columns_and_heads_are_pushed_down(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [refund(), *attempts([1.0, 0.0], task="t", source="007", day="unknown")])
    for file in lake.live("rollouts"):
        if file.partition["source"] != "007":
            Path(file.path).write_bytes(b"no Parquet at all")
    frame = etl.scan(tmp_path / "lake").filter((pl.col("source") == "007") & (pl.col("day") == "unknown"))
    assert frame.select(pl.col("reward").mean()).collect().item() == 0.5
    assert frame.filter(pl.col("reward") > 0).select("rollout_id").collect().to_series().to_list() == ["r_t_0"]
    assert frame.select("source").head(1).collect().rows() == [("007",)]


def test_an_empty_lake_gives_an_empty_frame(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake")
    frame = etl.scan(tmp_path / "lake")
    assert frame.filter(pl.col("reward") > 0).select("steps", "source").collect().shape == (0, 2)
    assert frame.collect().schema == frame.collect_schema()


def test_files_are_listed_when_it_is_collected(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [rollout("r_1")])
    frame = etl.scan(tmp_path / "lake").select("n_records")
    assert frame.collect().item() == 2
    with lake.batch("more"):
        lake.commit_rollouts(stage(lake, "more", "rollouts", [rollout("r_1", n_records=9, row_hash="longer")]))
    assert frame.collect().item() == 9


def test_a_missing_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [rollout("r_1")])
    Path(lake.live("rollouts")[0].path).unlink()
    with pytest.raises(Exception, match="a file of the lake was replaced while it was being read"):
        etl.scan(tmp_path / "lake").collect()


def test_no_lake_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="there is no lake at"):
        etl.scan(tmp_path)
