"""DuckDB that reads the tables of one lake and does nothing else: no other file, no network, no extension, no settings.

Behind `etl sql`, `etl shell` and the SQL box of `etl serve`, where people run what others wrote; `--unsafe` leaves it
away. Also behind the conditions of `etl export` and `etl forget`, where nothing does.

DuckDB's own boundary does most of it: with `enable_external_access` off only `allowed_directories` can be opened, and
`lock_configuration` keeps it so. It cannot tell reading from writing: that nothing in these folders is written, the
kinds of statement that may run see to.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
from duckdb import StatementType

from etl.errors import UsageError

FOLDERS = ("rollouts", "rejects", "sources", "events")
"""The tables of a lake, each a folder: what SQL may read."""
HINT = "SQL reads this lake alone unless --unsafe is given"

_FREE = [
    *("TimeZone", "Calendar", "default_null_order", "default_order", "preserve_insertion_order"),
    "parquet_metadata_cache",
]
"""Settings that say no more than how values are read or sorted; `views.sql` sets the last."""

_IN_MEMORY = {
    *(StatementType.SELECT, StatementType.MULTI, StatementType.CALL, StatementType.PRAGMA, StatementType.VACUUM),
    *(StatementType.CREATE, StatementType.DROP, StatementType.ALTER, StatementType.SET, StatementType.VARIABLE_SET),
    *(StatementType.INSERT, StatementType.UPDATE, StatementType.DELETE, StatementType.MERGE_INTO),
    StatementType.TRANSACTION,
}
"""What a statement may be: whatever it writes lies in the memory of the connection."""

_EXPLAIN = re.compile(r"EXPLAIN\s+(?:ANALYZE\s+)?(?:\([^()]*\)\s*)?", re.IGNORECASE)
_INSTALLS = re.compile(r"(?:FORCE\s+)?INSTALL\b", re.IGNORECASE)
_NO_TABLE = re.compile(r"Table with name \S*[/.:*]\S* does not exist")
"""A file or an address in the place of a table."""


def lock(connection: duckdb.DuckDBPyConnection, root: str) -> None:
    """Leave the connection the tables of the lake at `root`, for good: nobody can unlock it."""
    connection.execute("SET python_enable_replacements = false; SET autoload_known_extensions = false")
    connection.execute("SET allowed_directories = $1", [[f"{root}/{folder}/" for folder in FOLDERS]])
    connection.execute("SET allowed_configs = $1", [_FREE])
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")


def is_locked(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether `lock` was called on it, or on the connection that it is a cursor of."""
    return bool(connection.execute("SELECT current_setting('lock_configuration')").fetchall()[0][0])


def only_in_memory(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """UsageError where one of the statements could write a file; duckdb.Error where they do not parse."""
    for statement in connection.extract_statements(sql):
        kind = _kind(statement)
        if kind == StatementType.EXPLAIN:
            only_in_memory(connection, _explained(statement.query))
        elif kind not in _IN_MEMORY:
            name = "such a statement" if kind is None else kind.name.replace("_", " ")
            if kind == StatementType.LOAD and _INSTALLS.match(_plain(statement.query)):
                name = "INSTALL"  # of one kind with LOAD
            raise UsageError(f"{name} is not run here: {HINT}")


def only_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """UsageError unless the text is exactly one statement that reads; also where it does not parse."""
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise UsageError(" ".join(str(error).split())) from error
    if len(statements) != 1 or _kind(statements[0]) != StatementType.SELECT:
        raise UsageError(
            "one SELECT (FROM, WITH, DESCRIBE, SUMMARIZE) is run here unless --unsafe is given; `etl sql` runs several"
        )


def refused(error: duckdb.Error) -> bool:
    """Whether this is what DuckDB says where it keeps to what `lock` left it."""
    said = str(error)
    return (
        isinstance(error, duckdb.PermissionException)
        or "configuration has been locked" in said
        or (isinstance(error, duckdb.CatalogException) and _NO_TABLE.search(said) is not None)
    )


@contextmanager
def time_limit(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupts what the connection runs when the time is over."""
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _kind(statement: duckdb.Statement) -> StatementType | None:
    """The kind of a statement; None for one that the library has no name for."""
    try:
        return statement.type
    except ValueError:
        return None


def _explained(sql: str) -> str:
    """The statement behind EXPLAIN; the whole text, which is then refused, where that cannot be told."""
    words = _plain(sql)
    match = _EXPLAIN.match(words)
    if match is None:
        raise UsageError(f"this EXPLAIN is not run here: {HINT}")
    return words[match.end() :]


def _plain(sql: str) -> str:
    """The statement without its comments."""
    tokens = duckdb.tokenize(sql)
    ends = [*(start for start, _ in tokens[1:]), len(sql.encode())]
    text = sql.encode()
    parts = [(text[start:end], kind) for (start, kind), end in zip(tokens, ends, strict=True)]
    return b"".join(b" " if kind == duckdb.token_type.comment else part for part, kind in parts).decode().strip()
