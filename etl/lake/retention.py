"""How long replaced data files stay, as people write it: 24h, 7d, 2w, or 0."""

from __future__ import annotations

import re

from etl.errors import UsageError

_DURATION = re.compile(r"([0-9]{1,9})\s*([smhdw])")
_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LONGEST_DAYS = 30
"""The log of a table knows what it removed for so long."""


def milliseconds(duration: str) -> int:
    """The milliseconds of a duration; UsageError where it is none, or too long."""
    match = _DURATION.fullmatch(duration.strip())
    kept = 0 if duration.strip() == "0" else int(match[1]) * _MS[match[2]] if match else -1
    if not 0 <= kept <= _LONGEST_DAYS * _MS["d"]:
        raise UsageError(f"{duration}: give a duration such as 24h or 7d, at most {_LONGEST_DAYS}d, or 0")
    return kept


def in_words(duration_ms: int) -> str:
    """The duration in the largest unit that it is a whole number of.

    >>> in_words(604_800_000)
    '7d'
    """
    unit = next(unit for unit in ("d", "h", "m", "s") if duration_ms % _MS[unit] == 0)
    return f"{duration_ms // _MS[unit]}{unit}"
