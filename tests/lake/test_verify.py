"""Verification finds each fault of a lake, says it as data, and repairs only what cannot lose a row."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from etl.errors import LakeError
from etl.lake import Lake
from etl.lake.verify import without_checksums
from etl.schema import arrow_schema
from tests.lake.rows import event, put, redacted, reject, rollout, rows_of, smuggle, source_file, stage


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that nothing is wrong with; tests change copies of it."""
    lake = Lake.create(tmp_path_factory.mktemp("sound") / "lake")
    put(lake, [rollout("r1"), rollout("r2", source="a=b", day="unknown")])
    with lake.batch("b"):
        lake.commit_events(stage(lake, "b", "events", [event("e")]))
        lake.replace_rejects(stage(lake, "b", "rejects", [reject("j")]), set())
        lake.upsert_sources(
            stage(lake, "b", "sources", [source_file("/a"), source_file("/b", ignored=None, rejects=2)])
        )
    return Path(lake.root)


@pytest.fixture
def lake(sound: Path, tmp_path: Path) -> Lake:
    return Lake.open(shutil.copytree(sound, tmp_path / "lake"))


def codes(lake: Lake) -> list[str]:
    return [finding.code for finding in lake.verify()]


def only_file(lake: Lake, table: str = "rollouts") -> Path:
    return Path(lake.live(table)[-1].path)


def replace(path: Path, table: pa.Table) -> None:
    """Writes other rows into a live file, which no commit would do."""
    pq.write_table(table, path)


def test_a_sound_lake_has_no_findings(lake: Lake) -> None:
    assert lake.verify() == []
    assert lake.verify(repair=True) == []


def test_leftovers_are_found_and_with_repair_removed(lake: Lake) -> None:
    shutil.copy(only_file(lake), only_file(lake).with_name("orphan.parquet"))
    Path(lake.root, ".staging", "dead").mkdir()
    before = rows_of(lake)
    found = lake.verify()
    assert [(finding.code, finding.table, finding.repaired) for finding in found] == [
        ("stale_staging", "", False),
        ("orphan_file", "rollouts", False),
    ]
    assert all(Path(finding.path).exists() for finding in found)
    assert [(finding.code, finding.repaired) for finding in lake.verify(repair=True)] == [
        ("stale_staging", True),
        ("orphan_file", True),
    ]
    assert not any(Path(finding.path).exists() for finding in found)
    assert lake.verify() == []
    assert rows_of(lake) == before


def test_a_missing_file(lake: Lake) -> None:
    only_file(lake).unlink()
    [finding] = lake.verify()
    assert (finding.code, finding.repaired) == ("missing_file", False)
    assert "restore it from a backup" in finding.message
    [finding] = lake.verify(repair=True)
    assert (finding.code, finding.repaired) == ("missing_file", True)
    assert lake.verify() == []


def test_a_damaged_file(lake: Lake) -> None:
    path = only_file(lake)
    whole = path.read_bytes()
    path.write_bytes(b"PAR1" + bytes(100))
    assert codes(lake) == ["unreadable_file"]
    path.write_bytes(whole[:-100])
    assert codes(lake) == ["unreadable_file"]
    path.write_bytes(whole[:4] + bytes(2000) + whole[2004:])
    assert codes(lake) == ["unreadable_file"]
    path.write_bytes(whole)
    assert codes(lake) == []


def chunks(path: Path) -> dict[str, tuple[int, int]]:
    """Column → where its bytes of the first row group begin and end."""
    with pq.ParquetFile(path) as file:
        group = file.metadata.row_group(0)
        columns = [group.column(number) for number in range(group.num_columns)]
    starts = [column.dictionary_page_offset or column.data_page_offset for column in columns]
    ends = [start + column.total_compressed_size for start, column in zip(starts, columns, strict=True)]
    return {column.path_in_schema: part for column, part in zip(columns, zip(starts, ends, strict=True), strict=True)}


@pytest.mark.parametrize("column", ["prompt", "final_text", "messages.list.element.content", "ended_at", "source_uri"])
def test_one_bit_of_a_page_that_is_another(lake: Lake, column: str) -> None:
    path = only_file(lake)
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[chunks(path)[column][1] - 1] ^= 1
    path.write_bytes(changed)
    [finding] = lake.verify()
    assert (finding.code, finding.path) == ("wrong_checksum", str(path))
    path.write_bytes(whole)
    assert codes(lake) == []


