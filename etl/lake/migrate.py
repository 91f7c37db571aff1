"""Bringing the tables of an older lake to the present version, each in one commit, as often as one likes.

A table whose rows change is written anew: its new files, its columns and the removal of the old files are one version
of its log. The next one says which version of the product that is. A migration that was cut off between the two, or
between two tables, is run again; until it is through, other commands say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from etl.lake.commit import Committing, commit_plan, try_again
from etl.lake.log import LiveFile, mark_present, snapshot
from etl.lake.migrations import brought_up, changed_since, present_version
from etl.lake.parquet import row_groups
from etl.lake.plan import Plan
from etl.lake.rules import rules_of
from etl.lake.staging import StagedFile, stage_rows
from etl.lake.version import stamped


class Migrated(NamedTuple):
    """What a migration does to a table."""

    table: str
    version: int
    """Of the lake that wrote it."""
    files: int
    """Data files that are written anew."""
    rows: int
    """Rows in them."""


def migrate_table(to: Committing, table: str, *, dry_run: bool) -> Migrated:
    """Brings one table to the present version; nothing happens to one that is of it."""

    def attempt() -> Migrated:
        base = snapshot(to.place, table, older=True)
        version = stamped(base.delta, to.place, table)
        files = sorted(base.files.items()) if table in changed_since(version) else []
        done = Migrated(table, version, len(files), sum(file.rows for _, file in files))
        if dry_run or version == present_version():
            return done
        if table in changed_since(version):
            staged = [_brought_up(to, table, file, version) for _, file in files]
            commit_plan(to, base, Plan(staged, [], [path for path, _ in files]), anew=True)
        mark_present(to.place, table)
        return done

    return try_again(to, table, attempt)


def _brought_up(to: Committing, table: str, file: LiveFile, version: int) -> StagedFile:
    """A data file written anew into the staging folder, row group by row group."""

    def pieces() -> Iterator[pa.Table]:
        for rows in row_groups(file.path):
            yield brought_up(table, rows, version)

    return stage_rows(to.batch.folder, table, pieces(), file.partition, rules_of(file.path))
