"""The events table's rows: records of formats whose conversations span files, stored as they come.

A nightly run adds some records and touches some conversations. `EventBatch` makes rows of the table out of an adapter's
fragments and remembers what they touch; conversations are put together from what is stored (`etl/event_store.py`), or,
where all of them is in one run, from what is still in memory (`etl/ahead.py`).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from itertools import accumulate, chain
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from etl.conversation import Fragment, Record
from etl.identity import digest
from etl.schema import UNKNOWN_DAY, arrow_schema
from etl.times import day_of, instant

_SCHEMA = arrow_schema("events")
_canonical = msgspec.json.Encoder(order="deterministic")


class Ahead(msgspec.Struct):
    """The conversations of one worker that were put together ahead, from memory: rows to take unless more came."""

    files: set[str] = msgspec.field(default_factory=set)
    """Names of the staged files with their rows; those of all streams of a worker."""
    kin: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Key → all keys of its family."""
    ignored: dict[str, Counter[tuple[str, str]]] = msgspec.field(default_factory=dict)
    """First key of a family → how many records of which file (by uri) which rule left out."""
    stale: set[str] = msgspec.field(default_factory=set)
    """Keys of which more was read after that, or by another worker."""

    def outdated(self, keys: Iterable[str]) -> set[str]:
        """The keys whose rows are not the whole truth where more is known of these."""
        return {each for key in keys for each in self.kin.get(key, (key,))}


class Touched(msgspec.Struct):
    """What new records touch: their conversations, their links and their days (`unknown` without a time)."""

    keys: set[str] = msgspec.field(default_factory=set)
    links: dict[str, str] = msgspec.field(default_factory=dict)
    """Link → the conversation it was first seen in."""
    days: set[str] = msgspec.field(default_factory=set)
    ahead: Ahead = msgspec.field(default_factory=Ahead)

    def update(self, other: Touched) -> None:
        """Take in what another worker touched."""
        both = self.keys & other.keys
        for link in self.links.keys() & other.links.keys():
            both |= {self.links[link], other.links[link]}
        mine, theirs = self.ahead, other.ahead
        mine.stale |= theirs.stale | mine.outdated(both) | theirs.outdated(both)
        mine.files |= theirs.files
        mine.kin.update(theirs.kin)
        mine.ignored.update(theirs.ignored)
        self.keys |= other.keys
        self.links.update(other.links)
        self.days |= other.days

    def whole(self) -> set[str]:
        """The conversations whose rows were made ahead, and of which nothing more was read."""
        return self.ahead.kin.keys() - self.ahead.outdated(self.ahead.stale)

    def without(self, keys: Set[str]) -> Touched:
        """What is left to put together where some conversations are done."""
        left = self.keys - keys
        return Touched(left, {link: key for link, key in self.links.items() if key in left}, self.days)


class Taken(NamedTuple):
    """Some rows of `events` that a file gave, as Python values."""

    columns: dict[str, list[Any]]
    """What differs from row to row, by the name of the column."""
    constant: dict[str, str]
    """What does not."""
    records: list[Record | None]
    """The record where its own text is the payload; None where the payload is another."""
    touched: Touched

    def __len__(self) -> int:
        return len(self.records)

    @property
    def stream(self) -> tuple[str, str]:
        """Source and adapter."""
        return self.constant["source"], self.constant["adapter"]


_COLUMNS = ("day", "conversation_key", "record_key", "link_key", "at", "payload", "source_line", "source_offset")
"""What differs from row to row."""


