"""What one record may cost whoever reads it: settings of an ingest."""

from __future__ import annotations

from typing import NamedTuple

MAX_DEPTH = 400
"""Deepest nesting of a record; deeper ones are rejected, since every later reader recurses too."""


class Limits(NamedTuple):
    """What a record may cost."""

    nesting: int = MAX_DEPTH
    """Deepest nesting of a record, at most `MAX_DEPTH`; deeper ones are rejected."""
    record_bytes: int = 64 << 20
    """Longest record; longer ones are rejected unread."""
    whole_array_bytes: int = 64 << 20
    """An array up to this size is decoded at once, a larger one element by element."""


LIMITS = Limits()
"""The limits where nobody sets others."""
