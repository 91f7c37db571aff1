"""What a newcomer runs first: the sample logs into a lake, questions asked of it, and its gaps filled by simulation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from etl.errors import UsageError
from etl.pipeline import ingest
from etl.query import run_sql
from etl.report import Report
from etl.shipped import shipped
from etl.simulator.report import SimulationReport
from etl.simulator.simulate import simulate
from etl.waves import Progress


class Question(NamedTuple):
    """Something one asks of a lake."""

    title: str
    sql: str


class Answered(NamedTuple):
    """A question with its answer, whole."""

    question: Question
    names: list[str]
    rows: list[tuple[Any, ...]]


class Demo(NamedTuple):
    """What the demo did."""

    report: Report
    answers: list[Answered]
    simulation: SimulationReport
    before: Answered
    """GAPS before the simulation."""
    after: Answered
    """GAPS after it."""
    rollout_id: str
    """A row worth reading: a conversation with calls."""


QUESTIONS = (
    Question(
        "What is in the lake?",
        """\
SELECT adapter, count(*) AS rollouts, count_if(n_turns > 1) AS with_several_turns, count_if(n_steps > 0) AS with_calls,
       count(reward) AS scored, round(avg(reward), 2) AS mean_reward
FROM rollouts GROUP BY adapter ORDER BY adapter""",
    ),
    Question(
        "Which tools do agents call, and what comes back?",
        """\
SELECT tool, count(*) AS calls, count_if(status = 'ok') AS ok, count_if(status = 'error') AS error,
       count_if(status = 'missing') AS no_result
FROM steps WHERE NOT inherited GROUP BY tool ORDER BY calls DESC, tool LIMIT 8""",
    ),
    Question(
        "What could not be used, and where does it lie?",
        """\
SELECT reason, count(*) AS records, min(parse_filename(source_uri) || ' line ' || source_line) AS for_example
FROM rejects GROUP BY reason ORDER BY records DESC, reason""",
    ),
)


MIN_SUPPORT = 1
"""Tasks that each pair is to have in the demo."""
GAPS = Question(
    "What has no agent in these logs ever met, and what has simulation added?",
    f"""\
SELECT axis_1 || ' × ' || axis_2 AS pair, count(*) AS gaps, count_if(simulated > 0) AS simulated,
       count_if(missing > 0) AS still_missing
FROM gaps_at({MIN_SUPPORT}) GROUP BY pair ORDER BY pair""",
)


_WORTH_READING = """
    SELECT rollout_id FROM rollouts WHERE origin = 'traffic'
    ORDER BY n_steps BETWEEN 1 AND 4 DESC, n_turns DESC, rollout_id LIMIT 1"""


def demo(lake: str | Path, *, now: datetime | None = None, progress: Callable[[Progress], None] | None = None) -> Demo:
    """Read the sample logs into a lake, ask it QUESTIONS, and simulate what its traffic has never shown.

    UsageError where the lake holds anything else already.
    """
    samples = shipped("sample_logs").resolve()
    _refuse_other_rows(lake, samples)
    report = ingest([samples], lake=lake, now=now, progress=progress)
    answers = [_answered(lake, question) for question in QUESTIONS]
    ((rollout_id,),) = run_sql(lake, _WORTH_READING).rows
    before = _answered(lake, GAPS)
    simulated = simulate(lake=lake, fill_gaps=True, min_support=MIN_SUPPORT, now=now)
    return Demo(report, answers, simulated.report, before, _answered(lake, GAPS), rollout_id)


def _answered(lake: str | Path, question: Question) -> Answered:
    names, _types, rows = run_sql(lake, question.sql)
    return Answered(question, names, list(rows))


def _refuse_other_rows(lake: str | Path, samples: Path) -> None:
    """Samples in a lake of real rows would be hard to tell from them."""
    if not (Path(lake) / "rollouts").exists():
        return
    _names, _types, rows = run_sql(lake, "SELECT uri FROM sources")
    for (uri,) in rows:
        if not uri.startswith("simulation://") and not Path(uri).is_relative_to(samples):
            raise UsageError(
                f"{lake} holds other logs ({uri}); give the demo a lake of its own: etl demo --lake demo-lake"
            )
