"""The attempts at one task: how each did, and two of them beside each other."""

from __future__ import annotations

from typing import NamedTuple

import duckdb
from starlette.exceptions import HTTPException

from etl.pages.facts import Rows, ask
from etl.query import find_rollout
from etl.serve.compare import Pair, pairs, said

MOST = 200
"""Attempts that are listed."""


class Attempts(NamedTuple):
    """What the page of a task shows."""

    rows: Rows
    rates: Rows
    left: str
    right: str
    turns: list[Pair]


def attempts_page(connection: duckdb.DuckDBPyConnection, task: str, left: str | None, right: str | None) -> Attempts:
    """The attempts of a task; without a choice the best beside the worst. HTTPException 404 where there is none."""
    rows = ask(
        connection,
        """
        SELECT rollout_id, source, model, sample_index, status, reward, n_turns, n_steps, started_at,
            len(list_filter(steps, lambda s: s.status = 'error')) AS n_failed,
            left(final_text, 200) AS final_text
        FROM rollouts_stored WHERE task_id = $1 ORDER BY reward DESC NULLS LAST, sample_index, rollout_id LIMIT $2
        """,
        [task, MOST],
    )
    if not rows:
        raise HTTPException(404, "no row is an attempt at this task")
    ids = [str(row["rollout_id"]) for row in rows]
    first = left if left is not None and left in ids else ids[0]
    others = [other for other in reversed(ids) if other != first]
    second = right if right is not None and right in ids else others[0] if others else first
    turns = pairs(*(said(find_rollout(connection, rollout_id)) for rollout_id in (first, second)))
    rates = ask(connection, "SELECT * EXCLUDE (task_id) FROM pass_rates WHERE task_id = $1 ORDER BY ALL", [task])
    return Attempts(rows, rates, first, second, turns)
