"""The grid of situations: dimensions, what cannot go together, a covering array of it, and even spread beyond.

Cell number i is the same whatever the budget: first come the rows of a t-wise covering array, then balanced draws.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random  # noqa: TID251  (seeded)
from typing import Any, NamedTuple, TypeAlias

import covertable

from etl.errors import UsageError
from etl.simulator.meaning import Meaning
from etl.simulator.rules import Rule

NONE, SEVERAL = "none", "several"
CONDITIONS = (
    "success", "timeout", "malformed_result", "stale_result", "permission_denied", "not_found", "rate_limited",
    "already_done",
)  # fmt: skip
WORLD_STATES = ("exists", "missing", "already_done", "partial", "duplicate")
STANCES = ("ordinary", "hurried", "unsure", "ambiguous", "mistaken", "conflicting", "boundary", "adversarial", "retry")
HISTORIES = ("fresh", "repeat_visit", "prior_failure", "prior_partial", "contradicts_earlier")
LENGTHS = ("short", "medium", "long")
TURNS = {"short": (1, 1), "medium": (2, 3), "long": (4, 6)}
"""User turns, at least and at most."""
DIMENSIONS = ("tool", "tool_condition", "world_state", "stance", "history", "rule", "length")
_DRAWN = ("tool", "rule", "tool_condition", "world_state", "stance", "history", "length")
"""The order in which values are drawn: what others depend on comes first."""

Cell: TypeAlias = dict[str, str]


class Limit(NamedTuple):
    """What cannot go together: `holds` is false for values of `keys` that no situation can have."""

    keys: tuple[str, ...]
    holds: Callable[[Mapping[str, str]], bool]
    why: str


class Tuples(NamedTuple):
    """The t-way tuples of a grid, as the report counts them."""

    strength: int
    planned: int
    """Tuples that can be."""
    covered: int
    impossible: dict[str, int]
    """Why → how many."""


def limits(meanings: Mapping[str, Meaning], rules: Mapping[str, Rule]) -> list[Limit]:
    """Every constraint of a domain."""

    def of(cell: Mapping[str, str]) -> Meaning | None:
        return meanings.get(cell["tool"])

    def has_record(cell: Mapping[str, str]) -> bool:
        known = of(cell)
        return known is not None and known.id_name is not None

    def has_story(cell: Mapping[str, str]) -> bool:
        """A record with states of its own: a file has none."""
        known = of(cell)
        return known is not None and known.id_name is not None and known.entity not in ("file", "page")

    def kind(cell: Mapping[str, str]) -> str:
        known = of(cell)
        return known.kind if known else cell["tool"]

    def condition_fits(cell: Mapping[str, str]) -> bool:
        met, tool = cell["tool_condition"], cell["tool"]
        if tool == NONE:
            return met == "success"
        if met == "stale_result":
            return kind(cell) in ("read", "search", "compute")
        if met == "not_found":
            return has_record(cell)
        return kind(cell) == "act" and has_story(cell) if met == "already_done" else True

    def state_fits(cell: Mapping[str, str]) -> bool:
        state = cell["world_state"]
        if state == "exists":
            return True
        if state == "missing":
            return has_record(cell)
        return has_story(cell) and (state != "already_done" or kind(cell) in ("read", "act"))

    def condition_meets_state(cell: Mapping[str, str]) -> bool:
        met, state = cell["tool_condition"], cell["world_state"]
        return (met == "not_found") == (state == "missing") and (met != "already_done" or state == "already_done")

    def done_meets_act(cell: Mapping[str, str]) -> bool:
        acts_again = kind(cell) == "act" and cell["world_state"] == "already_done"
        return not acts_again or cell["tool_condition"] == "already_done"

    def stance_fits(cell: Mapping[str, str]) -> bool:
        return cell["stance"] not in ("ambiguous", "mistaken", "conflicting") or has_story(cell)

    def belief_fits(cell: Mapping[str, str]) -> bool:
        stance, state = cell["stance"], cell["world_state"]
        return not (stance in ("mistaken", "conflicting") and state == "missing") and (stance, state) != (
            "mistaken",
            "duplicate",
        )

    def stance_has_room(cell: Mapping[str, str]) -> bool:
        needs = cell["stance"] in ("ambiguous", "conflicting") or (
            cell["stance"] == "mistaken" and kind(cell) != "read"
        )
        return not needs or cell["length"] != "short"

    def history_fits(cell: Mapping[str, str]) -> bool:
        if cell["tool"] == NONE:
            return cell["history"] in ("fresh", "repeat_visit")
        return cell["history"] != "prior_partial" or has_story(cell)

    def rule_fits(cell: Mapping[str, str]) -> bool:
        rule = rules.get(cell["rule"])
        known = of(cell)
        if rule is None or rule.kind in ("forbid", "require"):
            return True
        return rule.tool == cell["tool"] if rule.kind == "state" else known is not None and known.writes

    def rule_has_room(cell: Mapping[str, str]) -> bool:
        rule = rules.get(cell["rule"])
        if rule is None:
            return True
        if rule.kind == "state":
            return cell["stance"] in ("ordinary", "hurried", "unsure", "retry")
        return rule.kind == "confirm" or cell["stance"] not in ("boundary", "adversarial")

    def rule_meets_world(cell: Mapping[str, str]) -> bool:
        rule = rules.get(cell["rule"])
        works = cell["tool_condition"] == "success" and cell["world_state"] == "exists"
        return rule is None or rule.kind != "state" or works

    def confirm_has_room(cell: Mapping[str, str]) -> bool:
        rule = rules.get(cell["rule"])
        return rule is None or rule.kind != "confirm" or cell["length"] != "short"

    def state_rule_history(cell: Mapping[str, str]) -> bool:
        rule = rules.get(cell["rule"])
        return rule is None or rule.kind != "state" or cell["history"] != "prior_partial"

    return [
        Limit(("tool", "tool_condition"), condition_fits, "the tool cannot meet this condition"),
        Limit(("tool", "world_state"), state_fits, "the tool names no record that could be in this state"),
        Limit(("tool_condition", "world_state"), condition_meets_state,
              "a record is not found exactly where it is missing"),
        Limit(("tool", "tool_condition", "world_state"), done_meets_act, "what is done already cannot be done again"),
        Limit(("tool", "stance"), stance_fits, "there is no record to be vague or wrong about"),
        Limit(("stance", "world_state"), belief_fits, "nobody mistakes a record that is not there for another"),
        Limit(("tool", "stance", "length"), stance_has_room, "it takes a second turn to settle this"),
        Limit(("tool", "history"), history_fits, "nothing of the kind can have happened before"),
        Limit(("rule", "tool"), rule_fits, "the rule does not speak of this tool"),
        Limit(("rule", "stance"), rule_has_room, "one test of limits at a time"),
        Limit(("rule", "tool_condition", "world_state"), rule_meets_world, "the rule asks for a call that would work"),
        Limit(("rule", "length"), confirm_has_room, "it takes a second turn to confirm"),
        Limit(("rule", "history"), state_rule_history, "one history at a time"),
    ]  # fmt: skip


class Grid:
    """The cells of one domain."""

    def __init__(
        self, tools: Sequence[str], meanings: Mapping[str, Meaning], rules: Mapping[str, Rule], *, seed: int,
        strength: int = 2, chosen: Mapping[str, Sequence[str]] | None = None,
    ) -> None:  # fmt: skip
        together = [SEVERAL] if len(tools) > 1 else []
        self.values: dict[str, tuple[str, ...]] = {
            "tool": (*tools, *together, NONE),
            "tool_condition": CONDITIONS, "world_state": WORLD_STATES, "stance": STANCES, "history": HISTORIES,
            "rule": (NONE, *rules), "length": LENGTHS,
        }  # fmt: skip
        self.strength = strength
        self._seed = seed
        self._orders: dict[int, tuple[int, tuple[str, ...]]] = {}
        for name, wanted in (chosen or {}).items():
            self._narrow(name, wanted)
        self.limits = [limit for limit in limits(meanings, rules) if self._excludes(limit)]
        self._limits_of = {name: [limit for limit in self.limits if name in limit.keys] for name in DIMENSIONS}
        if not 1 <= strength <= len(DIMENSIONS):
            raise UsageError(f"strength must be between 1 and {len(DIMENSIONS)}, not {strength}")
        if next(self._completions({}, _DRAWN, self.values), None) is None:
            raise UsageError("no situation has all the values that were chosen; leave some dimension open")
        self.array = self._array()

    def _excludes(self, limit: Limit) -> bool:
        """Whether a limit speaks against anything here."""
        combinations = itertools.product(*(self.values[key] for key in limit.keys))
        return not all(limit.holds(dict(zip(limit.keys, values, strict=True))) for values in combinations)

    def _narrow(self, name: str, wanted: Sequence[str]) -> None:
        if name not in self.values:
            raise UsageError(f"no dimension is called {name!r}; dimensions: {', '.join(DIMENSIONS)}")
        unknown = [value for value in wanted if value not in self.values[name]]
        if unknown or not wanted:
            raise UsageError(
                f"{name} has no value {unknown[0] if unknown else ''!r}; values: {', '.join(self.values[name])}"
            )
        self.values[name] = tuple(value for value in self.values[name] if value in wanted)

    def cell(self, number: int) -> Cell:
        """Cell `number`, from 0: of the covering array while there are any, then spread evenly."""
        if number < len(self.array):
            return self.array[number]
        number -= len(self.array)
        orders = {}
        for place, (name, options) in enumerate(self.values.items()):
            block, turn = divmod(number, len(options))
            order = self._order(place, block)
            orders[name] = order[turn:] + order[:turn]
        return next(self._completions({}, _DRAWN, orders))

    def _order(self, place: int, block: int) -> tuple[str, ...]:
        """The values of a dimension, shuffled for one block of cells: each occurs once in a block."""
        known = self._orders.get(place)
        if known is None or known[0] != block:
            order = list(self.values[DIMENSIONS[place]])
            Random((self._seed << 40) + (place << 32) + block).shuffle(order)
            known = self._orders[place] = (block, tuple(order))
        return known[1]

    def tuples(self, cells: int) -> Tuples:
        """How many t-way tuples there are, how many the first `cells` cells cover, and why others cannot be."""
        possible = _tuples(self.array, self.strength)
        covered = _tuples((self.cell(number) for number in range(min(cells, 4 * len(self.array)))), self.strength)
        impossible: dict[str, int] = {}
        for names in itertools.combinations(DIMENSIONS, self.strength):
            for values in itertools.product(*(self.values[name] for name in names)):
                if (names, values) not in possible:
                    why = self.why_not(dict(zip(names, values, strict=True))) or "no value of the others goes with both"
                    impossible[why] = impossible.get(why, 0) + 1
        return Tuples(self.strength, len(possible), len(covered & possible), dict(sorted(impossible.items())))

    def why_not(self, part: Mapping[str, str]) -> str | None:
        """Why values cannot go together; None where nothing speaks against them."""
        for limit in self.limits:
            if all(key in part for key in limit.keys) and not limit.holds(part):
                return limit.why
        return None

    def complete(self, part: Mapping[str, str], rng: Random) -> Cell | None:
        """A whole cell with the given values, the others drawn; None where there is none."""
        open_names = [name for name in _DRAWN if name not in part]
        orders = {name: tuple(rng.sample(self.values[name], len(self.values[name]))) for name in open_names}
        return next(self._completions(dict(part), open_names, orders), None)

    def _completions(
        self, part: dict[str, str], names: Sequence[str], orders: Mapping[str, tuple[str, ...]]
    ) -> Iterator[Cell]:
        """Depth first, the values of each dimension in their order."""
        if not names:
            yield {name: part[name] for name in DIMENSIONS}
            return
        name, rest = names[0], names[1:]
        for value in orders[name]:
            part[name] = value
            if self._fits(part, name):
                yield from self._completions(part, rest, orders)
        del part[name]

    def _fits(self, part: Mapping[str, str], latest: str) -> bool:
        """Whether nothing speaks against the values so far, the latest one in particular."""
        for limit in self._limits_of[latest]:
            if all(key in part for key in limit.keys) and not limit.holds(part):
                return False
        return True

    def _array(self) -> list[Cell]:
        constraints: list[Any] = [
            {"operator": "fn", "requires": list(limit.keys), "evaluate": limit.holds} for limit in self.limits
        ]
        factors = {name: list(options) for name, options in self.values.items()}
        made = covertable.make(factors, strength=self.strength, salt=str(self._seed), constraints=constraints)
        return [{name: row[name] for name in DIMENSIONS} for row in made]


def _tuples(cells: Any, strength: int) -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    return {
        (names, tuple(cell[name] for name in names))
        for cell in cells
        for names in itertools.combinations(DIMENSIONS, strength)
    }
