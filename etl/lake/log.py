"""The Delta log of each table: made once, read as a snapshot, and written by compare-and-swap only.

Only these calls of `deltalake` are used; its own writers, MERGE and optimize are not: they write another Arrow layout
(string_view, snappy), and their retries let two writers of one new id both win. What 1.6.6 checks was tried:
`create_write_transaction` with `max_commit_retries=0` fails when the next version exists, but it accepts a remove of a
file that is not live and an add of one that is not there. So `commit` checks both itself. The library writes a version
only where there is none: by a hard link in a folder, by a conditional put in an object store.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, PostCommitHookProperties, RemoveAction

from etl.errors import ConflictError, LakeError, no_lake
from etl.lake.errors import lake_error
from etl.lake.parquet import check_footer
from etl.lake.place import Place
from etl.lake.version import VERSION_KEY, check_present, stamp, stamped
from etl.schema import PARTITIONS, TABLES, arrow_schema

CHECKPOINT_EVERY = 20
"""Versions between two checkpoints: readers of the plain log have at most so many small files to read after one."""


class LiveFile(NamedTuple):
    """A data file that the newest version of a table refers to."""

    path: str
    """Absolute path."""
    partition: dict[str, str]
    size: int
    """Bytes on disk."""
    rows: int


class Snapshot(NamedTuple):
    """One version of a table."""

    table: str
    version: int
    files: dict[str, LiveFile]
    """Live files by their path relative to the table, as it is on disk."""
    delta: DeltaTable


class NewFile(NamedTuple):
    """A data file in its final place, about to be added."""

    path: str
    """Relative to the table, as it is on disk."""
    partition: dict[str, str]
    rows: int
    size: int


class UncertainError(LakeError):
    """Nobody can say whether a commit took place: its files must stay where they are."""


def create_table(place: Place, table: str) -> None:
    """Makes the table with its first checkpoint, unless it is there."""
    folder = str(place.table(table))
    try:
        made = None if DeltaTable.is_deltatable(folder) else _create(folder, table)
        if not place.checkpoint_pointer(table).exists():
            (made or DeltaTable(folder)).create_checkpoint()
    except (DeltaError, OSError) as error:
        raise lake_error(f"create the lake {place.root}", error) from error


def _create(folder: str, table: str) -> DeltaTable | None:
    """The new table; none where another run made it in the same moment."""
    try:
        return DeltaTable.create(
            folder,
            Schema.from_arrow(arrow_schema(table)),
            mode="ignore",
            partition_by=list(PARTITIONS[table]),
            name=table,
            description=f"{table} of a lake made by rollout-etl",
            configuration={VERSION_KEY: stamp()},
            raise_if_key_not_exists=False,
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except DeltaError:
        # `mode="ignore"` does not cover that, and with retries the table would be created a second time on top of the
        # first.
        if not DeltaTable.is_deltatable(folder):
            raise
        return None


def snapshot(place: Place, table: str, *, older: bool = False) -> Snapshot:
    """The newest version of a table; LakeError where it is none of ours, or `older` unless such a lake will do.

    What was read last is given again for as long as it is the newest: a run asks some dozens of times.
    """
    if (kept := _kept(place, table, older)) is not None:
        return kept
    read = _read(place, table, older)
    if (mark := place.log_mark(table, read.version)) is not None:
        place.kept[table] = (older, mark, read)
    return read


def _kept(place: Place, table: str, older: bool | None = None) -> Snapshot | None:
    """What was read of a table, where its log ends with the same file now; `older`: read so, by default in any way."""
    kept: tuple[bool, object, Snapshot] | None = place.kept.get(table)
    if kept is None or older not in (None, kept[0]):
        return None
    _, mark, read = kept
    if place.log_mark(table, read.version) != mark or place.log_file(table, read.version + 1).exists():
        return None
    return read


def _read(place: Place, table: str, older: bool) -> Snapshot:
    folder = str(place.table(table))
    try:
        delta = DeltaTable(folder)
        (stamped if older else check_present)(delta, place, table)
        # As a stream: `pa.table` would look for pandas, and load it where it is installed.
        actions = pa.RecordBatchReader.from_stream(delta.get_add_actions(flatten=True)).read_all()
    except TableNotFoundError:
        if not place.names() & TABLES.keys():
            raise no_lake(place.root) from None
        raise LakeError(f"the lake at {place.root} has no table {table}; `etl ingest` makes it") from None
    except (DeltaError, OSError) as error:
        raise lake_error(f"read the table {table} of {place.root}", error) from error
    files: dict[str, LiveFile] = {}
    keys = PARTITIONS[table]
    names = {"path", "size_bytes", "num_records", *(f"partition.{key}" for key in keys)}
    for row in actions.select([name for name in actions.column_names if name in names]).to_pylist():
        path = unquote(row["path"])
        partition = {key: row[f"partition.{key}"] for key in keys}
        rows = row.get("num_records")
        if rows is None:
            raise LakeError(
                f"{place.data_file(table, path)} was added by another program, without a row count: "
                f"take it out of the table {table} again, and read its source with `etl ingest`"
            )
        files[path] = LiveFile(str(place.data_file(table, path)), partition, row["size_bytes"], rows)
    return Snapshot(table, delta.version(), files, delta)


def commit(
    place: Place,
    base: Snapshot,
    added: Sequence[NewFile],
    removed: Iterable[str],
    *,
    info: Mapping[str, str],
    now_ms: int,
    data_change: bool = True,
    lost: bool = False,
    anew: bool = False,
) -> int:
    """Adds and removes files as the version after `base`, and returns that version.

    ConflictError when somebody else committed it first, or a file that goes is not there any more. LakeError when an
    added file is not there or not exactly of the table's schema, or the log cannot be written. `lost`: the
    files that go are known to be gone. `anew`: the table gets its present columns, and all files of `base` go.
    """
    adds: list[AddAction | RemoveAction] = [_add_action(place, base.table, file, data_change) for file in added]
    removes = [_remove_action(base, path, now_ms, data_change) for path in removed]
    for action in removes:
        if not lost and not place.data_file(base.table, action.path).exists():
            raise ConflictError(f"{base.table}/{action.path} was replaced by another writer")
    token = str(uuid4())
    try:
        base.delta.create_write_transaction(
            adds if anew else [*adds, *removes],  # the library itself removes what it overwrites
            "overwrite" if anew else "append",
            Schema.from_arrow(arrow_schema(base.table)),
            list(PARTITIONS[base.table]),
            commit_properties=CommitProperties(custom_metadata={**info, "commit": token}, max_commit_retries=0),
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
    except (DeltaError, OSError) as error:
        # A failure can come after the log entry was written: what the log says decides.
        try:
            written = place.read_log(base.table, base.version + 1)
        except OSError as unreadable:
            raise UncertainError(
                f"cannot tell whether {place.table(base.table)} was committed: {unreadable}"
            ) from error
        if written is None:
            raise lake_error(f"commit to {base.table} of {place.root}", error) from error
        if token not in written:
            raise ConflictError(f"another writer committed version {base.version + 1} of {base.table} first") from error
    with contextlib.suppress(OSError):  # it is committed, whether or not it outlives a loss of power
        place.sync(place.log_file(base.table, base.version + 1), place.log_folder(base.table))
    if (base.version + 1) % CHECKPOINT_EVERY == 0:
        _checkpoint(place, base.table)
    return base.version + 1


def newest_version(place: Place, table: str) -> int:
    """The number of the newest version of a table, whoever wrote it."""
    if (kept := _kept(place, table)) is not None:
        return kept.version
    try:
        return DeltaTable(str(place.table(table))).version()
    except (DeltaError, OSError) as error:
        raise lake_error(f"read the table {table} of {place.root}", error) from error


def mark_present(place: Place, table: str) -> None:
    """Says in the log that a table is of the present version; ConflictError when somebody else committed meanwhile."""
    delta = DeltaTable(str(place.table(table)))
    try:
        delta.alter.set_table_properties(
            {VERSION_KEY: stamp()},
            raise_if_not_exists=False,
            commit_properties=CommitProperties(max_commit_retries=0),
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
    except (DeltaError, OSError) as error:
        if newest_version(place, table) == delta.version():
            raise lake_error(f"commit to {table} of {place.root}", error) from error
        raise ConflictError(f"another writer committed to {table} first") from error
    _checkpoint(place, table)


def _add_action(place: Place, table: str, file: NewFile, data_change: bool) -> AddAction:
    path = place.data_file(table, file.path)
    try:
        footer = check_footer(path, table)
        modified = int(path.stat().st_mtime * 1000)
    except (OSError, pa.ArrowException) as error:
        raise lake_error(f"commit {path}", error) from error
    if footer != (file.rows, file.size):
        raise LakeError(
            f"cannot commit {path}: it has {footer.rows} rows in {footer.size} bytes, not {file.rows} in {file.size}"
        )
    stats = json.dumps({"numRecords": file.rows})
    return AddAction(file.path, file.size, file.partition, modified, data_change, stats)


def _remove_action(base: Snapshot, path: str, now_ms: int, data_change: bool) -> RemoveAction:
    if path not in base.files:
        raise ConflictError(f"{base.table}/{path} is not live in version {base.version}")
    live = base.files[path]
    return RemoveAction(path, data_change, now_ms, live.size, dict(live.partition))


def _checkpoint(place: Place, table: str) -> None:
    """Sums up the log. It only makes reading faster, so a failure is left to the next one."""
    with contextlib.suppress(DeltaError, OSError):
        delta = DeltaTable(str(place.table(table)))
        delta.create_checkpoint()
        delta.cleanup_metadata()
