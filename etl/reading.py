"""Reading one file: open, detect, parse, normalise, redact, write to staging. One `Reader` a worker.

Nothing a reader writes is visible before the run commits it, and every record of a file is accounted for: in a row or
an event, in a reject, or under the rule that ignored it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from etl.adapter import Adapter, FileContext, adapter_named
from etl.ahead import AheadReader
from etl.conversation import Conversation, Fragment, Outcome, Record, Unusable
from etl.detection import Detection, Skipped, detect
from etl.digest import Digest, LineDigest
from etl.errors import LakeError, SourceError
from etl.events import EventBatch, Taken, Touched
from etl.framing import GLUED, LIMITS, PADDED, Broken, Framed, frame_lines
from etl.growing import FEW, Beginning, add, before_growth, counted, grown_or_replaced, known_beginning
from etl.lake import KnownFile, StagedFile
from etl.normalise import FileMemory, Refused, Stream, normalise
from etl.opening import BLOCK, blocks, small_text, span
from etl.parts import Part, Work, is_parted, names_in, occurring
from etl.remote import is_remote
from etl.report import UNDETECTED, FileResult, Place, Reached
from etl.settings import Settings
from etl.staging import FLUSH_BYTES, EventBuffer, Rejects, RowBuffer, Staging
from etl.walk import FoundFile, shown

if TYPE_CHECKING:
    from etl.mapping import Mapping


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
        self._likely: str | None = None

    def touched(self, source: str, adapter: str) -> Touched:
        """What all files of a stream touch together: most conversations lie in many of them."""
        return self._touched.setdefault((source, adapter), Touched())

    def close(self) -> list[StagedFile]:
        """Flush everything; the files to commit."""
        self.rows.flush()
        self.rejects.flush()
        self.events.flush()
        return [*self.ahead.close(), *self.staging.close()]

    def read(self, file: FoundFile, known: KnownFile | None = None) -> FileResult:
        """Read one file; never raises on what is in it. Of one that is `known`, and has grown, only what is new."""
        result = FileResult(file.uri, self.settings.source or UNDETECTED, file.size, file.modified_ns)
        try:
            if file.size < 0:
                raise Skipped(f"{file.uri}: not a regular file")
            alone = file.member is None and file.size <= BLOCK and self.settings.format is None
            text = small_text(file.path) if alone else None
            detection = detect(
                file.path, self.settings.format, file.member, self.settings.mapping, text=text, likely=self._likely
            )
            self._likely = detection.adapter.name
        except Skipped as skipped:
            result.state, result.error = "skipped", said(file, skipped)
        except SourceError as error:
            result.state, result.error = "failed", said(file, error)
        else:
            self._read(file, detection, text, known, self.begun(result, detection.adapter))
        self.rejects.forget_places()
        return result

    def begun(self, result: FileResult, adapter: Adapter) -> FileResult:
        """The result of a file that the adapter reads."""
        result.adapter, result.adapter_version = adapter.name, version_of(adapter, self.settings.mapping)
        result.source = self.settings.source or adapter.name
        result.spans = adapter.spans_files
        return result

    def _read(
        self, file: FoundFile, detection: Detection, text: bytes | None, known: KnownFile | None, result: FileResult
    ) -> None:
        adapter, limits = detection.adapter, self.settings.limits
        grows = file.size >= self.settings.least_growing and is_parted(file, detection, limits)
        if grows and self._read_on(file, adapter, known, result):
            return
        mark = before_growth(file, known)
        digest = LineDigest(mark) if grows else Digest(mark)
        parsing = _Parsing(self, adapter, file, result, lines=digest if isinstance(digest, LineDigest) else None)
        framed = detection.framed
        if framed is None or text is None or limits != LIMITS or type(adapter).records is not Adapter.records:
            framed = adapter.records(blocks(file.path, file.member, digest), limits)
        else:
            digest.update(text)
        parsing.run(framed)
        result.sha256 = digest.hexdigest()
        result.size = digest.size if file.member is None else file.size
        result.change = grown_or_replaced(digest, known)
        if isinstance(digest, LineDigest) and digest.whole and parsing.by_lines:
            result.reached = Reached(digest.whole, digest.lines, digest.lines_hexdigest())
            result.beginning = parsing.beginning()

    def _read_on(self, file: FoundFile, adapter: Adapter, known: KnownFile | None, result: FileResult) -> bool:
        """Read what is new in a file that has grown; False where it has to be read whole."""
        beginning = known_beginning(known, result, self.settings)
        start = None if known is None else known.read_bytes
        if known is None or beginning is None or start is None or start >= file.size:
            return False
        digest = LineDigest()
        try:
            names, lengths = (set(), set()) if adapter.spans_files else names_in(file, start, file.size)
            before = occurring(file, start, digest, names, lengths)
        except SourceError:
            return False
        if digest.hexdigest() != known.read_sha256:
            return False
        part = Part(start, file.size, digest.lines + 1, before)
        found = self.begun(FileResult(file.uri, result.source), adapter)
        found.touched = self.touched(result.source, adapter.name)
        beginning.begin(found)
        found.keys, found.days = frozenset(beginning.keys or ()), frozenset(beginning.days or ())
        try:
            parsing = _Parsing(self, adapter, file, found, part, digest)
            parsing.run(frame_lines(span(file.path, start, file.size, digest), self.settings.limits, part.line, start))
        except _NotApartError:
            return False
        found.touched.keys |= set(beginning.keys or ())
        found.touched.days |= set(beginning.days or ())
        add(result, found)
        result.touched, result.parsed, result.read_from = found.touched, found.parsed, start
        result.sha256, result.size, result.change = digest.hexdigest(), digest.size, "grown"
        result.reached = Reached(digest.whole, digest.lines, digest.lines_hexdigest())
        result.beginning = parsing.beginning()
        if beginning.keys is None and result.beginning is not None:
            result.beginning.keys = result.beginning.days = None
        return True

    def read_part(self, work: Work) -> FileResult:
        """Read a part of a file; the result says `again` where the file cannot be read in parts after all."""
        file, part = work.file, work.part
        assert part is not None
        assert work.adapter is not None
        adapter = adapter_named(work.adapter)
        result = self.begun(FileResult(file.uri, "", file.size, file.modified_ns, part=part.start), adapter)
        try:
            _Parsing(self, adapter, file, result, part).run(
                frame_lines(span(file.path, part.start, part.end), self.settings.limits, part.line, part.start)
            )
        except _NotApartError:
            result.again = True
        self.rejects.forget_places()
        return result

    def read_again(self, result: FileResult, framed: Iterable[Framed]) -> None:
        """Give records of a file that was read before to its adapter once more; `result` takes in what comes."""
        assert result.adapter is not None
        file = FoundFile(result.uri, result.uri, result.size, result.modified_ns)
        _Parsing(self, adapter_named(result.adapter), file, result).run(framed)


def version_of(adapter: Adapter, mapping: Mapping | None) -> int:
    """The version of an adapter, or of the map that it reads by."""
    return adapter.version if mapping is None else mapping.adapter_version


def said(file: FoundFile, error: Exception) -> str:
    """What is wrong with a file, by the name that the lake knows it by."""
    if file.uri == file.own_name:
        return str(error)
    outside = file.uri.removesuffix("" if file.member is None else f"!{file.member}")
    return str(error).replace(file.own_name, file.uri).replace(shown(file.place), outside)


class _NotApartError(Exception):
    """A row is named by records that nobody counted in the rest of the file."""


class _Parsing:
    """One file, or a part of it, going through its adapter, record by record accounted for.

    `lines` is the digest of a file of lines, if its next reading may begin where this one ends.
    """

    def __init__(
        self, reader: Reader, adapter: Adapter, file: FoundFile, result: FileResult, part: Part | None = None,
        lines: LineDigest | None = None,
    ) -> None:  # fmt: skip
        self._reader = reader
        self._part = part
        self._lines = lines
        self.by_lines = True
        """Whether every row that records name is named by one whole line."""
        self._apart = part is not None or lines is not None
        self._beginning: Beginning | None = None
        self._last: Record | None = None
        self._named = 0
        self._adapter = adapter
        self._file = file
        self._result = result
        version = adapter.version if result.adapter_version is None else result.adapter_version
        self._stream = Stream(result.source, adapter.name, version, file.uri)
        self._memory = FileMemory(None if part is None else part.before)
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
        before = result.records_used + result.rejects.total() + result.ignored.total()
        records = self._records(framed)
        while True:
            try:
                for outcome in self._adapter.parse(records, self._context()):
                    self._take(outcome)
                    self._handed.clear()
                break
            except Exception as error:
                # An adapter must not raise; one that does costs its record, named and kept, and no other.
                known = isinstance(error, (SourceError, LakeError, MemoryError, _NotApartError))
                if self._reader.settings.strict or known or not self._handed:
                    raise
                for record in self._handed:
                    self._reject(
                        record, "adapter_error", f"the {self._adapter.name} adapter failed ({error!r}); report it"
                    )
                self._handed.clear()
        self._take_events()
        result.touched = self._events.touched
        result.parsed = (result.rejects.total(), result.ignored.total())
        units = result.records_used + result.rejects.total() + result.ignored.total() - before
        lost = self._framed - units
        if lost > 0 or (lost and not self._adapter.splits):
            result.state = "failed"
            result.error = (
                f"{result.uri}: {lost} records are not accounted for; report it, naming the adapter {result.adapter}"
            )
        result.records_in += units

    def _context(self) -> FileContext:
        path = None if is_remote(self._file.place) else self._file.path
        return FileContext(self._file.own_name, path, self._part is None or self._part.start == 0)

    def beginning(self) -> Beginning:
        """What the whole lines gave."""
        return self._beginning or counted(self._result, self._reader.settings)

    def _take_events(self) -> None:
        if self._events.rows:
            taken = self._events.take()
            if self._apart:
                _note(self._result, taken)
            self._reader.events.add(taken)

    def _records(self, source: Iterable[Framed]) -> Iterator[Record]:
        """The good records; broken ones become rejects, the end of a cut-off stream an error of the file."""
        result = self._result
        try:
            for framed in source:
                self._framed += 1
                if self._apart:
                    self._next_line(framed)
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
            result.state, result.error = "failed", said(self._file, error)

    def _next_line(self, framed: Framed) -> None:
        """What comes of earlier records is all there."""
        self._reader.rejects.forget_places()
        self._last, self._named = framed if isinstance(framed, Record) else None, 0
        if self._beginning is None and self._lines is not None and (framed.offset or 0) >= self._lines.whole:
            self._take_events()
            self._beginning = counted(self._result, self._reader.settings)

    def _check_name(self, conversation: Conversation) -> None:
        """A row of a part may be named by one whole line: these were counted in the rest of the file, once each. What
        reads on after a row that is named otherwise would miss it in that count.
        """
        self._named += 1
        records = conversation.records
        whole = len(records) == 1 and records[0] is self._last and not {PADDED, GLUED} & set(records[0].notes)
        if not whole or self._named > 1:
            if self._part is not None:
                raise _NotApartError
            self.by_lines = False

    def _take(self, outcome: Outcome) -> None:
        result = self._result
        if isinstance(outcome, Conversation):
            self._conversation(outcome)
        elif isinstance(outcome, Fragment):
            self._events.add(outcome)
            result.records_used += not outcome.bridge
            if self._events.size >= FLUSH_BYTES:
                self._take_events()
        elif isinstance(outcome, Unusable):
            self._reject(outcome.record, outcome.reason, outcome.message)
        else:
            result.ignored[outcome.rule] += outcome.n

    def _conversation(self, conversation: Conversation) -> None:
        result = self._result
        if self._apart and conversation.native_id is None:
            self._check_name(conversation)
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


def _note(result: FileResult, taken: Taken) -> None:
    """Which conversations events belong to, as long as these are few."""
    if len(result.keys) <= FEW:
        result.keys |= set(taken.columns["conversation_key"])
    if len(result.days) <= FEW:
        result.days |= set(taken.columns["day"])
