"""Deleting conversations for good: rows, events and rejects, also in old versions that still lie on disk.

What is forgotten leaves a tombstone of hashes in `forgotten/`: ids of rollouts and rejects, which are hashes
themselves, and a hash of each conversation's key. Commits leave out what has one, so reading the source again does not
bring it back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from etl.lake.commit import Committing, commit_plan, try_again
from etl.lake.log import snapshot
from etl.lake.lookup import Lookup
from etl.lake.plan import plan
from etl.lake.sweep import purge
from etl.lake.tombstones import Tombstones


class Conversation(NamedTuple):
    """A rollout that is to be forgotten."""

    rollout_id: str
    source: str
    conversation_id: str | None
    source_uri: str | None


class Forgotten(NamedTuple):
    """How many rows went, by table."""

    rollouts: int
    events: int
    rejects: int


def forget(to: Committing, conversations: Sequence[Conversation]) -> Forgotten:
    """Writes the tombstone first, so that a run in between brings nothing back; then the rows go, and old versions of
    the data files that held them.
    """
    rows = pa.table({name: [getattr(c, name) for c in conversations] for name in Conversation._fields}, schema=_SCHEMA)
    rejects = _ids_of_rejects(to, rows)
    keys = [_hashed(c.source, c.conversation_id) for c in conversations if c.conversation_id is not None]
    tombstones = Tombstones([c.rollout_id for c in conversations], keys, rejects)
    to.place.write_tombstones(to.batch.id, json.dumps(tombstones._asdict()), to.batch.folder)
    return Forgotten(
        _remove(to, "rollouts", tombstones),
        _remove(to, "events", tombstones),
        _remove(to, "rejects", tombstones),
    )


_SCHEMA = pa.schema([(name, pa.string()) for name in Conversation._fields])


def _hashed(source: str, key: str) -> str:
    """As `Tombstones.condition` computes it in SQL."""
    return hashlib.sha256(f"{source}\x1f{key}".encode()).hexdigest()


def _ids_of_rejects(to: Committing, rows: pa.Table) -> list[str]:
    """Rejects out of the same files that name one of the conversations."""
    base = snapshot(to.place, "rejects")
    with Lookup("rejects", [], list(base.files.values()), to.batch) as lookup:
        lookup.table_of("wanted", rows)
        names_one = (
            "source_uri IN (SELECT source_uri FROM wanted) AND list_bool_or(list_transform("
            "(SELECT list(DISTINCT conversation_id) FROM wanted WHERE length(conversation_id) >= 8), "
            "lambda name: contains(raw::VARCHAR, name)))"
        )
        lookup.load("found", "reject_id", where=names_one)
        return [str(reject_id) for (reject_id,) in lookup.run("SELECT DISTINCT reject_id FROM found ORDER BY ALL")]


def _remove(to: Committing, table: str, tombstones: Tombstones) -> int:
    """Takes the live rows out of a table and purges the partitions they were in."""

    def attempt() -> tuple[int, list[Mapping[str, str]]]:
        base = snapshot(to.place, table)
        with Lookup(table, [], list(base.files.values()), to.batch) as lookup:
            condition = tombstones.condition(lookup, table)
            lookup.load("gone", "true AS gone", where=condition)
            lookup.run("INSERT INTO dropped SELECT 'live', file, position FROM gone")
            count = sum(lookup.dropped("live").values())
            touched = [lookup.files["live"][number].partition for number in lookup.dropped("live")]
            planned = plan(base, lookup)
        if not planned.is_empty:
            commit_plan(to, base, planned)
        return count, list(touched)

    count, touched = try_again(to, table, attempt)
    purge(to.place, table, touched)
    return count
