"""What rules are to those who ask them: what tells that a text is worth asking for, and what finds something in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from etl.redact.escapes import View
from etl.redact.spans import Span

Found = tuple[str, int, int, str]
"""Kind, place in the view, and the value as it is written in one way only."""


class Family(NamedTuple):
    """Rules for personal data that are asked together."""

    name: str
    suspect: str
    """What a string must match (in RE2, on its padded form) before `find` can find something."""
    find: Callable[[View], Iterator[Found]]
    """What there is in a view."""


class Kind(NamedTuple):
    """Rules for secrets that are asked together."""

    name: str
    """None of another kind's."""
    suspect: str
    """What a string must match (in RE2, on its padded form) before `spans` can find something."""
    spans: Callable[[View], Iterator[Span]]
