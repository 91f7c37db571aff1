"""The run of a simulation: plan → play → normalise → redact → write → commit, by the same path as traffic."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import pyarrow as pa

from etl.columns import rollouts_table
from etl.committing import commit
from etl.footprint import settle
from etl.keys import passing_key
from etl.lake import Lake, StagedFile
from etl.redact import Redactor
from etl.report import FileResult, Report
from etl.row import Row
from etl.settings import Settings
from etl.simulator.attempts import LEFT_OUT, Attempts, OutsideAgent, planned_jobs, with_nonces
from etl.simulator.leaks import Asked
from etl.simulator.report import SimulationReport
from etl.simulator.situation import Situation
from etl.simulator.spec import SOURCE, VERSION, Plan, Spec
from etl.staging import RowBuffer, Staging

TRIES = 40
"""How often an ask is drawn again before its situation is left out."""
_ROW_BYTES = 6_000
"""What a row is taken to weigh where rows are gathered."""
OnRows = Callable[[int, int], None]
"""Hears how many rows are done, of how many."""


class Fresh:
    """Situations whose asks nobody asked before, in order."""

    def __init__(self, plan: Plan, asked: Asked) -> None:
        self._plan, self._asked = plan, asked
        self.nonces: dict[int, int] = {}
        """Situations that had to be drawn again, with what they were drawn with."""

    def situation(self, number: int) -> Situation | None:
        """Situation `number`, the first draw that may be written; None where TRIES draws were there already."""
        drawn = self._plan.situation(number)
        return drawn if self._asked.takes(drawn.ask) else self._again(number)

    def settle(self, asks: Iterable[tuple[int, str]]) -> None:
        """Take in what others drew first, in order."""
        for number, ask in asks:
            if not self._asked.takes(ask):
                self._again(number)

    def _again(self, number: int) -> Situation | None:
        for nonce in range(1, TRIES):
            drawn = self._plan.situation(number, nonce)
            if self._asked.takes(drawn.ask):
                self.nonces[number] = nonce
                return drawn
        self.nonces[number] = LEFT_OUT
        return None


class Sink(NamedTuple):
    """Where rows go: staging files, or memory."""

    add: Callable[[Row], None]
    close: Callable[[], list[StagedFile]]
    tables: list[pa.Table]


def staging_sink(settings: Settings, worker: str) -> Sink:
    """Rows through redaction into staging files of a lake."""
    staging = Staging(settings, worker)
    buffer = RowBuffer(settings, staging)

    def close() -> list[StagedFile]:
        buffer.flush()
        return staging.close()

    return Sink(lambda row: buffer.add(row, _ROW_BYTES), close, [])


def memory_sink(settings: Settings) -> Sink:
    """Rows through redaction into tables in memory."""
    redactor, rows, tables = Redactor(settings.redact, settings.key or passing_key()), list[Row](), list[pa.Table]()

    def flush() -> None:
        if rows:
            made = rollouts_table(rows, settings.batch_id, settings.ingested_at)
            tables.append(redactor.table("rollouts", made).table)
            rows.clear()

    def add(row: Row) -> None:
        rows.append(row)
        if len(rows) >= 2_000:
            flush()

    def close() -> list[StagedFile]:
        flush()
        return []

    return Sink(add, close, tables)


class Output(NamedTuple):
    """What was made: staged files or tables."""

    staged: list[StagedFile]
    tables: list[pa.Table]


def play_budget(
    plan: Plan, settings: Settings, budget: int, asked: Asked, report: SimulationReport,
    *, workers: int = 1, outside: OutsideAgent | None = None, to_lake: bool = True, progress: OnRows | None = None,
) -> Output:  # fmt: skip
    """Play the first situations of a plan, until there are `budget` rows."""
    count = -(-budget // plan.spec.repeats)
    fresh = Fresh(plan, asked)
    if workers > 1 and outside is None and to_lake and count > 1:
        output = _in_processes(plan, settings, budget, fresh, report, min(workers, count), progress)
    else:
        sink = staging_sink(settings, "simulation") if to_lake else memory_sink(settings)
        attempts = Attempts(plan, outside)
        jobs = planned_jobs(plan, range(count), budget, fresh.situation)
        for done, row in enumerate(attempts.rows(jobs), 1):
            sink.add(row)
            if progress is not None and (done % 50 == 0 or done == budget or outside is not None):
                progress(done, budget)
        output = Output(sink.close(), sink.tables)
        report.add(attempts.report)
    report.left_out = sum(nonce == LEFT_OUT for nonce in fresh.nonces.values())
    report.asks += count - report.left_out
    report.repeated, report.copies = asked.repeated, asked.copies
    _cover(plan, report, count)
    return output


def play_jobs(
    plan: Plan, settings: Settings, rows: Iterable[Row], *, to_lake: bool = True, progress: OnRows | None = None
) -> Output:
    """Rows that are made one by one, into staging or memory."""
    sink = staging_sink(settings, "simulation") if to_lake else memory_sink(settings)
    for done, row in enumerate(rows, 1):
        sink.add(row)
        if progress is not None and done % 50 == 0:
            progress(done, done)
    return Output(sink.close(), sink.tables)


def commit_rows(
    lake: Lake, settings: Settings, report: SimulationReport, uri: str, source: str, output: Output
) -> None:  # fmt: skip
    """Make the staged rows visible, with a line in `sources` that says where they come from."""
    if settings.dry_run:
        return
    result = FileResult(
        uri, source, adapter=SOURCE, adapter_version=VERSION, records_in=report.attempts, records_used=report.attempts,
        rows=report.attempts,
    )  # fmt: skip
    done = Report(settings.batch_id)
    commit(lake, settings, done, [result], output.staged, ())
    report.rows = done.rows


def _cover(plan: Plan, report: SimulationReport, count: int) -> None:
    """How much of the grid the situations cover, summed over the domains."""
    share, rest = divmod(count, len(plan.domains))
    for number in range(min(count, len(plan.domains))):
        tuples = plan.grid(number).tuples(share + (number < rest))
        report.strength = tuples.strength
        report.planned += tuples.planned
        report.covered += tuples.covered
        report.impossible.update(tuples.impossible)


# In processes ---------------------------------------------------------------------------------------------------------


class _Share(NamedTuple):
    """What one worker does."""

    numbers: Sequence[int]
    nonces: dict[int, int]
    budget: int
    worker: str


_plan: Plan | None = None
_settings: Settings | None = None


def _start(spec: Spec, settings: Settings) -> None:
    """In a worker: the plan, made once."""
    global _plan, _settings
    _plan, _settings = Plan(spec), settings
    settle()


def _asks(numbers: Sequence[int]) -> list[str]:
    assert _plan is not None
    return [_plan.situation(number).ask for number in numbers]


def _played(share: _Share) -> tuple[list[StagedFile], SimulationReport]:
    assert _plan is not None
    assert _settings is not None
    sink = staging_sink(_settings, share.worker)
    attempts = Attempts(_plan)
    situations = with_nonces(_plan, share.nonces)
    for row in attempts.rows(planned_jobs(_plan, share.numbers, share.budget, situations)):
        sink.add(row)
    return sink.close(), attempts.report


def _in_processes(
    plan: Plan,
    settings: Settings,
    budget: int,
    fresh: Fresh,
    report: SimulationReport,
    workers: int,
    progress: OnRows | None,
) -> Output:
    """First every ask, so that repeated ones are drawn again in order; then the attempts, block by block."""
    count = -(-budget // plan.spec.repeats)
    blocks = list(_blocks(count, max(1, min(500, -(-count // workers)))))
    staged: list[StagedFile] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _start, (plan.spec, settings)) as pool:
        for numbers, asks in zip(blocks, pool.map(_asks, blocks), strict=True):
            fresh.settle(zip(numbers, asks, strict=True))
        shares = [
            _Share(block, {n: fresh.nonces[n] for n in block if n in fresh.nonces}, budget, f"simulation{number}")
            for number, block in enumerate(_blocks(count, -(-count // workers)))
        ]
        for files, counted in pool.map(_played, shares):
            staged += files
            report.add(counted)
            if progress is not None:
                progress(report.attempts, budget)
    return Output(staged, [])


def _blocks(count: int, size: int) -> Iterator[range]:
    return (range(first, min(first + size, count)) for first in range(0, count, size))
