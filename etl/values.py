"""Values of a result as JSON, as CSV and as text: exact where the target can say it."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from etl.harmless import json_escaped

_FORMULA = frozenset("=+-@\t\r\uff1d\uff0b\uff0d\uff20")
"""How a cell begins that spreadsheets run, the wide forms of the signs too."""
_NUMBER = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)*(?:[eE][-+]?[0-9]+)?%?")


def plain(value: Any) -> Any:
    """The value in types that JSON has: times as ISO 8601 in UTC, bytes as text with escapes, no NaN."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        return plain(float(value)) if decimal.Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, dt.datetime):
        return _iso(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def _iso(value: dt.datetime) -> str:
    return value.isoformat() if value.tzinfo is None else value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


def json_text(value: Any) -> str:
    """The value as compact JSON; what a terminal would obey stands there as an escape, which says the same."""
    return json_escaped(json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def cell(value: Any) -> str:
    """The value as text: nested ones as JSON, null as nothing."""
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json_text(value)
    converted = plain(value)
    if isinstance(converted, bool):
        return "true" if converted else "false"
    return str(value) if converted is None else str(converted)


def csv_line(values: tuple[Any, ...]) -> str:
    """One line of CSV (RFC 4180); the empty string is quoted and null is not, so that they stay apart.

    A text that a spreadsheet would take for a formula has an apostrophe before it, as there one writes a text.

    >>> csv_line(("=1+1", -1, "-1", "a"))
    "'=1+1,-1,-1,a\\n"
    """
    return ",".join(_csv_cell(value) for value in values) + "\n"


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    text = cell(value)
    if isinstance(value, str) and text[:1] in _FORMULA and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    if text and not any(char in text for char in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'
