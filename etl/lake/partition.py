"""Partition keys and the folders they become: `source=<percent-encoded>/day=…`, so that every name survives exactly."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

from etl.errors import LakeError, UsageError
from etl.schema import UNKNOWN_DAY

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""What Hive readers take for null, so no source may be called so."""

MAX_FOLDER_BYTES = 255
"""Longest folder name that common file systems take."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def check_source(source: str) -> str:
    """The source name itself, or UsageError where no folder can carry it.

    >>> check_source("support bot/α")
    'support bot/α'
    """
    if not source:
        raise UsageError("the source name is empty; name the log stream, for example --source support")
    if source == HIVE_NULL:
        raise UsageError(f"the source name {HIVE_NULL} means null to Hive readers; use another name")
    try:
        folder = f"source={quote(source, safe='')}"
    except UnicodeEncodeError:
        raise UsageError(f"the source name {source!r} is not valid Unicode text; use another name") from None
    if len(folder) > MAX_FOLDER_BYTES:
        limit = MAX_FOLDER_BYTES - len("source=")
        raise UsageError(
            f"the source name {source[:40]!r}… takes {len(folder) - len('source=')} bytes as a folder name, "
            f"more than {limit}; use a shorter one"
        )
    return source


def check_day(day: str) -> str:
    """The day itself, or LakeError where it is neither YYYY-MM-DD nor `unknown`."""
    if day != UNKNOWN_DAY and not _DAY.fullmatch(day):
        raise LakeError(f"a row has the day {day!r}; it must be YYYY-MM-DD or {UNKNOWN_DAY}")
    return day


def folder_of(partition: Mapping[str, str], keys: Sequence[str]) -> str:
    """The folder of a partition, relative to its table.

    >>> folder_of({"source": "a=b", "day": "unknown"}, ("source", "day"))
    'source=a%3Db/day=unknown'
    """
    return "/".join(f"{key}={_folder_name(partition[key])}" for key in keys)


def _folder_name(value: str) -> str:
    """Percent-encoded; so is the first letter of `null`, which DuckDB 1 takes for a null."""
    name = quote(value, safe="")
    return f"%{ord(name[0]):02X}{name[1:]}" if name.lower() == "null" else name


def partition_of(folder: str) -> dict[str, str]:
    """The partition values that a folder relative to its table stands for.

    >>> partition_of("source=x%252Fy/day=2026-01-01")
    {'source': 'x%2Fy', 'day': '2026-01-01'}
    """
    pairs = (part.partition("=") for part in folder.split("/"))
    return {key: unquote(value) for key, _, value in pairs}
