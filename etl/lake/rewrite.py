"""Writing rows anew in place, such as when a rule of redaction improves; old versions of them go at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import NamedTuple

import pyarrow as pa

from etl.lake.commit import Committing, commit_plan, try_again
from etl.lake.log import snapshot
from etl.lake.parquet import row_groups
from etl.lake.plan import Plan
from etl.lake.rules import covers, rules_of, with_rules
from etl.lake.staging import StagedFile, stage_rows
from etl.lake.sweep import purge

Change = Callable[[pa.Table], pa.Table]
"""Rows in, as many rows out, in their order; the same table where nothing changes."""


class Rewritten(NamedTuple):
    """What rules found in the data files of a table."""

    older: int
    """Files whose rows had not gone through these rules: they were written anew."""
    found: int
    """Those in which a row changed."""


def rewrite(
    to: Committing, table: str, change: Change, version: str, *, dry_run: bool, sources: Set[str] | None = None
) -> Rewritten:
    """Writes the data files of a table (of these sources) anew whose rows have not gone through `change`, the rules of
    that version.
    """

    def attempt() -> tuple[Rewritten, list[dict[str, str]]]:
        base = snapshot(to.place, table)
        staged: list[StagedFile] = []
        removed: list[str] = []
        changed: set[str] = set()
        for path, file in sorted(base.files.items()):
            if sources is not None and file.partition["source"] not in sources:
                continue
            seen = rules_of(file.path)
            if all(covers(one, version) for one in seen):
                continue
            removed.append(path)
            pieces = _changed(file.path, change, changed)
            if dry_run:
                any(file.path in changed for _ in pieces)
            else:
                noted = {with_rules(one, version) for one in seen}
                staged.append(stage_rows(to.batch.folder, table, pieces, file.partition, noted))
        if staged:
            commit_plan(to, base, Plan(staged, [], removed))
        return Rewritten(len(removed), len(changed)), [base.files[path].partition for path in removed]

    done, touched = try_again(to, table, attempt)
    if not dry_run:
        purge(to.place, table, touched)
    return done


def _changed(path: str, change: Change, changed: set[str]) -> Iterator[pa.Table]:
    """The rows of a file, changed; the path is noted where that changed one of them."""
    for rows in row_groups(path):
        new = change(rows)
        if new is not rows:
            changed.add(path)
        yield new
