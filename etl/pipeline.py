"""The run, top to bottom: discover → open → detect → parse → normalise → redact → check → write → commit.

The order is a safety rule, and nothing is visible before it is committed (`etl/committing.py`). What reads and commits
is loaded where there is something to read: most nights most sources are unchanged.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from etl.changes import Change, changes
from etl.discover import discover
from etl.errors import UsageError
from etl.footprint import settled
from etl.framing import LIMITS, Limits
from etl.keys import lake_key
from etl.lake import KnownFile, Lake, StagedFile
from etl.policies import KEYED, check_policy
from etl.report import UNDETECTED, FileResult, Report
from etl.runs import drift, run_report, source_runs
from etl.staging import Settings
from etl.times import instant, to_datetime

if TYPE_CHECKING:
    from etl.parts import Work
    from etl.workers import ReadOut


class Progress(NamedTuple):
    """How far a run is. `phase` is reading or committing; sizes are bytes on disk."""

    phase: str
    files: int
    of_files: int
    size: int
    of_size: int


OnProgress = Callable[[Progress], None]

ENGINES = ("local", "ray")
"""Where the keys of lakes lie that nobody gives: outside the data, for this user alone."""


def ingest(
    paths: Iterable[str | Path],
    *,
    lake: str | Path = "./lake",
    format: str | None = None,
    map: str | Path | None = None,
    source: str | None = None,
    workers: int = 1,
    redact: str = "secrets",
    exclude: Sequence[str] = (),
    reparse: bool = False,
    dry_run: bool = False,
    now: datetime | None = None,
    limits: Limits = LIMITS,
    progress: OnProgress | None = None,
    strict: bool = False,
    engine: str = "local",
    ray_address: str | None = None,
    pseudonym_key: bytes | None = None,
) -> Report:
    """Read logs into a lake: files, folders and globs, their format told by content; reading again changes nothing.

    `map` is a file that says which column is what, for logs that no adapter knows. `source` names the log stream (by
    default the adapter's or the map's name), `now` is the clock, `strict` lets an adapter's
    exception through. Raises UsageError where the call is wrong and LakeError where the lake cannot be written; what
    is wrong with a file or a record is in the report and in the lake. With the `engine` ray the files are read by the
    cluster at `ray_address` (else one on this machine) rather than by `workers` processes; the rows are the same. The
    policy pii names what is personal with `pseudonym_key`, else with a key that is kept for this lake in KEYS.
    """
    if engine not in ENGINES:
        raise UsageError(f"no engine is called {engine!r}; use one of: {', '.join(ENGINES)}")
    mapping = None
    if map is not None:
        from etl.mapping import load_map

        mapping = load_map(map)
        if format is not None:
            raise UsageError("--map says how to read, and so does --format: give one of them")
        source = source or mapping.name
    files = discover([paths] if isinstance(paths, (str, Path)) else paths, exclude, archives=False)
    settings = run_settings(lake, now, source, format, redact, limits, dry_run, strict)
    settings = settings._replace(mapping=mapping)
    if not files and not Lake.begun(lake):
        return Report(settings.batch_id, dry_run=dry_run)  # nothing to read makes no lake
    with running(settings) as (opened, report):
        known = _known(opened, source)
        found = changes(files, known, source, "mapped" if mapping else format, reparse, mapping)
        kinds = {change.file.uri: change.kind for change in found if change.kind != "unchanged"}
        unchanged = [change.as_unchanged() for change in found if change.kind == "unchanged"]
        results: list[FileResult] = []
        staged: list[StagedFile] = []
        if len(unchanged) < len(found):
            from etl.parts import Work

            works = [Work(change.file, _grown(change, reparse)) for change in found if change.kind != "unchanged"]
            settings = keyed(opened, settings._replace(key=pseudonym_key))
            on_file = _counting(progress, [work.file.size for work in works])
            results, staged = _read(works, settings, workers, on_file, engine, ray_address)
        for result in results:
            result.change = kinds[result.uri]
        _finish(opened, settings, report, results, staged, unchanged, known[UNDETECTED])
    return report


def _read(
    works: Sequence[Work], settings: Settings, workers: int, on_file: Callable[[FileResult], None], engine: str,
    ray_address: str | None,
) -> ReadOut:  # fmt: skip
    """A result a file, and the staged files of all tables."""
    if engine == "ray":
        from etl.ray_reading import read_on_ray

        return read_on_ray(works, settings, ray_address, on_file)
    from etl.workers import read_all

    return read_all(works, settings, workers, on_file)


def replay(
    lake: str | Path = "./lake",
    *,
    source: str | None = None,
    reason: str | None = None,
    redact: str = "secrets",
    now: datetime | None = None,
    limits: Limits = LIMITS,
    progress: OnProgress | None = None,
    pseudonym_key: bytes | None = None,
) -> Report:
    """Read rejected records again, after a fix: from their files where these are still there, else from the bytes kept.

    What can be used now becomes rows and leaves `rejects`; the rest stays. `source` and `reason` choose among them.
    """
    from etl.replaying import read_rejects

    settings = run_settings(lake, now, None, None, redact, limits, False, False)
    with running(settings) as (opened, report):
        settings = keyed(opened, settings._replace(key=pseudonym_key))
        read = read_rejects(opened, settings, source, reason, _counting(progress, []))
        _finish(opened, settings, report, read.results, read.staged, [], {})
    return report


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


def keyed(lake: Lake, settings: Settings) -> Settings:
    """The settings with the key of the lake's pseudonyms, where the policy needs one."""
    if settings.redact not in KEYED or settings.key is not None:
        return settings
    return settings._replace(key=lake_key(lake.id, make=not settings.dry_run))


