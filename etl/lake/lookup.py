"""Which rows a commit must leave out or take away, found by DuckDB over the few columns that decide it.

A `Lookup` belongs to one try of a commit: the staged files of a batch against the live files of one version. Rows are
known by (file, position), so nothing but keys is ever held, and DuckDB spills to the staging folder what does not fit.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from etl.database import another_connection, open_database
from etl.lake.batch import Batch
from etl.lake.log import LiveFile
from etl.lake.staging import StagedFile
from etl.remote import open_to_duckdb
from etl.schema import arrow_schema

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "128MB"
THREADS = 2
"""Enough to look 10 million staged rows up against 2.5 million live ones; more threads would need more memory each."""

ROWS_TO_KEEP_OPEN_FOR = 200_000
"""A database keeps memory for what it held: where there may have been more rows, the next commit opens another."""

REDACTED = (
    "coalesce(list_sum(list_transform(regexp_extract_all(redactions, ':\\s*([0-9]+)', 1), lambda n: n::BIGINT)), 0)"
    "::BIGINT AS redacted"
)
"""How much of a row redaction replaced."""

Side = Literal["live", "staged"]
SIDES: tuple[Side, Side] = ("live", "staged")


class Lookup:
    """Keys of rows as the DuckDB tables `staged` and `live`, and what goes as `dropped` (side, file, position)."""

    def __init__(self, table: str, staged: Sequence[StagedFile], live: Sequence[LiveFile], batch: Batch) -> None:
        """What does not fit into memory is put into the folder of the batch."""
        self.table = table
        self.spill = batch.folder
        self._batch = batch
        self.files: dict[Side, Sequence[StagedFile | LiveFile]] = {"live": live, "staged": staged}
        self._database = _connected(batch)
        self._loaded: set[str] = set()
        open_to_duckdb(self._database, [*(file.path for file in live), *(file.path for file in staged)])
        self._staged_where = "true"
        self.run("CREATE TEMP TABLE dropped (side VARCHAR, file BIGINT, position BIGINT)")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
        if sum(file.rows for files in self.files.values() for file in files) > ROWS_TO_KEEP_OPEN_FOR:
            self._batch.close_database()

    def in_partitions(self, wanted: Callable[[dict[str, str]], bool]) -> list[int]:
        """The live files of some partitions, by their places in the list."""
        return [number for number, file in enumerate(self.files["live"]) if wanted(file.partition)]

    def with_matches(self, column: str) -> list[int]:
        """The live files with a value of this column that is staged, by their places: one column is read, no more."""
        condition = f"{column} IN (SELECT {column} FROM staged)"
        source, parameters = self._rows_of("live", range(len(self.files["live"])))
        query = f"SELECT DISTINCT {self._place} AS file FROM {source} WHERE {condition} ORDER BY file"
        return [int(file) for (file,) in self.run(query, parameters)]

    def load(self, name: str, columns: str, *, where: str = "true", only: Sequence[int] | None = None) -> None:
        """Adds rows of (columns, file, position) that meet the condition to a table; those of staged files to `staged`,
        those of live files to any other.

        `file` is the place in the list of files, `position` the row in the file, both from 0. `only` has the places of
        the files that are worth a look.
        """
        side: Side = "staged" if name == "staged" else "live"
        chosen = range(len(self.files[side])) if only is None else only
        query = f"SELECT {columns}, {self._place} AS file, file_row_number::BIGINT AS position FROM"
        source, parameters = self._rows_of(side, chosen)
        where = f"({where}) AND {self._staged_where}" if side == "staged" else where
        into = f"INSERT INTO {name}" if name in self._loaded else f"CREATE TEMP TABLE {name} AS"
        self.run(f"{into} {query} {source} WHERE {where}", parameters)
        self._loaded.add(name)

    def leave_out_staged(self, condition: str) -> None:
        """Drops the staged rows that meet the condition; no table that is loaded later has them."""
        if staged := range(len(self.files["staged"])):
            source, parameters = self._rows_of("staged", staged)
            rows = f"SELECT 'staged', {self._place}, file_row_number::BIGINT FROM {source}"
            self.run(f"INSERT INTO dropped {rows} WHERE {condition}", parameters)
        self._staged_where = f"NOT ({condition})"

    _place = "(?::BIGINT[])[file_index::BIGINT + 1]"

    def _rows_of(self, side: Side, chosen: Sequence[int]) -> tuple[str, list[Any]]:
        """What to select from to read some files, with the parameters of `_place` and of this."""
        if not chosen:
            self._database.register("no_rows", _no_rows(self.table))
            return "no_rows", [[]]
        paths = [glob.escape(self.files[side][number].path) for number in chosen]
        return "read_parquet(?, hive_partitioning = false)", [list(chosen), paths]

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs one statement and returns its rows."""
        return self._database.execute(statement, list(parameters)).fetchall()

    def table_of(self, name: str, data: pa.Table) -> None:
        """Makes a DuckDB table of an Arrow table."""
        self._database.register("given", data)
        self.run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM given")
        self._database.unregister("given")

    def dropped(self, side: Side) -> dict[int, int]:
        """How many rows of each file (by its place in the list) go."""
        found = self.run("SELECT file, count(*) FROM dropped WHERE side = ? GROUP BY file", [side])
        return {int(file): int(count) for file, count in found}

    def positions(self, table: str, side: Side, file: int) -> pa.Array:
        """The rows of one file in a table of (side, file, position): int64 positions from 0, sorted."""
        query = f"SELECT position FROM {table} WHERE side = ? AND file = ? ORDER BY position"
        return pa.array([position for (position,) in self.run(query, [side, file])], pa.int64())


def _connected(batch: Batch) -> duckdb.DuckDBPyConnection:
    """A connection of its own to the database of the batch, with no tables but those it makes itself.

    Opening a database costs as much as all that a small commit asks of it.
    """
    if batch.database is None:
        batch.database = open_database(
            {
                "memory_limit": MEMORY_LIMIT,
                "threads": THREADS,
                "temp_directory": str(batch.folder),
                "preserve_insertion_order": False,
                "enable_external_file_cache": False,
            }
        )
    return another_connection(batch.database)


def _no_rows(table: str) -> pa.Table:
    """What a table without files reads as."""
    numbers = [pa.field("file_index", pa.int64()), pa.field("file_row_number", pa.int64())]
    return pa.schema([*arrow_schema(table), *numbers]).empty_table()
