"""What a simulation did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from etl.lake import RowCounts


@dataclass
class SimulationReport:
    """One run of `simulate`."""

    batch_id: str = ""
    name: str = ""
    """Digest of the spec: rows of equal name and seed are equal."""
    seed: int = 0
    dry_run: bool = False
    rows: RowCounts = field(default_factory=lambda: RowCounts(0, 0, 0, 0))
    asks: int = 0
    attempts: int = 0
    repeated: int = 0
    """Asks drawn again because they were there already."""
    copies: int = 0
    """Asks drawn again because traffic had asked the like."""
    left_out: int = 0
    """Situations for which no new ask could be found."""
    strength: int = 2
    planned: int = 0
    covered: int = 0
    impossible: Counter[str] = field(default_factory=Counter)
    """Tuples that cannot be, by reason."""
    seeded: Counter[str] = field(default_factory=Counter)
    """Planted mistakes."""
    steps: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(tool, condition) of every call."""
    failed: int = 0
    """Attempts that ended in an error of the agent."""
    judged: Counter[str] = field(default_factory=Counter)
    """Attempts by the rule that they broke; `pass` where they broke none."""
    gaps: dict[str, Any] | None = None
    """With `fill_gaps`: how many there were, were filled, and could not be, and why."""
    unusable: dict[str, str] = field(default_factory=dict)
    """Tools of traffic that nothing can be simulated with, and why."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0

    def add(self, other: SimulationReport) -> None:
        """Take in what a worker counted."""
        for name in ("asks", "attempts", "failed", "input_tokens", "output_tokens", "cost_usd"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("seeded", "steps", "judged"):
            getattr(self, name).update(getattr(other, name))

    def to_json(self) -> dict[str, Any]:
        """The object of `etl simulate --json`."""
        tools: dict[str, dict[str, int]] = {}
        for (tool, condition), count in sorted(self.steps.items()):
            tools.setdefault(tool, {})[condition] = count
        told: dict[str, Any] = {
            "batch_id": self.batch_id, "spec": self.name, "seed": self.seed, "asks": self.asks,
            "attempts": self.attempts,
            "rows": dict(zip(("added", "replaced", "removed", "unchanged"), self.rows, strict=False)),
            "drawn_again": {"repeated": self.repeated, "copies_of_traffic": self.copies, "left_out": self.left_out},
            "tuples": {
                "strength": self.strength, "planned": self.planned, "covered": self.covered,
                "impossible": dict(sorted(self.impossible.items())),
            },
            "seeded": dict(sorted(self.seeded.items())), "judged": dict(sorted(self.judged.items())), "calls": tools,
            "failed": self.failed,
            "usage": {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens,
                      "cost_usd": self.cost_usd},
            "seconds": round(self.seconds, 3),
        }  # fmt: skip
        if self.gaps is not None:
            told["gaps"] = self.gaps
        if self.unusable:
            told["unusable_tools"] = self.unusable
        return told
