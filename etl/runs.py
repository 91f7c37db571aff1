"""What each run leaves in the lake, `reports/<batch>.json`, and what a source does differently from its runs before.

A report is written after the commit: a run that was killed in between has none, and its rows are there all the same.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from etl.intervals import Rate
from etl.report import UNDETECTED, Report, Sums
from etl.results import said_of
from etl.times import to_datetime

if TYPE_CHECKING:
    from etl.settings import Settings

COMPARED = 7
"""Earlier runs of a source that the last one is held against."""
LEAST_RECORDS = 20
"""Runs that read fewer records say nothing about rates."""
LEAST_RUNS = 5
"""Of a source with fewer runs before nobody knows what is usual: the first read all that was there, the others what
changed since, and it may always have been silent now and then.
"""
LESS = 0.5
"""A source that reads less than this share of its median before is worth a look."""


class SourceRun(NamedTuple):
    """What one run read of one source; files that were unchanged are not in it."""

    batch_id: str
    at: str
    source: str
    files: int
    records_in: int
    rows: int
    rejects: int
    ignored: int
    failed: int
    adapters: dict[str, int]
    """Adapter → files it read; empty where none gave a record."""
    silence_is_kept: bool = False
    """Whether the run would be here if nothing had been new in it: older products kept only runs with news."""
    unread: str | None = None
    """What was new, where none of it is a conversation log."""

    def is_silent(self) -> bool:
        """Whether the source was looked at, and nothing that is read was new in it."""
        return not self.adapters


class Drift(NamedTuple):
    """Something that a source's last run does differently."""

    source: str
    batch_id: str
    kind: str
    """rejects, ignored, less, silent, formats, failed or unread."""
    message: str


def run_report(report: Report, at: str) -> dict[str, Any]:
    """The object that is kept: what `etl ingest --json` prints, when it was, and the same by source."""
    read: dict[str, Sums] = {}
    adapters: dict[str, Counter[str]] = {}
    for (source, adapter), sums in report.sums.items():
        read.setdefault(source, Sums()).add(sums)
        adapters.setdefault(source, Counter()).update({} if adapter is None else {adapter: sums.files})
    by_source = {source: _kept(sums, adapters[source]) for source, sums in sorted(read.items())}
    for source, (files, first, why) in report.unread.items():
        others = any(adapters.values()) or report.looked_at - {source}
        if not (adapters[source] or (source == UNDETECTED and others)):
            by_source[source]["unread"] = f"{files:,} new, and none is a conversation log: {said_of(first, why)}"
    silent = sorted({*report.looked_at} - read.keys())
    return {"at": at, **report.to_json(), "by_source": by_source, "silent": silent}


def keep_report(
    report: Report, settings: Settings, write: Callable[[str], None], reports: Callable[[], list[str]]
) -> None:
    """Let the report stay in the lake, and hold it against those of the runs before."""
    at = to_datetime(settings.ingested_at).isoformat()
    report.looked_at |= {settings.source} if settings.source is not None else set()
    write(json.dumps(run_report(report, at), indent=1))
    report.drift = [found for found in drift(source_runs(reports())) if found.batch_id == settings.batch_id]


def _kept(sums: Sums, adapters: Counter[str]) -> dict[str, Any]:
    """The fields of a `SourceRun` below its source."""
    shown = ("files", "records_in", "rows", "rejects", "ignored", "failed")
    return {**{name: getattr(sums, name) for name in shown}, "adapters": dict(sorted(adapters.items()))}


