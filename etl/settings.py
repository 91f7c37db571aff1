"""The settings of a run, passed down to all that reads and writes for it."""

from __future__ import annotations

import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from etl.errors import UsageError
from etl.limits import Limits
from etl.policies import check_policy
from etl.times import instant

if TYPE_CHECKING:
    from etl.mapping import Mapping

PART_BYTES = 16 << 20
"""About how long the parts of a large file of lines are; one of twice as much is parted where it can be."""


class Settings(NamedTuple):
    """What a run passes down to its readers."""

    lake: str
    batch_id: str
    ingested_at: int
    """Microseconds since the epoch."""
    source: str | None = None
    format: str | None = None
    redact: str = "secrets"
    limits: Limits = Limits()
    dry_run: bool = False
    strict: bool = False
    """Let an adapter's exception through instead of turning its record into a reject (tests)."""
    mapping: Mapping | None = None
    """Which column is what, where the user says so."""
    key: bytes | None = None
    """Of the pseudonyms of personal data."""
    part_bytes: int = PART_BYTES
    """About how long the parts are that a large file of lines is read in."""
    least_growing: int = 1 << 16
    """A smaller file is read whole when it has grown."""
    wave_files: int = 10_000
    """So many files are read and committed together; a run of more takes several waves."""


def run_settings(
    lake: str | Path, now: datetime | None, source: str | None, format: str | None, redact: str, limits: Limits,
    dry_run: bool, strict: bool,
) -> Settings:  # fmt: skip
    """The settings of a run, with a batch id of its own; UsageError where `now` is no time."""
    check_policy(redact)
    at = time.time_ns() // 1_000 if now is None else instant(now).micros
    if at is None:
        raise UsageError(f"`now` is no usable time: {now}")
    batch_id = f"b_{time.strftime('%Y%m%dT%H%M%S', time.gmtime(at // 1_000_000))}_{uuid.uuid4().hex[:8]}"
    return Settings(str(lake), batch_id, at, source, format, redact, limits, dry_run, strict)
