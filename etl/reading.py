"""Reading one file: open, detect, parse, normalise, redact, write to staging. One `Reader` a worker.

Nothing a reader writes is visible before the run commits it, and every record of a file is accounted for: in a row or an
event, in a reject, or under the rule that ignored it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from etl.adapter import Adapter, FileContext, adapter_named
from etl.columns import column, rollouts_table
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, Unusable
from etl.detection import Skipped, detect
from etl.discover import FoundFile
from etl.errors import SourceError
from etl.events import EventBatch
from etl.framing import Broken, Limits, frame
from etl.identity import reject_id
from etl.lake import StagedFile, StagingWriter
from etl.normalise import FileMemory, Refused, Stream, normalise
from etl.opening import Digest, blocks
from etl.redact import Redactor
from etl.report import FileResult, Place
from etl.row import Row
from etl.schema import arrow_schema

UNDETECTED = "unknown"
"""Source name of files that no adapter reads, where the user named none."""
FLUSH_BYTES = 6 << 20
"""Source bytes gathered in memory before their rows are redacted and written."""
FLUSH_ROWS = 20_000


class Settings(NamedTuple):
    """What a run passes down to its readers."""

    lake: str
    batch_id: str
    ingested_at: int
    """Microseconds since the epoch."""
    source: str | None = None
    format: str | None = None
    redact: str = "secrets"
    limits: Limits = Limits()
    dry_run: bool = False
    strict: bool = False
    """Let an adapter's exception through instead of turning its record into a reject (tests)."""


class Staging:
    """The staging writers of one worker, opened when a table first gets rows; all of it goes through redaction."""

    def __init__(self, settings: Settings, worker: str) -> None:
        self._settings = settings
        self._worker = worker
        self._redactor = Redactor(settings.redact)
        self._writers: dict[str, StagingWriter] = {}

    def write(self, name: str, table: pa.Table) -> None:
        redacted = self._redactor.table(name, table)
        if self._settings.dry_run:
            return
        if name not in self._writers:
            self._writers[name] = StagingWriter(self._settings.lake, self._settings.batch_id, name, self._worker)
        self._writers[name].write(redacted)

    def close(self) -> list[StagedFile]:
        staged = [file for writer in self._writers.values() for file in writer.close()]
        self._writers = {}
        return staged


class RowBuffer:
    """Rows on their way to staging, flushed by the bytes they were read from."""

    def __init__(self, settings: Settings, staging: Staging) -> None:
        self._settings = settings
        self._staging = staging
        self._rows: list[Row] = []
        self._bytes = 0

    def add(self, row: Row, size: int) -> None:
        self._rows.append(row)
        self._bytes += size
        if self._bytes >= FLUSH_BYTES or len(self._rows) >= FLUSH_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            table = rollouts_table(self._rows, self._settings.batch_id, self._settings.ingested_at)
            self._rows, self._bytes = [], 0
            self._staging.write("rollouts", table)


class Rejects:
    """Rejected records on their way to staging."""

    def __init__(self, settings: Settings, staging: Staging) -> None:
        self._settings = settings
        self._staging = staging
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, result: FileResult, reason: str, message: str, raw: bytes, place: Place, length: int | None = None) -> None:
        result.rejects[reason] += 1
        result.first_rejects.setdefault(reason, (place, message))
        self._rows.append(
            (
                reject_id(result.source, result.uri, place.offset, reason),
                result.source,
                result.uri,
                place.line,
                place.offset,
                len(raw) if length is None else length,
                reason,
                f"{place}: {message}",
                raw,
                result.adapter,
                result.adapter_version,
                self._settings.batch_id,
                self._settings.ingested_at,
            )
        )
        self._bytes += len(raw)
        if self._bytes >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            schema = arrow_schema("rejects")
            arrays = [column(list(values), field.type) for values, field in zip(zip(*self._rows, strict=True), schema, strict=True)]
            self._rows, self._bytes = [], 0
            self._staging.write("rejects", pa.Table.from_arrays(arrays, schema=schema))


