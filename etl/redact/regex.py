"""Regular expressions that are compiled when they are first used: a run needs few of the hundreds that rules have."""

from __future__ import annotations

import re
from typing import Any, cast


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, later.

    >>> regex("(?P<value>[0-9]+)").search("a 12")["value"]
    '12'
    """
    return cast("re.Pattern[str]", _Form(pattern, flags))


class _Form:
    """Has what a compiled pattern has; each name is looked up there once."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._said = pattern, flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        self._compiled = self._compiled or re.compile(*self._said)
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found