class EventBatch:
    """The fragments of one file on their way to rows of `events`."""

    def __init__(self, *, source: str, adapter: str, uri: str, batch_id: str, touched: Touched | None = None) -> None:
        """`touched` is where to note what the fragments touch: files that share conversations share it."""
        self.touched = Touched() if touched is None else touched
        self.size = 0
        """Bytes of the payloads added since some rows were last taken."""
        self._constant = {"source": source, "adapter": adapter, "source_uri": uri, "batch_id": batch_id}
        self._added: list[tuple[Any, ...]] = []
        """Values of `_COLUMNS`, and the record where its own text is the payload."""
        self._pointed: set[tuple[str, str]] = set()

    @property
    def rows(self) -> int:
        """Rows added since some were last taken."""
        return len(self._added)

    def add(self, fragment: Fragment) -> None:
        """Append one fragment.

        Its payload is the record's own JSON text, or the canonical JSON of what the adapter gives in its place; either
        way a copy of a record has the same `record_key`.
        """
        payload, record, key = _payload(fragment), fragment.record, fragment.key
        name = digest(record.raw if fragment.payload is None else payload)
        own = record if payload is record.raw else None
        at = instant(fragment.at).micros
        day = UNKNOWN_DAY if at is None else _day(at // _DAY)
        self._added.append((day, key, name, fragment.link, at, payload, record.line, record.offset, own))
        self.size += len(payload)
        for alias in fragment.aliases:
            if (key, alias) not in self._pointed:
                self._pointed.add((key, alias))
                # An event without payload, in the day that every search looks into: it only joins the alias to the key.
                told = (UNKNOWN_DAY, key, digest(alias.encode()), alias, None, b"", None, None, None)
                self._added.append(told)

    def take(self) -> Taken:
        """The rows added since the last call; what they touch is noted."""
        *values, records = map(list, zip(*self._added, strict=True)) if self._added else ([] for _ in (*_COLUMNS, ""))
        self._added, self.size = [], 0
        self._pointed.clear()
        columns = dict(zip(_COLUMNS, values, strict=True))
        touched, keys, links = self.touched, columns["conversation_key"], columns["link_key"]
        touched.keys.update(keys)
        touched.days.update(day for day, payload in zip(columns["day"], columns["payload"], strict=True) if payload)
        for link, key in zip(links, keys, strict=True):
            if link is not None:
                touched.links.setdefault(link, key)
        return Taken(columns, self._constant, records, touched)


def events_table(pieces: Sequence[Taken]) -> pa.Table:
    """Rows of any files as one table with the schema of `events`."""
    rows = sum(map(len, pieces))
    arrays = []
    for field in _SCHEMA:
        name = field.name
        plain = pa.string() if pa.types.is_dictionary(field.type) else field.type
        if name in pieces[0].constant:
            array = pa.concat_arrays([pa.repeat(pa.scalar(each.constant[name], plain), len(each)) for each in pieces])
        elif name in pieces[0].columns:
            values = list(chain.from_iterable(each.columns[name] for each in pieces))
            array = _texts(values) if name == "payload" else pa.array(values, plain)
        else:
            array = pa.nulls(rows, field.type)
        arrays.append(array.dictionary_encode() if pa.types.is_dictionary(field.type) else array)
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _texts(values: Sequence[bytes]) -> pa.StringArray:
    """A column of texts, each valid UTF-8: copied at once, where building it value by value moves it as it grows."""
    offsets = pa.array([0, *accumulate(map(len, values))], pa.int32())
    return pa.StringArray.from_buffers(len(values), offsets.buffers()[1], pa.py_buffer(b"".join(values)))


_DAY = 86_400_000_000


@functools.lru_cache(64)
def _day(number: int) -> str:
    """The UTC day of that number since the epoch: the events of a file lie in few."""
    return day_of(number * _DAY) or UNKNOWN_DAY


def _payload(fragment: Fragment) -> bytes:
    """JSON of the record (its own text, where that is valid UTF-8) or of the payload; UTF-8."""
    if fragment.payload is not None:
        return _canonical.encode(fragment.payload)
    raw = fragment.record.raw
    if raw.isascii():
        return raw
    try:
        raw.decode()
    except UnicodeDecodeError:
        return _canonical.encode(fragment.record.value)
    return raw


__all__ = ["Ahead", "EventBatch", "Taken", "Touched", "events_table"]
