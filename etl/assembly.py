"""Conversations that span files, put together from stored events into rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from etl.adapter import adapter_named
from etl.conversation import Conversation, Ignored, StoredEvent
from etl.decode import encode
from etl.events import EventStore, Touched
from etl.lake import Lake, StagedFile
from etl.normalise import FileMemory, Refused, Stream, normalise
from etl.report import FileResult, Place
from etl.staging import Rejects, RowBuffer, Settings, Staging


class Assembled:
    """What one pass of assembly made: staged files, the conversations they are the whole truth of, and counts."""

    def __init__(self) -> None:
        self.staged: list[StagedFile] = []
        self.conversations: dict[str, set[str]] = {}
        self.rows: Counter[str] = Counter()
        self.rows_by_file: Counter[tuple[str, str]] = Counter()


def assemble(
    lake: Lake,
    settings: Settings,
    touched: Mapping[tuple[str, str], Touched],
    results: Iterable[FileResult],
    attempt: int,
) -> Assembled:
    """Rows of every conversation that new events touch; `touched` is (source, adapter) → what.

    Records that no row can be made of become rejects of the file that they lie in.
    """
    made = Assembled()
    staging = Staging(settings, f"assembly{attempt}")
    rows = RowBuffer(settings, staging)
    rejects = Rejects(settings, staging)
    by_place = {(result.source, result.uri): result for result in results}
    for (source, name), what in sorted(touched.items(), key=lambda item: item[0]):
        family_rows = _Family(source, name, rows, rejects, by_place, made)
        for family in EventStore(lake).families(source, name, what):
            family_rows.assemble(family)
    rows.flush()
    rejects.flush()
    made.staged = staging.close()
    return made


class _Family:
    """Families of one source and adapter, on their way to rows."""

    def __init__(
        self, source: str, name: str, rows: RowBuffer, rejects: Rejects, results: Mapping[tuple[str, str], FileResult],
        made: Assembled,
    ) -> None:  # fmt: skip
        self._source = source
        self._adapter = adapter_named(name)
        self._rows = rows
        self._rejects = rejects
        self._results = results
        self._made = made

    def assemble(self, family: list[StoredEvent]) -> None:
        keys = {event.key for event in family}
        self._made.conversations.setdefault(self._source, set()).update(keys)
        places = {id(event.record): event for event in family}
        memory = FileMemory()
        for outcome in self._adapter.assemble(family):
            if isinstance(outcome, Ignored):
                self._ignore(outcome, places)
            elif isinstance(outcome, Conversation):
                self._conversation(outcome, keys, places, memory)
            else:
                self._reject(places[id(outcome.record)], outcome.reason, outcome.message)

    def _conversation(
        self, conversation: Conversation, keys: set[str], places: Mapping[int, StoredEvent], memory: FileMemory
    ) -> None:
        events = [places[id(record)] for record in conversation.records if id(record) in places]
        first = events[0] if events else next(iter(places.values()))
        if conversation.conversation_id not in keys:
            conversation.conversation_id = conversation.native_id if conversation.native_id in keys else first.key
        stream = Stream(self._source, self._adapter.name, self._adapter.version, first.source_uri)
        try:
            row = normalise(conversation, stream, memory)
        except Refused as refused:
            for event in events:
                self._reject(event, refused.reason, str(refused))
            return
        row.redactions = _summed(events)
        self._made.rows[self._adapter.name] += 1
        self._made.rows_by_file[self._source, first.source_uri] += 1
        self._rows.add(row, sum(len(record.raw) for record in conversation.records))

    def _ignore(self, outcome: Ignored, places: Mapping[int, StoredEvent]) -> None:
        """Count a record that no row tells of where it was read, if that was in this run."""
        event = places.get(id(outcome.record))
        result = None if event is None else self._results.get((self._source, event.source_uri))
        if result is not None and result.records_used >= outcome.n:
            result.records_used -= outcome.n
            result.ignored[outcome.rule] += outcome.n

    def _reject(self, event: StoredEvent, reason: str, message: str) -> None:
        result = self._results.get((self._source, event.source_uri))
        if result is not None:
            result.records_used -= 1
            place = Place(event.source_uri, event.record.line, event.record.offset)
            self._rejects.add(result, reason, message, event.record.raw, place)


def _summed(events: Iterable[StoredEvent]) -> str | None:
    """The redactions of all events of a row."""
    total: Counter[str] = Counter()
    for event in events:
        if event.redactions:
            total.update(json.loads(event.redactions))
    return encode(dict(sorted(total.items()))) if total else None
