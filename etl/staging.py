"""What a run has read, on its way to staging: rows, rejects and file states as tables, all of it through redaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa

from etl.columns import column, rollouts_table
from etl.decode import encode
from etl.events import Taken, events_table
from etl.growing import counts_text
from etl.identity import reject_id
from etl.lake import StagedFile, StagingWriter
from etl.report import FileResult, Place
from etl.row import Row
from etl.schema import PARTITIONS, arrow_schema
from etl.settings import Settings

FLUSH_BYTES = 8 << 20
"""Source bytes gathered in memory before their rows are redacted and written."""
FLUSH_ROWS = 4_000
_BYTES_OF_EVENT = 200
"""About so many an event has beside its payload."""
_partition = attrgetter(*PARTITIONS["rollouts"])


class Staging:
    """The staging writers of one worker, opened when a table first gets rows; all of it goes through redaction."""

    def __init__(self, settings: Settings, worker: str) -> None:
        self._settings = settings
        self._worker = worker
        from etl.redact import Redactor  # a run that reads nothing needs no rules

        self._redactor = Redactor(settings.redact, settings.key)
        self._writers: dict[str, StagingWriter] = {}

    def write(self, name: str, table: pa.Table) -> pa.Table:
        """Redact the rows of a table and write them; as they were written."""
        redacted = self._redactor.table(name, table)
        if self._settings.dry_run:
            return redacted.table
        if name not in self._writers:
            self._writers[name] = StagingWriter(self._settings.lake, self._settings.batch_id, name, self._worker)
        self._writers[name].write(redacted)
        return redacted.table

    def close(self) -> list[StagedFile]:
        """The files written; the writers end."""
        writers, self._writers = self._writers, {}
        return [file for writer in writers.values() for file in writer.close()]


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
            self._rows.sort(key=_partition)  # those of a partition are then written as they stand
            table = rollouts_table(self._rows, self._settings.batch_id, self._settings.ingested_at)
            self._rows, self._bytes = [], 0
            self._staging.write("rollouts", table)


class EventBuffer:
    """Events on their way to staging: those of many small files go through redaction together.

    `written` hears of what was taken, as a table before and after redaction.
    """

    def __init__(
        self, staging: Staging, written: Callable[[Sequence[Taken], pa.Table, pa.Table], None] | None = None
    ) -> None:
        self._staging = staging
        self._written = written
        self._taken: list[Taken] = []
        self._bytes = 0

    def add(self, taken: Taken) -> None:
        self._taken.append(taken)
        self._bytes += sum(map(len, taken.columns["payload"])) + _BYTES_OF_EVENT * len(taken)
        if self._bytes >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._taken:
            return
        pieces, self._taken, self._bytes = self._taken, [], 0
        table = events_table(pieces)
        written = self._staging.write("events", table)
        if self._written is not None:
            self._written(pieces, table, written)


class Rejects:
    """Rejected records on their way to staging."""

    def __init__(self, settings: Settings, staging: Staging) -> None:
        self._settings = settings
        self._staging = staging
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0
        self._seen: Counter[tuple[str, str, int | None, str]] = Counter()

    def forget_places(self) -> None:
        """Nothing comes of the places so far any more."""
        self._seen.clear()

    def add(
        self, result: FileResult, reason: str, message: str, raw: bytes, place: Place, length: int | None = None
    ) -> None:
        result.rejects[reason] += 1
        # Units of one record (spans of a batch) share its place: a second one with a reason gets a number.
        place_of = (result.source, result.uri, place.offset, reason)
        number = self._seen[place_of]
        self._seen[place_of] += 1
        result.first_rejects.setdefault(reason, (place, message))
        self._rows.append(
            (
                reject_id(result.source, result.uri, place.offset, f"{reason}#{number}" if number else reason),
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
        if self._bytes >= FLUSH_BYTES or len(self._rows) >= FLUSH_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            schema = arrow_schema("rejects")
            arrays = [
                column(list(values), field.type)
                for values, field in zip(zip(*self._rows, strict=True), schema, strict=True)
            ]
            self._rows, self._bytes = [], 0
            self._staging.write("rejects", pa.Table.from_arrays(arrays, schema=schema))


def sources_table(results: Iterable[FileResult], settings: Settings) -> pa.Table:
    """The rows of `sources` for the files that were read."""
    schema = arrow_schema("sources")
    rows = [
        (
            result.source, result.uri, max(result.size, 0), result.modified_ns // 1_000 or None, result.sha256,
            result.adapter, result.adapter_version, result.state, result.error, result.records_in, result.records_used,
            result.rows, result.rejects.total(), _counts(result.ignored),
            settings.batch_id, settings.ingested_at, *_reached(result),
        )
        for result in results
    ]  # fmt: skip
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.Table.from_arrays(
        [column(list(c), field.type) for c, field in zip(columns, schema, strict=True)], schema=schema
    )


def _reached(result: FileResult) -> tuple[int | str | None, ...]:
    """The `read_*` columns."""
    counts = counts_text(result)
    return (None,) * 4 if counts is None or result.reached is None else (*result.reached, counts)


def _counts(ignored: Counter[str]) -> str | None:
    return encode(dict(sorted(ignored.items()))) if ignored else None
