"""Writing the files of a batch: rows are split by partition, gathered into row groups, invisible until committed."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq

from etl.errors import LakeError
from etl.lake.batch import join
from etl.lake.errors import one_line
from etl.lake.parquet import MAX_FILE_BYTES, ROW_GROUP_BYTES, open_writer, with_partition
from etl.lake.partition import check_day, check_source
from etl.lake.place import Place, new_name
from etl.redact import Redacted
from etl.schema import PARTITIONS, TABLES, arrow_schema

MAX_BUFFER_BYTES = 2 * ROW_GROUP_BYTES
"""Arrow bytes that wait for their row group, over all partitions."""

MAX_OPEN_FILES = 64
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

    The batch must be open (`with lake.batch(batch_id):` in the run). Memory is bounded by `MAX_BUFFER_BYTES` and one
    row group more.
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
        self._buffers: OrderedDict[tuple[str, ...], list[pa.Table]] = OrderedDict()
        self._bytes: dict[tuple[str, ...], int] = {}
        self._open: OrderedDict[tuple[str, ...], _Open] = OrderedDict()
        self._rows: dict[Path, int] = {}
        self._staged: list[StagedFile] = []
        self._closed = False

    def write(self, redacted: Redacted) -> None:
        """Takes rows that went through redaction. LakeError where their schema is not exactly the table's."""
        if self._closed:
            raise LakeError(f"the writer of {self._table} is closed")
        data = _redacted_rows(redacted, self._table)
        if not data.schema.equals(arrow_schema(self._table)):
            raise LakeError(f"rows for {self._table} have not its schema: {_difference(data.schema, self._table)}")
        with one_line(f"write to {self._folder}"):
            for partition, rows in _split(data, PARTITIONS[self._table]):
                self._buffer(partition, rows)

    def close(self) -> list[StagedFile]:
        """Writes what waits, closes every file and lists them. Closing twice gives the same list."""
        if not self._closed:
            with one_line(f"write to {self._folder}"):
                for partition in list(self._buffers):
                    self._flush(partition)
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
        self._buffers.clear()
        self._open.clear()
        os.close(self._lock)

    def _buffer(self, partition: tuple[str, ...], rows: pa.Table) -> None:
        self._buffers.setdefault(partition, []).append(rows)
        self._bytes[partition] = self._bytes.get(partition, 0) + rows.nbytes
        if self._bytes[partition] >= ROW_GROUP_BYTES:
            self._flush(partition)
        # Rows of many small partitions wait as slices that keep their whole batch in memory: all go at once.
        elif sum(self._bytes.values()) >= MAX_BUFFER_BYTES:
            for waiting in list(self._buffers):
                self._flush(waiting)

    def _flush(self, partition: tuple[str, ...]) -> None:
        """Writes what waits for a partition as one row group."""
        parts = self._buffers.pop(partition)
        del self._bytes[partition]
        values = dict(zip(PARTITIONS[self._table], partition, strict=True))
        data = with_partition(pa.concat_tables(parts), self._table, values)
        opened = self._opened(partition)
        opened.writer.write_table(data, row_group_size=data.num_rows)
        self._rows[opened.path] += data.num_rows
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
        """Closes the file of a partition and lists it."""
        opened = self._open.pop(partition)
        opened.writer.close()
        opened.sink.close()
        values = dict(zip(PARTITIONS[self._table], partition, strict=True))
        size = opened.path.stat().st_size
        self._staged.append(StagedFile(self._table, str(opened.path), values, self._rows.pop(opened.path), size))


def _redacted_rows(given: object, table: str) -> pa.Table:
    """The guard: whatever did not come out of a Redactor, or is of another table, is refused."""
    if not isinstance(given, Redacted) or given.name != table:
        raise LakeError(f"the writer of {table} takes redacted rows of {table}, nothing else")
    return given.table


def _split(data: pa.Table, keys: tuple[str, ...]) -> list[tuple[tuple[str, ...], pa.Table]]:
    """The rows of each partition, in the order they stand; names and days are checked."""
    if data.num_rows == 0:
        return []
    columns = {key: data[key].cast(pa.string()) for key in keys}
    groups = (
        pa.table({**columns, "position": pa.array(range(data.num_rows), pa.int64())})
        .group_by(list(keys), use_threads=False)
        .aggregate([("position", "list")])
    )
    parts: list[tuple[tuple[str, ...], pa.Table]] = []
    for group in groups.to_batches():
        for index in range(group.num_rows):
            partition = tuple(group.column(key)[index].as_py() for key in keys)
            _check(dict(zip(keys, partition, strict=True)))
            positions = group.column("position_list")[index].values
            whole = len(positions) == data.num_rows
            parts.append((partition, data if whole else data.take(positions)))
    return parts


def _check(partition: dict[str, str | None]) -> None:
    for key, value in partition.items():
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
