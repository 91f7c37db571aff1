"""Instants as logs write them, into microseconds since the epoch, UTC.

Numbers are seconds, milliseconds, microseconds or nanoseconds by their size; text is ISO 8601 or a number; a time
without zone is read as UTC and said so. What cannot be a time of a log (zero, negative, before 2000, after 2100) is
none.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from typing import Any, NamedTuple

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EARLIEST = 946_684_800  # 2000-01-01
_LATEST = 4_102_444_800  # 2100-01-01
_DAY = 86_400_000_000
_UNITS = tuple((_EARLIEST * unit, _LATEST * unit, 1_000_000 // unit) for unit in (1, 1_000, 1_000_000))
_EARLIEST_NANOS, _LATEST_NANOS = _EARLIEST * 1_000_000_000, _LATEST * 1_000_000_000
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?\Z")
_LONGEST = 40
"""Characters of a text that is remembered with its time."""
_DIGITS_BEYOND_MICROSECONDS = re.compile(r"(\.\d{6})\d+")


class Instant(NamedTuple):
    """`micros` since the epoch, or None where it is no time; `naive` where the log gave no zone."""

    micros: int | None
    naive: bool = False


NO_TIME = Instant(None)


def instant(value: Any) -> Instant:
    """Read any spelling of a time.

    >>> instant(1772400000), instant("1772400000000000000")
    (Instant(micros=1772400000000000, naive=False), Instant(micros=1772400000000000, naive=False))
    >>> instant("2026-03-01T13:20:00-08:00"), instant("2026-03-01 21:20:00").naive, instant("yesterday")
    (Instant(micros=1772400000000000, naive=False), True, Instant(micros=None, naive=False))
    """
    if type(value) is str:
        return _text(value) if len(value) <= _LONGEST else _text.__wrapped__(value)
    if type(value) is int or type(value) is float:
        return Instant(_number(value))
    if isinstance(value, dt.datetime):
        return _bounded(value) if value.tzinfo else Instant(_bounded(value.replace(tzinfo=dt.UTC)).micros, True)
    return NO_TIME


@functools.lru_cache(1 << 13)
def _text(value: str) -> Instant:
    """The time of a record is asked for where it is stored, where it is put in order, and where it becomes a row."""
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        return _odd_text(value)
    return _odd_text(value) if moment.tzinfo is None else _bounded(moment)


def _bounded(moment: dt.datetime) -> Instant:
    try:
        delta = moment - EPOCH
    except OverflowError:
        return NO_TIME
    seconds = delta.days * 86_400 + delta.seconds
    if not _EARLIEST <= seconds < _LATEST:
        return NO_TIME
    return Instant(seconds * 1_000_000 + delta.microseconds)


def _odd_text(value: str) -> Instant:
    text = value.strip()
    if _NUMBER.match(text) and len(text) <= 40:
        return Instant(_number(float(text) if "." in text else int(text)))
    if len(text) > 64 or not text[:4].isdigit() or "-" not in text:
        return NO_TIME
    text = _DIGITS_BEYOND_MICROSECONDS.sub(r"\1", text.replace(" UTC", "+00:00"))
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return NO_TIME
    if moment.tzinfo is not None:
        return _bounded(moment)
    return Instant(_bounded(moment.replace(tzinfo=dt.UTC)).micros, True)


def _number(value: int | float) -> int | None:
    """Seconds, milliseconds, microseconds or nanoseconds: the unit under which it falls between 2000 and 2100."""
    if _EARLIEST_NANOS <= value < _LATEST_NANOS:
        return int(value) // 1_000
    for earliest, latest, micros in _UNITS:
        if earliest <= value < latest:
            return int(value) * micros + (round((value - int(value)) * micros) if type(value) is float else 0)
    return None


def to_datetime(micros: int) -> dt.datetime:
    """The instant as an aware datetime."""
    return EPOCH + dt.timedelta(microseconds=micros)


def day_of(micros: int | None) -> str | None:
    """The UTC day, YYYY-MM-DD.

    >>> day_of(1772400000000000)
    '2026-03-01'
    """
    return None if micros is None else _day(micros // _DAY)


@functools.lru_cache(1024)
def _day(number: int) -> str:
    """The day so many days after the epoch."""
    return to_datetime(number * _DAY).strftime("%Y-%m-%d")
