"""Token counts of Codex: running totals of a session, repeated without new work, sometimes null.

Input includes what was cached, output includes reasoning. What a line adds is its total less the one before it; a total
that falls began anew (the program was started again).
"""

from __future__ import annotations

from typing import Any

from etl.adapters._session import whole
from etl.conversation import Tokens

_NAMES = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "reasoning_output_tokens",
)
"""In the order of `Tokens`."""


class Totals:
    """The running total of a session, line by line."""

    def __init__(self) -> None:
        self._before = Tokens(0, 0, 0, 0, 0)

    def add(self, usage: Any) -> Tokens | None:
        """What a total adds to the one before; None for nothing new."""
        total = tokens(usage)
        if total is None:
            return None
        new = [_new(now, before) for now, before in zip(_counts(total), _counts(self._before), strict=True)]
        if any(count is not None and count < 0 for count in new):
            new = _counts(total)
        self._before = Tokens(*(now or 0 for now in _counts(total)))
        return Tokens(*new) if any(new) else None


class Counter:
    """Reads `token_count` and `turn.completed`, whichever a version writes."""

    def __init__(self) -> None:
        self._totals = Totals()

    def take(self, info: Any) -> tuple[Tokens, Tokens] | None:
        """(what the session used since the last count, what the last response used); None for nothing new."""
        if not isinstance(info, dict):
            return None
        last = tokens(info.get("last_token_usage"))
        if isinstance(info.get("total_token_usage"), dict):
            new = self._totals.add(info["total_token_usage"])
        elif last is not None:
            new = last
        elif "prompt" in info or "completion" in info:
            new = Tokens(whole(info.get("prompt")), whole(info.get("completion")))
        else:
            new = self._totals.add(info)
        return None if new is None or new == Tokens() else (new, last or new)


def tokens(usage: Any) -> Tokens | None:
    """Counts under Codex's names; None where there are none.

    >>> tokens({"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 3}).cached_tokens
    4
    """
    if not isinstance(usage, dict):
        return None
    names = (
        "input_tokens",
        "output_tokens",
        "cached_input_tokens",
        "cache_write_input_tokens",
        "reasoning_output_tokens",
    )
    found = Tokens(*(whole(usage.get(name)) for name in names))
    return found if found != Tokens() else None


def _counts(found: Tokens) -> list[int | None]:
    return [
        found.input_tokens,
        found.output_tokens,
        found.cached_tokens,
        found.cache_write_tokens,
        found.reasoning_tokens,
    ]


def _new(now: int | None, before: int | None) -> int | None:
    return None if now is None else now - (before or 0)
