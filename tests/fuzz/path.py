"""One input on the product's real path, in strict mode and with no net under it: read, normalise, redact, check.

`read` is `etl.reading.Reader` as a run drives it, with the events put together by `etl.assembly`, but in memory and
nothing is written; `ingest` is the whole of `etl.ingest` on a lake that is made for it. Whatever they raise is a
failure; so are a record that is not accounted for, a row that breaks the schema, and time or memory beyond the limits.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

import etl
import etl.assembly
from etl.conversation import Record, StoredEvent
from etl.decode import decode
from etl.discover import discover
from etl.events import Touched
from etl.lake import Lake
from etl.reading import Reader
from etl.redact import Redactor
from etl.report import FileResult
from etl.settings import Settings
from etl.staging import EventBuffer, Rejects, RowBuffer, Staging
from tests.contract.harness import check_row
from tests.lakes import NOW

SECONDS_PER_MB = 5.0
"""CPU seconds that an input may cost, for each MB that it has (and for less than one)."""
GROWTH_MB = 500
"""How much one input may raise the peak of the process's memory."""
_AT = int(NOW.timestamp() * 1_000_000)


class Wrong(Exception):
    """A failure that nobody raised: a lost record, a wrong row, too much time or memory."""


class _Kept(Staging):
    """What would be staged, kept in memory after its redaction."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, "fuzz")
        self.redactor = Redactor(settings.redact, settings.key)
        self.tables: defaultdict[str, list[pa.Table]] = defaultdict(list)

    def write(self, name: str, table: pa.Table) -> None:
        """Redact the rows and keep them."""
        redacted = self.redactor.table(name, table).table
        redacted.validate(full=True)
        self.tables[name].append(redacted)


class _Families:
    """Stands where the run has `EventStore`: the same families out of tables in memory."""

    def __init__(self, tables: Sequence[pa.Table]) -> None:
        self._tables = tables

    def families(self, source: str, adapter: str, touched: Touched) -> Iterator[list[StoredEvent]]:
        """Keys that share a link are one family; its events in order, each once."""
        rows = [row for table in self._tables for row in table.to_pylist() if row["adapter"] == adapter]
        root: dict[str, str] = {}

        def top(name: str) -> str:
            while root.setdefault(name, name) != name:
                name = root[name]
            return name

        for row in rows:
            if row["link_key"] is not None:
                one, other = top("key " + row["conversation_key"]), top("link " + row["link_key"])
                root[max(one, other)] = min(one, other)
        families: defaultdict[str, dict[tuple[str, str], dict[str, Any]]] = defaultdict(dict)
        for row in rows:
            if row["payload"]:
                family = families[top("key " + row["conversation_key"])]
                family.setdefault((row["conversation_key"], row["record_key"]), row)
        for name in sorted(families):
            events = [_event(row) for row in families[name].values()]
            yield sorted(events, key=lambda event: (event.key, event.at or 0, event.record.offset or 0))


def _event(row: dict[str, Any]) -> StoredEvent:
    raw = row["payload"].encode()
    decoded = decode(raw)
    record = Record(decoded.value, raw, row["source_line"], row["source_offset"], decoded.notes, decoded.mended)
    at = None if row["at"] is None else int(row["at"].timestamp() * 1_000_000)
    return StoredEvent(row["conversation_key"], record, row["link_key"], at, row["source_uri"], row["redactions"])


def read(path: Path, format: str | None) -> list[FileResult]:
    """Read a file, or the members of an archive, all the way to checked rows."""
    settings = Settings("/nowhere", "b_fuzz", _AT, None, format, dry_run=True, strict=True)
    kept = _Kept(settings)
    reader = Reader(settings)
    reader.staging = kept
    reader.rows, reader.rejects = RowBuffer(settings, kept), Rejects(settings, kept)
    reader.events = EventBuffer(kept)
    results = [reader.read(file) for file in discover([path])]
    reader.close()
    touched = {
        (r.source, r.adapter): r.touched for r in results if r.adapter is not None and r.touched and r.touched.keys
    }
    if touched:
        in_memory: Any = {"EventStore": lambda _: _Families(kept.tables["events"]), "Staging": lambda *_: kept}
        with mock.patch.multiple(etl.assembly, **in_memory):
            etl.assembly.assemble(mock.NonCallableMock(spec=Lake), settings, touched, results, 0)
    for table in kept.tables["rollouts"]:
        for row in table.to_pylist():
            check_row(row)
    _accounted(results)
    return results


def ingest(path: Path, format: str | None) -> None:
    """The whole run, into a lake of its own."""
    lake = Path(tempfile.mkdtemp(prefix="etl-fuzz-lake-", dir=path.parent))
    try:
        report = etl.ingest([path], lake=lake, format=format, now=NOW, strict=True)
        _accounted(report.files)
    finally:
        shutil.rmtree(lake)


def _accounted(results: Sequence[FileResult]) -> None:
    for result in results:
        if result.error is not None and "not accounted for" in result.error:
            raise Wrong(f"not accounted for: {result.adapter}")
        if result.records_in != result.records_used + result.rejects.total() + result.ignored.total() and (
            result.adapter is not None and not (result.touched and result.touched.keys)
        ):
            raise Wrong(f"the sum of records is wrong: {result.adapter}")


class Measured:
    """Raises where what runs inside it costs too much."""

    def __init__(self, size: int) -> None:
        self._allowed = SECONDS_PER_MB * max(1.0, size / 1e6)

    def __enter__(self) -> None:
        self._peak = peak_mb()
        self._start = time.process_time()

    def __exit__(self, kind: object, *_: object) -> None:
        took, grown = time.process_time() - self._start, peak_mb() - self._peak
        if kind is None and took > self._allowed:
            raise Wrong(f"too slow: {took:.1f} s of CPU, {self._allowed:.1f} allowed")
        if kind is None and grown > GROWTH_MB:
            raise Wrong(f"too much memory: {grown} MB more")


def peak_mb() -> int:
    """The most memory that this process ever had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak >> (20 if sys.platform == "darwin" else 10)