def source_runs(reports: Iterable[str]) -> list[SourceRun]:
    """The runs of each source, oldest first, out of the texts of reports; one that is none is passed over."""
    found: list[SourceRun] = []
    for text in reports:
        try:
            report = json.loads(text)
            silent = report.get("silent")
            runs = {**{source: _kept(Sums(), Counter()) for source in silent or ()}, **report["by_source"]}
            found += [
                SourceRun(report["batch_id"], report["at"], source, **run, silence_is_kept=silent is not None)
                for source, run in runs.items()
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return sorted(found, key=lambda run: (run.at, run.batch_id, run.source))


def drift(runs: Sequence[SourceRun]) -> list[Drift]:
    """What the last run of each source does differently from those before it; of its first run only that nothing in
    it is a conversation log.

    Rates differ when their 95 % Wilson intervals do not overlap. Runs that only looked again at files that are no logs,
    or at files that fail, as every run does, say nothing of the source. Nothing new is a difference where
    the source gave something new in all of its runs before, or all but one; so is nothing new of one format. (A run
    reads what is new or has grown: the files of a format that it did not read stand where they stood.)
    """
    by_source: dict[str, list[SourceRun]] = {}
    for run in runs:
        by_source.setdefault(run.source, []).append(run)
    return [
        Drift(source, of_source[-1].batch_id, kind, message)
        for source, of_source in sorted(by_source.items())
        for kind, message in _told(of_source)
    ]


def _told(runs: Sequence[SourceRun]) -> Iterator[tuple[str, str]]:
    if runs[-1].unread:
        yield "unread", runs[-1].unread
    if runs[-1].is_silent():
        yield from _silence(runs)
    heard = [run for run in runs if run.adapters or run.failed]
    if heard and heard[-1] is runs[-1]:
        known = {adapter for run in heard[:-1] for adapter in run.adapters}
        yield from _differences(heard[-1], heard[-1 - COMPARED : -1], known)


def _silence(runs: Sequence[SourceRun]) -> Iterator[tuple[str, str]]:
    """What a silent run is held against are those before it fell silent; after so many it is how the source is."""
    fell = len(runs) - next((n for n, run in enumerate(reversed(runs)) if not run.is_silent()), len(runs))
    before = [run for run in runs[max(0, fell - COMPARED) : fell] if run.silence_is_kept]
    heard = [run.records_in for run in before if not run.is_silent()]
    if len(before) < LEAST_RUNS or len(before) - len(heard) > 1 or len(runs) - fell > COMPARED:
        return
    usual = statistics.median(heard)
    if usual >= LEAST_RECORDS:
        yield "silent", f"nothing new, in the runs before {usual:,.0f} records (median of {len(heard)})"


def _differences(last: SourceRun, runs: Sequence[SourceRun], known: set[str]) -> Iterator[tuple[str, str]]:
    """What the last run has otherwise than those before it; `known` are all formats that the source ever had."""
    if last.failed and runs and not any(run.failed for run in runs):
        yield "failed", f"{last.failed:,} of {last.files:,} files failed, none in the runs before"
    before = [run for run in runs if run.adapters]
    if not before or not last.adapters:
        return
    records = sum(run.records_in for run in before)
    if last.records_in >= LEAST_RECORDS and records >= LEAST_RECORDS:
        for kind in ("rejects", "ignored"):
            now = Rate(getattr(last, kind), last.records_in)
            then = Rate(sum(getattr(run, kind) for run in before), records)
            if now.low > then.high:
                yield kind, f"{kind} {now} records, in the runs before {then}"
    usual = statistics.median(run.records_in for run in before)
    if len(before) >= LEAST_RUNS and usual >= LEAST_RECORDS and last.records_in < LESS * usual:
        yield "less", f"{last.records_in:,} records read, in the runs before {usual:,.0f} (median of {len(before)})"
    new = sorted(last.adapters.keys() - known)
    gone = [
        adapter
        for adapter in sorted(known - last.adapters.keys())
        if len(before) >= LEAST_RUNS and sum(adapter not in run.adapters for run in before) <= 1
    ]
    if new:
        yield "formats", f"read as {', '.join(new)}, in the runs before as {', '.join(sorted(known))}"
    elif gone:
        yield "formats", f"no new file of {', '.join(gone)}, of which the {len(before)} runs before had some"
