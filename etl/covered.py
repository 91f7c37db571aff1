"""What a lake covers and what it lacks: pairs of values that traffic shows, that simulation added, that are missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from etl.errors import UsageError
from etl.query import connect


class Pair(NamedTuple):
    """A pair of values with its support, in distinct tasks."""

    axis_1: str
    value_1: str
    axis_2: str
    value_2: str
    traffic: int
    simulation: int
    missing: int
    """Tasks that neither has, of the minimum; 0 where it is no gap."""
    rank: int | None
    """Place among the gaps, from 1; None where it is none."""


@dataclass(frozen=True)
class Coverage:
    """The grid of a lake: every pair that was seen or is wanted; gaps first, in their ranking."""

    min_support: int
    pairs: list[Pair]

    @property
    def gaps(self) -> list[Pair]:
        """The pairs that traffic shows in fewer tasks than the minimum."""
        return [pair for pair in self.pairs if pair.rank is not None]

    def to_json(self) -> dict[str, Any]:
        """The object of `etl coverage --json`."""
        gaps = self.gaps
        return {
            "min_support": self.min_support,
            "pairs": [pair._asdict() for pair in self.pairs],
            "summary": {
                "pairs": len(self.pairs), "covered_by_traffic": sum(p.traffic >= self.min_support for p in self.pairs),
                "gaps": len(gaps), "filled_by_simulation": sum(not p.missing for p in gaps),
                "missing": sum(p.missing > 0 for p in gaps), "missing_tasks": sum(p.missing for p in gaps),
                "by_axes": dict(Counter(f"{p.axis_1} × {p.axis_2}" for p in gaps if p.missing)),
            },
        }  # fmt: skip


def coverage(lake: str | Path = "./lake", *, min_support: int = 5) -> Coverage:
    """What traffic covers, what simulation added and what is still missing, in SQL the views `coverage` and `gaps`.

    The unit is a step of the agent; support is counted in distinct tasks, and simulation never counts as traffic.
    LakeError where there is no lake.
    """
    if min_support < 1:
        raise UsageError(f"the minimum support must be at least 1, not {min_support}")
    connection = connect(lake)
    try:
        rows = connection.execute(
            """WITH seen AS (
                   SELECT axis_1, value_1, axis_2, value_2,
                          coalesce(sum(support) FILTER (origin = 'traffic'), 0)::BIGINT AS traffic,
                          coalesce(sum(support) FILTER (origin = 'simulation'), 0)::BIGINT AS simulation
                   FROM coverage GROUP BY ALL
               )
               SELECT axis_1, value_1, axis_2, value_2, coalesce(traffic, 0), coalesce(simulation, 0),
                      coalesce(missing, 0), rank
               FROM seen FULL JOIN gaps_at($1) USING (axis_1, value_1, axis_2, value_2)
               ORDER BY rank NULLS LAST, axis_1, axis_2, traffic DESC, value_1, value_2""",
            [min_support],
        ).fetchall()
    finally:
        connection.close()
    return Coverage(min_support, [Pair(*row) for row in rows])
