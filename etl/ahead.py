"""Conversations that are whole in what one worker reads, put together while their records are still in memory.

Most conversations arrive whole: a session file, the spans of a trace. Writing their events down, sorting them in DuckDB
and decoding them again costs more than all the rest of their assembly. So the last events of each stream are held, up
to `HELD_BYTES`; a family on which nothing was added for longest is made into rows when others need its place, or at
the end. This is a guess. More of it may come later, from another worker, or may lie in the lake: then `Touched.ahead`
knows it as stale, or the commit finds out; its rows are left out and the family is put together from stored events.

What is held went through redaction, and is what a stored event gives back: rows do not tell which way they came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from etl.conversation import Record, StoredEvent
from etl.event_store import stored_record
from etl.events import Taken, Touched
from etl.families import Families
from etl.lake import StagedFile
from etl.settings import Settings
from etl.staging import RowBuffer, Staging

HELD_BYTES = 6 << 20
"""Bytes of payloads that wait in memory for more of their conversations, in each stream."""
LEAST_GUESSES = 256
"""So many families are tried before a stream that mostly guesses wrong is left alone."""

_LATER = object()
"""Stands for the value of a payload that the spine encoded itself: it is decoded when its family is whole."""
_decode = msgspec.json.Decoder().decode


class _Group:
    """Events of conversations that share links, as (what they are ordered by, number among those held, event)."""

    __slots__ = ("events", "keys", "size")

    def __init__(self, key: str) -> None:
        self.keys = [key]
        self.events: list[tuple[Any, ...]] = []
        self.size = 0


class _Held:
    """The events of one stream that wait."""

    def __init__(self, taken: Taken, rows: RowBuffer) -> None:
        self.touched: Touched = taken.touched
        self._families = Families(*taken.stream)
        self._rows = rows
        self._groups: dict[str, _Group | None] = {}
        """By key; None once its family is made or given up."""
        self._waiting: dict[int, _Group] = {}
        """By id, the one that was added to last at the end."""
        self._size = 0
        self._numbers = count()
        self._wrong = 0
        self._active = True

    def add(self, taken: Taken, redacted: _Redacted) -> None:
        """Hold rows as they came out of redaction."""
        columns = taken.columns
        links = self.touched.links
        if not self._active:
            self._note(columns["conversation_key"], columns["link_key"])
            return
        latest: _Group | None = None
        for key, link, row in zip(
            columns["conversation_key"], columns["link_key"], _events(taken, redacted, self._numbers), strict=True
        ):
            if key not in self._groups:
                self._groups[key] = _Group(key)
            group = self._groups[key]
            if link is not None and links[link] != key:
                group = self._united(links[link], key)
            if group is None:
                self.touched.ahead.stale.add(key)
                continue
            if row is not None:
                size = len(row[8].record.raw)
                group.events.append(row)
                group.size += size
                self._size += size
            if group is not latest:
                self._waiting.pop(id(group), None)
                self._waiting[id(group)] = latest = group
        if self._size > HELD_BYTES:
            self.make(HELD_BYTES // 2)

    def _note(self, keys: Sequence[str], links: Sequence[str | None]) -> None:
        """Only see which of the families that are made get more."""
        ahead = self.touched.ahead
        if ahead.kin:
            ahead.stale.update(ahead.kin.keys() & set(keys))
            pairs = ((self.touched.links[link], key) for link, key in zip(links, keys, strict=True) if link is not None)
            ahead.stale.update(first for first, key in pairs if first != key and first in ahead.kin)

    def _united(self, first: str, key: str) -> _Group | None:
        """The one group of two conversations that share a link; None where one of them waits no longer."""
        one, other = self._groups.get(first), self._groups[key]
        if one is None or other is None:
            self.touched.ahead.stale.update((first, key))
            for group in (one, other):
                if group is not None:
                    self._give_up(group)
            return None
        if one is not other:
            if len(one.events) < len(other.events):
                one, other = other, one
            one.keys += other.keys
            one.events += other.events
            one.size += other.size
            self._waiting.pop(id(other), None)
            self._groups.update(dict.fromkeys(other.keys, one))
        return one

    def _give_up(self, group: _Group) -> None:
        self._groups.update(dict.fromkeys(group.keys))
        self._waiting.pop(id(group), None)
        self._size -= group.size
        self._wrong += 1

    def make(self, left: int) -> None:
        """Put together those that wait longest, until no more than `left` bytes wait."""
        while self._waiting and (self._size > left or not left):
            group = next(iter(self._waiting.values()))
            del self._waiting[id(group)]
            self._groups.update(dict.fromkeys(group.keys))
            self._size -= group.size
            if group.events and not self._made(group):
                self._wrong += 1
        ahead = self.touched.ahead
        wrong = self._wrong + len(ahead.stale)
        if wrong > LEAST_GUESSES and wrong > len(ahead.kin) // 2:
            self._active = False
            self._groups.clear()
            self._waiting.clear()
            self._size = 0

    def _made(self, group: _Group) -> bool:
        """The rows of a family; False where they must wait for stored events, or would be rejects."""
        family = _family(group)
        if not self._families.adapter.is_whole(family):
            return False
        made = self._families.rows(family)
        if made.refused:
            return False
        for row, size in made.rows:
            self._rows.add(row, size)
        ahead = self.touched.ahead
        keys = tuple(group.keys)
        ahead.kin.update(dict.fromkeys(keys, keys))
        ignored: Counter[tuple[str, str]] = Counter()
        for event, outcome in made.ignored:
            if event is not None:
                ignored[event.source_uri, outcome.rule] += outcome.n
        if ignored:
            ahead.ignored[keys[0]] = ignored
        return True


class _Redacted:
    """What redaction made of a table of events, read piece by piece: the next one begins at `start`."""

    def __init__(self, table: pa.Table, written: pa.Table) -> None:
        self.start = 0
        self._uris = written["source_uri"]
        changed = pc.indices_nonzero(pc.not_equal(written["payload"], table["payload"]))
        told = zip(
            changed.to_pylist(),
            written["payload"].take(changed).to_pylist(),
            written["redactions"].take(changed).to_pylist(),
            strict=True,
        )
        self.masked: dict[int, tuple[bytes, str | None]] = {row: (text.encode(), counts) for row, text, counts in told}
        """Row → its payload, and how often which rule changed it."""

    def uri(self) -> str:
        """Of the file that the next piece comes from."""
        return str(self._uris[self.start].as_py())


def _events(taken: Taken, redacted: _Redacted, numbers: Iterator[int]) -> list[tuple[Any, ...] | None]:
    """An event of each row with what it is ordered by, and a number; None for a row that only joins."""
    columns, uri = taken.columns, redacted.uri()
    made: list[tuple[Any, ...] | None] = []
    names = ("conversation_key", "link_key", "at", "record_key", "payload", "source_line", "source_offset")
    rows = zip(*(columns[name] for name in names), taken.records, strict=True)
    for row, (key, link, at, name, payload, line, offset, own) in enumerate(rows, redacted.start):
        if not payload:
            made.append(None)
            continue
        text, counts = redacted.masked.get(row, (None, None))
        if text is not None:
            record = stored_record(text, line, offset, uri)
        elif own is None:
            record = Record(_LATER, payload, line, offset)
        elif own.notes or own.mended:
            record = stored_record(payload, line, offset, uri)
        else:
            record = own
        event = StoredEvent(key, record, link, at, uri, counts)
        made.append((key, at is None, at or 0, uri, offset is None, offset or 0, name, next(numbers), event))
    return made


def _family(group: _Group) -> list[StoredEvent]:
    """Its events as the store gives them: in order, each record of a conversation once."""
    family: list[StoredEvent] = []
    seen: set[tuple[str, str]] = set()
    for key, _, _, _, _, _, name, _, event in sorted(group.events):
        if (key, name) not in seen:
            seen.add((key, name))
            if event.record.value is _LATER:
                event.record.value = _decode(event.record.raw)
            family.append(event)
    return family


class AheadReader:
    """Holds what one worker reads, and writes the rows of what is whole."""

    def __init__(self, settings: Settings, worker: str) -> None:
        self._staging = Staging(settings, f"{worker}-whole")
        self._rows = RowBuffer(settings, self._staging)
        self._streams: dict[tuple[str, str], _Held] = {}

    def add(self, pieces: Sequence[Taken], table: pa.Table, written: pa.Table) -> None:
        """Take events that were stored, in the order in which they were read; the table before and after redaction."""
        redacted = _Redacted(table, written)
        for taken in pieces:
            if taken.stream not in self._streams:
                self._streams[taken.stream] = _Held(taken, self._rows)
            self._streams[taken.stream].add(taken, redacted)
            redacted.start += len(taken)

    def close(self) -> list[StagedFile]:
        """Put together what waits; the staged files, which every stream knows by name."""
        for held in self._streams.values():
            held.make(0)
        self._rows.flush()
        staged = self._staging.close()
        for held in self._streams.values():
            held.touched.ahead.files |= {Path(file.path).name for file in staged}
        return staged
