"""Rows of an SQLite database as records, for adapters of programs that keep their sessions in one.

The database is read from a copy, read-only, as a file that nobody writes (`immutable`): neither its journal nor its
triggers, functions or views are run. A row is a record; `line` and `offset` count rows (from 1 and from 0).
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from etl.conversation import Record
from etl.decode import Decoded, JsonError, encode
from etl.framing import Broken, Framed, Limits, frame
from etl.opening import spooled

MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_LENGTH = sqlite3.SQLITE_LIMIT_LENGTH if hasattr(sqlite3, "SQLITE_LIMIT_LENGTH") else 0

Shape: TypeAlias = Callable[[dict[str, Any], Limits], Decoded | None]
"""A row by column (text as text, blobs as bytes) as the value of a record; None for a row that is none. Raises
JsonError where a column should hold JSON and does not."""


def records(blocks: Iterator[bytes], limits: Limits, tables: Mapping[str, Shape]) -> Iterator[Framed]:
    """The rows of these tables, table by table, of a database; the JSON records of any other file."""
    first = next(blocks, b"")
    rest = itertools.chain([first], blocks)
    if not first.startswith(MAGIC):
        yield from frame(rest, limits)
        return
    with spooled(rest) as path:
        if _cut_off(first, path.stat().st_size):
            # Nothing of it is taken: SQLite reads zeros where a page is missing, and rows would be wrong in silence.
            message = "the database ends before its last page; copy it again when nothing writes to it"
            yield Broken("torn_tail", message, b"", 1, 0, tail=True)
            return
        rows = 0
        try:
            for framed in _rows(path, limits, tables):
                rows += 1
                yield framed
        except sqlite3.Error as error:
            message = f"the database cannot be read on from here ({error}); copy it again or repair it"
            yield Broken("damaged_database", message, first[:_HEADER], rows + 1, rows)


def names_tables(head: bytes, *names: str) -> bool:
    """Whether the first pages of a database create all these tables.

    >>> names_tables(MAGIC + b"\\x00CREATE TABLE `part` (id)", "part"), names_tables(b"CREATE TABLE part (", "part")
    (True, False)
    """
    return head.startswith(MAGIC) and all(
        re.search(rb"CREATE TABLE (?:IF NOT EXISTS )?[`\"\[']?" + re.escape(name.encode()) + rb"[`\"\]']?\s*\(", head)
        for name in names
    )


def _cut_off(first: bytes, size: int) -> bool:
    """Whether the file is shorter than its header says."""
    if len(first) < _HEADER:
        return True
    page = int.from_bytes(first[16:18], "big")
    told = first[24:28] == first[92:96]  # else the number of pages in the header is not kept up
    pages = int.from_bytes(first[28:32], "big") if told else 1
    return size < pages * (65_536 if page == 1 else page)


def _rows(path: Path, limits: Limits, tables: Mapping[str, Shape]) -> Iterator[Framed]:
    database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
    try:
        database.setlimit(_LENGTH, limits.record_bytes)
        database.text_factory = lambda text: text.decode("utf-8", "replace")
        database.row_factory = sqlite3.Row
        for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
            database.execute(f"PRAGMA {setting}")
        known = dict(
            database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        )
        number = 0
        for name, shape in tables.items():
            if name not in known:
                continue
            by_row = "" if "WITHOUT ROWID" in str(known[name]).upper() else " ORDER BY rowid"
            for row in database.execute(f'SELECT * FROM "{name}"{by_row}'):  # the name is the adapter's own
                framed = _record(dict(zip(row.keys(), row, strict=True)), shape, number, name, limits)
                if framed is not None:
                    number += 1
                    yield framed
    finally:
        database.close()


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
