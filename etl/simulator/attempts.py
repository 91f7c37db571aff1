"""Playing attempts of situations, each into a row: the part that worker processes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple, Protocol

from etl.conversation import Tokens
from etl.row import Row
from etl.simulator.agent import SeededAgent
from etl.simulator.play import Play
from etl.simulator.report import SimulationReport
from etl.simulator.rows import Rows
from etl.simulator.situation import Situation
from etl.simulator.spec import Plan

LEFT_OUT = -1
"""The nonce of a situation that no ask could be found for."""


class Played(NamedTuple):
    """One attempt of an agent that is not ours."""

    play: Play
    model: str | None = None
    usage: Tokens | None = None
    error: str | None = None
    finish_reason: str | None = None
    user_usage: Tokens | None = None
    """Tokens of a model that played the person."""


class OutsideAgent(Protocol):
    """An agent that is not ours: a callable, or a model behind an endpoint."""

    name: str
    concurrency: int

    def play(self, situation: Situation, seed: int) -> Played:
        """One attempt; what goes wrong is in `error`, never raised."""
        ...


class Job(NamedTuple):
    """One attempt that is to be made."""

    situation: Situation
    attempt: int
    line: int


class Attempts:
    """Makes attempts into rows, and counts them."""

    def __init__(self, plan: Plan, outside: OutsideAgent | None = None, *, uri: str | None = None) -> None:
        self.report = SimulationReport()
        self._plan = plan
        self._rows = Rows(plan, uri or plan.uri)
        self._outside = outside
        agent = plan.spec.agent
        self._ours = {"kind": "seeded", "rate": agent.rate, "behaviors": list(agent.behaviors)}

    def rows(self, jobs: Iterable[Job]) -> Iterator[Row]:
        """The rows of jobs, in their order; several at a time where the agent waits for a network."""
        if self._outside is None:
            yield from (self.counted(self.row(job)) for job in jobs)
            return
        outside, jobs = self._outside, iter(jobs)
        with ThreadPoolExecutor(outside.concurrency, thread_name_prefix="etl-agent") as pool:
            waiting = [(job, pool.submit(self._ask, job)) for job in islice(jobs, 2 * outside.concurrency)]
            while waiting:
                job, future = waiting.pop(0)
                played = future.result()
                following = next(jobs, None)
                if following is not None:
                    waiting.append((following, pool.submit(self._ask, following)))
                yield self._outside_row(job, played)

    def row(self, job: Job) -> Row:
        """The row of one attempt by the seeded agent, not counted yet."""
        agent: SeededAgent = self._plan.spec.agent
        play, seeded = agent.attempt(job.situation, attempt_seed(job))
        return self._rows.row(play, job.attempt, seeded, self._ours, job.line)

    def _ask(self, job: Job) -> Played:
        assert self._outside is not None
        return self._outside.play(job.situation, attempt_seed(job))

    def _outside_row(self, job: Job, played: Played) -> Row:
        assert self._outside is not None
        agent: dict[str, Any] = {"kind": "outside", "name": self._outside.name}
        if played.user_usage is not None:
            asker = played.user_usage
            agent["user_usage"] = {"input_tokens": asker.input_tokens, "output_tokens": asker.output_tokens}
        row = self._rows.row(
            played.play, job.attempt, None, agent, job.line, run=self._outside.name, model=played.model,
            usage=played.usage, error=played.error, finish_reason=played.finish_reason,
        )  # fmt: skip
        report = self.report
        report.failed += played.error is not None
        for used in (played.usage, played.user_usage):
            if used is not None:
                report.input_tokens += used.input_tokens or 0
                report.output_tokens += used.output_tokens or 0
                report.cost_usd += used.cost_usd or 0.0
        return self.counted(row)

    def counted(self, row: Row) -> Row:
        """The row, which is going to be written, in the report."""
        report = self.report
        report.attempts += 1
        report.seeded.update(row.seeded or ())
        for step in row.steps:
            report.steps[step.tool, step.condition or "unclassified"] += 1
        broken = [name for name, _kind, value, *_ in row.judgments if value != 1.0]
        report.judged.update(broken or ["pass"])
        return row


def attempt_seed(job: Job) -> int:
    """The seed of one attempt."""
    return job.situation.seed * 64 + job.attempt % 64 + (job.attempt // 64 << 60)


def planned_jobs(
    plan: Plan, numbers: Iterable[int], budget: int, situations: Callable[[int], Situation | None]
) -> Iterator[Job]:
    """The attempts at situations of these numbers, as far as the budget of rows goes."""
    repeats = plan.spec.repeats
    for number in numbers:
        situation = situations(number)
        if situation is None:
            continue
        for attempt in range(min(repeats, budget - number * repeats)):
            yield Job(situation, attempt, number * repeats + attempt + 1)


def with_nonces(plan: Plan, nonces: Mapping[int, int]) -> Callable[[int], Situation | None]:
    """Situations whose nonces are known: others than 0 only."""

    def situation(number: int) -> Situation | None:
        nonce = nonces.get(number, 0)
        return None if nonce == LEFT_OUT else plan.situation(number, nonce)

    return situation
