"""Reading a lake: SQL through DuckDB with every view open, or the stored columns through Polars.

A reader sees the files that are live when it opens them. An ingest that replaces one of them meanwhile makes the reader
fail loudly, never read twice; the functions here that run a query themselves (`run_sql`, `scan`) then start over, once.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import duckdb

from etl.database import open_database
from etl.errors import EtlError, LakeError, UsageError, no_lake
from etl.locked import FOLDERS, HINT, is_locked, lock, only_in_memory, refused
from etl.remote import open_to_duckdb
from etl.shipped import schema_text

if TYPE_CHECKING:
    import polars as pl

    from etl.schema import Rollout

LakePath: TypeAlias = "str | os.PathLike[str]"

_FETCH = 256
"""Rows that are Python objects at a time: a row may be a long conversation."""


OURS = "etl_"
"""How the names begin of views that only other views are made of."""
_LISTS = re.compile(r"\bSHOW\s+(?:ALL\s+)?TABLES\s*;?\s*$", re.IGNORECASE)


class Answer(NamedTuple):
    """The result of one query: its columns, and its rows, once."""

    names: list[str]
    types: list[str]
    """DuckDB's names of the column types."""
    rows: Iterator[tuple[Any, ...]]
    """Python values: times with zone UTC, structs as dicts, lists as lists, blobs as bytes."""

    def records(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts; of two columns with one name the last counts."""
        return (dict(zip(self.names, row, strict=True)) for row in self.rows)


def views_sql() -> str:
    """The text of `views.sql`: every view and macro, for DuckDB in any language. Each lake has a copy."""
    return schema_text("views.sql")


def connect(
    lake: LakePath, *, locked: bool = False, memory_limit: str | None = None, spilling: bool = True
) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection, in memory, with every view and macro of `views.sql` open over the files live now.

    Nothing is written to the lake. Cursors of the connection see the same views. `open_views` on it again shows what
    was ingested since. A `locked` one opens no file but those of the lake's tables, no network and no extension, and
    keeps its settings: for SQL that somebody else wrote. What outgrows `memory_limit` (DuckDB's own: 80 % of the
    machine) goes to a temporary folder, unless `spilling` is off. LakeError where there is no lake.
    """
    settings = {"temp_directory": f"{_spill()}/{uuid.uuid4().hex}" if spilling else ""}
    connection = open_database(settings | ({"memory_limit": memory_limit} if memory_limit else {}))
    try:
        open_views(connection, lake)
        if locked:
            lock(connection, str(_root(lake)))
    except BaseException:
        connection.close()
        raise
    return connection


def open_views(connection: duckdb.DuckDBPyConnection, lake: LakePath) -> None:
    """Open (or open anew) the views and macros of a lake on any DuckDB connection that can be written to.

    LakeError where there is no lake, or one whose log or files cannot be read.
    """
    root = _root(lake)
    for tries_left in (2, 1, 0):
        try:
            _open_views(connection, root)
        except duckdb.Error as error:
            # An ingest may have replaced a file between its listing and its opening.
            if tries_left == 0 or not isinstance(error, duckdb.IOException):
                why = _in_one_line(error)
                raise LakeError(f"the lake at {root} cannot be read: {why}; `etl verify` says more") from error
        else:
            return


def execute(
    connection: duckdb.DuckDBPyConnection, sql: str, *, lake: LakePath | None = None, around: bool = False
) -> Answer:
    """Run one or more statements; the answer is the last one's.

    A locked connection is asked nothing that could write a file (UsageError). With the lake whose views the connection
    has, they are opened anew and the statements run once more if an ingest replaced a file meanwhile. UsageError
    for SQL that does not parse or names what is not there, EtlError where it fails while it runs; both in one line,
    with DuckDB's own hint. The lines of SQL that is `around` a condition that a person typed are not told.
    """
    locked = is_locked(connection)
    try:
        if around and len(connection.extract_statements(sql)) != 1:
            raise UsageError("a condition is wanted here, not a statement")
        if locked:
            only_in_memory(connection, sql)
        return _answer(connection, sql)
    except duckdb.IOException as error:
        if lake is None:
            raise _ours(error, around=around) from error
    except duckdb.Error as error:
        raise _ours(error, locked=locked, around=around) from error
    open_views(connection, lake)
    return execute(connection, sql, around=around)


def run_sql(lake: LakePath, sql: str, *, unsafe: bool = False) -> Answer:
    """The answer to SQL over a lake: `connect_for_sql`, then `execute`."""
    return execute(connect_for_sql(lake, unsafe=unsafe), sql, lake=lake)


def connect_for_sql(lake: LakePath, *, unsafe: bool = False) -> duckdb.DuckDBPyConnection:
    """A connection for SQL that a person typed: locked, unless `unsafe`."""
    connection = connect(lake, locked=not unsafe)
    if unsafe:
        connection.execute("SET python_enable_replacements = false")  # a misspelt table is no Python variable of ours
    return connection


def write_parquet(lake: LakePath, sql: str, path: Path, *, unsafe: bool = False) -> int:
    """The answer to SQL over a lake as a Parquet file (zstd), batch by batch; gives the number of its rows."""
    from pyarrow import parquet

    connection = connect_for_sql(lake, unsafe=unsafe)
    *before, last = _statements(connection, sql)
    if before:
        execute(connection, "; ".join(before))
    if not unsafe:
        only_in_memory(connection, last)
    try:
        relation = connection.sql(last)
        if relation is None:
            raise UsageError("the last statement gives no rows to write")
        with (
            relation.to_arrow_reader(_FETCH * 8) as batches,
            parquet.ParquetWriter(path, batches.schema, compression="zstd") as writer,
        ):
            rows = 0
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
    except duckdb.Error as error:
        raise _ours(error, locked=not unsafe) from error
    return rows


def find_rollout(connection: duckdb.DuckDBPyConnection, rollout_id: str) -> dict[str, Any]:
    """The row of `rollouts` (results filled in) whose id begins so, or whose conversation has it as its id.

    UsageError where none or several do.
    """
    found = connection.execute(
        """SELECT rollout_id, source, day FROM rollouts_stored WHERE starts_with(rollout_id, $1)
           ORDER BY rollout_id <> $1, rollout_id LIMIT 6""",
        [rollout_id],
    ).fetchall()
    if not found:
        found = connection.execute(
            """SELECT rollout_id, source, day FROM rollouts_stored WHERE conversation_id = $1
               ORDER BY parent_id IS NOT NULL, started_at, rollout_id LIMIT 6""",
            [rollout_id],
        ).fetchall()
        if len(found) > 1:
            ids = ", ".join(str(row[0]) for row in found[:5]) + (", …" if len(found) > 5 else "")
            raise UsageError(f"the conversation {rollout_id!r} has more than one row: {ids}; name one of them")
    if not found:
        some = 'etl sql "SELECT rollout_id FROM rollouts LIMIT 10"'
        raise UsageError(f"no rollout has the id {rollout_id!r}; list some with: {some}")
    if len(found) > 1 and found[0][0] != rollout_id:
        ids = ", ".join(str(row[0]) for row in found[:5]) + (", …" if len(found) > 5 else "")
        raise UsageError(f"{rollout_id!r} is the beginning of more than one id: {ids}; give more of it")
    query = "FROM rollouts WHERE rollout_id = $1 AND source = $2 AND day = $3"
    answer = connection.execute(query, list(found[0]))
    names = [str(column[0]) for column in answer.description or ()]
    return dict(zip(names, answer.fetchall()[0], strict=True))


def find(lake: LakePath, rollout_id: str) -> Rollout:
    """One row of a lake as an object, which a notebook shows as a conversation.

    The id may be cut short as long as it is the only one that begins so; UsageError where none or several do.
    """
    from etl.schema import Rollout

    connection = connect(lake)
    row = find_rollout(connection, rollout_id)
    del row["system_prompt"]
    for step in row["steps"]:
        del step["result"]  # it stands in the message that `result_index` names
    return Rollout.model_validate(row)


class Relative(NamedTuple):
    """A row that belongs to another, in short."""

    rollout_id: str
    agent: str | None = None
    status: str | None = None
    reward: float | None = None
    prompt: str | None = None
    """The beginning of it."""


class Kin(NamedTuple):
    """Rows that belong to a row."""

    parent: Relative | None = None
    """What it came from."""
    children: Sequence[Relative] = ()
    """Sub-agents, branches and continuations that came from it."""
    siblings: Sequence[Relative] = ()
    """Other attempts of its group, other children of its parent."""


def find_kin(connection: duckdb.DuckDBPyConnection, row: dict[str, Any], *, most: int = 100) -> Kin:
    """The parent of a row, its children, and the other members of its group or children of its parent."""
    found = connection.execute(
        """SELECT rollout_id, agent, status, reward, left(prompt, 200), coalesce(parent_id = $1, false)
           FROM rollouts_stored
           WHERE rollout_id <> $1 AND (parent_id = $1 OR group_id = $2 OR parent_id = $3 OR rollout_id = $3)
           ORDER BY started_at, sample_index, rollout_id LIMIT $4""",
        [row["rollout_id"], row["group_id"], row["parent_id"], most],
    ).fetchall()
    kin = [(Relative(*values), is_child) for *values, is_child in found]
    parents = [relative for relative, _ in kin if relative.rollout_id == row["parent_id"]]
    return Kin(
        parents[0] if parents else None,
        [relative for relative, is_child in kin if is_child],
        [relative for relative, is_child in kin if not is_child and relative not in parents],
    )


def scan(lake: LakePath) -> pl.LazyFrame:
    """The stored columns of `rollouts` as a LazyFrame; filters on `source` and `day` (text) open only their files.

    The files are those live when it is collected, not when this is called. LakeError where there is no lake.
    """
    from etl.frames import stored_rollouts  # Polars is loaded by who asks for it

    return stored_rollouts(_root(lake))


def _open_views(connection: duckdb.DuckDBPyConnection, root: Path) -> None:
    # Temporary objects and variables belong to one cursor. Views that all cursors share need neither.
    script = views_sql().replace("CREATE OR REPLACE TEMP ", "CREATE OR REPLACE ")
    if not is_locked(connection):
        connection.execute("SET GLOBAL TimeZone = 'UTC'; SET GLOBAL parquet_metadata_cache = true")
    open_to_duckdb(connection, [str(root)])
    connection.execute("SET VARIABLE etl_lake = $1", [str(root)])
    connection.execute(script)
    for table in FOLDERS:
        view = "rollouts_stored" if table == "rollouts" else table
        stored = connection.execute(f"SELECT getvariable('etl_{view}')").fetchall()[0][0]
        connection.execute(f"CREATE OR REPLACE VIEW {view} AS {stored}")


@functools.cache
def _spill() -> str:
    """A folder of this process alone, for what outgrows memory; it goes with the process."""
    folder = tempfile.mkdtemp(prefix="etl-duckdb-")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a fork of this process is still told to
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _answer(connection: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    connection.execute(sql)
    described = connection.description or []
    names, types = [str(column[0]) for column in described], [str(column[1]) for column in described]
    first = connection.fetchmany(_FETCH) if described else []
    if "name" in names and _LISTS.search(sql):
        at = names.index("name")
        first = [row for row in first if not str(row[at]).startswith(OURS)]
    return Answer(names, types, chain(first, _more(connection) if len(first) == _FETCH else ()))


def _more(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    try:
        while portion := connection.fetchmany(_FETCH):
            yield from portion
    except duckdb.Error as error:
        raise _ours(error) from error


def _statements(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    try:
        return [statement.query for statement in connection.extract_statements(sql)]
    except duckdb.Error as error:
        raise _ours(error) from error


def _ours(error: duckdb.Error, *, locked: bool = False, around: bool = False) -> EtlError:
    """DuckDB's error as ours: a question that makes no sense is the asker's, everything else is not."""
    said = _in_one_line(error, line=not around)
    if locked and refused(error):
        return UsageError(f"{said}; {'a condition reads this lake alone' if around else HINT}")
    if isinstance(error, duckdb.ProgrammingError):
        # A data file that is no Parquet (any more) is an `InvalidInputException` that names the file.
        if isinstance(error, duckdb.InvalidInputException) and ".parquet'" in said:
            return LakeError(f"{said}; `etl verify` says more")
        return UsageError(said)
    return LakeError(said) if isinstance(error, duckdb.IOException) else EtlError(said)


def _in_one_line(error: duckdb.Error, *, line: bool = True) -> str:
    """DuckDB's message with its hints, without the picture of the line and the caret under it."""
    message, _, picture = str(error).partition("\nLINE ")
    said = "; ".join(" ".join(line.split()) for line in message.splitlines() if line.strip())
    number = picture.partition(":")[0]
    return f"{said} (line {number})" if number and line else said


def _root(lake: LakePath) -> Path:
    """The folder of a lake that is there."""
    name = os.fspath(lake)
    if name and "://" not in name:
        root = Path(os.path.abspath(name))  # noqa: PTH100  (as `Place` does, which takes longer to load than a query runs)
        is_lake = (root / "rollouts" / "_delta_log").is_dir()
    else:
        from etl.lake.errors import one_line
        from etl.lake.place import Place

        root = Place(name).root
        with one_line(f"read the lake {root}"):
            is_lake = (root / "rollouts" / "_delta_log").is_dir()
    if not is_lake:
        raise no_lake(root)
    return root
