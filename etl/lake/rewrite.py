"""Writing rows anew in place, such as when a rule of redaction improves; old versions of them go at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from etl.lake.commit import Committing, commit_plan, try_again
from etl.lake.log import snapshot
from etl.lake.parquet import row_groups
from etl.lake.plan import Plan
from etl.lake.staging import StagedFile, stage_rows
from etl.lake.sweep import purge

Change = Callable[[pa.Table], pa.Table]
"""Rows in, as many rows out, in their order; the same table where nothing changes."""


def rewrite(to: Committing, table: str, change: Change, *, dry_run: bool) -> int:
    """Writes the data files of a table anew in which `change` changes a row; gives how many these are."""

    def attempt() -> tuple[int, list[dict[str, str]]]:
        base = snapshot(to.place, table)
        staged: list[StagedFile] = []
        removed: list[str] = []
        for path, file in sorted(base.files.items()):
            if not any(new is not old for old, new in _changed(file.path, change)):
                continue
            removed.append(path)
            if not dry_run:
                rows = (new for _, new in _changed(file.path, change))
                staged.append(stage_rows(to.batch.folder, table, rows, file.partition))
        if staged:
            commit_plan(to, base, Plan(staged, [], removed))
        return len(removed), [base.files[path].partition for path in removed]

    count, touched = try_again(to, table, attempt)
    if not dry_run:
        purge(to.place, table, touched)
    return count


def _changed(path: str, change: Change) -> Iterator[tuple[pa.Table, pa.Table]]:
    for rows in row_groups(path):
        yield rows, change(rows)
