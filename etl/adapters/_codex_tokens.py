"""Token counts of Codex: running totals of a session, repeated without new work, sometimes null.

Input includes what was cached, output includes reasoning. What a line adds is its total less the one before it; a total
that falls began anew (the program was started again).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._codex_lines import USAGE, Line
from etl.adapters._session import text_of, whole
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
        self._begun = False

    def add(self, usage: Any, first: Tokens | None = None) -> Tokens | None:
        """What a total adds to the one before, the first one so much as is given; None for nothing new."""
        total = tokens(usage)
        if total is None:
            return None
        begins, self._begun = not self._begun, True
        if begins and first is not None:
            self._before = Tokens(*(now or 0 for now in _counts(total)))
            return first
        new = [_new(now, before) for now, before in zip(_counts(total), _counts(self._before), strict=True)]
        if any(count is not None and count < 0 for count in new):
            new = _counts(total)
        self._before = Tokens(*(now or 0 for now in _counts(total)))
        return Tokens(*new) if any(new) else None


class Counter:
    """Reads `token_count`, `turn.completed` and `token_usage_record`, whichever a version writes.

    Where a version writes counts and records, a response is in both: then the counts are read. The totals of a session
    that goes on from another (`continues`) include that one's: what they begin with is not its own.
    """

    def __init__(self, lines: Iterable[Line], continues: bool) -> None:
        self._totals = Totals()
        self._continues = continues
        own = (line for line in lines if not line.copied)
        self._counts = any(line.type == "token_count" and line.payload.get("info") for line in own)
        self._responses: set[str] = set()

    def take(self, line: Line) -> tuple[Tokens, Tokens] | None:
        """(what the session used since the last count, what the last response used); None for nothing new."""
        info = line.payload.get("info") if line.type == "token_count" else line.payload.get("usage")
        if not isinstance(info, dict):
            return None
        last = tokens(info.get("last_token_usage"))
        if line.type == USAGE:
            new = self._response(line.payload)
        elif isinstance(info.get("total_token_usage"), dict):
            new = self._totals.add(info["total_token_usage"], last if self._continues else None)
        elif last is not None:
            new = last
        elif "prompt" in info or "completion" in info:
            new = Tokens(whole(info.get("prompt")), whole(info.get("completion")))
        else:
            new = self._totals.add(info)
        return None if new is None or new == Tokens() else (new, last or new)

    def _response(self, record: dict[str, Any]) -> Tokens | None:
        """What a record says that one response used, once."""
        name = text_of(record, "response_id")
        if self._counts or name in self._responses:
            return None
        if name is not None:
            self._responses.add(name)
        return tokens(record.get("usage"))


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
