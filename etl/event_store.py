"""Stored events, put together again a conversation at a time.

Once the rows of a run are committed, `EventStore.families` gives back everything stored that belongs to a touched
conversation, in order and without copies, for `Adapter.assemble`.

Conversations that share a link (a trace that carries two session ids, say) are one family, to a fixpoint. They are
looked for in an open window of days around every event of theirs, and in the days of the rows that they already have:
the cost follows what is new, not what is stored. Nothing is held but one family and DuckDB's own, limited memory.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import glob
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from etl.conversation import Record, StoredEvent
from etl.database import open_database
from etl.decode import JsonError, decode
from etl.errors import LakeError
from etl.events import Touched
from etl.remote import open_to_duckdb
from etl.schema import UNKNOWN_DAY

if TYPE_CHECKING:
    import duckdb

WINDOW_DAYS = 7
"""Days before and after a record in which the rest of its conversation is looked for."""


STORED_NESTING = 10_000
"""An adapter may put into a payload what lay in texts; what could be written can be read."""


class LiveFiles(Protocol):
    """What a lake tells of a live data file."""

    @property
    def path(self) -> str: ...
    @property
    def partition(self) -> dict[str, str]: ...


class LiveTables(Protocol):
    """The part of a lake that assembly needs: the live data files of a table."""

    def live(self, table: str) -> Sequence[LiveFiles]: ...


class EventStore:
    """The stored events of a lake, as families.

    `memory_limit` is DuckDB's: what does not fit is spilled to a folder that is made in `spill` (by default where the
    system keeps temporary files) and removed again. Besides that, one family is in memory at a time.
    """

    def __init__(
        self, lake: LiveTables, *, memory_limit: str = "700MB", spill: str | None = None, window_days: int = WINDOW_DAYS
    ) -> None:
        self._lake = lake
        self._memory_limit = memory_limit
        self._spill = spill
        self._window_days = window_days

    def families(self, source: str, adapter: str, touched: Touched) -> Iterator[list[StoredEvent]]:
        """Every family with a touched conversation; its events by (key, at, source_uri, offset), copies dropped.

        Of copies the first in that order is kept. The order of families is that of their least keys.
        """
        if not touched.keys:
            return
        with self._database() as db:
            search = _Search(db, self._lake, source, adapter, self._window_days)
            search.spread(touched)
            search.unite()
            yield from search.stream()

    def known_elsewhere(self, source: str, adapter: str, touched: Touched, batch_id: str) -> set[str]:
        """The touched conversations of which other batches have stored something."""
        with self._database() as db:
            search = _Search(db, self._lake, source, adapter, self._window_days, batch_id)
            search.spread(touched)
            found = search.found()
        return {key for key, _ in found} | {touched.links[link] for _, link in found if link in touched.links}

    @contextlib.contextmanager
    def _database(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A database with a folder to spill to."""
        with tempfile.TemporaryDirectory(prefix="etl-families-", dir=self._spill) as spill:
            # One thread: a sort that spills needs room per thread, and Python is slower than it anyway.
            settings: dict[str, str | int | bool] = {
                "memory_limit": self._memory_limit,
                "threads": 1,
                "preserve_insertion_order": False,
                "temp_directory": spill,
            }
            with open_database(settings) as db:
                yield db


_FOUND = """
    SELECT conversation_key AS key, link_key AS link, CAST(day AS VARCHAR) AS day, filename AS file
    FROM read_parquet(?, hive_partitioning = false, filename = true)
    WHERE adapter = ? AND batch_id <> ?
      AND (conversation_key IN (SELECT name FROM {keys}) OR link_key IN (SELECT name FROM {links}))
    GROUP BY ALL
"""

_DAYS_OF_ROWS = """
    SELECT DISTINCT strftime(make_timestamp(epoch_us(started_at)), '%Y-%m-%d'),
                    strftime(make_timestamp(epoch_us(ended_at)), '%Y-%m-%d')
    FROM read_parquet(?, hive_partitioning = false)
    WHERE adapter = ? AND conversation_id IN (SELECT name FROM new_keys)
"""

