"""Phoenix's SQLite database, and tables of spans that somebody saved as one, as records.

The application's own database has `spans` beside `traces`, `project_sessions` and tables of annotations; a saved data
frame is one table with `context.span_id` and `attributes.…` as columns.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from etl.adapters._sqlite import MAGIC, Stored, stored_records
from etl.conversation import Record
from etl.decode import JsonError, decode
from etl.framing import RAISE_LENGTH, Broken, Framed, Limits

_FRAME = b"context.span_id"
_OWN = b"span_annotations"

_SPAN = (
    *("parent_id", "name", "span_kind", "start_time", "end_time"),
    *("attributes", "events", "status_code", "status_message"),
)
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
    """Every span and annotation of a database as a record; its number in place of a line, no place in the bytes."""
    yield from stored_records(blocks, limits, lambda stored: _records(stored, limits))


def _records(stored: Stored, limits: Limits) -> Iterator[Framed]:
    for number, value in enumerate(_values(stored), 1):
        yield _framed(value, number, limits)


def _framed(value: dict[str, Any], number: int, limits: Limits) -> Framed:
    try:
        raw = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")
    except RecursionError:
        return Broken("bad_json", "a row that is nested too deep", str(value.get("context")).encode(), number, 0)
    if len(raw) > limits.record_bytes:
        message = f"a row of {len(raw)} bytes, more than the limit; {RAISE_LENGTH}"
        return Broken("too_long", message, raw[:4096], number, 0, length=len(raw))
    try:
        read = decode(raw, limits.nesting)
    except JsonError as error:
        return Broken("bad_json", f"a row that is no JSON ({error})", raw, number, 0)
    return Record(read.value, raw, number, 0, read.notes, read.mended)


def _values(stored: Stored) -> Iterator[dict[str, Any]]:
    columns = {name: stored.columns(name) for name in sorted(stored.tables)}
    for name in columns:
        if "context.span_id" in columns[name]:
            yield from stored.rows(name)
    if "traces" in columns and "trace_rowid" in columns.get("spans", ()):
        sessions = {row.get("id"): row.get("session_id") for row in stored.rows("project_sessions")}
        traces = {row.get("id"): row for row in stored.rows("traces")}
        for row in stored.rows("spans"):
            trace = traces.get(row.get("trace_rowid"), {})
            yield _span(row, trace.get("trace_id"), sessions.get(trace.get("project_session_rowid")))
        for name, target, holder, pointer in _ANNOTATIONS:
            if pointer in columns.get(name, ()):
                held = {row.get("id"): row.get(target) for row in stored.rows(holder)}
                for row in stored.rows(name):
                    told = {**row, target: held.get(row[pointer])}
                    yield {key: item for key, item in told.items() if key not in _HIDDEN and item is not None}


def _span(row: dict[str, Any], trace: Any, session: Any) -> dict[str, Any]:
    """A row of `spans` in the form of the API."""
    span: dict[str, Any] = {name: row.get(name) for name in _SPAN}
    for key in ("attributes", "events"):
        with contextlib.suppress(ValueError, RecursionError):
            span[key] = json.loads(span[key]) if isinstance(span[key], str) else span[key]
    if session and isinstance(span["attributes"], dict):
        span["attributes"].setdefault("session", {"id": session})
    context = {"trace_id": trace, "span_id": row.get("span_id")}
    return {"context": context, **{key: item for key, item in span.items() if item is not None}}
