"""Conversations that span files, put together into rows: those made ahead, where nothing more is known of them, and
the others from stored events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from etl.conversation import StoredEvent
from etl.event_store import EventStore
from etl.events import Touched
from etl.families import Families, FamilyRows
from etl.lake import Lake, StagedFile, open_parquet
from etl.lake.staging import restaged
from etl.lake.tombstones import forgets
from etl.report import FileResult, Place
from etl.settings import Settings
from etl.staging import Rejects, RowBuffer, Staging


class Assembled:
    """What one pass of assembly made: staged files, the conversations they are the whole truth of, and counts."""

    def __init__(self) -> None:
        self.staged: list[StagedFile] = []
        self.conversations: dict[str, set[str]] = {}
        self.rows: Counter[str] = Counter()
        self.rows_by_file: Counter[tuple[str, str]] = Counter()
        self.counted: dict[tuple[str, str], FileResult] = {}
        """Files (source, uri) of which it left out or rejected records, with their counts after that."""


Streams = Mapping[tuple[str, str], Touched]
"""(source, adapter) → what new records touch."""


def assemble(
    lake: Lake,
    settings: Settings,
    touched: Streams,
    results: Iterable[FileResult],
    attempt: int,
    ahead: Sequence[StagedFile] = (),
    alone: Collection[str] = (),
) -> Assembled:
    """Rows of every conversation that new events touch.

    `ahead` are the staged files with the rows that were made ahead; `alone` are the sources whose stored events are all
    of this batch. Records that no row can be made of become rejects of the file that they lie in.
    """
    made = Assembled()
    staging = Staging(settings, f"assembly{attempt}")
    assembly = _Assembly(RowBuffer(settings, staging), Rejects(settings, staging), results, made)
    outdated: dict[tuple[str, str], set[str]] = {}
    for (source, name), what in sorted(touched.items(), key=lambda item: item[0]):
        store = EventStore(lake)
        whole = what.whole()
        if whole and forgets(settings.lake):
            whole = set()  # what was forgotten is left out of the stored events, and of these alone
        elif whole and source not in alone:
            whole -= what.ahead.outdated(store.known_elsewhere(source, name, what, settings.batch_id))
        families = Families(source, name, settings.mapping, strict=settings.strict)
        there: set[str] = set()
        for family in store.families(source, name, what.without(whole)):
            there.update(event.key for event in family)
            assembly.take(source, name, families.rows(family))
        whole -= what.ahead.outdated(there)
        for key in whole & what.ahead.ignored.keys():
            for (uri, rule), count in what.ahead.ignored[key].items():
                assembly.ignore(source, uri, rule, count)
        made.conversations.setdefault(source, set()).update(there, whole)
        outdated[source, name] = what.ahead.kin.keys() - whole
    assembly.close()
    made.staged = staging.close() + _kept(settings, ahead, outdated, made)
    return made


class _Assembly:
    """What families became, on its way to staging and into the counts of the run."""

    def __init__(self, rows: RowBuffer, rejects: Rejects, results: Iterable[FileResult], made: Assembled) -> None:
        self._rows = rows
        self._rejects = rejects
        self._results = {(result.source, result.uri): result for result in results}
        self._made = made

    def take(self, source: str, name: str, family: FamilyRows) -> None:
        for row, size in family.rows:
            self._made.rows[name] += 1
            self._made.rows_by_file[source, row.source_uri] += 1
            self._rows.add(row, size)
        for event, ignored in family.ignored:
            if event is not None:
                self.ignore(source, event.source_uri, ignored.rule, ignored.n)
        for event, reason, message in family.refused:
            self._reject(source, event, reason, message)

    def ignore(self, source: str, uri: str, rule: str, count: int) -> None:
        """Count records that no row tells of where they were read, if that was in this run."""
        result = self._counted(source, uri)
        count = 0 if result is None else min(count, result.records_used)
        if result is not None and count:
            result.records_used -= count
            result.ignored[rule] += count

    def _reject(self, source: str, event: StoredEvent, reason: str, message: str) -> None:
        result = self._counted(source, event.source_uri)
        if result is not None:
            result.records_used -= 1
            place = Place(event.source_uri, event.record.line, event.record.offset)
            self._rejects.add(result, reason, message, event.record.raw, place)

    def _counted(self, source: str, uri: str) -> FileResult | None:
        """The counts of a file of this run. They are a copy: the pass may have to be made again."""
        key = source, uri
        if key not in self._made.counted and (read := self._results.get(key)) is not None:
            self._made.counted[key] = replace(
                read, rejects=read.rejects.copy(), ignored=read.ignored.copy(), first_rejects=read.first_rejects.copy()
            )
        return self._made.counted.get(key)

    def close(self) -> None:
        self._rows.flush()
        self._rejects.flush()


def _kept(
    settings: Settings, ahead: Iterable[StagedFile], outdated: Mapping[tuple[str, str], set[str]], made: Assembled
) -> list[StagedFile]:
    """The files with rows made ahead, without those of outdated conversations; what stays is counted."""
    gone = {stream: pa.array(sorted(keys), pa.string()) for stream, keys in outdated.items()}
    kept: list[StagedFile] = []
    for file in ahead:
        source = file.partition["source"]
        with open_parquet(file.path) as opened:
            rows = opened.read(["adapter", "conversation_id", "source_uri"], use_threads=False)
        without = pa.array([False] * len(rows))
        for (of, adapter), keys in gone.items():
            if of == source and len(keys):
                named = pc.is_in(rows["conversation_id"], value_set=keys)
                without = pc.or_(without, pc.and_(named, pc.equal(rows["adapter"], adapter)))
        positions = pc.indices_nonzero(without).cast(pa.int64())
        kept.extend([file] if not len(positions) else restaged(settings.lake, settings.batch_id, file, positions))
        for row in (
            rows.filter(pc.invert(without))
            .group_by(["adapter", "source_uri"])
            .aggregate([([], "count_all")])
            .to_pylist()
        ):
            made.rows[row["adapter"]] += row["count_all"]
            made.rows_by_file[source, row["source_uri"]] += row["count_all"]
    return kept
