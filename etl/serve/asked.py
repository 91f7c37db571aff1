"""SQL that somebody typed into a page, run in a process of its own that is ended when its time is over.

The process (`python -m etl.serve.asked`) reads one JSON object on stdin and answers with one on stdout. Its DuckDB is
locked (`etl/locked.py`) unless the server was started with `--unsafe`; the process around it bounds time and memory
even where DuckDB does not notice.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from typing import NamedTuple

import duckdb
import msgspec

from etl.errors import EtlError, UsageError
from etl.locked import only_select
from etl.query import connect, execute
from etl.values import cell

SECONDS = 10.0
"""How long a question may take."""
ROWS = 500
"""Rows that are shown."""
CELL = 2_000
"""Characters of one value that are shown."""
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "DOUBLE", "FLOAT", "DECIMAL", "NUMBER")
MEMORY = "2GB"
"""What DuckDB may hold."""


class Question(msgspec.Struct):
    """What the process is told."""

    lake: str
    sql: str
    unsafe: bool = False


class Table(msgspec.Struct):
    """What it answers: texts, or an error in one line."""

    names: list[str] = []
    types: list[str] = []
    rows: list[list[str | None]] = []
    more: bool = False
    error: str | None = None


class Answered(NamedTuple):
    """The answer as a page shows it."""

    table: Table
    numbers: list[bool]
    """Whether a column is read from its last digit."""


def ask(lake: str, sql: str, *, unsafe: bool = False, seconds: float = SECONDS) -> Answered:
    """The answer to one SELECT (`unsafe`: to any SQL); UsageError where it makes no sense, fails, or takes too long."""
    if len(sql) > 20_000:
        raise UsageError("the SQL is longer than 20,000 characters; ask it with `etl sql -`")
    command = [sys.executable, "-m", "etl.serve.asked"]
    question = msgspec.json.encode(Question(lake, sql, unsafe))
    try:
        done = subprocess.run(command, input=question, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise UsageError(f"no answer within {seconds:g} seconds; ask for less, or use `etl sql`") from None
    try:
        table = msgspec.json.decode(done.stdout, type=Table)
    except msgspec.DecodeError:
        raise UsageError("the question took more memory than it may; ask for less, or use `etl sql`") from None
    if table.error is not None:
        raise UsageError(table.error)
    return Answered(table, [_is_number(kind) for kind in table.types])


def answer(question: Question) -> Table:
    """The answer over a lake that is opened for it; the error in one line where it fails."""
    try:
        connection = connect(question.lake, locked=not question.unsafe, memory_limit=MEMORY, spilling=question.unsafe)
        return answer_on(connection, question.sql, unsafe=question.unsafe)
    except EtlError as error:
        return Table(error=str(error))


def answer_on(connection: duckdb.DuckDBPyConnection, sql: str, *, unsafe: bool = False) -> Table:
    """The answer of a connection; the error in one line where it fails."""
    try:
        if not unsafe:
            only_select(connection, sql)
        found = execute(connection, sql)
        rows: list[list[str | None]] = []
        for row in found.rows:
            if len(rows) == ROWS:
                return Table(found.names, found.types, rows, more=True)
            rows.append([None if value is None else _cut(cell(value)) for value in row])
    except EtlError as error:
        return Table(error=str(error))
    return Table(found.names, found.types, rows)


def _cut(text: str) -> str:
    return text if len(text) <= CELL else f"{text[:CELL]}… {len(text) - CELL:,} more characters"


def _is_number(kind: str) -> bool:
    return kind.upper().startswith(_NUMBERS)


def main() -> None:
    """One question from stdin, its answer on stdout."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    with contextlib.suppress(ValueError, OSError):
        limit = int(SECONDS * 8)  # of all cores together, should the server be gone that would end this process
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    sys.stdout.buffer.write(msgspec.json.encode(answer(question)))


if __name__ == "__main__":
    main()
