"""Which row stays when the same rollout arrives twice, so that the order and grouping of arrivals never matter.

In this order: rows assembled from all of their conversation's events, more source records, the map of this run where
another one made the live row, later end, newer adapter, more non-null leaves, larger hash, more redactions. Of two rows
equal in all of these the live one stays, and nothing is written. The hash is of what the source says, so a source that
is read again under a stricter policy replaces its rows, and under a laxer one does not. Labels given in the lake
(`etl/lake/labels.py`) have no say in it and pass to the row that stays.

Leaves and hash say nothing of which came later: a reading that lost by them alone is counted (`superseded`), since it
may be an edit that the log gives no time of.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from etl.lake.counts import RowCounts
from etl.lake.labels import carry_labels, without_labels
from etl.lake.lookup import REDACTED, Lookup, Side
from etl.lake.parquet import row_groups
from etl.schema import LINEAGE, PARTITIONS

_KEYS = f"rollout_id, n_records, ended_at, adapter_version, row_hash, {REDACTED}"

_WHOLE = "coalesce((source::VARCHAR, conversation_id) IN (SELECT source, conversation_id FROM whole), false)"

_SAID_BY_LIVE = (
    "live ON staged.rollout_id = live.rollout_id AND staged.row_hash = live.row_hash "
    "AND staged.adapter_version <= live.adapter_version AND staged.redacted <= live.redacted"
)


LEAST_OF_MAPS = 1 << 20
"""The versions of maps begin here; each map, and each state of one, has its own, which says nothing of their order."""


def decide_rollouts(lookup: Lookup, conversations: Mapping[str, Set[str]], batch_id: str = "") -> RowCounts:
    """Fills `dropped` with the staged rows that lose and the live rows that go, and counts.

    `conversations` (source → conversation ids): the staged rows are all there is of these. What the batch itself has
    committed before counts like what is staged with it: a rollout is added once, however many waves write it.
    """
    whole = [(source, conversation) for source, ids in conversations.items() for conversation in ids]
    names = ("source", "conversation_id")
    columns = {name: pa.array([pair[i] for pair in whole], pa.string()) for i, name in enumerate(names)}
    lookup.table_of("whole", pa.table(columns))
    lookup.load("staged", f"{_KEYS}, {_WHOLE if whole else 'false'} AS whole")
    same_id = "rollout_id IN (SELECT rollout_id FROM staged)"
    # An id is looked up in all partitions: a row of an unknown day may have become dated.
    lookup.load("live", f"{_KEYS}, batch_id", where=same_id, only=lookup.with_matches("rollout_id"))
    of_sources = lookup.in_partitions(lambda partition: partition["source"] in conversations) if whole else []
    lookup.load("gone", "rollout_id", where=f"{_WHOLE} AND NOT ({same_id})", only=of_sources)
    lookup.run("INSERT INTO dropped SELECT 'live', file, position FROM gone")
    _contest(lookup)
    _count_leaves_of_ties(lookup)
    _drop_losers(lookup)
    lookup.run("CREATE TEMP TABLE own AS SELECT rollout_id, row_hash FROM live WHERE batch_id = ?", [batch_id])
    [(total, copies, added, replaced, removed, superseded)] = lookup.run(
        """
        SELECT (SELECT count(DISTINCT rollout_id) FROM staged ANTI JOIN own USING (rollout_id)),
            (SELECT count(*) - count(DISTINCT (rollout_id, row_hash)) FROM staged)
                + (SELECT count(DISTINCT rollout_id) FROM staged SEMI JOIN own USING (rollout_id, row_hash)
                    WHERE NOT whole),
            (SELECT count(DISTINCT rollout_id) FROM fresh ANTI JOIN live USING (rollout_id)),
            (SELECT count(*) FROM winners SEMI JOIN live USING (rollout_id) ANTI JOIN own USING (rollout_id)
                WHERE side = 'staged'),
            (SELECT count(*) FROM gone),
            (SELECT count(DISTINCT (lost.rollout_id, lost.row_hash)) FROM ranked lost JOIN winners USING (rollout_id)
                WHERE (lost.side = 'staged' OR lost.rollout_id IN (SELECT rollout_id FROM own))
                AND lost.is_tied AND lost.row_hash <> winners.row_hash)
        """
    )
    carry_labels(lookup)
    return RowCounts(added, replaced, removed, total - added - replaced, superseded, copies)


def _contest(lookup: Lookup) -> None:
    """Makes `fresh`, the staged rows that say something new, and `contest`, all rows of the ids that have several.

    What a live row says already is dropped before, so that reading everything again costs no more than a join.
    """
    lookup.run(f"INSERT INTO dropped SELECT 'staged', file, position FROM staged SEMI JOIN {_SAID_BY_LIVE}")
    lookup.run(f"CREATE TEMP TABLE fresh AS SELECT * FROM staged ANTI JOIN {_SAID_BY_LIVE}")
    lookup.run(
        """
        CREATE TEMP TABLE contest AS
        WITH candidates AS (
            SELECT *, 'staged' AS side FROM fresh
            UNION ALL BY NAME
            SELECT *, 'live' AS side, (rollout_id, row_hash) IN (SELECT rollout_id, row_hash FROM staged WHERE whole)
                AS whole FROM live SEMI JOIN fresh USING (rollout_id)
        ), versioned AS (
            SELECT *, max(adapter_version) FILTER (side = 'live') OVER (PARTITION BY rollout_id) AS before,
                coalesce(side = 'staged' AND adapter_version >= $1 AND adapter_version <> before, false) AS remapped
            FROM candidates
        ), several AS (
            SELECT rollout_id FROM candidates GROUP BY rollout_id HAVING count(*) > 1
        )
        SELECT rollout_id, side, file, position, row_hash, redacted, rank() OVER (PARTITION BY rollout_id
            ORDER BY whole DESC, n_records DESC, remapped DESC, ended_at DESC NULLS LAST, adapter_version DESC) AS place
        FROM versioned SEMI JOIN several USING (rollout_id)
        """,
        [LEAST_OF_MAPS],
    )


def _count_leaves_of_ties(lookup: Lookup) -> None:
    """Makes `counts` (side, file, position, leaves) of the rows that only their leaves can tell apart."""
    lookup.run(
        """
        CREATE TEMP TABLE tied AS SELECT side, file, position FROM contest SEMI JOIN (
            SELECT rollout_id FROM contest WHERE place = 1 GROUP BY rollout_id HAVING count(DISTINCT row_hash) > 1
        ) USING (rollout_id) WHERE place = 1
        """
    )
    lookup.run("CREATE TEMP TABLE counts (side VARCHAR, file BIGINT, position BIGINT, leaves BIGINT)")
    for side, file in lookup.run("SELECT DISTINCT side, file FROM tied ORDER BY ALL"):
        positions = lookup.positions("tied", side, file)
        lookup.table_of("counted", _leaves_of_rows(lookup.files[cast(Side, side)][file].path, positions))
        lookup.run("INSERT INTO counts SELECT ?, ?, position, leaves FROM counted", [side, file])


def _drop_losers(lookup: Lookup) -> None:
    """Makes `winners` (of the contested ids) and drops every other row of theirs."""
    lookup.run(
        """
        CREATE TEMP TABLE ranked AS SELECT rollout_id, side, file, position, row_hash, place = 1 AS is_tied,
            row_number() OVER (PARTITION BY rollout_id
                ORDER BY place, coalesce(leaves, 0) DESC, row_hash DESC, redacted DESC, side, file, position) AS place
        FROM contest LEFT JOIN counts USING (side, file, position)
        """
    )
    lookup.run("INSERT INTO dropped SELECT side, file, position FROM ranked WHERE place > 1")
    lookup.run("CREATE TEMP TABLE winners AS SELECT rollout_id, side, row_hash FROM ranked WHERE place = 1")


def _leaves_of_rows(path: str, positions: pa.Array) -> pa.Table:
    """(position, leaves) of some rows of a data file."""
    counts = [count_leaves(without_labels(rows)) for rows in row_groups(path, only=positions)]
    return pa.table({"position": positions, "leaves": pa.concat_arrays(counts)})


def count_leaves(rows: pa.Table) -> pa.Array:
    """How many non-null values each row says, at any depth; lineage and partition columns aside.

    >>> count_leaves(pa.table({"a": [1, None], "b": [["x", "y"], []], "c": [{"d": 1, "e": None}, None]})).to_pylist()
    [4, 0]
    """
    skipped = LINEAGE | set(PARTITIONS["rollouts"])
    total = pa.array([0] * rows.num_rows, pa.int64())
    for name in rows.column_names:
        if name not in skipped:
            column = rows[name].combine_chunks()
            total = pc.add(total, _leaves(column))
    return total


def _leaves(values: pa.Array) -> pa.Array:
    """Non-null leaves of each element."""
    if isinstance(values, pa.StructArray):
        total = pa.array([0] * len(values), pa.int64())
        for child in values.flatten():  # flatten() carries the nulls of the struct into its children
            total = pc.add(total, _leaves(child))
        return total
    if isinstance(values, pa.ListArray):
        inner = values.flatten()  # in order, without what null lists cover
        running = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(_leaves(inner)).cast(pa.int64())])
        lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
        ends = pc.cumulative_sum(lengths)
        return pc.subtract(running.take(ends), running.take(pc.subtract(ends, lengths)))
    return values.is_valid().cast(pa.int64())
