"""Logged values into column types; what does not fit is kept, by name, for the row's `extra`."""

from __future__ import annotations

import math
from typing import Any

from etl.decode import encode
from etl.times import instant

_INT64 = 1 << 63
_INT32 = 1 << 31


class Fitting:
    """Fits the values of one conversation and remembers what it could not fit: `unfit` is name → value as logged."""

    __slots__ = ("flags", "unfit")

    def __init__(self) -> None:
        self.unfit: dict[str, Any] = {}
        self.flags: set[str] = set()

    def miss(self, name: str, value: Any, flag: str = "unreadable_value") -> None:
        self.unfit[name] = value
        self.flags.add(flag)

    def text(self, value: Any) -> str | None:
        """Text as it is; anything else as its JSON."""
        if value is None or type(value) is str:
            return value
        return encode(value)

    def whole(self, name: str, value: Any, limit: int = _INT64) -> int | None:
        """An integer of 64 (or fewer) bits: also from a whole float or its decimal text."""
        if type(value) is int:
            number: int = value
        elif value is None:
            return None
        elif (type(value) is float and value.is_integer()) or (
            type(value) is str and value.strip().lstrip("+-").isdecimal() and len(value) < 20
        ):
            number = int(value)
        else:
            self.miss(name, value)
            return None
        if -limit <= number < limit:
            return number
        self.miss(name, value)
        return None

    def small(self, name: str, value: Any) -> int | None:
        """An integer of 32 bits."""
        return self.whole(name, value, _INT32)

    def real(self, name: str, value: Any) -> float | None:
        """A finite double: also from an integer that one holds exactly, a boolean or decimal text."""
        if type(value) is float and math.isfinite(value):
            return value
        if value is None:
            return None
        if type(value) is int or type(value) is bool:
            if abs(value) < 1 << 1023 and float(value) == value:
                return float(value)
        elif type(value) is str:
            try:
                number = float(value)
            except ValueError:
                number = math.nan
            if math.isfinite(number):
                return number
        self.miss(name, value)
        return None

    def at(self, name: str, value: Any) -> int | None:
        """An instant in microseconds; `naive_time` and `bad_time` are flagged."""
        if value is None or value == "":
            return None
        moment = instant(value)
        if moment.naive:
            self.flags.add("naive_time")
        if moment.micros is None:
            self.miss(name, value, "bad_time")
        return moment.micros
