"""`etl.simulate`: seeded rows from tools and a system prompt, or from what a lake's traffic shows of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, overload

import pyarrow as pa

from etl.errors import LakeError, UsageError
from etl.lake import Lake
from etl.limits import LIMITS
from etl.naming import keyed
from etl.running import running
from etl.schema import Rollout, Step
from etl.settings import Settings, run_settings
from etl.simulator.agent import SeededAgent, seeded_agent
from etl.simulator.attempts import Attempts, OutsideAgent
from etl.simulator.gaps import Filling, Gap, told
from etl.simulator.leaks import Asked
from etl.simulator.mining import Mined, mined, traffic_asks
from etl.simulator.report import SimulationReport
from etl.simulator.run import OnRows, Output, commit_rows, play_budget, play_jobs
from etl.simulator.spec import SOURCE, DomainSpec, Plan, Spec, checked, narrowed, system_prompt_of
from etl.simulator.tools import as_tools


class SimulatedStep(Step):
    """A call with what came back."""

    result: str | None = None
    """The text that came back; null where nothing did."""


class SimulatedRollout(Rollout):
    """A simulated row as Python sees it: the stored columns, and the result with each step."""

    steps: list[SimulatedStep]  # type: ignore[assignment]


class Simulation(Sequence[SimulatedRollout]):
    """The rows of a simulation, and the report of how they were made. Rows in a lake are read when they are used."""

    def __init__(self, report: SimulationReport, load: Callable[[], pa.Table]) -> None:
        self.report = report
        self._load = load
        self._loaded: pa.Table | None = None

    @property
    def table(self) -> pa.Table:
        """The stored columns as an Arrow table."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, index: int) -> SimulatedRollout: ...
    @overload
    def __getitem__(self, index: slice) -> list[SimulatedRollout]: ...
    def __getitem__(self, index: int | slice) -> SimulatedRollout | list[SimulatedRollout]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self[place] for place in places]
        (row,) = self.table.slice(places, 1).to_pylist()
        return _rollout(row)

    def __iter__(self) -> Iterator[SimulatedRollout]:
        for batch in self.table.to_batches(max_chunksize=500):
            yield from map(_rollout, batch.to_pylist())


def _rollout(row: dict[str, Any]) -> SimulatedRollout:
    for step in row["steps"]:
        step["result"] = None if step["result_index"] is None else row["messages"][step["result_index"]]["content"]
    return SimulatedRollout.model_validate(row)


def simulate(
    agent: Any = None,
    *,
    tools: Any = None,
    system_prompt: str | Path | None = None,
    mode: str = "rl",
    repeats: int | None = None,
    budget: int | None = None,
    seed: int = 0,
    lake: str | Path | None = None,
    fill_gaps: bool = False,
    min_support: int = 5,
    from_source: str | None = None,
    dimensions: Mapping[str, str | Sequence[str]] | None = None,
    strength: int = 2,
    fault_rate: float = 0.35,
    reward: str = "none",
    source: str = SOURCE,
    workers: int = 1,
    redact: str = "secrets",
    dry_run: bool = False,
    now: datetime | None = None,
    progress: OnRows | None = None,
) -> Simulation:
    """Simulate `budget` rows: asks that a customer might send, each attempted `repeats` times against a fake world.

    `agent` is a `seeded_agent` (the default), any callable `(messages, tools) -> reply`, or an endpoint. Without
    `tools` they come from the traffic of `lake` (of one log stream with `from_source`). With `lake` the rows go there,
    and none asks what its traffic asked; without, they stay in memory. `fill_gaps` aims at the lake's gaps instead of
    the whole grid. Equal spec and seed give equal rows on any machine, and more budget keeps the first ones.
    Raises UsageError where the call is wrong (nothing is then written).
    """
    given = repeats if repeats is not None else (4 if mode == "rl" and not fill_gaps else 1)
    checked(budget=64 if budget is None else budget, repeats=given, mode=mode, reward=reward, fault_rate=fault_rate,
            workers=workers)  # fmt: skip
    if fill_gaps and (lake is None or min_support < 1):
        raise UsageError("filling gaps needs a lake, and a minimum support of at least 1")
    if fill_gaps and dimensions:
        raise UsageError("dimensions narrow the grid, and gaps are filled as they are; leave one of them out")
    ours, outside = _agents(agent)
    if tools is None and ours.tools:
        tools = ours.tools
    traffic = _traffic(lake, tools, from_source, fill_gaps)
    domains, names = _domains(tools, system_prompt, traffic)
    wanted = {value for name, values in narrowed(dimensions) if name == "tool" for value in values}
    if traffic is not None and wanted and any(_has(part, wanted) for part in domains):
        domains = tuple(part for part in domains if _has(part, wanted))
    spec = Spec(domains, ours, seed, strength, fault_rate, narrowed(dimensions), given, reward, source)
    plan = Plan(spec)
    if not fill_gaps:
        plan.grid(0)  # what is wrong with the dimensions is said before anything is made
    request = _Request(plan, names, traffic, outside, budget, min_support, workers, progress)
    if lake is None:
        settings = run_settings("", now, source, None, redact, LIMITS, False, False)
        return _in_memory(request, settings)
    settings = run_settings(lake, now, source, None, redact, LIMITS, dry_run, False)
    return _into_lake(request, settings, fill_gaps)


