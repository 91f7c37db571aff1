"""The run, top to bottom: discover → open → detect → parse → normalise → redact → check → write → commit.

The order is a safety rule. Nothing is visible before it is committed; tables are committed events → rollouts → rejects →
sources, and `sources` is what marks a file as done, so that a crash anywhere in between is mended by running again.
"""

from __future__ import annotations

import contextlib
import gc
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from etl.adapter import adapters
from etl.assembly import Assembled, assemble
from etl.changes import Change, changes
from etl.discover import discover
from etl.errors import ConflictError, UsageError
from etl.events import Touched
from etl.framing import Limits
from etl.lake import KnownFile, Lake, RowCounts, StagedFile
from etl.reading import UNDETECTED, Settings, Staging, micros_now, sources_table
from etl.report import FileResult, Report
from etl.times import instant
from etl.workers import read_all

ASSEMBLY_TRIES = 8


class Progress(NamedTuple):
    """How far a run is. `phase` is reading or committing; sizes are bytes on disk."""

    phase: str
    files: int
    of_files: int
    size: int
    of_size: int


def ingest(
    paths: Iterable[str | Path],
    *,
    lake: str | Path = "./lake",
    format: str | None = None,
    source: str | None = None,
    workers: int = 1,
    redact: str = "secrets",
    exclude: Sequence[str] = (),
    reparse: bool = False,
    dry_run: bool = False,
    now: datetime | None = None,
    limits: Limits = Limits(),
    progress: Callable[[Progress], None] | None = None,
    strict: bool = False,
) -> Report:
    """Read logs into a lake: files, folders and globs, their format told by content; reading again changes nothing.

    `source` names the log stream (by default the adapter's name), `now` is the clock, `strict` lets an adapter's exception
    through. Raises UsageError where the call is wrong and LakeError where the lake cannot be written; what is wrong with a
    file or a record is in the report and in the lake.
    """
    started = time.monotonic()
    ingested_at = micros_now() if now is None else instant(now).micros
    if ingested_at is None:
        raise UsageError(f"`now` is no usable time: {now}")
    files = discover([paths] if isinstance(paths, (str, Path)) else paths, exclude)
    opened = Lake.create(str(lake))
    batch_id = f"b_{time.strftime('%Y%m%dT%H%M%S', time.gmtime(ingested_at // 1_000_000))}_{uuid.uuid4().hex[:8]}"
    settings = Settings(str(lake), batch_id, ingested_at, source, format, redact, limits, dry_run, strict)
    opened.sweep()
    with opened.batch(batch_id), _collector_paused():
        known = _known(opened, source)
        found = changes(files, known, source, format, reparse)
        report = _run(opened, settings, found, workers, progress)
        if not dry_run:
            _commit_sources(opened, settings, report, known.get(UNDETECTED, {}))
    report.seconds = time.monotonic() - started
    return report


def _known(lake: Lake, source: str | None) -> dict[str, dict[str, KnownFile]]:
    """What was read before, by source name: the one given, else every name that a run without one may have used."""
    names = [source] if source is not None else [*adapters(), UNDETECTED]
    return {name: lake.known_files(name) for name in names}


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Records make no cycles: the garbage collector would only walk them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _run(
    lake: Lake, settings: Settings, found: Sequence[Change], workers: int, progress: Callable[[Progress], None] | None
) -> Report:
    report = Report(settings.batch_id, dry_run=settings.dry_run)
    to_read = [change.file for change in found if change.kind != "unchanged"]
    kinds = {change.file.uri: change.kind for change in found}
    total = sum(max(file.size, 0) for file in to_read)
    told = [0, 0]

    def on_file(result: FileResult) -> None:
        told[0] += 1
        told[1] += max(result.size, 0)
        if progress is not None:
            progress(Progress("reading", told[0], len(to_read), told[1], total))

    results, staged = read_all(to_read, settings, workers, on_file)
    for result in results:
        result.change = kinds[result.uri]
    report.files = sorted([*results, *(change.as_unchanged() for change in found if change.kind == "unchanged")],
                          key=lambda result: result.uri)
    report.bytes_read = sum(result.size for result in results if result.sha256 is not None)
    if not settings.dry_run:
        if progress is not None:
            progress(Progress("committing", len(to_read), len(to_read), total, total))
        _commit(lake, settings, report, results, staged)
    return report


def _commit(lake: Lake, settings: Settings, report: Report, results: Sequence[FileResult], staged: Sequence[StagedFile]) -> None:
    """events → rollouts → rejects → sources."""
    by_table: dict[str, list[StagedFile]] = {name: [] for name in ("events", "rollouts", "rejects")}
    for file in staged:
        by_table[file.table].append(file)
    if by_table["events"]:
        lake.commit_events(by_table["events"])
    made = _commit_rollouts(lake, settings, report, results, by_table["rollouts"])
    for result in results:
        result.rows += made.rows_by_file[result.source, result.uri]
    rejects = by_table["rejects"] + [file for file in made.staged if file.table == "rejects"]
    read = {(result.source, result.uri) for result in results}
    if read:
        lake.replace_rejects(rejects, read)


def _commit_sources(lake: Lake, settings: Settings, report: Report, undetected: Mapping[str, KnownFile]) -> None:
    """Last of all: what was read is done. A file that no adapter read before and one reads now says so in its old row."""
    read = [result for result in report.files if result.change != "unchanged"]
    moved = [
        replace(FileResult(result.uri, UNDETECTED, result.size, result.modified_ns, result.sha256),
                state="skipped", error=f"{result.uri}: read as {result.adapter} under the source {result.source} now")
        for result in read
        if result.source != UNDETECTED and result.adapter is not None and result.uri in undetected
    ]  # fmt: skip
    if read:
        staging = Staging(settings, "sources")
        staging.write("sources", sources_table([*read, *moved], settings))
        lake.upsert_sources(staging.close())


def _commit_rollouts(
    lake: Lake, settings: Settings, report: Report, results: Sequence[FileResult], staged: Sequence[StagedFile]
) -> Assembled:
    """Commit the closed rows with those assembled from events; again where somebody added events meanwhile."""
    touched: dict[tuple[str, str], Touched] = {}
    for result in results:
        if result.adapter is not None and result.touched.keys:
            touched.setdefault((result.source, result.adapter), Touched()).update(result.touched)
    if not touched:
        report.rows = lake.commit_rollouts(staged) if staged else RowCounts(0, 0, 0, 0)
        return Assembled()
    for attempt in range(ASSEMBLY_TRIES):
        version = lake.version("events")
        made = assemble(lake, settings, touched, results, attempt)
        rows = [file for file in made.staged if file.table == "rollouts"]
        try:
            report.rows = lake.commit_rollouts(
                [*staged, *rows], conversations=made.conversations, still_current=lambda: lake.version("events") == version
            )
        except ConflictError:
            time.sleep(random.uniform(0.05, 0.5) * (attempt + 1))
            continue
        report.assembled = made.rows
        return made
    raise ConflictError(f"{settings.lake}: other ingests kept adding events; run again when they are done")
