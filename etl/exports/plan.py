"""What goes where: SQL over small tables decides which rows stay, in which split, shard and order.

Everything that depends on other rows is decided here (tasks, pairs, duplicates, caps), from what the first pass found.
Positions come from hashes of ids, so they do not depend on files, on the order of ingestion or on other rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from etl.derive import quoted
from etl.exports.dialogue import PREFERENCES
from etl.exports.examine import Reading
from etl.exports.near import NearDuplicates
from etl.exports.request import splits
from etl.query import execute

SHARD_CHARS = 128 << 20
"""Characters of conversation in a file, where `--shards` does not say how many files there are."""

_SCORE = f"""coalesce(reward, list_filter(judgments, lambda j: j.name IN {PREFERENCES}
    AND j.value IS NOT NULL)[1].value)"""
"""The reward, or what a preference set says of this side."""

_FAMILY = """
CREATE OR REPLACE TABLE family AS
WITH RECURSIVE up(rollout_id, above, depth) AS (
    SELECT rollout_id, parent_id, 1 FROM rollouts_stored WHERE parent_id IS NOT NULL
    UNION ALL
    SELECT up.rollout_id, parent.parent_id, depth + 1
    FROM up JOIN rollouts_stored parent ON parent.rollout_id = up.above
    WHERE parent.parent_id IS NOT NULL AND depth < 64
)
SELECT rollout_id, arg_max(above, depth) AS root FROM up GROUP BY rollout_id
"""
"""The first ancestor of every row that has one, also of rows that are not selected."""


_PAIRED_AGAIN = """
SELECT unit FROM (
    SELECT unit, min(place) AS place,
        max(text_key) FILTER (side = 0) AS chosen, max(text_key) FILTER (side = 1) AS rejected
    FROM plan WHERE reason IS NULL GROUP BY unit
) QUALIFY row_number() OVER (PARTITION BY chosen, rejected ORDER BY place) > 1
"""
"""Pairs whose two sides are said by another pair already."""


def choose(reading: Reading) -> None:
    """The table `chosen`: the rows of `--where`, with what is known without reading their messages.

    UsageError where the SQL of the request makes no sense.
    """
    request = reading.request
    truth = f"CAST(({request.ground_truth}) AS VARCHAR)" if request.ground_truth else "NULL::VARCHAR"
    connection = reading.connection
    connection.execute(_FAMILY)
    execute(
        connection,
        f"""
        CREATE OR REPLACE TABLE chosen AS
        SELECT
            mine.rollout_id, mine.source, mine.task_id, mine.group_id, mine.model,
            coalesce(mine.task_id, mine.group_id) AS task_key, coalesce(mine.group_id, mine.task_id) AS pair_key,
            mine.score, mine.ground_truth,
            coalesce(root.task_id, mine.task_id, family.root, {_asked("mine")}, mine.rollout_id) AS split_key
        FROM (
            SELECT rollout_id, source, task_id, group_id, model, prompt, {_SCORE} AS score, {truth} AS ground_truth
            FROM rollouts WHERE {request.where or "true"}
        ) mine
        LEFT JOIN family USING (rollout_id)
        LEFT JOIN rollouts_stored root ON root.rollout_id = family.root
        """,
        around=True,
    )


def _asked(table: str) -> str:
    """The key of a row without task and family: two people who ask the same lie on one side of the split."""
    return f"'asked ' || md5(lower(trim(nullif({table}.prompt, ''))))"


def decide(reading: Reading, near: NearDuplicates | None) -> None:
    """The table `plan`, one row a chosen row: its `reason` to go, or its `unit`; and `arranged`, one row a unit."""
    connection, request = reading.connection, reading.request
    seed = quoted(request.seed)
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE plan AS
        SELECT c.*, v.reason, v.chars, v.text_key, v.prompt_key, v.held_out,
            md5({seed} || c.rollout_id) AS place, NULL::VARCHAR AS unit, 0::TINYINT AS side
        FROM chosen c JOIN verdicts v USING (rollout_id)
        """
    )
    drop = _Dropping(connection)
    if reading.target.scored:
        drop.where("unscored", "score IS NULL")
    if reading.target.unit != "row":
        drop.where("no_task", "task_key IS NULL")
    drop.where("held_out", "held_out")
    _by_task(reading, drop)
    if not request.keep_duplicates:
        _without_duplicates(reading, drop, near)
    _form_units(reading, drop)
    _cap(reading, drop)
    _arrange(reading)


