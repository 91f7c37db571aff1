"""Reading one file: open, detect, parse, normalise, redact, write to staging. One `Reader` a worker.

Nothing a reader writes is visible before the run commits it, and every record of a file is accounted for: in a row or
an event, in a reject, or under the rule that ignored it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from etl.adapter import Adapter, FileContext, adapter_named
from etl.ahead import AheadReader
from etl.conversation import Conversation, Fragment, Outcome, Record, Unusable
from etl.detection import Skipped, detect
from etl.discover import FoundFile
from etl.errors import SourceError
from etl.events import EventBatch, Touched
from etl.framing import Broken, Framed
from etl.lake import StagedFile
from etl.normalise import FileMemory, Refused, Stream, normalise
from etl.opening import Digest, blocks
from etl.remote import is_remote, path_of
from etl.report import FileResult, Place
from etl.staging import FLUSH_BYTES, EventBuffer, Rejects, RowBuffer, Settings, Staging

if TYPE_CHECKING:
    from etl.mapping import Mapping

UNDETECTED = "unknown"
"""Source name of files that no adapter reads, where the user named none."""


class Reader:
    """Reads files, one after another, into the staging folder of its batch."""

    def __init__(self, settings: Settings, worker: str = "0") -> None:
        self.settings = settings
        self.staging = Staging(settings, worker)
        self.rows = RowBuffer(settings, self.staging)
        self.rejects = Rejects(settings, self.staging)
        self.ahead = AheadReader(settings, worker)
        self.events = EventBuffer(self.staging, None if settings.dry_run else self.ahead.add)
        self._touched: dict[tuple[str, str], Touched] = {}

    def touched(self, source: str, adapter: str) -> Touched:
        """What all files of a stream touch together: most conversations lie in many of them."""
        return self._touched.setdefault((source, adapter), Touched())

    def close(self) -> list[StagedFile]:
        """Flush everything; the files to commit."""
        self.rows.flush()
        self.rejects.flush()
        self.events.flush()
        return [*self.ahead.close(), *self.staging.close()]

    def read(self, file: FoundFile) -> FileResult:
        """Read one file; never raises on what is in it."""
        result = FileResult(file.uri, self.settings.source or UNDETECTED, file.size, file.modified_ns)
        digest = Digest()
        try:
            if file.size < 0:
                raise Skipped(f"{file.uri}: not a regular file")
            detection = detect(file.path, self.settings.format, file.member, self.settings.mapping)
        except Skipped as skipped:
            result.state, result.error = "skipped", str(skipped)
        except SourceError as error:
            result.state, result.error = "failed", str(error)
        else:
            adapter = detection.adapter
            result.adapter, result.adapter_version = adapter.name, version_of(adapter, self.settings.mapping)
            result.source = self.settings.source or adapter.name
            framed = adapter.records(blocks(file.path, file.member, digest), self.settings.limits)
            _Parsing(self, adapter, file, result).run(framed)
            result.sha256 = digest.hexdigest()
            result.size = digest.size if file.member is None else file.size
        return result

    def read_again(self, result: FileResult, framed: Iterable[Framed]) -> None:
        """Give records of a file that was read before to its adapter once more; `result` takes in what comes."""
        assert result.adapter is not None
        file = FoundFile(result.uri, path_of(result.uri), result.size, result.modified_ns)
        _Parsing(self, adapter_named(result.adapter), file, result).run(framed)


def version_of(adapter: Adapter, mapping: Mapping | None) -> int:
    """The version of an adapter, or of the map that it reads by."""
    return adapter.version if mapping is None else mapping.adapter_version


class _Parsing:
    """One file going through its adapter, record by record accounted for."""

    def __init__(self, reader: Reader, adapter: Adapter, file: FoundFile, result: FileResult) -> None:
        self._reader = reader
        self._adapter = adapter
        self._file = file
        self._result = result
        version = adapter.version if result.adapter_version is None else result.adapter_version
        self._stream = Stream(result.source, adapter.name, version, file.uri)
        self._memory = FileMemory()
        self._events = EventBatch(
            source=result.source,
            adapter=adapter.name,
            uri=file.uri,
            batch_id=reader.settings.batch_id,
            touched=reader.touched(result.source, adapter.name),
        )
        self._handed: list[Record] = []
        self._framed = 0

    def run(self, framed: Iterable[Framed]) -> None:
        result = self._result
        before = result.records_used + result.ignored.total()
        records = self._records(framed)
        while True:
            try:
                for outcome in self._adapter.parse(
                    records, FileContext(self._file.uri, None if is_remote(self._file.uri) else self._file.path)
                ):
                    self._take(outcome)
                    self._handed.clear()
                break
            except Exception as error:
                # An adapter must not raise; one that does costs its record, named and kept, and no other.
                if self._reader.settings.strict or isinstance(error, (SourceError, MemoryError)) or not self._handed:
                    raise
                for record in self._handed:
                    self._reject(
                        record, "adapter_error", f"the {self._adapter.name} adapter failed ({error!r}); report it"
                    )
                self._handed.clear()
        if self._events.rows:
            self._reader.events.add(self._events.take())
        result.touched = self._events.touched
        units = result.records_used + result.rejects.total() + result.ignored.total() - before
        lost = self._framed - units
        if lost > 0 or (lost and not self._adapter.splits):
            result.state = "failed"
            result.error = (
                f"{result.uri}: {lost} records are not accounted for; report it, naming the adapter {result.adapter}"
            )
        result.records_in += units

    def _records(self, source: Iterable[Framed]) -> Iterator[Record]:
        """The good records; broken ones become rejects, the end of a cut-off stream an error of the file."""
        result = self._result
        try:
            for framed in source:
                self._framed += 1
                if isinstance(framed, Broken):
                    place = Place(result.uri, framed.line, framed.offset)
                    self._reader.rejects.add(
                        result, framed.reason, framed.message, framed.raw, place, framed.length or None
                    )
                    if framed.tail:
                        result.state = "growing"
                else:
                    self._handed.append(framed)
                    yield framed
        except SourceError as error:
            result.state, result.error = "failed", str(error)

    def _take(self, outcome: Outcome) -> None:
        result = self._result
        if isinstance(outcome, Conversation):
            self._conversation(outcome)
        elif isinstance(outcome, Fragment):
            self._events.add(outcome)
            result.records_used += not outcome.bridge
            if self._events.size >= FLUSH_BYTES:
                self._reader.events.add(self._events.take())
        elif isinstance(outcome, Unusable):
            self._reject(outcome.record, outcome.reason, outcome.message)
        else:
            result.ignored[outcome.rule] += outcome.n

    def _conversation(self, conversation: Conversation) -> None:
        result = self._result
        try:
            row = normalise(conversation, self._stream, self._memory)
        except Refused as refused:
            for record in conversation.records:
                self._reject(record, refused.reason, str(refused))
            return
        result.records_used += len(conversation.records)
        result.rows += 1
        self._reader.rows.add(row, sum(len(record.raw) for record in conversation.records))

    def _reject(self, record: Record, reason: str, message: str) -> None:
        place = Place(self._result.uri, record.line, record.offset)
        self._reader.rejects.add(self._result, reason, message, record.raw, place)


def micros_now() -> int:
    """The clock, where a run is given none."""
    return time.time_ns() // 1_000
