"""What to simulate: domains, agent, grid and seed, checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from etl.errors import UsageError
from etl.identity import digest, named
from etl.simulator.agent import SeededAgent
from etl.simulator.domain import Domain
from etl.simulator.grid import Grid
from etl.simulator.limits import NONE, SEVERAL, Cell
from etl.simulator.situation import Aim, Situation, situation

VERSION = 1
"""Of the simulator: raised when the same spec and seed give other rows."""
SOURCE = "simulator"
REWARDS = ("none", "seeded", "state")
MODES = ("rl", "explore")


class DomainSpec(NamedTuple):
    """The parts of a domain as they are passed to worker processes."""

    tools: tuple[Any, ...]
    system_prompt: str
    id_examples: Mapping[str, str]


class Spec(NamedTuple):
    """One simulation. Everything that decides what rows say is here; how many there are, and where they run, is not."""

    domains: tuple[DomainSpec, ...]
    agent: SeededAgent
    seed: int = 0
    strength: int = 2
    fault_rate: float = 0.35
    chosen: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Dimensions narrowed to some of their values."""
    repeats: int = 4
    reward: str = "none"
    source: str = SOURCE


class Plan:
    """A spec made ready: domains and grids. Situation `number` is the same whatever the budget and the workers."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.domains = [Domain(part.tools, part.system_prompt, part.id_examples) for part in spec.domains]
        self._grids: dict[int, Grid] = {}
        said = [
            VERSION, [domain.name for domain in self.domains], spec.strength, spec.fault_rate, spec.chosen,
            spec.agent.rate, spec.agent.behaviors,
        ]  # fmt: skip
        self.name = digest(repr(said).encode())[:12]

    def grid(self, which: int) -> Grid:
        """The grid of one domain, made when it is first needed."""
        if which not in self._grids:
            spec, domain = self.spec, self.domains[which]
            self._grids[which] = Grid(
                list(domain.tools), domain.meanings, domain.rules, seed=spec.seed, strength=spec.strength,
                chosen={name: self._own(name, values, domain) for name, values in spec.chosen},
            )  # fmt: skip
        return self._grids[which]

    def _own(self, name: str, values: tuple[str, ...], domain: Domain) -> tuple[str, ...]:
        """The chosen values of a dimension; of tools and rules those that this domain has, where there are several."""
        known = {"tool": (*domain.tools, SEVERAL, NONE), "rule": (*domain.rules, NONE)}.get(name)
        if known is None or len(self.domains) == 1:
            return values
        return tuple(value for value in values if value in known) or values

    @property
    def uri(self) -> str:
        """Where rows of this plan come from."""
        return f"simulation://{self.name}/seed-{self.spec.seed}"

    @property
    def gaps_uri(self) -> str:
        """Where rows come from that fill gaps."""
        return f"{self.uri}/gaps"

    def situation(self, number: int, nonce: int = 0) -> Situation:
        """Situation `number`; another `nonce` gives another of the same cell."""
        which, place = number % len(self.domains), number // len(self.domains)
        cell = self.grid(which).cell(place)
        return self._made(self.domains[which], cell, f"{number}", nonce)

    def aimed(self, domain: Domain, cell: Cell, aim: Aim, key: str, nonce: int = 0) -> Situation:
        """A situation that fills a gap."""
        return self._made(domain, cell, key, nonce, aim)

    def _made(self, domain: Domain, cell: Cell, key: str, nonce: int, aim: Aim | None = None) -> Situation:
        seed = int(named("", (self.name, self.spec.seed, key, nonce))[:13], 16)
        return situation(domain, cell, key, seed, fault_rate=self.spec.fault_rate, aim=aim)


def system_prompt_of(given: str | Path | None) -> str:
    """The text, or that of the file that is named by a Path."""
    if given is None:
        return ""
    if isinstance(given, Path):
        try:
            return given.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{given}: the system prompt cannot be read: {error}") from error
    return given


def checked(*, budget: int, repeats: int, mode: str, reward: str, fault_rate: float, workers: int) -> None:
    """UsageError where a number makes no sense."""
    if budget < 1:
        raise UsageError(f"the budget must be at least 1 row, not {budget}")
    if repeats < 1:
        raise UsageError(f"repeats must be at least 1, not {repeats}")
    if workers < 1:
        raise UsageError(f"workers must be at least 1, not {workers}")
    if mode not in MODES:
        raise UsageError(f"no mode is called {mode!r}; modes: {', '.join(MODES)}")
    if reward not in REWARDS:
        raise UsageError(f"no reward is called {reward!r}; rewards: {', '.join(REWARDS)}")
    if not 0.0 <= fault_rate <= 1.0:
        raise UsageError(f"the fault rate must be between 0 and 1, not {fault_rate}")


def narrowed(given: Mapping[str, str | Sequence[str]] | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Dimensions with their chosen values, as the spec keeps them."""
    return tuple(
        (name, (values,) if isinstance(values, str) else tuple(values))
        for name, values in sorted((given or {}).items())
    )