_SHARED = """
    SELECT DISTINCT key, link FROM found
    WHERE link IN (SELECT link FROM found WHERE link IS NOT NULL GROUP BY link HAVING count(DISTINCT key) > 1)
    ORDER BY ALL
"""

_STREAM = """
    SELECT coalesce(f.family, e.conversation_key), e.conversation_key, e.record_key, e.link_key, epoch_us(e."at"),
           encode(e.payload), e.source_uri, e.source_line, e.source_offset, e.redactions
    FROM read_parquet(?, hive_partitioning = false) e
    SEMI JOIN all_keys k ON e.conversation_key = k.name
    LEFT JOIN families f ON e.conversation_key = f.key
    WHERE e.adapter = ? AND e.payload <> ''
    ORDER BY 1, 2, 5, e.source_uri, e.source_offset, e.record_key
"""


class _Search:
    """One assembly: which stored events belong to the touched conversations, and which of these are one family."""

    def __init__(
        self, db: duckdb.DuckDBPyConnection, lake: LiveTables, source: str, adapter: str, window_days: int,
        apart_from: str = "",
    ) -> None:  # fmt: skip
        """`apart_from` is a batch whose events are not looked at."""
        self._db = db
        self._adapter = adapter
        self._apart_from = apart_from
        self._window = dt.timedelta(days=window_days)
        self._events = _by_day(lake.live("events"), source)
        rows = lake.live("rollouts")
        open_to_duckdb(db, [*chain(*self._events.values()), *(file.path for file in rows)])
        self._rows = [glob.escape(file.path) for file in rows if file.partition.get("source") == source]
        db.execute("CREATE TEMP TABLE found (key VARCHAR, link VARCHAR, day VARCHAR, file VARCHAR)")
        db.execute("CREATE TEMP TABLE families (key VARCHAR, family VARCHAR)")
        for name in ("all_keys", "all_links"):
            db.execute(f"CREATE TEMP TABLE {name} (name VARCHAR)")

    def spread(self, touched: Touched) -> None:
        """Find what belongs together with the touched conversations, until a round finds nothing new.

        Days are searched once with everything known, and again with what became known later.
        """
        searched: set[str] = set()
        wanted = self._around(touched.days)
        new_keys, new_links = touched.keys, set(touched.links)
        while new_keys or new_links or wanted - searched:
            self._know("all_keys", "new_keys", new_keys)
            self._know("all_links", "new_links", new_links)
            wanted |= self._days_of_rows()
            self._db.execute("CREATE OR REPLACE TEMP TABLE round AS SELECT * FROM found LIMIT 0")
            self._look(searched, "new_keys", "new_links")
            self._look(wanted - searched, "all_keys", "all_links")
            searched |= wanted
            new_keys = self._names("SELECT DISTINCT key FROM round ANTI JOIN all_keys ON key = name")
            new_links = self._names(
                "SELECT DISTINCT link FROM round ANTI JOIN all_links ON link = name WHERE link IS NOT NULL"
            )
            wanted = searched | self._around(self._names("SELECT DISTINCT day FROM round"))
            self._db.execute("INSERT INTO found SELECT * FROM round")

    def _know(self, everything: str, name: str, names: Iterable[str]) -> None:
        table = pa.table({"name": pa.array(sorted(names), pa.string())})
        self._db.register("arriving", table)
        self._db.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM arriving")
        self._db.execute(f"INSERT INTO {everything} SELECT * FROM arriving")
        self._db.unregister("arriving")

    def _look(self, days: Iterable[str], keys: str, links: str) -> None:
        files = [path for day in sorted(days) for path in self._events.get(day, ())]
        if files:
            self._db.execute(
                "INSERT INTO round " + _FOUND.format(keys=keys, links=links), [files, self._adapter, self._apart_from]
            )

    def found(self) -> set[tuple[str, str | None]]:
        """Conversation and link of what was found."""
        return set(self._db.execute("SELECT DISTINCT key, link FROM found").fetchall())

    def _names(self, query: str) -> set[str]:
        return {str(row[0]) for row in self._db.execute(query).fetchall()}

    def _around(self, days: Iterable[str]) -> set[str]:
        """The days with events within the open window around these; `unknown` always."""
        wanted = {UNKNOWN_DAY}
        for day in days:
            if day != UNKNOWN_DAY:
                middle = dt.date.fromisoformat(day)
                first, last = (middle - self._window).isoformat(), (middle + self._window).isoformat()
                wanted.update(stored for stored in self._events if first <= stored <= last)
        return wanted

    def _days_of_rows(self) -> set[str]:
        """The days of the rows that the new keys already have: where older records of theirs lie."""
        if not self._rows:
            return set()
        days: set[str] = set()
        for first, last in self._db.execute(_DAYS_OF_ROWS, [self._rows, self._adapter]).fetchall():
            days |= self._around(day for day in (first, last) if day)
            if first and last:
                days.update(day for day in self._events if first <= day <= last)
        return days

    def unite(self) -> None:
        """Name the family of every key that shares a link with another: the least key of its component."""
        parent: dict[str, str] = {}

        def root(key: str) -> str:
            top = key
            while parent.setdefault(top, top) != top:
                top = parent[top]
            while parent[key] != top:
                parent[key], key = top, parent[key]
            return top

        first: dict[str, str] = {}
        for key, link in self._db.execute(_SHARED).fetchall():
            one, other = root(key), root(first.setdefault(link, key))
            parent[max(one, other)] = min(one, other)
        named = {"key": list(parent), "family": [root(key) for key in parent]}
        table = pa.table(named, schema=pa.schema([("key", pa.string()), ("family", pa.string())]))
        self._db.register("arriving", table)
        self._db.execute("INSERT INTO families SELECT * FROM arriving")
        self._db.unregister("arriving")

    def stream(self) -> Iterator[list[StoredEvent]]:
        """The families, one after another."""
        files = sorted(glob.escape(name) for name in self._names("SELECT DISTINCT file FROM found"))
        if not files:
            return
        # A relation and not `execute`: its sorted rows are streamed, never held as a whole.
        relation = self._db.sql(_STREAM, params=[files, self._adapter])
        events: list[StoredEvent] = []
        seen: set[tuple[str, str]] = set()
        current: str | None = None
        for batch in relation.to_arrow_reader(1024):
            columns = [column.to_pylist() for column in batch.columns]
            for family, key, name, link, at, payload, uri, line, offset, redactions in zip(*columns, strict=True):
                if family != current:
                    if events:
                        yield events
                    events, seen, current = [], set(), family
                if (key, name) not in seen:  # one conversation of a family may hold what another does
                    seen.add((key, name))
                    record = stored_record(payload, line, offset, uri)
                    events.append(StoredEvent(key, record, link, at, uri, redactions))
        if events:
            yield events


def _by_day(files: Iterable[LiveFiles], source: str) -> dict[str, list[str]]:
    """The event files of a source by their day."""
    days: dict[str, list[str]] = {}
    for file in files:
        if file.partition.get("source") == source:
            days.setdefault(file.partition["day"], []).append(glob.escape(file.path))
    return days


def stored_record(raw: bytes, line: int | None, offset: int | None, uri: str) -> Record:
    try:
        value, notes, mended = decode(raw, STORED_NESTING)
    except JsonError as error:
        raise LakeError(
            f"{uri}: a stored event of offset {offset} is no JSON any more ({error}); run `etl verify`"
        ) from None
    return Record(value, raw, line, offset, notes, mended)


__all__ = ["WINDOW_DAYS", "EventStore", "stored_record"]
