"""A run: its lake with an open batch, and its files on their way into it.

Files are found, compared and read some thousands at a time, so that a run needs no more memory for a million of them
(`etl/waves.py`). What reads and commits is loaded where there is something to read; where nothing has changed at all,
not even this is (`etl/quiet.py`).
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice

from etl.changes import Changes
from etl.footprint import settled
from etl.gone import Gone
from etl.lake import KnownFile, Lake
from etl.naming import Names
from etl.quiet import Asked, Noting
from etl.report import UNDETECTED, Report
from etl.results import FileResult, Results
from etl.runs import keep_report
from etl.settings import Settings
from etl.walk import FoundFile
from etl.waves import OnProgress, Readers, Told, Waves

LOT = 10_000
"""So many files are compared with what the lake knows at a time."""


def read_into(asked: Asked, readers: Readers, progress: OnProgress | None, *, reparse: bool) -> Report:
    """Read what is new of the files that are asked for into the lake; nothing to read makes no lake. What is known
    below their folders and lies there no more is counted.
    """
    settings, source = asked.settings, asked.settings.source
    files = asked.files()
    first = list(islice(files, 1))
    if not first and not Lake.begun(settings.lake):
        return Report(settings.batch_id, dry_run=settings.dry_run)
    with running(settings) as (opened, report):
        gone = Gone(opened, source, settings.batch_id, asked.roots)
        changes = _changes(opened, settings)
        noting = Noting(opened, asked, changes.of)
        compared = changes._replace(reparse=reparse)
        with Waves(opened, settings, report, readers, Told(progress), noting.committed) as waves:
            for lot in _lots(noting.found(chain(first, files)), opened):
                waves.take(noting.compared(gone.told(compared.of(lot))))
            waves.read(is_last=True)
            gone.tell(report)
        noting.leave(report, is_certain=gone.is_certain and not (gone.missing and asked.exclude))
    return report


def known_results(asked: Asked) -> Iterator[FileResult]:
    """The results of files that lie in the lake as they were."""
    lake = Lake.open(asked.settings.lake)
    changes = _changes(lake, asked.settings)
    report = Report(asked.settings.batch_id)
    for lot in _lots(asked.files(), lake):
        for change in changes.of(lot):
            if not change.is_read:
                report.add_unchanged(change)
    yield from report.results


def _changes(lake: Lake, settings: Settings) -> Changes:
    """How files differ from what the lake knows by then."""
    mapping, source = settings.mapping, settings.source
    known = partial(_known, lake, source)
    names = Names(lake, settings).of
    version = mapping.adapter_version if mapping else None
    return Changes(known, source, "mapped" if mapping else settings.format, False, names, version)


def _lots(files: Iterator[FoundFile], lake: Lake) -> Iterator[list[FoundFile]]:
    """Found files, so many together that what the lake knows is gone over some dozens of times at most."""
    size = LOT
    while lot := list(islice(files, size)):
        yield lot
        if len(lot) == LOT == size:
            size = min(5 * LOT, max(LOT, sum(file.rows for file in lake.live("sources")) // 20))


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
            keep_report(report, settings, lake.write_report, lake.reports)


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
