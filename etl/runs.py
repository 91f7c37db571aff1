"""What each run leaves in the lake, `reports/<batch>.json`, and what a source does differently from its runs before.

A report is written after the commit: a run that was killed in between has none, and its rows are there all the same.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from etl.intervals import Rate
from etl.report import Report, Sums

COMPARED = 7
"""Earlier runs of a source that the last one is held against."""
LEAST_RECORDS = 20
"""Runs that read fewer records say nothing about rates."""
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
    """Adapter → files it read."""


class Drift(NamedTuple):
    """Something that a source's last run does differently."""

    source: str
    batch_id: str
    kind: str
    """rejects, ignored, less, formats or failed."""
    message: str


def run_report(report: Report, at: str) -> dict[str, Any]:
    """The object that is kept: what `etl ingest --json` prints, when it was, and the same by source."""
    read: dict[str, Sums] = {}
    adapters: dict[str, Counter[str]] = {}
    for (source, adapter), sums in report.sums.items():
        read.setdefault(source, Sums()).add(sums)
        adapters.setdefault(source, Counter()).update({} if adapter is None else {adapter: sums.files})
    by_source = {source: _kept(sums, adapters[source]) for source, sums in sorted(read.items())}
    return {"at": at, **report.to_json(), "by_source": by_source}


def _kept(sums: Sums, adapters: Counter[str]) -> dict[str, Any]:
    """The fields of a `SourceRun` below its source."""
    shown = ("files", "records_in", "rows", "rejects", "ignored", "failed")
    return {**{name: getattr(sums, name) for name in shown}, "adapters": dict(sorted(adapters.items()))}


def source_runs(reports: Iterable[str]) -> list[SourceRun]:
    """The runs that read something, oldest first, out of the texts of reports; one that is none is passed over."""
    found: list[SourceRun] = []
    for text in reports:
        try:
            report = json.loads(text)
            found += [
                SourceRun(report["batch_id"], report["at"], source, **run)
                for source, run in report["by_source"].items()
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return sorted(found, key=lambda run: (run.at, run.batch_id, run.source))


def drift(runs: Sequence[SourceRun]) -> list[Drift]:
    """What the last run of each source does differently from those before it; nothing for a source's first run.

    Rates differ when their 95 % Wilson intervals do not overlap. Runs that only looked again at files that are no logs,
    or at files that fail, as every run does, say nothing of the source.
    """
    by_source: dict[str, list[SourceRun]] = {}
    for run in runs:
        if run.adapters or run.failed:
            by_source.setdefault(run.source, []).append(run)
    return [
        Drift(source, of_source[-1].batch_id, kind, message)
        for source, of_source in sorted(by_source.items())
        for kind, message in _differences(of_source[-1], of_source[-1 - COMPARED : -1])
    ]


def _differences(last: SourceRun, runs: Sequence[SourceRun]) -> Iterator[tuple[str, str]]:
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
    if usual >= LEAST_RECORDS and last.records_in < LESS * usual:
        yield "less", f"{last.records_in:,} records read, in the runs before {usual:,.0f} (median of {len(before)})"
    known = {adapter for run in before for adapter in run.adapters}
    new, gone = sorted(last.adapters.keys() - known), sorted(known - last.adapters.keys())
    if known and new:
        yield "formats", f"read as {', '.join(new)}, in the runs before as {', '.join(sorted(known))}"
    elif gone:
        yield "formats", f"no file of {', '.join(gone)}, which the runs before had"
