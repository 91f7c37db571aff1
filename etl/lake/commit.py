"""Compare-and-swap: look up, write, check, commit as the next version, or take it all back and try again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from etl.errors import ConflictError, LakeError
from etl.lake.batch import Batch, Claim
from etl.lake.errors import file_is_gone, lake_error, library_errors
from etl.lake.log import NewFile, Snapshot, UncertainError, commit, newest_version, snapshot
from etl.lake.lookup import Lookup
from etl.lake.partition import folder_of
from etl.lake.place import Place, new_name
from etl.lake.plan import Plan, plan, write_rewrite
from etl.lake.staging import StagedFile
from etl.lake.tombstones import leave_out_forgotten
from etl.remote import path_of
from etl.schema import PARTITIONS

TRIES = 40
"""How often a commit is tried before it is given up."""

LONGEST_WAIT = 2.0
"""Seconds, at most, between two tries."""

T = TypeVar("T")


class Committing(NamedTuple):
    """What every commit needs."""

    place: Place
    batch: Batch
    clock: Callable[[], float]
    """Seconds since 1970."""


def commit_rows(
    to: Committing,
    table: str,
    staged: Sequence[StagedFile],
    decide: Callable[[Lookup], T],
    *,
    still_current: Callable[[], bool] | None = None,
) -> T:
    """Commits what `decide` leaves of the staged and the live rows, as one new version; returns what it returned.

    The staged files are used up. `still_current` is asked in every try before the version is written; when it says no,
    ConflictError goes to the caller and the staged files stay.
    """

    def attempt() -> T:
        base = snapshot(to.place, table)
        with Lookup(table, staged, list(base.files.values()), to.batch) as lookup:
            leave_out_forgotten(lookup, to.place, table)
            result = decide(lookup)
            planned = plan(base, lookup)
        if still_current is not None and not still_current():
            raise MovedOnError("events moved on: assemble the conversations again")
        if not planned.is_empty:
            commit_plan(to, base, planned)
        return result

    result = try_again(to, table, attempt)
    for file in staged:
        path_of(file.path).unlink(missing_ok=True)
    return result


class MovedOnError(ConflictError):
    """What the rows were assembled from has changed: trying again here cannot help."""


def try_again(to: Committing, table: str, attempt: Callable[[], T]) -> T:
    """The result of an attempt, which is made again while others are first; ConflictError after `TRIES` times."""
    for number in range(TRIES):
        seen = newest_version(to.place, table)
        try:
            return attempt()
        except MovedOnError:
            raise
        except ConflictError:
            pass
        except library_errors() as error:
            # A file that is gone was replaced by another writer, unless no other writer was there.
            if not file_is_gone(error) or newest_version(to.place, table) == seen:
                raise lake_error(f"commit to {table} of {to.place.root}", error) from error
        longest = min(LONGEST_WAIT, 0.02 * 2**number)
        time.sleep(secrets.randbelow(1_000_000) / 1_000_000 * longest)
    raise ConflictError(
        f"other writers kept committing to {table} of {to.place.root}: nothing was written; run it again"
    )


def commit_plan(to: Committing, base: Snapshot, planned: Plan, *, data_change: bool = True, anew: bool = False) -> int:
    """Writes, renames, commits, and unlinks what is not retained.

    On failure the staged files are back where they were, the others gone. `anew` as in `log.commit`.
    """
    written: list[StagedFile] = []
    try:
        for rewrite in planned.rewrites:
            written += write_rewrite(rewrite, base.table, to.batch)
        version = _place_and_commit(to, base, [*planned.taken, *written], planned.removed, data_change, anew)
    except library_errors(LakeError):
        for file in written:
            Path(file.path).unlink(missing_ok=True)
        raise
    if not to.place.retain_ms():
        for path in planned.removed:
            to.place.data_file(base.table, path).unlink(missing_ok=True)
    return version


def _place_and_commit(
    to: Committing,
    base: Snapshot,
    files: Sequence[StagedFile],
    removed: Sequence[str],
    data_change: bool,
    anew: bool,
) -> int:
    """Brings the files to their places and commits them; on failure they are taken back."""
    added = [_placed(file) for file in files]
    moves = [
        (path_of(old.path), to.place.data_file(base.table, new.path)) for old, new in zip(files, added, strict=True)
    ]
    moved: list[tuple[Path, Path]] = []
    with to.batch.claim([Claim(base.table, file.path) for file in added]):
        try:
            for old, new in moves:
                to.place.put(old, new)
                moved.append((old, new))
            to.place.sync_data(base.table, [file.path for file in added])
            info, now_ms = {"batch_id": to.batch.id}, int(to.clock() * 1000)
            return commit(to.place, base, added, removed, info=info, now_ms=now_ms, data_change=data_change, anew=anew)
        except library_errors(LakeError) as error:
            if not isinstance(error, UncertainError):
                for old, new in reversed(moved):
                    to.place.take_back(old, new)
            raise


def _placed(file: StagedFile) -> NewFile:
    """The staged file under the name it gets in its table."""
    folder = folder_of(file.partition, PARTITIONS[file.table])
    return NewFile(f"{folder}/{new_name()}", file.partition, file.rows, file.size)
