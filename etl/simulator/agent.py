"""The seeded agent: honest, but for a known share of attempts in which it does one thing wrong on purpose."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from random import Random  # noqa: TID251  (seeded)
from typing import Any

from etl.errors import UsageError
from etl.simulator import mistakes
from etl.simulator.asks import pick
from etl.simulator.attempt import Attempt
from etl.simulator.mistakes import BEHAVIORS
from etl.simulator.play import Play
from etl.simulator.situation import Situation
from etl.simulator.tools import Tool, as_tools


@dataclasses.dataclass(frozen=True)
class SeededAgent:
    """How the seeded agent behaves."""

    tools: tuple[Tool, ...] = ()
    rate: float = 0.35
    """The share of attempts with one planted mistake."""
    behaviors: tuple[str, ...] = BEHAVIORS
    """The mistakes drawn from."""

    def attempt(self, situation: Situation, seed: int) -> tuple[Play, list[str]]:
        """One attempt, and what was done wrong in it."""
        rng = Random(seed)
        mistake = None
        if rng.random() < self.rate:
            options = mistakes.possible(situation, self.behaviors)
            mistake = pick(rng, options) if options else None
        attempt = Attempt(situation, rng, mistake)
        attempt.run()
        return attempt.play, attempt.done


def seeded_agent(
    tools: Iterable[Any] = (), *, rate: float = 0.35, behaviors: Sequence[str] | None = None
) -> SeededAgent:
    """An agent that needs no model: honest, and on a share `rate` of attempts wrong on purpose in one of `behaviors`.

    What it did wrong stands in `seeded` of each row, `[]` where it behaved.

    >>> seeded_agent(rate=0.0).rate
    0.0
    """
    if not 0.0 <= rate <= 1.0:
        raise UsageError(f"rate must be between 0 and 1, not {rate}")
    chosen = tuple(BEHAVIORS if behaviors is None else behaviors)
    unknown = [name for name in chosen if name not in BEHAVIORS]
    if unknown:
        raise UsageError(f"no behavior is called {unknown[0]!r}; behaviors: {', '.join(BEHAVIORS)}")
    given = list(tools)
    return SeededAgent(tuple(as_tools(given)) if given else (), rate, tuple(b for b in BEHAVIORS if b in chosen))