def test_a_page_that_is_another_is_never_written_anew(lake: Lake) -> None:
    path = only_file(lake)
    changed = bytearray(path.read_bytes())
    changed[chunks(path)["prompt"][1] - 1] ^= 1
    path.write_bytes(changed)
    with lake.batch("m"), pytest.raises(LakeError, match="checksum"):
        lake.rewrite("rollouts", lambda rows: rows, "secrets-99", dry_run=False)
    assert path.read_bytes() == changed


def test_all_that_is_written_has_checksums_and_files_of_others_are_counted(lake: Lake) -> None:
    assert without_checksums(lake) == 0
    with lake.batch("m"):
        lake.rewrite("rollouts", lambda rows: rows, "secrets-99", dry_run=False)
    assert without_checksums(lake) == 0
    rows = redacted("rollouts", [rollout("r9")]).table
    smuggle(lake, "rollouts", rows, "source=s/day=unknown", {"source": "s", "day": "unknown"})
    assert without_checksums(lake) == 1


def test_another_schema_size_or_row_count(lake: Lake) -> None:
    path = only_file(lake)
    table = pq.ParquetFile(path).read()
    replace(path, table.drop_columns(["reward"]))
    assert codes(lake) == ["wrong_schema"]
    replace(path, pa.concat_tables([table, table]))
    assert codes(lake)[0] == "wrong_size"


def test_partition_columns_that_are_not_those_of_the_folder(lake: Lake) -> None:
    rows = redacted("rollouts", [rollout("r9", source="elsewhere")]).table
    smuggle(lake, "rollouts", rows, "source=support/day=2026-03-01", {"source": "support", "day": "2026-03-01"})
    [finding] = lake.verify()
    assert finding.code == "wrong_partition"
    assert "'elsewhere'" in finding.message


def test_a_folder_that_is_not_that_of_the_log(lake: Lake) -> None:
    rows = redacted("rollouts", [rollout("r9")]).table
    smuggle(lake, "rollouts", rows, "source=other/day=2026-03-01", {"source": "support", "day": "2026-03-01"})
    assert codes(lake) == ["wrong_partition"]


@pytest.mark.parametrize(
    ("table", "row", "folder", "partition"),
    [
        ("rollouts", rollout("r1"), "source=support/day=2026-03-01", {"source": "support", "day": "2026-03-01"}),
        ("events", event("e"), "source=traces/day=2026-03-01", {"source": "traces", "day": "2026-03-01"}),
        ("rejects", reject("j"), "source=support", {"source": "support"}),
        ("sources", source_file("/a"), "source=support", {"source": "support"}),
    ],
)
def test_rows_that_share_what_is_unique(
    lake: Lake, table: str, row: dict[str, object], folder: str, partition: dict[str, str]
) -> None:
    smuggle(lake, table, redacted(table, [row]).table, folder, partition)
    assert [(finding.code, finding.table) for finding in lake.verify()] == [("duplicate_key", table)]


def test_message_info_of_another_length(lake: Lake) -> None:
    put(lake, [rollout("r9", message_info=[]), rollout("r8", message_info=None)])
    found = lake.verify()
    assert [finding.code for finding in found] == ["message_info_length"] * 2
    assert "r9" in found[0].message


def test_records_that_are_not_accounted_for(lake: Lake) -> None:
    with lake.batch("c"):
        lake.upsert_sources(stage(lake, "c", "sources", [source_file("/c", records_in=6)]))
    [finding] = lake.verify()
    assert finding.code == "accounting"
    assert "6 records in, but 3 used, 1 rejected and 1 ignored make 5" in finding.message


def test_a_table_whose_schema_a_file_shares_in_another_order(lake: Lake) -> None:
    schema = arrow_schema("rollouts")
    swapped = [*schema.names[1:], schema.names[0]]
    replace(only_file(lake), pq.ParquetFile(only_file(lake)).read().select(swapped))
    [finding] = lake.verify()
    assert "the order of the columns" in finding.message
