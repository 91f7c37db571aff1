"""Committing a run, table by table: events → rollouts → rejects → sources.

`sources` is what marks a file as done, so it comes last: a crash anywhere before is mended by running again.
"""

from __future__ import annotations

import functools
import secrets
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from etl.assembly import Assembled, Streams, assemble
from etl.errors import ConflictError
from etl.event_store import EventStore
from etl.events import Touched
from etl.lake import Lake, StagedFile, open_parquet, reading
from etl.lake.errors import file_is_gone, lake_error, library_errors, one_line
from etl.remote import path_of
from etl.report import UNDETECTED, FileResult, Report
from etl.settings import Settings
from etl.staging import Staging, sources_table

TRIES = 8
"""How often conversations are put together again because somebody added events to them meanwhile, and files looked at
again because somebody added rejects.
"""


Rejected = Mapping[tuple[str, str], int]
"""(source, uri) → rejects."""


class _Alone(NamedTuple):
    """The sources whose stored events are all of this run, at that version of the table."""

    version: int
    sources: set[str]

    def at(self, version: int) -> set[str]:
        """The same at a version; none where somebody else committed as well."""
        return self.sources if version == self.version else set()


def commit(
    lake: Lake,
    settings: Settings,
    report: Report,
    results: Sequence[FileResult],
    staged: Sequence[StagedFile],
    undetected: Collection[str],
    *,
    is_later: bool = False,
) -> None:
    """Commit what was read. `undetected` are files that no adapter read before, by uri; `is_later`: this batch has
    committed something before.
    """
    by_table: dict[str, list[StagedFile]] = {name: [] for name in ("events", "rollouts", "rejects")}
    for file in staged:
        by_table[file.table].append(file)
    version, known = lake.version("events"), {file.partition["source"] for file in lake.live("events")}
    alone = _Alone(version + 1, {result.source for result in results} - known)
    touched = _touched(results)
    if is_later:
        _outdate(lake, touched)
    if by_table["events"]:
        lake.commit_events(by_table["events"])
    made = _commit_rollouts(lake, settings, report, results, by_table["rollouts"], touched, alone)
    for result in results:
        if result.adapter is not None:
            report.closed[result.adapter] += result.rows
        result.rows += made.rows_by_file[result.source, result.uri]
        if (said := made.counted.get((result.source, result.uri))) is not None:
            result.records_used, result.ignored = said.records_used, said.ignored
            result.rejects, result.first_rejects = said.rejects, said.first_rejects
    _count_rows(lake, [result for result in results if result.read_from and result.spans])
    rejects = by_table["rejects"] + [file for file in made.staged if file.table == "rejects"]
    if results:
        after = {(result.source, result.uri): result.read_from for result in results if result.read_from}
        former = {(result.source, uri) for result in results for uri in result.former}
        own = lake.replace_rejects(rejects, {(result.source, result.uri) for result in results} | former, after)
        _commit_sources(lake, settings, results, undetected, own, former)


def _commit_sources(
    lake: Lake, settings: Settings, read: Sequence[FileResult], undetected: Collection[str], own: Rejected,
    former: Set[tuple[str, str]],
) -> None:  # fmt: skip
    """What was read is done. A file that no adapter read before and one reads now says so in its old row. What files
    were called before (`former`: source, uri) is known no more.

    `own` are the rejects that this run has committed. A run that reads the same files at once may have put its own in
    their place since: what it read may be another state of a file, so that file is read again whole by the next run.
    """
    moved = [
        replace(FileResult(result.uri, UNDETECTED, result.size, result.modified_ns, result.sha256),
                state="skipped", error=f"{result.uri}: read as {result.adapter} under the source {result.source} now")
        for result in read
        if result.source != UNDETECTED and result.adapter is not None and result.uri in undetected
    ]  # fmt: skip
    for _ in range(TRIES):
        version = lake.version("rejects")
        with one_line(f"read the rejects of {lake.root}"):
            mixed = reading(functools.partial(_mixed, lake, settings.batch_id, read, own))
        told = [_unread(result) if (result.source, result.uri) in mixed else result for result in read]
        staging = Staging(settings, "sources")
        staging.write("sources", sources_table([*told, *moved], settings))
        try:
            still_current = functools.partial(_is_at, lake, "rejects", version)
            lake.upsert_sources(staging.close(), former, still_current=still_current)
        except ConflictError:
            continue
        return
    raise ConflictError(f"{settings.lake}: other ingests kept rejecting records; run again when they are done")


