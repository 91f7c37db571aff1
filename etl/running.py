"""A run: its settings, its lake with an open batch, and its files on their way into it.

Files are found, compared and read some thousands at a time, so that a run needs no more memory for a million of them
(`etl/waves.py`). What reads and commits is loaded where there is something to read: most nights most sources are
unchanged.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path

from etl.changes import Changes
from etl.errors import UsageError
from etl.footprint import settled
from etl.gone import Gone
from etl.lake import KnownFile, Lake
from etl.limits import Limits
from etl.naming import Names
from etl.policies import check_policy
from etl.report import UNDETECTED, Report
from etl.results import Results
from etl.runs import drift, run_report, source_runs
from etl.staging import Settings
from etl.times import instant, to_datetime
from etl.walk import FoundFile
from etl.waves import OnProgress, Readers, Told, Waves

LOT = 10_000
"""So many files are compared with what the lake knows at a time."""


def read_into(
    settings: Settings, files: Iterator[FoundFile], readers: Readers, progress: OnProgress | None, *, reparse: bool,
    roots: Sequence[str] = (),
) -> Report:  # fmt: skip
    """Read what is new of these files into the lake; nothing to read makes no lake. `roots` are where they were found:
    what is known below them and lies there no more is counted.
    """
    first = list(islice(files, 1))
    if not first and not Lake.begun(settings.lake):
        return Report(settings.batch_id, dry_run=settings.dry_run)
    mapping, source = settings.mapping, settings.source
    with running(settings) as (opened, report):
        version = mapping.adapter_version if mapping else None
        known = partial(_known, opened, source)
        names = Names(opened, settings).of
        gone = Gone(opened, source, settings.batch_id, roots)
        changes = Changes(known, source, "mapped" if mapping else settings.format, reparse, names, version)
        with Waves(opened, settings, report, readers, Told(progress)) as waves:
            for lot in _lots(chain(first, files), opened):
                waves.take(gone.told(changes.of(lot)))
            waves.read(is_last=True)
            gone.tell(report)
    return report


def _lots(files: Iterator[FoundFile], lake: Lake) -> Iterator[list[FoundFile]]:
    """Found files, so many together that what the lake knows is gone over some dozens of times at most."""
    size = LOT
    while lot := list(islice(files, size)):
        yield lot
        if len(lot) == LOT == size:
            size = min(5 * LOT, max(LOT, sum(file.rows for file in lake.live("sources")) // 20))


def run_settings(
    lake: str | Path, now: datetime | None, source: str | None, format: str | None, redact: str, limits: Limits,
    dry_run: bool, strict: bool,
) -> Settings:  # fmt: skip
    """The settings of a run, with a batch id of its own; UsageError where `now` is no time."""
    check_policy(redact)
    if now is None:
        from etl.reading import micros_now

        at: int | None = micros_now()
    else:
        at = instant(now).micros
    if at is None:
        raise UsageError(f"`now` is no usable time: {now}")
    batch_id = f"b_{time.strftime('%Y%m%dT%H%M%S', time.gmtime(at // 1_000_000))}_{uuid.uuid4().hex[:8]}"
    return Settings(str(lake), batch_id, at, source, format, redact, limits, dry_run, strict)


@contextlib.contextmanager
def running(settings: Settings) -> Iterator[tuple[Lake, Report]]:
    """The lake with an open batch, and the report to fill."""
    started = time.monotonic()
    report = Report(settings.batch_id, dry_run=settings.dry_run)
    with _lake(settings) as lake, settled(), lake.batch(settings.batch_id) as folder:
        report.results = Results(folder)
        yield lake, report
        report.seconds = time.monotonic() - started
        if not settings.dry_run:
            _keep_report(lake, settings, report)


@contextlib.contextmanager
def _lake(settings: Settings) -> Iterator[Lake]:
    """The lake, made where there is none and swept; for a dry run where there is none, an empty one that goes again."""
    with contextlib.ExitStack() as stack:
        root = settings.lake
        if settings.dry_run and not Lake.begun(root):
            root = stack.enter_context(tempfile.TemporaryDirectory(prefix="etl-"))
        lake = Lake.create(root)
        lake.sweep()
        yield lake


def _known(lake: Lake, source: str | None, uris: Sequence[str]) -> dict[str, dict[str, KnownFile]]:
    """What was read of some files before, by source name: the one given, else every name that a run without one may
    have used; and what no adapter read.
    """
    known = lake.known_files(None if source is None else sorted({source, UNDETECTED}), uris)
    known.setdefault(UNDETECTED, {})
    return {name: known[name] for name in sorted(known)}


def _keep_report(lake: Lake, settings: Settings, report: Report) -> None:
    """The report stays in the lake, and is held against those of the runs before."""
    at = to_datetime(settings.ingested_at).isoformat()
    report.looked_at |= {settings.source} if settings.source is not None else set()
    lake.write_report(json.dumps(run_report(report, at), indent=1))
    report.drift = [found for found in drift(source_runs(lake.reports())) if found.batch_id == settings.batch_id]
