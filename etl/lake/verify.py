"""Proving a lake: every live file is read in full and held against the log, its path and the other rows."""

from __future__ import annotations

import glob
import json
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from etl.database import open_database
from etl.errors import LakeError
from etl.lake.batch import staging_state
from etl.lake.errors import file_is_gone, library_errors, one_line, reading
from etl.lake.log import LiveFile, snapshot
from etl.lake.lookup import MEMORY_LIMIT, THREADS
from etl.lake.parquet import check_footer, has_checksums, open_parquet, row_groups
from etl.lake.partition import folder_of, partition_of
from etl.lake.place import Place
from etl.lake.sweep import orphans, sweep
from etl.remote import open_to_duckdb
from etl.schema import PARTITIONS, TABLES

if TYPE_CHECKING:
    from etl.lake.lake import Lake

UNIQUE = {
    "rollouts": ("rollout_id",),
    "rejects": ("reject_id",),
    "sources": ("source", "uri"),
    "events": ("source", "conversation_key", "record_key"),
}
"""What no two live rows of a table share."""

_CHECKSUM = "CRC checksum verification failed"
"""What Arrow says of a page that is not what was written."""

SHOWN = 20
"""Findings of one kind that are listed one by one for a table."""


class Finding(NamedTuple):
    """One thing that is wrong."""

    code: str
    """orphan_file, stale_staging, missing_file, unreadable_file, wrong_checksum, wrong_schema, wrong_size,
    wrong_partition, duplicate_key, message_info_length or accounting."""
    table: str
    """Table of the lake; empty for the staging folder."""
    path: str
    """Absolute path of what it is about; empty where it is a row."""
    message: str
    """What is wrong, and what to do."""
    repaired: bool


def verify(place: Place, now_ms: int, *, repair: bool, tables: Iterable[str] = tuple(TABLES)) -> list[Finding]:
    """Every finding, leftovers first. `repair` removes these; `Lake.verify` takes lost files out of the log."""
    with one_line(f"verify the lake {place.root}"):
        findings = _leftovers(place, now_ms, repair)
        for table in tables:
            findings += _verify_table(place, table)
    return findings


def without_checksums(lake: Lake) -> int:
    """How many live files an older product wrote, whose pages have no checksums: reading them proves less."""

    def found() -> int:
        return sum(not _has_checksums(file) for table in TABLES for file in lake.live(table))

    with one_line(f"verify the lake {lake.root}"):
        return reading(found)


def _has_checksums(file: LiveFile) -> bool:
    with open_parquet(file.path) as opened:
        return has_checksums(opened)


def _leftovers(place: Place, now_ms: int, repair: bool) -> list[Finding]:
    if repair:
        swept = sweep(place, now_ms)
        batches, files = swept.batches, swept.files
    else:
        batches = staging_state(place, remove_dead=False).dead
        files = [str(place.data_file(file.table, file.path)) for file in orphans(place, now_ms)]
    done = "removed" if repair else "`etl verify --repair` or the next ingest removes it"
    found = [
        Finding(
            "stale_staging", "", str(place.staging / batch), f"left by the run {batch}, which has ended: {done}", repair
        )
        for batch in batches
    ]
    for path in files:
        table = path.removeprefix(f"{place.root}/").partition("/")[0]
        found.append(Finding("orphan_file", table, path, f"not part of any version: {done}", repair))
    return found


def _verify_table(place: Place, table: str) -> list[Finding]:
    findings: list[Finding] = []
    sound: list[LiveFile] = []
    for path, file in sorted(snapshot(place, table).files.items()):
        found = list(_verify_file(table, path, file))
        if any(finding.code == "missing_file" for finding in found) and path not in snapshot(place, table).files:
            continue  # replaced by a commit while it was looked at
        findings += found
        if not found:
            sound.append(file)
    return findings + _duplicates(place, table, sound)


