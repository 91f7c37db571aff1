"""Removing what dead runs left behind: staging folders, and data files that are not live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from etl.lake.batch import Claim, staging_state
from etl.lake.errors import one_line
from etl.lake.history import retained
from etl.lake.log import snapshot
from etl.lake.partition import folder_of
from etl.lake.place import Place
from etl.schema import PARTITIONS, TABLES


class Swept(NamedTuple):
    """What was removed."""

    batches: list[str]
    """Ids of dead batches whose staging folder went."""
    files: list[str]
    """Absolute paths of data files that went: renamed but not committed, or replaced and not yet unlinked."""


def sweep(place: Place, now_ms: int) -> Swept:
    """Removes the leftovers of batches whose processes have ended; what a live batch wrote or claims stays."""
    with one_line(f"tidy up the lake {place.root}"):
        found = orphans(place, now_ms)
        dead = staging_state(place, remove_dead=True).dead
        for path in found:
            place.data_file(path.table, path.path).unlink(missing_ok=True)
    return Swept(dead, [str(place.data_file(path.table, path.path)) for path in found])


def orphans(place: Place, now_ms: int, tables: Sequence[str] = tuple(TABLES)) -> list[Claim]:
    """Data files that no version will show: neither live nor retained nor claimed by a live batch.

    The order makes it safe. A writer claims, renames, commits, and only then drops its claim: whatever was on disk
    first, then unclaimed, and then not in the log either, is nobody's.
    """
    on_disk = [Claim(table, path) for table in tables for path in place.data_files(table)]
    claimed = staging_state(place, remove_dead=False).claims
    looked_at = sorted({file.table for file in on_disk})  # a table without files has none to lose
    kept = {table: snapshot(place, table).files.keys() | retained(place, table, now_ms) for table in looked_at}
    found = [file for file in on_disk if file not in claimed and file.path not in kept[file.table]]
    return [file for file in found if not place.may_be_uncommitted(place.data_file(file.table, file.path), now_ms)]


def purge(place: Place, table: str, partitions: Sequence[Mapping[str, str]]) -> None:
    """Removes the data files of these partitions that are not live, retained or not."""
    folders = {folder_of(dict(partition), PARTITIONS[table]) for partition in partitions}
    on_disk = [path for path in place.data_files(table) if path.rpartition("/")[0] in folders]
    claimed = {claim.path for claim in staging_state(place, remove_dead=False).claims if claim.table == table}
    live = snapshot(place, table).files
    for path in on_disk:
        if path not in live and path not in claimed:
            place.data_file(table, path).unlink(missing_ok=True)
