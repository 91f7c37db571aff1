"""Phoenix's SQLite database, and tables of spans that somebody saved as one, as records.

The application's own database has `spans` beside `traces`, `project_sessions` and tables of annotations; a saved data
frame is one table with `context.span_id` and `attributes.…` as columns.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

from etl.conversation import Record
from etl.decode import JsonError, decode
from etl.framing import Broken, Framed, Limits
from etl.opening import spooled

MAGIC = b"SQLite format 3\x00"
_FRAME = b"context.span_id"
_OWN = b"span_annotations"

_SPANS = """
    SELECT s.span_id, t.trace_id, s.parent_id, s.name, s.span_kind, s.start_time, s.end_time, s.attributes, s.events,
           s.status_code, s.status_message{session}
    FROM spans s JOIN traces t ON t.id = s.trace_rowid{join} ORDER BY s.id
"""
_SESSION = (", p.session_id", " LEFT JOIN project_sessions p ON p.id = t.project_session_rowid")
_ANNOTATIONS = (
    ("span_annotations", "span_id", "spans", "span_rowid"),
    ("trace_annotations", "trace_id", "traces", "trace_rowid"),
    ("project_session_annotations", "session_id", "project_sessions", "project_session_id"),
)
"""Table, the id that its rows name, the table that has it, the column that points there."""
_HIDDEN = frozenset({"id", "span_rowid", "trace_rowid", "project_session_id", "user_id"})


def is_phoenix(head: bytes) -> bool:
    """Whether a database's first pages, which hold its schema, are of Phoenix."""
    return head.startswith(MAGIC) and (_FRAME in head or (_OWN in head and b"span_kind" in head))


def rows(blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
    """Every span and annotation of a database as a record; its number in place of a line, no place in the bytes.

    A database that is cut off or damaged gives what can be read, then one torn record.
    """
    number = 0
    with (
        spooled(blocks) as path,
        closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as database,
    ):
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.record_bytes)
        database.execute("PRAGMA trusted_schema = OFF")
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            for value in _values(database):
                number += 1
                yield _framed(value, number, limits)
        except sqlite3.Error as error:
            message = (
                f"the database cannot be read to its end ({error}); copy it again, with its -wal file checkpointed"
            )
            yield Broken("torn_tail", message, b"", number + 1, 0, tail=True)


def _framed(value: dict[str, Any], number: int, limits: Limits) -> Framed:
    try:
        raw = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")
    except RecursionError:
        return Broken("bad_json", "a row that is nested too deep", str(value.get("context")).encode(), number, 0)
    if len(raw) > limits.record_bytes:
        message = f"a row of {len(raw)} bytes, more than the limit; raise it with --max-record-mb"
        return Broken("too_long", message, raw[:4096], number, 0, length=len(raw))
    try:
        read = decode(raw)
    except JsonError as error:
        return Broken("bad_json", f"a row that is no JSON ({error})", raw, number, 0)
    return Record(read.value, raw, number, 0, read.notes, read.mended)


def _values(database: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    tables = {name: _columns(database, name) for name in _tables(database)}
    for name, columns in sorted(tables.items()):
        if "context.span_id" in columns:
            yield from _select(database, f"SELECT * FROM {_quoted(name)}")
    if "spans" in tables and "traces" in tables and "trace_rowid" in tables["spans"]:
        joined = "project_sessions" in tables and "project_session_rowid" in tables["traces"]
        session, join = _SESSION if joined else ("", "")
        for row in _select(database, _SPANS.format(session=session, join=join)):
            yield _span(row)
        for name, target, holder, pointer in _ANNOTATIONS:
            if name in tables and holder in tables and pointer in tables[name]:
                query = f"SELECT a.*, h.{target} FROM {name} a JOIN {holder} h ON h.id = a.{pointer} ORDER BY a.id"
                for row in _select(database, query):
                    yield {key: item for key, item in row.items() if key not in _HIDDEN and item is not None}


def _span(row: dict[str, Any]) -> dict[str, Any]:
    """A row of `spans` in the form of the API."""
    context = {"trace_id": row.pop("trace_id"), "span_id": row.pop("span_id")}
    session = row.pop("session_id", None)
    for key in ("attributes", "events"):
        try:
            row[key] = json.loads(row[key]) if isinstance(row.get(key), str) else row.get(key)
        except (ValueError, RecursionError):
            continue
    if session and isinstance(row.get("attributes"), dict):
        row["attributes"].setdefault("session", {"id": session})
    return {"context": context, **{key: item for key, item in row.items() if item is not None}}


def _select(database: sqlite3.Connection, query: str) -> Iterator[dict[str, Any]]:
    cursor = database.execute(query)
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def _tables(database: sqlite3.Connection) -> list[str]:
    return [str(row[0]) for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in database.execute(f"PRAGMA table_info({_quoted(table)})")}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
