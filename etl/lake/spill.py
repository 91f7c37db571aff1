"""Rows of many small partitions, parked on disk until their partition can be written as one file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from etl.schema import PARTITIONS, arrow_schema


class Spill:
    """An Arrow file of row batches by partition: written first, then read back partition by partition.

    Files of a partition written straight away would have as many row groups as there were rounds, each of a few rows.
    """

    def __init__(self, path: Path, table: str) -> None:
        """`path` is made here and removed by `remove`."""
        self._path = path
        self._table = table
        keys = PARTITIONS[table]
        self._columns = [name for name in arrow_schema(table).names if name not in keys]
        schema = pa.schema([arrow_schema(table).field(name) for name in self._columns])
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = ipc.new_file(self._sink, schema)
        self._batches: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._written = 0

    def add(self, partition: tuple[str, ...], rows: pa.Table) -> None:
        """Parks rows of a partition."""
        for batch in rows.select(self._columns).combine_chunks().to_batches():
            self._writer.write_batch(batch)
            self._batches[partition].append(self._written)
            self._written += 1

    def read(self) -> Iterator[tuple[tuple[str, ...], Iterator[pa.Table]]]:
        """Every partition with its rows, without the partition columns; nothing can be added after that."""
        self._writer.close()
        self._sink.close()
        with pa.OSFile(str(self._path), "rb") as source:
            reader = ipc.open_file(source)
            for partition in sorted(self._batches):
                yield partition, (pa.Table.from_batches([reader.get_batch(n)]) for n in self._batches[partition])

    def remove(self) -> None:
        """Removes the file, whole or not."""
        self._sink.close()
        self._path.unlink(missing_ok=True)
