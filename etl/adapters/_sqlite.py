"""Rows of an SQLite database as records, for adapters of programs that keep their sessions in one.

The database is read from a copy, read-only, as a file that nobody writes (`immutable`): neither its journal nor its
triggers, functions, views or generated columns are run. A row is a record; `line` and `offset` count rows (from 1
and from 0).
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeAlias
from urllib.parse import quote

from etl.conversation import Record
from etl.decode import Decoded, JsonError, encode
from etl.framing import Broken, Framed, Limits, frame
from etl.opening import spooled

MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_LENGTH = sqlite3.SQLITE_LIMIT_LENGTH if hasattr(sqlite3, "SQLITE_LIMIT_LENGTH") else 0
_DAMAGED = (sqlite3.Error, UnicodeError, OverflowError, MemoryError)
"""What SQLite and its module raise on what is broken: names that are no UTF-8 and sizes that lie among it."""
_GROWTH, _LEAST_ROW = 10, 4
"""Bytes that all rows may say for each byte of the file (defaults and encodings make more of them), and bytes a row."""

Shape: TypeAlias = Callable[[dict[str, Any], Limits], Decoded | None]
"""A row by column (text as text, blobs as bytes) as the value of a record; None for a row that is none. Raises
JsonError where a column should hold JSON and does not."""


class Stored:
    """What a database holds. Nothing of it is run: no view, no virtual table, no generated column."""

    def __init__(self, database: sqlite3.Connection, size: int, limits: Limits) -> None:
        self._database = database
        self._left = max(size, 1 << 16) * _GROWTH
        # No value is longer than the file: pages that lead back to themselves could say one that is.
        database.setlimit(_LENGTH, max(1 << 16, min(limits.record_bytes, size)))
        database.text_factory = lambda text: text.decode("utf-8", "replace")
        for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
            database.execute(f"PRAGMA {setting}")
        known = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        self.tables = {str(name): str(sql) for name, sql in database.execute(known)}

    def columns(self, table: str) -> list[str]:
        """The columns that are stored, in order."""
        return [str(row[1]) for row in self._database.execute(f"PRAGMA table_xinfo({_quoted(table)})") if row[6] == 0]

    def rows(self, table: str, only: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """The rows of a table by column (or `only` by these), in the order they were put in; none where there is no
        such table.
        """
        if table not in self.tables:
            return
        names = [name for name in self.columns(table) if only is None or name in only]
        if not names:
            return
        columns = ", ".join(f"{_quoted(table)}.{_quoted(name)}" for name in names)
        by_row = "" if "WITHOUT ROWID" in self.tables[table].upper() else " ORDER BY rowid"
        for row in self._database.execute(f"SELECT {columns} FROM {_quoted(table)}{by_row}"):
            self._left -= _LEAST_ROW + sum(len(cell) for cell in row if isinstance(cell, (str, bytes)))
            if self._left < 0:
                raise sqlite3.DatabaseError("its rows say more than the file holds")
            yield dict(zip(names, row, strict=True))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def records(blocks: Iterator[bytes], limits: Limits, tables: Mapping[str, Shape]) -> Iterator[Framed]:
    """The rows of these tables, table by table, of a database; the JSON records of any other file."""
    first = next(blocks, b"")
    rest = itertools.chain([first], blocks)
    if not first.startswith(MAGIC):
        yield from frame(rest, limits)
        return
    yield from stored_records(rest, limits, lambda stored: _shaped(stored, limits, tables))


def stored_records(
    blocks: Iterator[bytes], limits: Limits, of: Callable[[Stored], Iterator[Framed]]
) -> Iterator[Framed]:
    """What `of` gives of a database; where that is cut off or damaged, one more record says so."""
    with spooled(blocks) as path:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEADER)
        if _cut_off(head, size):
            # Nothing of it is taken: SQLite reads zeros where a page is missing, and rows would be wrong in silence.
            message = "the database ends before its last page; copy it again when nothing writes to it"
            yield Broken("torn_tail", message, b"", 1, 0, tail=True)
            return
        rows = 0
        try:
            with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as database:
                for framed in of(Stored(database, size, limits)):
                    rows += 1
                    yield framed
        except _DAMAGED as error:
            reason = " ".join(str(error).split())[:200]
            message = f"the database cannot be read on from here ({reason}); copy it again or repair it"
            yield Broken("damaged_database", message, head, rows + 1, rows)


def names_tables(head: bytes, *names: str) -> bool:
    """Whether the first pages of a database create all these tables.

    >>> names_tables(MAGIC + b"\\x00CREATE TABLE `part` (id)", "part"), names_tables(b"CREATE TABLE part (", "part")
    (True, False)
    """
    return head.startswith(MAGIC) and all(
        re.search(rb"CREATE TABLE (?:IF NOT EXISTS )?[`\"\[']?" + re.escape(name.encode()) + rb"[`\"\]']?\s*\(", head)
        for name in names
    )


def has_column(head: bytes, table: str, column: str) -> bool:
    """Whether a database creates this table with this column.

    >>> made = MAGIC + b'CREATE TABLE "talk" (id, parts TEXT)'
    >>> has_column(made, "talk", "parts"), has_column(made, "talk", "part")
    (True, False)
    """
    named = rb"CREATE TABLE [`\"\[']?" + re.escape(table.encode()) + rb"[`\"\]']?\s*\("
    between = rb"(?:(?!CREATE TABLE)[^\x00]){0,4000}?\b"
    return head.startswith(MAGIC) and re.search(named + between + re.escape(column.encode()) + rb"\b", head) is not None


def _cut_off(first: bytes, size: int) -> bool:
    """Whether the file is shorter than its header says."""
    if len(first) < _HEADER:
        return True
    page = int.from_bytes(first[16:18], "big")
    told = first[24:28] == first[92:96]  # else the number of pages in the header is not kept up
    pages = int.from_bytes(first[28:32], "big") if told else 1
    return size < pages * (65_536 if page == 1 else page)


def _shaped(stored: Stored, limits: Limits, tables: Mapping[str, Shape]) -> Iterator[Framed]:
    number = 0
    for name, shape in tables.items():
        for row in stored.rows(name):
            framed = _record(row, shape, number, name, limits)
            if framed is not None:
                number += 1
                yield framed


def _record(row: dict[str, Any], shape: Shape, number: int, table: str, limits: Limits) -> Framed | None:
    try:
        shaped = shape(row, limits)
    except JsonError as error:
        raw = "\n".join(str(item) for item in row.values() if isinstance(item, str)).encode("utf-8", "replace")
        message = f"a row of the table {table} holds no JSON where it should ({error}); see what wrote it"
        return Broken("not_json", message, raw, number + 1, number)
    if shaped is None:
        return None
    raw = encode(shaped.value).encode("utf-8", "surrogatepass")
    return Record(shaped.value, raw, number + 1, number, shaped.notes, shaped.mended)
