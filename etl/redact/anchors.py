"""Patterns that are costly to try at every character, tried only around words that are cheap to find."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from etl.redact.escapes import View


def around(view: View, words: Iterable[str], pattern: re.Pattern[str], *, reach: int = 40) -> Iterator[re.Match[str]]:
    """Where a pattern matches, if each match has one of some words (in lower case) in it, and `reach` around that."""
    found: dict[int, re.Match[str]] = {}
    for word in words:
        done = 0
        for place in view.places(word):
            if place < done:
                continue
            for match in pattern.finditer(view.flat, max(0, place - reach), place + len(word) + reach):
                found.setdefault(match.start(), match)
                done = match.end()
    for start in sorted(found):
        yield found[start]
