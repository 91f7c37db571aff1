"""One family of stored events into rows: its adapter puts it together, the spine makes rows of what comes out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from etl.adapter import adapter_named
from etl.conversation import Conversation, Ignored, StoredEvent
from etl.decode import encode
from etl.errors import SourceError
from etl.identity import Occurrences
from etl.normalise import FileMemory, Refused, Stream, normalise
from etl.row import Row

if TYPE_CHECKING:
    from etl.mapping import Mapping as Map


class FamilyRows(NamedTuple):
    """What became of a family."""

    rows: list[tuple[Row, int]]
    """Each with the bytes of its records."""
    ignored: list[tuple[StoredEvent | None, Ignored]]
    refused: list[tuple[StoredEvent, str, str]]
    """Events that no row can be made of, with a reason and a message."""


class Families:
    """Families of one source and adapter, on their way to rows."""

    def __init__(self, source: str, name: str, mapping: Map | None = None, *, strict: bool = False) -> None:
        """`mapping` is the map of the run, which goes before those that read a conversation earlier; `strict` lets an
        adapter's exceptions through.
        """
        self._source = source
        self._strict = strict
        self.adapter = adapter_named(name, mapping)
        self._memory = FileMemory()

    def rows(self, family: Sequence[StoredEvent]) -> FamilyRows:
        """The rows of a family; `conversation_id` of each is a key of it."""
        keys = {event.key for event in family}
        places = {id(event.record): event for event in family}
        self._memory.occurrences = Occurrences()
        made = FamilyRows([], [], [])
        try:
            self._assemble(family, keys, places, made)
        except Exception as error:
            # As where records are read: an adapter that raises costs the records at hand, named and kept, and no other.
            if self._strict or isinstance(error, (SourceError, MemoryError)):
                raise
            message = f"the {self.adapter.name} adapter failed ({error!r}); report it"
            return FamilyRows([], [], [(event, "adapter_error", message) for event in family])
        return made

    def _assemble(
        self, family: Sequence[StoredEvent], keys: set[str], places: Mapping[int, StoredEvent], made: FamilyRows
    ) -> None:
        for outcome in self.adapter.assemble(family):
            if isinstance(outcome, Ignored):
                made.ignored.append((places.get(id(outcome.record)), outcome))
            elif isinstance(outcome, Conversation):
                self._conversation(outcome, keys, places, made)
            else:
                made.refused.append((places[id(outcome.record)], outcome.reason, outcome.message))

    def _conversation(
        self, conversation: Conversation, keys: set[str], places: Mapping[int, StoredEvent], made: FamilyRows
    ) -> None:
        events = [places[id(record)] for record in conversation.records if id(record) in places]
        first = events[0] if events else next(iter(places.values()))
        if conversation.conversation_id not in keys:
            conversation.conversation_id = conversation.native_id if conversation.native_id in keys else first.key
        stream = Stream(self._source, self.adapter.name, self.adapter.version, first.source_uri)
        try:
            row = normalise(conversation, stream, self._memory)
        except Refused as refused:
            made.refused.extend((event, refused.reason, str(refused)) for event in events)
            return
        row.redactions = _summed(events)
        made.rows.append((row, sum(len(record.raw) for record in conversation.records)))


def _summed(events: Iterable[StoredEvent]) -> str | None:
    """The redactions of all events of a row."""
    total: Counter[str] = Counter()
    for event in events:
        if event.redactions:
            total.update(json.loads(event.redactions))
    return encode(dict(sorted(total.items()))) if total else None
