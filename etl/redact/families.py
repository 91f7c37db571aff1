"""What a family of rules for personal data is: one kind of value, how it is sifted, how it is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from etl.redact.escapes import View

Found = tuple[str, int, int, str]
"""Kind, place in the view, and the value as it is written in one way only."""


class Family(NamedTuple):
    """Rules that are looked for together."""

    name: str
    suspect: str
    """What a string must match (in RE2, on its padded form) before `find` can find something."""
    find: Callable[[View], Iterator[Found]]
    """What there is in a view."""
