"""What rules are to those who ask them: what tells that a text is worth asking for, and what finds something in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from etl.redact.escapes import View
from etl.redact.spans import Span

Found = tuple[str, int, int, str]
"""Kind, place in the view, and the value as it is written in one way only."""

_RUNS = bytes(0x20 if byte in b"\"'`<>\\ \n\t" else byte for byte in range(256))


class Family(NamedTuple):
    """Rules for personal data that are asked together."""

    name: str
    suspect: str
    """What a string must match (in RE2, on its padded form) before `find` can find something."""
    find: Callable[[View], Iterator[Found]]
    """What there is in a view."""


class Shown:
    """What a view shows, without the text that it is of."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @functools.cached_property
    def text(self) -> str:
        """The same as a string."""
        return self.data.decode("ascii")

    @functools.cached_property
    def runs(self) -> bytes:
        """With a space in place of what no value has in it: quotes, backslashes, angle brackets and all space."""
        return self.data.translate(_RUNS)

    def span(self, start: int, end: int, rule: str, rank: int = 1) -> Span:
        """As that of a view, though nothing is masked by it."""
        return Span(start, end, rule, rank)


class Closer(NamedTuple):
    """What is asked of a suspicious text's view before its rules are: more than a sign may cost for all texts."""

    pattern: str
    """What the view must match: an expression over bytes, one a character, as Hyperscan takes it."""
    holds: Callable[[Shown, Sequence[int]], bool] | None = None
    """Whether something may be around one of the places in a view where matches end."""


class Kind(NamedTuple):
    """Rules for secrets that are asked together."""

    name: str
    """None of another kind's."""
    suspect: str
    """What a string must match (in RE2, on its padded form) before `spans` can find something."""
    spans: Callable[[View], Iterator[Span]]
    """What the rules find in a view."""
    closer: tuple[Closer, ...] = ()
    """One of them must hold before `spans` can find something; without any the sign is enough."""


def closers(*patterns: str) -> tuple[Closer, ...]:
    """Those that ask for a pattern alone; an empty one asks for nothing."""
    return tuple(Closer(pattern) for pattern in patterns if pattern)