@contextlib.contextmanager
def running(settings: Settings) -> Iterator[tuple[Lake, Report]]:
    """The lake with an open batch, and the report to fill."""
    started = time.monotonic()
    report = Report(settings.batch_id, dry_run=settings.dry_run)
    with _lake(settings) as lake, settled(), lake.batch(settings.batch_id):
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


def _grown(change: Change, reparse: bool) -> KnownFile | None:
    """What is known of a file that may only have become longer."""
    known = change.known
    return known if known is not None and not reparse and change.file.size > known.size else None


def _known(lake: Lake, source: str | None) -> dict[str, dict[str, KnownFile]]:
    """What was read before, by source name: the one given, else every name that a run without one may have used; and
    what no adapter read.
    """
    known = lake.known_files(None if source is None else sorted({source, UNDETECTED}))
    known.setdefault(UNDETECTED, {})
    return {name: known[name] for name in sorted(known)}


def _counting(progress: OnProgress | None, sizes: Sequence[int]) -> Callable[[FileResult], None]:
    """Tells of each file that was read how far the run is."""
    total = sum(max(size, 0) for size in sizes)
    files = size = 0

    def on_file(result: FileResult) -> None:
        nonlocal files, size
        files += 1
        size += max(result.size, 0)
        if progress is not None:
            phase = "committing" if files == len(sizes) else "reading"
            progress(Progress(phase, files, max(len(sizes), files), size, max(total, size)))

    return on_file


def _finish(
    lake: Lake, settings: Settings, report: Report, read: Sequence[FileResult], staged: Sequence[StagedFile],
    unchanged: Sequence[FileResult], undetected: dict[str, KnownFile],
) -> None:  # fmt: skip
    report.files = sorted([*read, *unchanged], key=lambda result: result.uri)
    report.bytes_read = sum(result.size for result in read if result.sha256 is not None)
    if (read or staged) and not settings.dry_run:
        from etl.committing import commit

        commit(lake, settings, report, read, staged, undetected)


def _keep_report(lake: Lake, settings: Settings, report: Report) -> None:
    """The report stays in the lake, and is held against those of the runs before."""
    at = to_datetime(settings.ingested_at).isoformat()
    lake.write_report(json.dumps(run_report(report, at), indent=1))
    report.drift = [found for found in drift(source_runs(lake.reports())) if found.batch_id == settings.batch_id]


__all__ = ["Progress", "Report", "ingest", "replay"]