def _verify_file(table: str, path: str, file: LiveFile) -> Iterator[Finding]:
    def finding(code: str, message: str) -> Finding:
        return Finding(code, table, file.path, message, False)

    again = "restore the file from a backup, or ingest its sources into a new lake"
    try:
        footer = check_footer(file.path, table)
    except LakeError as error:
        yield finding("wrong_schema", f"{error}; {again}")
        return
    except library_errors(UnicodeDecodeError) as error:
        if file_is_gone(error):
            yield finding(
                "missing_file",
                "the log refers to it but it is gone; restore it from a backup, or let `etl verify --repair` take it "
                "out of the table and the next ingest read its sources again",
            )
        else:
            yield finding("unreadable_file", f"{' '.join(str(error).split())[:200]}; {again}")
        return
    if footer != (file.rows, file.size):
        said = f"the log says {file.rows} rows in {file.size} bytes"
        yield finding("wrong_size", f"it has {footer.rows} rows in {footer.size} bytes, {said}; {again}")
    folder = path.rpartition("/")[0]
    if partition_of(folder) != file.partition or folder_of(file.partition, PARTITIONS[table]) != folder:
        yield finding("wrong_partition", f"its folder {folder} is not that of {file.partition} in the log; {again}")
    try:
        yield from _verify_rows(table, file)
    except library_errors(UnicodeDecodeError) as error:
        if _CHECKSUM in str(error):
            yield finding("wrong_checksum", f"a page of it is not what was written; {again}")
            return
        code = "missing_file" if file_is_gone(error) else "unreadable_file"
        yield finding(code, f"{' '.join(str(error).split())[:200]}; {again}")


def _verify_rows(table: str, file: LiveFile) -> Iterator[Finding]:
    """Reads every row of a file: its partition columns, and what the rows of its table promise."""
    first = 0
    for rows in row_groups(file.path):
        for key, value in file.partition.items():
            names = pc.unique(rows[key].cast(pa.string())).to_pylist()
            if names != [value]:
                said = ", ".join(map(repr, names[:5]))
                yield Finding(
                    "wrong_partition", table, file.path, f"column {key} says {said}, its folder {value!r}", False
                )
        if table == "rollouts":
            yield from _verify_lengths(rows, file, first)
        if table == "sources":
            yield from _verify_accounting(rows, file)
        first += rows.num_rows


def _verify_lengths(rows: pa.Table, file: LiveFile, first: int) -> Iterator[Finding]:
    lengths = (pc.list_value_length(rows[name]) for name in ("messages", "message_info"))
    equal = pc.fill_null(pc.equal(*lengths), False)
    wrong = rows.filter(pc.invert(equal))["rollout_id"].to_pylist()
    for rollout_id in wrong[:SHOWN]:
        message = f"rollout {rollout_id} has message_info of another length than messages; read its source again"
        yield Finding("message_info_length", "rollouts", file.path, message, False)


def _verify_accounting(rows: pa.Table, file: LiveFile) -> Iterator[Finding]:
    columns = ["uri", "records_in", "records_used", "rejects", "ignored"]
    for row in rows.select(columns).to_pylist():
        ignored = sum(json.loads(row["ignored"] or "{}").values())
        accounted = row["records_used"] + row["rejects"] + ignored
        if row["records_in"] != accounted:
            message = (
                f"{row['uri']}: {row['records_in']} records in, but {row['records_used']} used, "
                f"{row['rejects']} rejected and {ignored} ignored make {accounted}; "
                "read it again with `etl ingest --reparse`"
            )
            yield Finding("accounting", "sources", file.path, message, False)


def _duplicates(place: Place, table: str, files: list[LiveFile]) -> list[Finding]:
    """Rows that share what must be unique, over all files that could be read."""
    if not files:
        return []
    keys = ", ".join(f"{key}::VARCHAR AS {key}" for key in UNIQUE[table])
    with tempfile.TemporaryDirectory() as spill:
        database = open_database({"memory_limit": MEMORY_LIMIT, "threads": THREADS, "temp_directory": spill})
        open_to_duckdb(database, (file.path for file in files))
        try:
            found = database.execute(
                f"SELECT {keys}, count(*) FROM read_parquet(?, hive_partitioning = false) "
                f"GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT {SHOWN}",
                [[glob.escape(file.path) for file in files]],
            ).fetchall()
        except library_errors() as error:
            if not file_is_gone(error):
                raise
            return _duplicates(place, table, [file for file in files if place.is_there(file.path)])
        finally:
            database.close()
    advice = "this must not happen: keep the lake and report it"
    return [
        Finding("duplicate_key", table, "", f"{' '.join(map(str, key))} stands in {count} rows; {advice}", False)
        for *key, count in found
    ]