class _Traffic(NamedTuple):
    """What the lake's traffic tells."""

    mined: Mined
    asks: list[str]
    gaps: list[tuple[Any, ...]]
    taken: set[str]
    """Conversation ids of simulated rows that are there."""
    busiest: list[str]


class _Request(NamedTuple):
    """Everything about one run."""

    plan: Plan
    names: Sequence[str]
    """The log streams behind the domains, empty where tools were given."""
    traffic: _Traffic | None
    outside: OutsideAgent | None
    budget: int | None
    min_support: int
    workers: int
    progress: OnRows | None

    def asked(self) -> Asked:
        """What traffic asked."""
        return Asked(self.traffic.asks if self.traffic else ())


def _agents(agent: Any) -> tuple[SeededAgent, OutsideAgent | None]:
    if agent is None:
        return seeded_agent(), None
    if isinstance(agent, SeededAgent):
        return agent, None
    if hasattr(agent, "play") and hasattr(agent, "concurrency"):
        return seeded_agent(rate=0.0), agent
    if callable(agent):
        from etl.simulator.outside import CallableAgent

        return seeded_agent(rate=0.0), CallableAgent(agent)
    raise UsageError(f"an agent is a seeded_agent, an endpoint or a callable, not {type(agent).__name__}")


def _traffic(lake: str | Path | None, tools: Any, source: str | None, fill_gaps: bool) -> _Traffic | None:
    """What the lake says, where there is one and it has rows."""
    if lake is None:
        if tools is None:
            raise UsageError("there are no tools; give some, or a lake whose traffic shows them")
        return None
    from etl.query import connect

    try:
        connection = connect(lake)
    except LakeError as error:
        if tools is None or fill_gaps:
            raise UsageError(f"{error}; or give tools with --tools FILE") from error
        return None
    try:
        known = mined(connection, source) if tools is None or fill_gaps else Mined({}, {}, {})
        busiest = connection.execute(
            """SELECT tool FROM steps WHERE origin = 'traffic' AND actor = 'agent' AND NOT inherited
               GROUP BY tool ORDER BY count(*) DESC, tool"""
        ).fetchall()
        taken = connection.execute(
            "SELECT regexp_replace(conversation_id, '/[0-9]+$', '') FROM rollouts_stored WHERE origin = 'simulation'"
        ).fetchall()
        return _Traffic(
            known, list(traffic_asks(connection)), [], {key for (key,) in taken}, [tool for (tool,) in busiest]
        )
    finally:
        connection.close()


def _domains(
    tools: Any, system_prompt: str | Path | None, traffic: _Traffic | None
) -> tuple[tuple[DomainSpec, ...], list[str]]:
    """The domains, and the log streams they come from."""
    prompt = system_prompt_of(system_prompt)
    if tools is not None:
        return (DomainSpec(tuple(as_tools(tools)), prompt, {}),), []
    assert traffic is not None
    domains = traffic.mined.domains
    if not domains:
        raise UsageError("traffic shows no tools that could be simulated; give some with --tools FILE or tools=[…]")
    if system_prompt is not None:
        domains = {name: part._replace(system_prompt=prompt) for name, part in domains.items()}
    return tuple(domains.values()), list(domains)


