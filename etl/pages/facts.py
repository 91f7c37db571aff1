"""What a report says of a lake, as rows: every query reads the few columns it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

Rows = list[dict[str, Any]]

MOST_DAYS = 90
"""Beyond so many days with rows, they are summed by month."""
MOST_DRAWN = 25
"""Lines of a picture, and of the tasks with the most attempts."""
MOST_LINES = 200
"""Lines of a table; each row says as `in_all` how many there would be."""
MOST_KINDS = 7
"""Sources (models, …) with a colour of their own; the rest is `other`."""


def ask(connection: duckdb.DuckDBPyConnection, sql: str, values: Sequence[Any] = ()) -> Rows:
    """The answer as dicts."""
    connection.execute(sql, list(values))
    names = [str(column[0]) for column in connection.description or ()]
    return [dict(zip(names, row, strict=True)) for row in connection.fetchall()]


def totals(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """One row of the largest figures."""
    return ask(
        connection,
        """
        SELECT count(*) AS rollouts, count(DISTINCT source) AS sources, count(DISTINCT model) AS models,
            coalesce(sum(n_steps) - (SELECT count(*) FROM steps WHERE inherited), 0)::BIGINT AS tool_calls,
            count(reward) AS scored,
            min(nullif(day, 'unknown')) AS first_day, max(nullif(day, 'unknown')) AS last_day,
            count(*) FILTER (day = 'unknown') AS undated,
            count(*) FILTER (origin = 'simulation') AS simulated,
            (SELECT count(*) FROM rejects) AS rejected, (SELECT count(*) FROM sources) AS files
        FROM rollouts_stored
        """,
    )[0]


def by_day(connection: duckdb.DuckDBPyConnection) -> Rows:
    """day (or month), source (or `other`), rollouts; rows without a day are left out."""
    return ask(
        connection,
        f"""
        WITH counted AS (
            SELECT day, source, count(*) AS n FROM rollouts_stored WHERE day <> 'unknown' GROUP BY day, source
        ), large AS (
            SELECT source FROM counted GROUP BY source ORDER BY sum(n) DESC, source LIMIT {MOST_KINDS}
        )
        SELECT
            CASE WHEN (SELECT count(DISTINCT day) FROM counted) > {MOST_DAYS} THEN day[:7] ELSE day END AS day,
            CASE WHEN source IN (FROM large) THEN source ELSE 'other' END AS source, sum(n)::BIGINT AS rollouts
        FROM counted GROUP BY ALL ORDER BY ALL
        """,
    )


def by_kind(connection: duckdb.DuckDBPyConnection) -> Rows:
    """source, adapter, model and how their rows ended."""
    return ask(
        connection,
        f"""
        WITH repeated AS (SELECT rollout_id, count(*) AS n_inherited FROM steps WHERE inherited GROUP BY rollout_id)
        SELECT source, adapter, model, count(*) AS rollouts,
            sum(n_steps - coalesce(n_inherited, 0))::BIGINT AS tool_calls,
            count_if(status = 'completed') AS completed,
            count_if(status IN ('error', 'aborted', 'truncated')) AS cut_short,
            count(reward) AS scored, avg(reward) AS mean_reward, count(*) OVER () AS in_all
        FROM rollouts_stored LEFT JOIN repeated USING (rollout_id) GROUP BY source, adapter, model
        ORDER BY rollouts DESC, source, adapter, model LIMIT {MOST_LINES}
        """,
    )


def rejected(connection: duckdb.DuckDBPyConnection) -> Rows:
    """Rejects by reason, each with an example."""
    return ask(
        connection,
        f"""
        SELECT reason, count(*) AS records, list_sort(list(DISTINCT source))[:5] AS sources,
            min(message) AS for_example, count(*) OVER () AS in_all
        FROM rejects GROUP BY reason ORDER BY records DESC, reason LIMIT {MOST_LINES}
        """,
    )


def passes(connection: duckdb.DuckDBPyConnection) -> Rows:
    """pass@1 by model and source, with the bootstrap interval over tasks."""
    return ask(
        connection,
        f"""
        SELECT
            coalesce(model || ' · ', '') || source || CASE WHEN origin = 'simulation' THEN ' (simulated)' ELSE '' END
                AS label,
            pass_at_k AS pass_rate, low, high, tasks
        FROM pass_at(1) WHERE tasks > 0 ORDER BY tasks DESC, label LIMIT {MOST_DRAWN}
        """,
    )


def tasks(connection: duckdb.DuckDBPyConnection) -> Rows:
    """Pass rates of the tasks with the most attempts."""
    return ask(
        connection,
        f"""
        SELECT task_id, model, source, origin, n, unscored, pass_rate, low, high, mean_reward,
            count(*) OVER () AS in_all
        FROM pass_rates WHERE n > 0 ORDER BY n DESC, task_id, model, source, origin LIMIT {MOST_DRAWN}
        """,
    )


def tools(connection: duckdb.DuckDBPyConnection) -> Rows:
    """Failure rates of the tools of traffic over all sources, by who called them; those that fail most first."""
    return ask(
        connection,
        f"""
        SELECT *, count(*) OVER () AS in_all,
            failed / nullif(n, 0) AS failure_rate, wilson_low(failed, n) AS low, wilson_high(failed, n) AS high
        FROM (
            SELECT tool, actor, count_if(status IN ('ok', 'error')) AS n, count_if(status = 'error') AS failed,
                count_if(status = 'missing') AS missing, count_if(status = 'cancelled') AS cancelled,
                median(duration_ms) AS median_ms
            FROM steps WHERE origin = 'traffic' AND NOT inherited GROUP BY tool, actor
        ) ORDER BY failed DESC, failure_rate DESC NULLS LAST, missing DESC, tool, actor LIMIT {MOST_LINES}
        """,
    )


def usage(connection: duckdb.DuckDBPyConnection) -> Rows:
    """Tokens and money by day (or month)."""
    return ask(
        connection,
        f"""
        WITH daily AS (FROM usage_daily WHERE day <> 'unknown' AND with_usage > 0)
        SELECT CASE WHEN (SELECT count(DISTINCT day) FROM daily) > {MOST_DAYS} THEN day[:7] ELSE day END AS day,
            sum(with_usage)::BIGINT AS rollouts, sum(input_tokens)::BIGINT AS input_tokens,
            sum(cached_tokens)::BIGINT AS cached_tokens, sum(output_tokens)::BIGINT AS output_tokens,
            sum(cost_usd) AS cost_usd
        FROM daily GROUP BY ALL ORDER BY day
        """,
    )


def lengths(connection: duckdb.DuckDBPyConnection, what: str) -> Rows:
    """How many rows have so many of `what` (an expression): 0, 1, 2–3, 4–7 and so on."""
    return ask(
        connection,
        f"""
        SELECT rollouts, CASE WHEN bucket < 1 THEN (bucket + 1)::VARCHAR
            ELSE (2 ** bucket)::BIGINT || '–' || (2 ** (bucket + 1) - 1)::BIGINT END AS size
        FROM (
            SELECT CASE WHEN n = 0 THEN -1 ELSE floor(log2(n))::INTEGER END AS bucket, count(*) AS rollouts
            FROM (SELECT {what} AS n FROM rollouts_stored) WHERE n IS NOT NULL GROUP BY bucket
        ) ORDER BY bucket
        """,
    )


def samples(connection: duckdb.DuckDBPyConnection, *, most: int) -> list[str]:
    """Ids of conversations worth reading: of each kind first, short, with calls, failures and scores before others."""
    found = ask(
        connection,
        """
        SELECT rollout_id FROM (
            SELECT rollout_id, source, n_steps, reward, row_number() OVER (
                PARTITION BY source
                ORDER BY (n_steps BETWEEN 1 AND 12) DESC, reward IS NULL, (seeded IS NOT NULL) DESC, rollout_id
            ) AS place
            FROM rollouts_stored WHERE n_turns BETWEEN 1 AND 12
        ) ORDER BY place, (n_steps > 0) DESC, reward IS NULL, rollout_id LIMIT $1
        """,
        [most],
    )
    return [str(row["rollout_id"]) for row in found]
