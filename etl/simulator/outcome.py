"""What became of a goal."""

from __future__ import annotations

from typing import NamedTuple

from etl.simulator.situation import Goal
from etl.simulator.world import Result


class Outcome(NamedTuple):
    """What became of a goal."""

    goal: Goal
    result: Result | None
    tries: int = 0
    refused: str | None = None
    """For a goal that a rule forbids: the status that it does so for."""
    claimed: bool = False
    told: bool = False
    """True where it was told already, before the next goal."""
