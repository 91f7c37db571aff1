"""Taking back what a batch did: its rows go, those that it replaced or removed come back.

The old rows lie in the data files that its commit took out of the table, so they have to be there still: while the
lake retains them. A batch that only added rows can be taken back without. What a later batch did stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from etl.errors import LakeError
from etl.lake.commit import Committing, commit_plan, try_again
from etl.lake.history import Commit, batches_since, history
from etl.lake.log import LiveFile, Snapshot, snapshot
from etl.lake.lookup import Lookup
from etl.lake.migrations import brought_up
from etl.lake.parquet import row_groups
from etl.lake.plan import plan
from etl.lake.rules import rules_of
from etl.lake.staging import StagedFile, stage_rows
from etl.lake.verify import UNIQUE


class Undone(NamedTuple):
    """What was taken back in one table."""

    table: str
    removed: int
    restored: int


def undo(to: Committing, table: str, batch_id: str, unread: pa.Table | None = None) -> Undone:
    """Takes back what a batch did to a table. LakeError where the rows that it replaced are gone.

    `unread` has the files (source, source_uri) whose rows go: what `sources` says of a later reading goes too.
    """

    def attempt() -> Undone:
        base = snapshot(to.place, table)
        commits = [commit for commit in history(to.place, table) if commit.batch_id == batch_id]
        before, after = _files(to, table, commits)
        with Lookup(table, [], list(base.files.values()), to.batch) as lookup:
            removed = _drop(lookup, batch_id)
            if unread is not None:
                later = batches_since(to.place, table, batch_id) or []
                removed += _drop_later_readings(lookup, later, unread)
            staged = _restored(to, base, before, after, batch_id)
            lookup.files["staged"] = staged
            planned = plan(base, lookup)
        if not planned.is_empty:
            commit_plan(to, base, planned)
        return Undone(table, removed, sum(file.rows for file in staged))

    return try_again(to, table, attempt)


def _files(to: Committing, table: str, commits: Sequence[Commit]) -> tuple[list[LiveFile], list[LiveFile]]:
    """The data files that commits took out of a table and others had put in, and those that they put in and are still
    to be had.
    """
    own = {path for commit in commits for path in commit.added}
    added = [
        LiveFile(str(to.place.data_file(table, path)), {}, 0, rows)
        for commit in commits
        for path, rows in commit.added.items()
    ]
    removed = [
        LiveFile(str(to.place.data_file(table, gone.path)), gone.partition, 0, 0)
        for commit in commits
        for gone in commit.removed
        if gone.path not in own
    ]
    return removed, [file for file in added if to.place.is_there(file.path)]


def _only_rewrote(to: Committing, table: str, after: Sequence[LiveFile], batch_id: str) -> bool:
    """Whether none of the rows that a batch wrote (of its files that are still there) is its own."""
    with Lookup(table, [], after, to.batch) as lookup:
        lookup.load("written", "batch_id")
        [(rows, own)] = lookup.run("SELECT count(*), count_if(batch_id = $1) FROM written", [batch_id])
    return bool(rows) and not own


def _drop(lookup: Lookup, batch_id: str) -> int:
    lookup.table_of("undone", pa.table({"batch_id": [batch_id]}))
    lookup.load("live", "batch_id", where="batch_id IN (FROM undone)")
    lookup.run("INSERT INTO dropped SELECT 'live', file, position FROM live")
    [(count,)] = lookup.run("SELECT count(*) FROM live")
    return int(count)


def files_of(to: Committing, table: str, batch_id: str) -> pa.Table:
    """The files that a batch read the live rows of a table from: source, source_uri."""
    base = snapshot(to.place, table)
    with Lookup(table, [], list(base.files.values()), to.batch) as lookup:
        lookup.table_of("undone", pa.table({"batch_id": [batch_id]}))
        lookup.load("live", "source, source_uri", where="batch_id IN (FROM undone)")
        rows = lookup.run("SELECT DISTINCT source, source_uri FROM live")
    columns = [pa.array([row[place] for row in rows], pa.string()) for place in (0, 1)]
    return pa.table(columns, ["source", "source_uri"])


def _drop_later_readings(lookup: Lookup, later: Sequence[str], unread: pa.Table) -> int:
    lookup.table_of("unread", unread)
    lookup.table_of("later", pa.table({"batch_id": pa.array(later, pa.string())}))
    read_later = "batch_id IN (FROM later) AND (source, uri) IN (FROM unread)"
    lookup.load("readings", "source, uri", where=read_later)
    [(count,)] = lookup.run("INSERT INTO dropped SELECT 'live', file, position FROM readings")
    return int(count)


def _restored(
    to: Committing, base: Snapshot, before: Sequence[LiveFile], after: Sequence[LiveFile], batch_id: str
) -> list[StagedFile]:
    """Staged files with the rows of `before` that the batch replaced or removed, and nobody wrote again since; nor
    removed, where the batch had replaced them.
    """
    missing = next((file.path for file in before if not to.place.is_there(file.path)), None)
    if missing is not None:
        if _only_rewrote(to, base.table, after, batch_id):
            raise LakeError(
                f"cannot take back {batch_id}: it wrote no rows of its own, but those of other batches anew, as "
                "redacting, labelling, forgetting and compacting do; what redacting or forgetting took out stays out"
            )
        raise LakeError(
            f"cannot take back {batch_id}: the rows that it replaced in {base.table} are gone ({missing}); "
            "`etl retain 7d` keeps what later batches replace"
        )
    if not before:
        return []
    keys = ", ".join(f"{key}::VARCHAR" for key in UNIQUE[base.table])
    others = [*after, *base.files.values()]
    with Lookup(base.table, [], [*before, *others], to.batch) as lookup:
        lookup.table_of("undone", pa.table({"batch_id": [batch_id]}))
        old = range(len(before))
        lookup.load("old", f"({keys}) AS key", only=old)
        kept = range(len(before), len(before) + len(others))
        lookup.load("kept", f"({keys}) AS key", where="batch_id NOT IN (FROM undone)", only=kept)
        written = range(len(before), len(before) + len(after))
        lookup.load("written", f"({keys}) AS key", where="batch_id IN (FROM undone)", only=written)
        live = range(len(before) + len(after), len(before) + len(others))
        lookup.load("living", f"({keys}) AS key", where=f"({keys}) IN (SELECT key FROM written)", only=live)
        of_file = (
            "SELECT file, list(position ORDER BY position) FROM old ANTI JOIN kept USING (key) "
            "ANTI JOIN (FROM written ANTI JOIN living USING (key)) USING (key) GROUP BY file"
        )
        found = lookup.run(of_file)
    return [
        stage_rows(
            to.batch.folder,
            base.table,
            (
                brought_up(base.table, rows)  # a lake may have been migrated since
                for rows in row_groups(before[int(file)].path, only=pa.array(positions, pa.int64()))
            ),
            before[int(file)].partition,
            rules_of(before[int(file)].path),
        )
        for file, positions in sorted(found)
    ]