class Reader:
    """Reads files, one after another, into the staging folder of its batch."""

    def __init__(self, settings: Settings, worker: str = "0") -> None:
        self.settings = settings
        self.staging = Staging(settings, worker)
        self.rows = RowBuffer(settings, self.staging)
        self.rejects = Rejects(settings, self.staging)

    def close(self) -> list[StagedFile]:
        """Flush everything; the files to commit."""
        self.rows.flush()
        self.rejects.flush()
        return self.staging.close()

    def read(self, file: FoundFile) -> FileResult:
        """Read one file; never raises on what is in it."""
        result = FileResult(file.uri, self.settings.source or UNDETECTED, file.size, file.modified_ns)
        digest = Digest()
        try:
            if file.size < 0:
                raise Skipped(f"{file.uri}: not a regular file")
            detection = detect(file.path, self.settings.format, file.member)
        except Skipped as skipped:
            result.state, result.error = "skipped", str(skipped)
        except SourceError as error:
            result.state, result.error = "failed", str(error)
        else:
            adapter = detection.adapter
            result.adapter, result.adapter_version = adapter.name, adapter.version
            result.source = self.settings.source or adapter.name
            parsing = _Parsing(self, adapter, file, result, digest)
            parsing.run()
            result.sha256 = digest.hexdigest()
            result.size = digest.size if file.member is None else file.size
        return result


class _Parsing:
    """One file going through its adapter, record by record accounted for."""

    def __init__(self, reader: Reader, adapter: Adapter, file: FoundFile, result: FileResult, digest: Digest) -> None:
        self._reader = reader
        self._adapter = adapter
        self._file = file
        self._result = result
        self._digest = digest
        self._stream = Stream(result.source, adapter.name, adapter.version, file.uri)
        self._memory = FileMemory()
        self._events = EventBatch(
            source=result.source, adapter=adapter.name, uri=file.uri, batch_id=reader.settings.batch_id
        )
        self._handed: list[Record] = []
        self._framed = 0

    def run(self) -> None:
        result = self._result
        records = self._records()
        while True:
            try:
                for outcome in self._adapter.parse(records, FileContext(self._file.uri, self._file.path)):
                    self._take(outcome)
                    self._handed.clear()
                break
            except Exception as error:
                # An adapter must not raise; one that does costs its record, named and kept, and no other.
                if self._reader.settings.strict or isinstance(error, (SourceError, MemoryError)) or not self._handed:
                    raise
                for record in self._handed:
                    self._reject(record, "adapter_error", f"the {self._adapter.name} adapter failed ({error!r}); report it")
                self._handed.clear()
        if self._events.rows:
            self._reader.staging.write("events", self._events.table())
        result.touched = self._events.touched
        units = result.records_used + result.rejects.total() + result.ignored.total()
        result.records_in += units if self._adapter.splits else self._framed
        lost = self._framed - units if self._adapter.splits else result.balance()
        if lost > 0 or (lost and not self._adapter.splits):
            result.state = "failed"
            result.error = f"{result.uri}: {lost} records are not accounted for; report it, naming the adapter {result.adapter}"
            result.records_in = units

    def _records(self) -> Iterator[Record]:
        """The good records; broken ones become rejects, the end of a cut-off stream an error of the file."""
        result = self._result
        source = frame(blocks(self._file.path, self._file.member, self._digest), self._reader.settings.limits)
        try:
            for framed in source:
                self._framed += 1
                if isinstance(framed, Broken):
                    place = Place(result.uri, framed.line, framed.offset)
                    self._reader.rejects.add(result, framed.reason, framed.message, framed.raw, place, framed.length or None)
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
            result.records_used += 1
            if self._events.size >= FLUSH_BYTES:
                self._reader.staging.write("events", self._events.table())
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


def sources_table(results: Iterable[FileResult], settings: Settings) -> pa.Table:
    """The rows of `sources` for the files that were read."""
    from etl.decode import encode

    schema = arrow_schema("sources")
    rows = [
        (
            result.source, result.uri, max(result.size, 0), result.modified_ns // 1_000 or None, result.sha256,
            result.adapter, result.adapter_version, result.state, result.error, result.records_in, result.records_used,
            result.rows, result.rejects.total(), encode(dict(sorted(result.ignored.items()))) if result.ignored else None,
            settings.batch_id, settings.ingested_at,
        )
        for result in results
    ]  # fmt: skip
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.Table.from_arrays([column(list(c), field.type) for c, field in zip(columns, schema, strict=True)], schema=schema)


def replay(adapter_name: str, raw: bytes, uri: str) -> Iterator[Outcome]:
    """What an adapter makes today of the bytes of one record (`etl rejects --replay`)."""
    records = (framed for framed in frame(iter([raw])) if isinstance(framed, Record))
    return adapter_named(adapter_name).parse(records, FileContext(uri))


def micros_now() -> int:
    """The clock, where a run is given none."""
    return time.time_ns() // 1_000


__all__ = ["Ignored", "Reader", "RowBuffer", "Settings", "Staging", "micros_now", "replay", "sources_table"]
