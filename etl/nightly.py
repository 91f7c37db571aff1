"""The nightly job of `etl.toml`: every source a batch of its own, so that one that fails costs itself alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from etl.config import Config, SourceConfig
from etl.errors import SourceError, UsageError
from etl.lake.place import Place
from etl.lake.retention import milliseconds
from etl.limits import Limits
from etl.pipeline import ingest

if TYPE_CHECKING:
    from etl.report import Report
    from etl.runs import Drift
    from etl.waves import OnProgress

_SUMMED = ("files", "rows", "rejects", "ignored")


@dataclass
class Night:
    """What a night did: the report of every source that could be read, the reason for every other."""

    reports: dict[str, Report] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    drift: list[Drift] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The sums under the names that one report has, and each report by source."""
        told = {source: report.to_json() for source, report in self.reports.items()}
        sums: dict[str, Any] = {"batch_ids": [report["batch_id"] for report in told.values()]}
        for name in ("files", "records_in", "records_used", "rows", "rejects", "ignored", "seconds", "bytes_read"):
            values = [report[name] for report in told.values()]
            sums[name] = _added(values) if name in _SUMMED else round(sum(values), 3)
        return {
            **sums,
            "sources": told,
            "failed": self.failed,
            "drift": [found._asdict() for found in self.drift],
        }


def _added(objects: list[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for counts in objects:
        total.update(counts)
    return dict(total)


def run(
    config: Config, *, reparse: bool = False, dry_run: bool = False, now: datetime | None = None,
    progress: OnProgress | None = None, pseudonym_key: bytes | None = None,
) -> Night:  # fmt: skip
    """Read every source into the lake. A source whose paths are not there is in `failed`, and the others are read.

    Raises LakeError where the lake cannot be read or written: then no source can be read.
    """
    night = Night()
    if config.retain is not None and not dry_run:
        _retain(config.lake, milliseconds(config.retain))
    for source in config.sources:
        try:
            report = _read(config.lake, source, reparse, dry_run, now, progress, pseudonym_key)
        except (UsageError, SourceError) as error:
            night.failed[source.name] = str(error)
        else:
            night.reports[source.name] = report
            night.drift += report.drift
    return night


def _retain(lake: str, wanted_ms: int) -> None:
    """Let the lake keep replaced files so long, from this night on."""
    if Place(lake).retain_ms() == wanted_ms:
        return
    from etl.lake import Lake

    opened = Lake.create(lake)
    with opened.batch(f"retain-{uuid4()}"):
        opened.retain(wanted_ms)


def _read(
    lake: str, source: SourceConfig, reparse: bool, dry_run: bool, now: datetime | None, progress: OnProgress | None,
    pseudonym_key: bytes | None,
) -> Report:  # fmt: skip
    limits = Limits()
    if source.max_record_mb is not None:
        limits = limits._replace(record_bytes=source.max_record_mb << 20)
    if source.max_nesting is not None:
        limits = limits._replace(nesting=source.max_nesting)
    return ingest(
        source.paths,
        lake=lake,
        format=source.format,
        map=source.map,
        source=source.name,
        workers=source.workers or 1,
        engine=source.engine or "local",
        ray_address=source.ray_address,
        redact=source.redact or "secrets",
        pseudonym_key=pseudonym_key,
        exclude=source.exclude or (),
        limits=limits,
        reparse=reparse,
        dry_run=dry_run,
        now=now,
        progress=progress,
    )
