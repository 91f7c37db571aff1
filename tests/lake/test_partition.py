"""Partition keys survive exactly, whoever reads them; names that no folder can carry are refused."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from etl.errors import LakeError, UsageError
from etl.lake import Lake, check_source
from etl.lake.partition import check_day, folder_of, partition_of
from tests.lake.rows import put, rollout, rows_of, stage

NAMES = ["007", "7", "0012", "a=b", "x%2Fy", "2026-01-01", "true", "support bot/α", "null", "1e5", "..", "a\nb", "[*?]"]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with one row in each of these streams, under a folder whose own name looks like a pattern."""
    lake = Lake.create(tmp_path_factory.mktemp("names") / "key=a [lake]*")
    put(lake, [rollout(f"r{i}", source=name, conversation_id=name) for i, name in enumerate(NAMES)])
    assert len(rows_of(lake)) == len(NAMES)
    return lake


def test_names_survive_in_the_delta_log(named: Lake) -> None:
    actions = pa.table(DeltaTable(f"{named.root}/rollouts").get_add_actions(flatten=True))
    assert sorted(actions["partition.source"].to_pylist()) == sorted(NAMES)
    assert sorted(file.partition["source"] for file in named.live("rollouts")) == sorted(NAMES)


def test_the_log_names_the_files_on_disk(named: Lake) -> None:
    on_disk = sorted(map(str, Path(named.root, "rollouts").glob("source=*/day=*/*.parquet")))
    actions = pa.table(DeltaTable(f"{named.root}/rollouts").get_add_actions(flatten=True))
    assert sorted(f"{named.root}/rollouts/{unquote(path)}" for path in actions["path"].to_pylist()) == on_disk
    assert [file.path for file in named.live("rollouts")] == on_disk


@pytest.mark.parametrize("from_folders", [True, False])
def test_names_survive_in_duckdb(named: Lake, from_folders: bool) -> None:
    files = [glob_escape(file.path) for file in named.live("rollouts")]
    hive = "hive_partitioning = true, hive_types = {'source': VARCHAR, 'day': VARCHAR}"
    how = hive if from_folders else "hive_partitioning = false"
    rows = duckdb.execute(f"SELECT source, conversation_id FROM read_parquet($1, {how})", [files]).fetchall()
    assert sorted(rows) == sorted((name, name) for name in NAMES)


def test_names_survive_in_polars(named: Lake) -> None:
    files = [file.path for file in named.live("rollouts")]
    read = pl.scan_parquet(files, glob=False, hive_partitioning=False).select("source", "conversation_id").collect()
    assert sorted(read.rows()) == sorted((name, name) for name in NAMES)


def test_names_survive_in_pyarrow(named: Lake) -> None:
    files = [file.path for file in named.live("rollouts")]
    partitioning = pyarrow.dataset.partitioning(
        pa.schema(
            [("source", pa.dictionary(pa.int32(), pa.string())), ("day", pa.dictionary(pa.int32(), pa.string()))]
        ),
        flavor="hive",
        dictionaries="infer",
    )
    dataset = pyarrow.dataset.dataset(
        files, format="parquet", partitioning=partitioning, partition_base_dir=f"{named.root}/rollouts"
    )
    read = dataset.to_table(columns=["source", "conversation_id"]).to_pylist()
    assert sorted((row["source"], row["conversation_id"]) for row in read) == sorted((name, name) for name in NAMES)


def test_known_names_are_found_again(named: Lake) -> None:
    assert put(named, [rollout("r3", source="a=b", conversation_id="a=b")]).unchanged == 1
    assert named.verify() == []


@pytest.mark.parametrize("name", ["", "__HIVE_DEFAULT_PARTITION__", "\ud800", "α" * 80, "x" * 249])
def test_names_that_no_folder_can_carry(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_source(name)
    assert "\n" not in str(caught.value)


def test_a_refused_name_reaches_nobody(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    with lake.batch("b"), pytest.raises(UsageError):
        stage(lake, "b", "rollouts", [rollout("r1"), rollout("r2", source="")])
    with lake.batch("b"), pytest.raises(LakeError, match="no source"):
        stage(lake, "b", "rollouts", [rollout("r1", source=None)])
    with lake.batch("b"), pytest.raises(LakeError, match="2026-3-1"):
        stage(lake, "b", "rollouts", [rollout("r1", day="2026-3-1")])
    assert lake.live("rollouts") == []
    assert lake.verify() == []


@given(st.text(min_size=1, max_size=80), st.sampled_from(["unknown", "2026-03-01"]))
def test_folders_and_partitions_are_each_other(source: str, day: str) -> None:
    try:
        check_source(source)
    except UsageError:
        return
    partition = {"source": source, "day": check_day(day)}
    folder = folder_of(partition, ("source", "day"))
    assert partition_of(folder) == partition
    assert folder.count("/") == 1


def glob_escape(path: str) -> str:
    """The path as a DuckDB pattern that matches only itself."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