def _has(part: DomainSpec, wanted: set[str]) -> bool:
    """Whether a domain has one of the tools."""
    return any(tool.name in wanted for tool in part.tools)


def _in_memory(request: _Request, settings: Settings) -> Simulation:
    started, plan = time.monotonic(), request.plan
    report = SimulationReport(settings.batch_id, plan.name, plan.spec.seed)
    budget = 64 if request.budget is None else request.budget
    output = play_budget(plan, settings, budget, request.asked(), report, outside=request.outside, to_lake=False,
                         progress=request.progress)  # fmt: skip
    report.rows = report.rows._replace(added=report.attempts)
    report.seconds = time.monotonic() - started
    return Simulation(report, lambda: pa.concat_tables(output.tables))


def _into_lake(request: _Request, settings: Settings, fill_gaps: bool) -> Simulation:
    started, plan = time.monotonic(), request.plan
    report = SimulationReport(settings.batch_id, plan.name, plan.spec.seed, settings.dry_run)
    if request.traffic is not None:
        report.unusable = request.traffic.mined.unusable
    uri = plan.gaps_uri if fill_gaps else plan.uri
    with running(settings) as (opened, _report):
        settings = keyed(opened, settings)
        if fill_gaps:
            output = _fill(request, settings, report, opened)
        else:
            budget = 64 if request.budget is None else request.budget
            output = play_budget(plan, settings, budget, request.asked(), report, workers=request.workers,
                                 outside=request.outside, progress=request.progress)  # fmt: skip
        if output.staged or not fill_gaps:
            commit_rows(opened, settings, report, uri, plan.spec.source, output)
    report.seconds = time.monotonic() - started
    return Simulation(report, lambda: _stored(settings, uri, plan.spec.source, report.attempts, fill_gaps))


def _fill(request: _Request, settings: Settings, report: SimulationReport, lake: Lake) -> Output:
    from etl.query import connect

    plan, traffic = request.plan, request.traffic
    assert traffic is not None
    if request.outside is not None:
        raise UsageError("gaps are filled by the seeded agent; leave the agent out")
    connection = connect(settings.lake)
    try:
        found = connection.execute(
            "SELECT axis_1, value_1, axis_2, value_2, missing FROM gaps_at($1) ORDER BY rank", [request.min_support]
        ).fetchall()
    finally:
        connection.close()
    gaps = [Gap((row[0], row[1], row[2], row[3]), row[4]) for row in found if row[4] > 0]
    filling = Filling(
        plan, gaps, _homes(request), traffic.taken, request.asked(), busiest=traffic.busiest, budget=request.budget
    )
    filling.unused_tools = traffic.mined.unusable
    attempts = Attempts(plan, uri=plan.gaps_uri)
    output = play_jobs(plan, settings, filling.rows(attempts), progress=request.progress)
    report.add(attempts.report)
    report.asks = filling.asks
    report.gaps = told(filling, gaps, request.min_support, len(found))
    return output


def _homes(request: _Request) -> dict[str, int]:
    """Tool → the domain that it is simulated in: where traffic calls it most."""
    assert request.traffic is not None
    places = {name: number for number, name in enumerate(request.names)}
    homes: dict[str, int] = {}
    for number, domain in enumerate(request.plan.domains):
        for tool in domain.tools:
            wanted = places.get(request.traffic.mined.home.get(tool, ""), number)
            homes[tool] = wanted if tool in request.plan.domains[wanted].tools else homes.get(tool, number)
    return homes


def _stored(settings: Settings, uri: str, source: str, attempts: int, fill_gaps: bool) -> pa.Table:
    """The rows as the lake has them."""
    from etl.query import connect

    connection = connect(settings.lake)
    try:
        which = "batch_id = $3" if fill_gaps else "source_line <= $3"
        value: Any = settings.batch_id if fill_gaps else attempts
        return connection.sql(
            f"""SELECT * FROM rollouts_stored WHERE source = $1 AND source_uri = $2 AND {which}
                ORDER BY source_line, rollout_id""",
            params=[source, uri, value],
        ).to_arrow_table()
    finally:
        connection.close()
