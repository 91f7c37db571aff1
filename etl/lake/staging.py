"""Writing the files of a batch: rows are split by partition, gathered into row groups, invisible until committed."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from etl.errors import LakeError
from etl.lake.batch import join
from etl.lake.errors import one_line
from etl.lake.parquet import (
    MAX_FILE_BYTES,
    ROW_GROUP_BYTES,
    check_footer,
    gathered,
    open_writer,
    row_groups,
    with_partition,
    write_group,
)
from etl.lake.partition import check_day, check_source
from etl.lake.place import Place, new_name
from etl.lake.rules import note_rules, rules_of
from etl.lake.spill import Spill
from etl.schema import PARTITIONS, TABLES, arrow_schema

if TYPE_CHECKING:
    from etl.redact import Redacted

MIN_GROUP_BYTES = ROW_GROUP_BYTES // 8
"""A partition with fewer waiting Arrow bytes is parked rather than written as a small row group."""

MAX_OPEN_FILES = 16
"""Files being written at a time; beyond it the one that was written to longest ago is closed."""


class StagedFile(NamedTuple):
    """A Parquet file in the staging folder, all of one partition."""

    table: str
    path: str
    """Absolute path."""
    partition: dict[str, str]
    rows: int
    size: int
    """Bytes on disk."""


class _Open(NamedTuple):
    path: Path
    writer: pq.ParquetWriter
    sink: pa.NativeFile


class StagingWriter:
    """Writes the rows of one table in one worker; nothing of it is visible before a commit.

    The batch must be open (`with lake.batch(batch_id):` in the run). Memory is bounded, whatever comes in what order:
    rows wait until they are `ROW_GROUP_BYTES`; then a partition with many of them gets a row group, others are parked.
    """

    def __init__(self, lake_root: str | os.PathLike[str], batch_id: str, table: str, worker: str = "0") -> None:
        """`worker` only names the files, so that a person sees whose they are."""
        if table not in TABLES:
            raise LakeError(f"no table is called {table!r}; tables: {', '.join(TABLES)}")
        self._table = table
        self._worker = worker
        place = Place(lake_root)
        self._folder = place.staging / batch_id
        self._lock = join(place, batch_id)
        self._waiting: dict[tuple[str, ...], list[pa.Table]] = {}
        """By partition."""
        self._waiting_bytes = 0
        self._spill: Spill | None = None
        self._open: OrderedDict[tuple[str, ...], _Open] = OrderedDict()
        self._rows: dict[Path, int] = {}
        self._staged: list[StagedFile] = []
        self._rules: set[str] = set()
        self._closed = False

    def write(self, redacted: Redacted) -> None:
        """Takes rows that went through redaction. LakeError where their schema is not exactly the table's."""
        if self._closed:
            raise LakeError(f"the writer of {self._table} is closed")
        data = _redacted_rows(redacted, self._table)
        if not data.schema.equals(arrow_schema(self._table)):
            raise LakeError(f"rows for {self._table} have not its schema: {_difference(data.schema, self._table)}")
        _check_partitions(data, PARTITIONS[self._table])
        self._rules.add(redacted.rules)
        for partition, rows in _split(data, PARTITIONS[self._table]):
            self._waiting.setdefault(partition, []).append(rows)
        self._waiting_bytes += data.nbytes
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            with one_line(f"write to {self._folder}"):
                self._write_waiting(MIN_GROUP_BYTES)

    def close(self) -> list[StagedFile]:
        """Writes what waits, closes every file and lists them. Closing twice gives the same list."""
        if not self._closed:
            with one_line(f"write to {self._folder}"):
                self._write_waiting(0 if self._spill is None else MIN_GROUP_BYTES)
                if self._spill is not None:
                    for partition, pieces in self._spill.read():
                        for rows in gathered(pieces):
                            self._write(partition, rows)
                        self._finish(partition)
                for partition in list(self._open):
                    self._finish(partition)
            self._release()
        return list(self._staged)

    def abort(self) -> None:
        """Removes everything this writer wrote."""
        if not self._closed:
            for opened in self._open.values():
                opened.writer.close()
                opened.sink.close()
                opened.path.unlink(missing_ok=True)
            self._release()
        for staged in self._staged:
            Path(staged.path).unlink(missing_ok=True)
        self._staged.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _release(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._open.clear()
        if self._spill is not None:
            self._spill.remove()
        os.close(self._lock)

    def _write_waiting(self, least: int) -> None:
        """Writes a row group for each partition with at least so many bytes waiting, and parks the others."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        for partition in sorted(waiting):
            rows = pa.concat_tables(waiting.pop(partition))
            if rows.nbytes >= least:
                self._write(partition, rows)
                continue
            if self._spill is None:
                self._spill = Spill(self._folder / f"{self._table}-{self._worker}-{uuid4()}.arrow", self._table)
            self._spill.add(partition, rows)

    def _write(self, partition: tuple[str, ...], rows: pa.Table) -> None:
        """Writes rows of a partition as a row group of its file."""
        values = dict(zip(PARTITIONS[self._table], partition, strict=True))
        opened = self._opened(partition)
        write_group(opened.writer, with_partition(rows, self._table, values))
        self._rows[opened.path] += rows.num_rows
        if opened.sink.tell() >= MAX_FILE_BYTES:
            self._finish(partition)

    def _opened(self, partition: tuple[str, ...]) -> _Open:
        if partition not in self._open:
            if len(self._open) >= MAX_OPEN_FILES:
                self._finish(next(iter(self._open)))
            path = self._folder / f"{self._table}-{self._worker}-{new_name()}"
            sink = pa.OSFile(str(path), "wb")
            self._open[partition] = _Open(path, open_writer(sink, self._table), sink)
            self._rows[path] = 0
        self._open.move_to_end(partition)
        return self._open[partition]

    def _finish(self, partition: tuple[str, ...]) -> None:
        """Closes the file of a partition, where one is open, and lists it."""
        if partition not in self._open:
            return
        opened = self._open.pop(partition)
        note_rules(opened.writer, self._rules)
        opened.writer.close()
        opened.sink.close()
        values = dict(zip(PARTITIONS[self._table], partition, strict=True))
        size = opened.path.stat().st_size
        self._staged.append(StagedFile(self._table, str(opened.path), values, self._rows.pop(opened.path), size))


def _redacted_rows(given: object, table: str) -> pa.Table:
    """The guard: whatever did not come out of a Redactor, or is of another table, is refused."""
    from etl.redact import Redacted

    if not isinstance(given, Redacted) or given.name != table:
        raise LakeError(f"the writer of {table} takes redacted rows of {table}, nothing else")
    return given.table


def _split(data: pa.Table, keys: tuple[str, ...]) -> list[tuple[tuple[str, ...], pa.Table]]:
    """The rows of each partition, in the order they stand; moved only where those of one do not stand together."""
    named = list(zip(*(data[key].cast(pa.string()).to_pylist() for key in keys), strict=True))
    runs = [(values, len(list(run))) for values, run in groupby(named)]
    if len({values for values, _ in runs}) < len(runs):
        order = sorted(range(len(named)), key=named.__getitem__)
        data = data.take(pa.array(order, pa.int64()))
        runs = [(values, len(list(run))) for values, run in groupby(named[row] for row in order)]
    parts: list[tuple[tuple[str, ...], pa.Table]] = []
    first = 0
    for partition, length in runs:
        parts.append((partition, data.slice(first, length)))
        first += length
    return parts


def _check_partitions(data: pa.Table, keys: tuple[str, ...]) -> None:
    """UsageError for a source, LakeError for a day that cannot be a folder."""
    for key in keys:
        for value in pc.unique(data[key].cast(pa.string())).to_pylist():
            if value is None:
                raise LakeError(f"a row has no {key}; the spine must fill it")
            if key == "source":
                check_source(value)
            else:
                check_day(value)


def _difference(schema: pa.Schema, table: str) -> str:
    """The columns in which a schema differs from the table's."""
    given, wanted = (
        {field.name: field.type for field in schema},
        {field.name: field.type for field in arrow_schema(table)},
    )
    names = [name for name in {**wanted, **given} if given.get(name) != wanted.get(name)]
    return ", ".join(names[:10]) or "the order of the columns"


def restaged(lake_root: str, batch_id: str, staged: StagedFile, without: pa.Array) -> list[StagedFile]:
    """A staged file of an open batch without the rows at some positions (int64, from 0), as a new file; none where all
    of them go.
    """
    if len(without) == staged.rows:
        return []
    folder = Place(lake_root).staging / batch_id
    kept = row_groups(staged.path, without=without)
    return [stage_rows(folder, staged.table, kept, staged.partition, rules_of(staged.path))]


def stage_rows(
    folder: Path, table: str, pieces: Iterable[pa.Table], partition: dict[str, str], rules: Iterable[str]
) -> StagedFile:
    """Stages rows that were in the lake before, all of one partition: they went through redaction when they came in,
    by these versions of its rules.
    """
    path = folder / new_name()
    with pa.OSFile(str(path), "wb") as sink, open_writer(sink, table) as writer:
        for rows in pieces:
            write_group(writer, with_partition(rows, table, partition))
        note_rules(writer, rules)
    footer = check_footer(path, table)
    return StagedFile(table, str(path), dict(partition), footer.rows, footer.size)
