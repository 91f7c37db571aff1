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


def starting(view: View, words: Iterable[str], pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The matches of a pattern that begin with one of some words (in lower case)."""
    for word in words:
        for place in view.places(word):
            if match := pattern.match(view.text, place):
                yield match


def near(view: View, words: Iterable[str], pattern: re.Pattern[str], *, reach: int = 700) -> Iterator[re.Match[str]]:
    """The matches of a pattern, each with one of some words (in lower case) in it and no longer than `reach`."""
    places = sorted(place for word in words for place in view.places(word))
    for start, end in merged((place - reach, place + reach) for place in places):
        yield from pattern.finditer(view.text, start, end)


def merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans in their order, those that touch as one; none begins before 0.

    >>> list(merged([(-2, 3), (2, 4), (6, 7)]))
    [(0, 4), (6, 7)]
    """
    first, last = 0, -1
    for start, end in spans:
        if start > last:
            if last >= 0:
                yield first, last
            first = max(start, 0)
        last = max(last, end)
    if last >= 0:
        yield first, last
