"""What commits count."""

from __future__ import annotations

from typing import NamedTuple


class RowCounts(NamedTuple):
    """What a commit did to the rows of a table."""

    added: int
    replaced: int
    removed: int
    unchanged: int
    superseded: int = 0
    """Readings that were left out though they say something else than the row that stays and are as long, as late and
    by as new an adapter.
    """
    copies: int = 0
    """Readings that say the same of a rollout as another of the commit: a file that lies in two places, or equal
    answers in files that say nothing to tell them apart.
    """
