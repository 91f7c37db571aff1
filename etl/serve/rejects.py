"""Rejected records: by reason and source, and one with its bytes as text and in hexadecimal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import duckdb

from etl.pages.facts import Rows, ask

PER_PAGE = 100
BYTES_SHOWN = 4_096


class Rejects(NamedTuple):
    """One page of rejects, and how many there are of each reason."""

    rows: Rows
    reasons: Rows
    reason: str
    source: str
    page: int
    more: bool


class Reject(NamedTuple):
    """One reject."""

    row: dict[str, Any]
    text: str
    hexadecimal: str
    left_out: int
    """Bytes kept, but not shown."""


def rejects(connection: duckdb.DuckDBPyConnection, query: Mapping[str, str]) -> Rejects:
    """The rejects that an address asks for."""
    reason, source, page = query.get("reason", ""), query.get("source", ""), query.get("page", "1")
    number = max(1, min(int(page[:20]), 1_000_000)) if page.isascii() and page.isdigit() else 1
    rows = ask(
        connection,
        f"""
        SELECT reject_id, source, reason, message, source_uri, source_line, source_offset, length FROM rejects
        WHERE ($1 = '' OR reason = $1) AND ($2 = '' OR source = $2)
        ORDER BY source, source_uri, source_offset, reject_id LIMIT {PER_PAGE + 1} OFFSET {(number - 1) * PER_PAGE}
        """,
        [reason, source],
    )
    reasons = ask(connection, "SELECT reason, count(*) AS records FROM rejects GROUP BY reason ORDER BY ALL")
    reasons.sort(key=lambda row: -row["records"])
    return Rejects(rows[:PER_PAGE], reasons, reason, source, number, len(rows) > PER_PAGE)


def reject(connection: duckdb.DuckDBPyConnection, reject_id: str) -> Reject | None:
    """One reject; None where there is none of that id."""
    rows = ask(connection, "FROM rejects WHERE reject_id = $1 LIMIT 1", [reject_id])
    if not rows:
        return None
    raw = rows[0]["raw"] or b""
    shown = raw[:BYTES_SHOWN]
    return Reject(rows[0], shown.decode("utf-8", "backslashreplace"), dump(shown), len(raw) - len(shown))


def dump(data: bytes) -> str:
    """Bytes in hexadecimal, sixteen a line, with their place and their letters.

    >>> print(dump(b'{"a":'))
    00000000  7b 22 61 22 3a                                   {"a":
    """
    lines = []
    for start in range(0, len(data), 16):
        part = data[start : start + 16]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in part)
        lines.append(f"{start:08x}  {part.hex(' '):<47}  {letters}")
    return "\n".join(lines)
