"""Filling gaps: rows for exactly the pairs that traffic shows too rarely, in their ranking, until each has enough."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from random import Random  # noqa: TID251  (seeded)
from typing import Any, NamedTuple, TypeAlias

from etl.row import Row, StepTuple
from etl.simulator.attempts import Attempts, Job
from etl.simulator.domain import Domain
from etl.simulator.leaks import Asked
from etl.simulator.limits import Cell
from etl.simulator.situation import Aim
from etl.simulator.spec import Plan

Pair: TypeAlias = tuple[str, str, str, str]
"""axis_1, value_1, axis_2, value_2, as in the view `gaps`."""

TRIES = 12
"""How often a situation is drawn again before a gap counts as one that cannot be filled."""


class Gap(NamedTuple):
    """One line of the view `gaps`."""

    pair: Pair
    missing: int
    """Tasks that neither traffic nor simulation has."""


class Filling:
    """Rows for gaps, one after another."""

    def __init__(
        self, plan: Plan, gaps: Sequence[Gap], homes: Mapping[str, int], taken: set[str], asked: Asked,
        *, busiest: Sequence[str], budget: int | None = None,
    ) -> None:  # fmt: skip
        self._plan, self._homes, self._taken, self._asked = plan, homes, taken, asked
        self._busiest = [tool for tool in busiest if tool in homes]
        self._missing = Counter({gap.pair: gap.missing for gap in gaps})
        self._budget = budget
        self._gaps = gaps
        self.why: dict[Pair, str] = {}
        """Gaps that could not be filled, and why."""
        self.asks = 0
        self.unused_tools: dict[str, str] = {}

    @property
    def left(self) -> dict[Pair, int]:
        """Tasks still missing, by gap."""
        return {pair: missing for pair, missing in self._missing.items() if missing > 0}

    def rows(self, attempts: Attempts) -> Iterator[Row]:
        """The rows, in the ranking of their gaps."""
        written = 0
        for gap in self._gaps:
            serial = 0
            while self._missing[gap.pair] > 0 and gap.pair not in self.why:
                if self._budget is not None and written >= self._budget:
                    return
                made, serial = self._ask(gap.pair, serial, attempts, written)
                for row in made:
                    written += 1
                    yield row

    def _ask(self, pair: Pair, serial: int, attempts: Attempts, written: int) -> tuple[list[Row], int]:
        """The attempts at one new ask that shows the pair; none, with a reason in `why`, where there is no such."""
        tool = self._tool_for(pair)
        if tool is None:
            self.why[pair] = self.unused_tools.get(pair[1], "no domain of traffic has this tool")
            return [], serial
        domain = self._plan.domains[self._homes[tool]]
        why = "no situation shows it"
        for _ in range(TRIES):
            key = "gap/" + "/".join((*pair, str(serial)))
            serial += 1
            while f"{self._plan.name}/{self._plan.spec.seed}/{key}" in self._taken:
                key, serial = "gap/" + "/".join((*pair, str(serial))), serial + 1
            aim = aim_of(pair, tool)
            cell = self._cell(domain, aim, Random(serial * 7919 + len(key)))
            situation = self._plan.aimed(domain, cell, aim, key)
            if not self._asked.takes(situation.ask):
                why = "every ask that was drawn is there already"
                continue
            room = (
                self._plan.spec.repeats
                if self._budget is None
                else min(self._plan.spec.repeats, self._budget - written)
            )
            rows = [attempts.row(Job(situation, attempt, written + attempt + 1)) for attempt in range(room)]
            shown = set().union(*(pairs_of(row.steps) for row in rows))
            if pair in shown:
                self.asks += 1
                for each in shown:
                    if each in self._missing:
                        self._missing[each] -= 1
                return [attempts.counted(row) for row in rows], serial
        self.why[pair] = why
        return [], serial

    def _tool_for(self, pair: Pair) -> str | None:
        """The tool of a pair, or the busiest one where the pair names none."""
        if pair[0] == "tool":
            return pair[1] if pair[1] in self._homes else None
        able = [tool for tool in self._busiest if self._can(tool, pair[1])]
        return able[0] if able else next(iter(self._busiest), None)

    def _can(self, tool: str, condition: str) -> bool:
        meaning = self._plan.domains[self._homes[tool]].meanings[tool]
        if condition == "not_found":
            return meaning.id_name is not None
        return (
            meaning.kind == "act" if condition == "already_done" else condition != "stale_result" or not meaning.writes
        )

    def _cell(self, domain: Domain, aim: Aim, rng: Random) -> Cell:
        """The rest of the situation, as plain as the aim needs it."""
        meaning = domain.meanings[aim.tool]
        record = meaning.id_name is not None
        in_story = record and meaning.entity not in ("file", "page")
        met_by_state = aim.position != "repeat"
        state = "exists"
        if aim.condition == "not_found" and record and met_by_state:
            state = "missing"
        elif aim.condition == "already_done" and meaning.kind == "act" and in_story and met_by_state:
            state = "already_done"
        stances = ["ordinary", "hurried", "unsure", "retry"]
        asks = domain.asks_first(aim.tool)
        length = (
            "long" if aim.position == "repeat" and asks else "medium" if asks or aim.position == "repeat" else "short"
        )
        histories = ["fresh", "repeat_visit", "contradicts_earlier"]
        return {
            "tool": aim.tool, "tool_condition": aim.condition, "world_state": state,
            "stance": stances[int(rng.random() * len(stances))],
            "history": histories[int(rng.random() * len(histories))],
            "rule": "none", "length": length,
        }  # fmt: skip


def aim_of(pair: Pair, tool: str) -> Aim:
    """What the calls of a situation must show for a pair: what it leaves open is plain."""
    axis_1, value_1, axis_2, value_2 = pair
    if axis_1 == "condition":
        return Aim(tool, value_1, value_2)
    return Aim(tool, value_2, "first") if axis_2 == "condition" else Aim(tool, "success", value_2)


def pairs_of(steps: Sequence[StepTuple]) -> set[Pair]:
    """The pairs that the calls of one row show, as the view `coverage` counts them."""
    shown: set[Pair] = set()
    before: dict[str, int] = defaultdict(int)
    failed = False
    for step in steps:
        position = "after_failure" if failed else "repeat" if before[step.tool] else "first"
        before[step.tool] += 1
        failed = step.status in ("error", "missing") or (step.condition or "success") != "success"
        shown.add(("tool", step.tool, "position", position))
        if step.condition is not None:
            shown.add(("tool", step.tool, "condition", step.condition))
            shown.add(("condition", step.condition, "position", position))
    return shown


def told(filling: Filling, gaps: Sequence[Gap], min_support: int, all_gaps: int) -> dict[str, Any]:
    """What became of the gaps, for the report."""
    left = filling.left
    reasons = [
        {"axis_1": pair[0], "value_1": pair[1], "axis_2": pair[2], "value_2": pair[3], "missing": missing,
         "why": filling.why.get(pair, "the budget was used up")}
        for pair, missing in left.items()
    ]  # fmt: skip
    return {
        "min_support": min_support, "below": all_gaps, "to_fill": len(gaps), "filled": len(gaps) - len(left),
        "not_filled": reasons,
    }  # fmt: skip


__all__ = ["Filling", "Gap", "Pair", "aim_of", "pairs_of", "told"]