class _Dropping:
    """Gives rows that are still there a reason to go."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def where(self, reason: str, condition: str) -> None:
        self.connection.execute(f"UPDATE plan SET reason = {quoted(reason)} WHERE reason IS NULL AND ({condition})")

    def of(self, reason: str, query: str) -> None:
        """Rows whose id is in the query."""
        self.where(reason, f"rollout_id IN ({query})")


def _by_task(reading: Reading, drop: _Dropping) -> None:
    """Tasks by how often they were passed: over all scored attempts that `--where` selects, whatever became of them."""
    request = reading.request
    drop.connection.execute(
        f"""
        CREATE OR REPLACE TABLE tallies AS
        SELECT task_key, any_value(task_id) AS task_id, count(score) AS n,
            count(*) FILTER (score >= {request.pass_at!r}) AS passed, avg(score) AS mean_reward,
            min(score) = max(score) AS unanimous
        FROM chosen WHERE task_key IS NOT NULL GROUP BY task_key
        """
    )
    tally = "(SELECT {} FROM tallies WHERE tallies.task_key = plan.task_key)"
    if request.group_min > 1 or request.difficulty is not None or request.drop_unanimous:
        drop.where("no_task", "task_key IS NULL")
    if request.group_min > 1:
        drop.where("too_few_attempts", f"{tally.format('n')} < {request.group_min}")
    if request.difficulty is not None:
        low, high = request.difficulty
        drop.where("unscored", f"{tally.format('n')} = 0")
        rate = tally.format("passed / n")
        drop.where("outside_difficulty_band", f"{rate} NOT BETWEEN {low!r} AND {high!r}")
    if request.drop_unanimous:
        drop.where("unanimous", f"coalesce({tally.format('unanimous')}, true)")


def _without_duplicates(reading: Reading, drop: _Dropping, near: NearDuplicates | None) -> None:
    """Of rows that say the same one stays; attempts at one task say the same where prompts are what counts."""
    unit = reading.target.unit
    if unit == "row":
        drop.of("duplicate", _all_but_first("text_key"))
    elif unit == "task":
        drop.where(
            "duplicate",
            """EXISTS (SELECT 1 FROM plan other WHERE other.reason IS NULL AND other.text_key = plan.text_key
                AND other.task_key < plan.task_key)""",
        )
    if near is not None:
        keys = drop.connection.execute("SELECT text_key, min(place) FROM plan WHERE reason IS NULL GROUP BY text_key")
        surplus = near.surplus(dict(keys.fetchall()))
        if surplus:
            drop.connection.execute("CREATE OR REPLACE TABLE surplus AS SELECT unnest($1) AS text_key", [list(surplus)])
            drop.where("near_duplicate", "text_key IN (FROM surplus)")


def _all_but_first(key: str) -> str:
    return f"""SELECT rollout_id FROM plan WHERE reason IS NULL
        QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY place) > 1"""


def _form_units(reading: Reading, drop: _Dropping) -> None:
    """Which rows make one record: each alone, the best and the worst of a prompt, or one for its task."""
    unit, connection = reading.target.unit, drop.connection
    if unit == "row":
        connection.execute("UPDATE plan SET unit = rollout_id WHERE reason IS NULL")
    elif unit == "task":
        connection.execute(
            """
            UPDATE plan SET reason = 'other_attempt' WHERE reason IS NULL AND rollout_id NOT IN (
                SELECT arg_min(rollout_id, place) FROM plan WHERE reason IS NULL GROUP BY task_key)
            """
        )
        connection.execute("UPDATE plan SET unit = rollout_id WHERE reason IS NULL")
    else:
        connection.execute(
            """
            CREATE OR REPLACE TABLE pairs AS
            SELECT pair_key, prompt_key, arg_max(rollout_id, (score, place)) AS chosen,
                arg_min(rollout_id, (score, place)) AS rejected
            FROM plan WHERE reason IS NULL GROUP BY pair_key, prompt_key HAVING max(score) > min(score)
            """
        )
        drop.where("no_preference", "(pair_key, prompt_key) NOT IN (SELECT (pair_key, prompt_key) FROM pairs)")
        drop.where("not_chosen", "rollout_id NOT IN (SELECT chosen FROM pairs UNION ALL SELECT rejected FROM pairs)")
        connection.execute(
            """
            UPDATE plan SET unit = pairs.chosen, side = (plan.rollout_id = pairs.rejected)::TINYINT
            FROM pairs WHERE plan.reason IS NULL AND plan.rollout_id IN (pairs.chosen, pairs.rejected)
            """
        )
        if not reading.request.keep_duplicates:
            drop.where("duplicate", f"unit IN ({_PAIRED_AGAIN})")


def _cap(reading: Reading, drop: _Dropping) -> None:
    """At most so many records, of each source and in all; which ones, their hashes say. A pair goes as one."""
    request = reading.request
    place = f"md5({quoted(request.seed)} || unit) AS place"
    heads = f"SELECT unit, source, {place} FROM plan WHERE reason IS NULL AND side = 0"
    surplus = "SELECT unit FROM ({}) QUALIFY row_number() OVER ({}) > {}"
    if request.max_per_source is not None:
        by_source = surplus.format(heads, "PARTITION BY source ORDER BY place", request.max_per_source)
        drop.where("source_cap", f"unit IN ({by_source})")
    if request.max_rows is not None:
        drop.where("max_rows", f"unit IN ({surplus.format(heads, 'ORDER BY place', request.max_rows)})")


def _arrange(reading: Reading) -> None:
    """Split, shard and position of every record that stays."""
    request, connection = reading.request, reading.connection
    shards = f"least({request.shards}, records)" if request.shards is not None else f"1 + chars_all // {SHARD_CHARS}"
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE arranged AS
        WITH heads AS (
            SELECT unit, {_split_of(splits(request.split), request.seed)} AS split,
                md5({quoted(request.seed)} || unit) AS place, chars
            FROM plan WHERE reason IS NULL AND side = 0
        ), numbered AS (
            SELECT unit, split, row_number() OVER (PARTITION BY split ORDER BY place) - 1 AS position,
                count(*) OVER (PARTITION BY split) AS records,
                coalesce(sum(chars) OVER (PARTITION BY split), 0)::BIGINT AS chars_all
            FROM heads
        )
        SELECT unit, split, position, {shards} AS shards, position * ({shards}) // records AS shard FROM numbered
        """
    )


def _split_of(shares: Mapping[str, float], seed: str) -> str:
    """The split of a row, from the hash of its task alone."""
    point = f"(('0x' || left(md5({quoted(seed + ' split ')} || split_key), 13))::UBIGINT / {1 << 52}.0)"
    bound, cases = 0.0, []
    *others, last = shares
    for name in others:
        bound += shares[name]
        cases.append(f"WHEN {point} < {bound!r} THEN {quoted(name)}")
    return f"CASE {' '.join(cases)} ELSE {quoted(last)} END" if cases else quoted(last)
