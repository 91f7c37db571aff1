"""The ways people ask a lake: `etl.connect`, the DuckDB library with `views.sql`, the `duckdb` program."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pytest

from etl.query import connect

Ask: TypeAlias = Callable[[Path, str], list[dict[str, Any]]]
"""Lake and query → the rows, as JSON has them."""

PROGRAM = shutil.which("duckdb", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
needs_program = pytest.mark.skipif(PROGRAM is None, reason="needs the duckdb program (pip install duckdb-cli)")


def through_connect(lake: Path, sql: str) -> list[dict[str, Any]]:
    """`etl.connect`."""
    return _rows(_connected(lake).execute(_as_json(sql)).fetchall()[0][0])


def through_library(lake: Path, sql: str) -> list[dict[str, Any]]:
    """The library alone, with the lake's own copy of the script."""
    return _rows(_scripted(lake).execute(_as_json(sql)).fetchall()[0][0])


def through_program(lake: Path, sql: str) -> list[dict[str, Any]]:
    """The `duckdb` program, told by the environment where the lake is."""
    done = ask_program(lake / "views.sql", _as_json(sql), ETL_LAKE=str(lake))
    assert done.returncode == 0, done.stderr
    return _rows(done.stdout)


def ask_program(
    script: Path, sql: str, *, database: Path | None = None, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`duckdb [database] -init <script> -c <sql>`, values without any decoration."""
    assert PROGRAM is not None
    command = [PROGRAM, str(database or ":memory:"), "-list", "-noheader", "-init", str(script), "-c", sql]
    kept = {key: value for key, value in os.environ.items() if key != "ETL_LAKE"}
    return subprocess.run(command, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False)


ENGINES = [
    pytest.param(through_connect, id="connect"),
    pytest.param(through_library, id="library"),
    pytest.param(through_program, id="program", marks=needs_program),
]


@functools.lru_cache(maxsize=2)
def _connected(lake: Path) -> duckdb.DuckDBPyConnection:
    return connect(lake)


@functools.lru_cache(maxsize=2)
def _scripted(lake: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET VARIABLE etl_lake = $1", [str(lake)])
    connection.execute((lake / "views.sql").read_text())
    return connection


def _as_json(sql: str) -> str:
    return f"SELECT coalesce(to_json(list(asked)), '[]') FROM ({sql}) AS asked"


def _rows(text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(text)
    return rows
