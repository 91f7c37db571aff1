"""A lake opened so that SQL can read its live files and do nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from etl.errors import UsageError
from etl.query import connect


def connect_locked(lake: str | Path, *, memory_limit: str = "4GB") -> duckdb.DuckDBPyConnection:
    """`etl.connect`, then no file but the live ones, no network, no extensions, no settings, nothing spilled to disk.

    DuckDB's own boundary, tried against it in the tests: with `enable_external_access` off only `allowed_paths` can be
    opened, and `lock_configuration` keeps it so. That a live file is not written either, `only_select` sees to.
    """
    connection = connect(lake)
    files = [path for (path,) in connection.execute("SELECT unnest(getvariable('etl_live')).file").fetchall()]
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET temp_directory = ''")
    connection.execute(f"SET memory_limit = '{memory_limit}'")
    connection.execute("SET allowed_paths = $1", [files])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def only_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """UsageError unless the text is exactly one statement that reads; also where it does not parse."""
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise UsageError(" ".join(str(error).split())) from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError("one SELECT (FROM, WITH, DESCRIBE, SUMMARIZE) is run here; `etl sql` and `etl shell` run all")


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
