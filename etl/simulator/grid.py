"""The grid of situations: dimensions, what cannot go together, a covering array of it, and even spread beyond.

Cell number i is the same whatever the budget: first come the rows of a t-wise covering array, then balanced draws.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from random import Random  # noqa: TID251  (seeded)
from typing import Any, NamedTuple

import covertable

from etl.errors import UsageError
from etl.simulator.limits import (
    CONDITIONS,
    DIMENSIONS,
    HISTORIES,
    LENGTHS,
    NONE,
    SEVERAL,
    STANCES,
    WORLD_STATES,
    Cell,
    Limit,
    Limits,
)
from etl.simulator.meaning import Meaning
from etl.simulator.rules import Rule

_DRAWN = ("tool", "rule", "tool_condition", "world_state", "stance", "history", "length")
"""The order in which values are drawn: what others depend on comes first."""


class Tuples(NamedTuple):
    """The t-way tuples of a grid, as the report counts them."""

    strength: int
    planned: int
    """Tuples that can be."""
    covered: int
    impossible: dict[str, int]
    """Why → how many."""


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
        self.limits = [limit for limit in Limits(meanings, rules).all() if self._excludes(limit)]
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
