"""DuckDB as this package opens it: in memory, and without the progress bar that long queries would draw on stdout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def open_database(settings: Mapping[str, str | int | bool] | None = None) -> duckdb.DuckDBPyConnection:
    """A new database with these settings (`memory_limit`, `threads`, `temp_directory`, …). It fetches nothing."""
    import duckdb  # a run that changes nothing asks it nothing

    database = duckdb.connect(config={"autoinstall_known_extensions": False, **(settings or {})})
    return _quiet(database)


def another_connection(database: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """One more connection to a database, with temporary tables of its own, which go when it is closed."""
    return _quiet(database.cursor())


def _quiet(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    connection.execute("SET enable_progress_bar = false")
    return connection