def _mixed(lake: Lake, batch_id: str, read: Sequence[FileResult], own: Rejected) -> set[tuple[str, str]]:
    """The files (source, uri) whose rejects are not those that this run left, from where it read them."""
    starts = {(result.source, result.uri): result.read_from for result in read}
    found: Counter[tuple[str, str]] = Counter()
    foreign: set[tuple[str, str]] = set()
    for file in lake.live("rejects"):
        source = file.partition["source"]
        uris = pa.array([uri for of, uri in starts if of == source], pa.string())
        if not len(uris):
            continue
        with open_parquet(file.path) as opened:
            rows = opened.read(["source_uri", "source_offset", "batch_id"])
        rows = rows.filter(pc.is_in(rows["source_uri"], value_set=uris))
        for uri, offset, batch in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            if batch == batch_id:
                found[source, uri] += 1
            elif (offset or 0) >= starts[source, uri]:
                foreign.add((source, uri))
    return foreign | {key for key in starts if found[key] != own.get(key, 0)}


def _unread(result: FileResult) -> FileResult:
    """The file as it is known when it has to be read again: of no time and no digest."""
    return replace(result, sha256=None, modified_ns=0, reached=None)


def _commit_rollouts(
    lake: Lake, settings: Settings, report: Report, results: Sequence[FileResult], staged: Sequence[StagedFile],
    touched: Streams, alone: _Alone,
) -> Assembled:  # fmt: skip
    """Commit the closed rows with those assembled from events; again where somebody added events meanwhile, or wrote
    files anew that were to be read.
    """
    if not touched:
        if staged:
            report.count(lake.commit_rollouts(staged))
        return Assembled()
    names = {name for what in touched.values() for name in what.ahead.files}
    ahead = [file for file in staged if path_of(file.path).name in names]
    closed = [file for file in staged if path_of(file.path).name not in names]
    for attempt in range(TRIES):
        version = lake.version("events")
        try:
            made = assemble(lake, settings, touched, results, attempt, ahead, alone.at(version))
            rows = [file for file in made.staged if file.table == "rollouts"]
            counts = lake.commit_rollouts(
                [*closed, *rows],
                conversations=made.conversations,
                still_current=functools.partial(_is_at, lake, "events", version),
            )
        except ConflictError:
            pass
        except library_errors() as error:
            if not file_is_gone(error):
                raise lake_error(f"put conversations of {settings.lake} together", error) from error
        else:
            report.count(counts, made.rows)
            return made
        time.sleep((1 + secrets.randbelow(10)) * 0.05 * (attempt + 1))
    raise ConflictError(f"{settings.lake}: other ingests kept adding events; run again when they are done")


def _outdate(lake: Lake, touched: Streams) -> None:
    """What was put together ahead is not all of a conversation of which an earlier wave has stored something."""
    for (source, name), what in touched.items():
        if what.whole():
            what.ahead.stale |= EventStore(lake).known_elsewhere(source, name, what, "")


def _touched(results: Sequence[FileResult]) -> dict[tuple[str, str], Touched]:
    """What every stream touches. All files that one worker read of it share theirs: each is taken in once."""
    touched: dict[tuple[str, str], Touched] = {}
    taken: set[int] = set()
    for result in results:
        for what in (result.touched, *result.others_touched):
            if result.adapter is None or what is None or not what.keys or id(what) in taken:
                continue
            taken.add(id(what))
            known = touched.setdefault((result.source, result.adapter), what)
            if known is not what:
                known.update(what)
    return touched


def _count_rows(lake: Lake, results: Sequence[FileResult]) -> None:
    """The rows of files that were read on and hold many conversations: only some of these were put together again."""
    many = [result for result in results if result.beginning is not None and result.beginning.keys is None]
    if not many:
        return
    with one_line(f"count the rows of {lake.root}"):
        counted = reading(functools.partial(_rows_of, lake, many))
    for result in many:
        result.rows = counted[result.source, result.uri]


def _rows_of(lake: Lake, results: Sequence[FileResult]) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for file in lake.live("rollouts"):
        source = file.partition["source"]
        uris = pa.array([result.uri for result in results if result.source == source], pa.string())
        if len(uris):
            with open_parquet(file.path) as opened:
                found = opened.read(["source_uri"])["source_uri"]
            counted.update((source, uri) for uri in found.filter(pc.is_in(found, value_set=uris)).to_pylist())
    return counted


def _is_at(lake: Lake, table: str, version: int) -> bool:
    """Whether nobody committed to a table since."""
    return lake.version(table) == version
