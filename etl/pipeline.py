"""The run, top to bottom: discover → open → detect → parse → normalise → redact → check → write → commit.

The order is a safety rule, and nothing is visible before it is committed (`etl/committing.py`). First it is told
whether anything has changed (`etl/quiet.py`); only where it may have, what runs is loaded (`etl/starting.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from etl.errors import UsageError
from etl.limits import LIMITS, Limits
from etl.quiet import Asked, quiet_night
from etl.settings import run_settings

if TYPE_CHECKING:
    from etl.report import Report
    from etl.waves import OnProgress

ENGINES = ("local", "ray")


def check_engine(name: str) -> None:
    """UsageError where files are read nowhere of that name."""
    if name not in ENGINES:
        raise UsageError(f"no engine is called {name!r}; use one of: {', '.join(ENGINES)}")


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
    check_engine(engine)
    mapping = None
    if map is not None:
        from etl.mapping import load_map

        mapping = load_map(map)
        if format is not None:
            raise UsageError("--map says how to read, and so does --format: give one of them")
        source = source or mapping.name
    settings = run_settings(lake, now, source, format, redact, limits, dry_run, strict)
    settings = settings._replace(mapping=mapping, key=pseudonym_key)
    asked = Asked(settings, [str(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)], exclude)
    if not reparse and (report := quiet_night(asked)) is not None:
        return report
    from etl.starting import start

    return start(asked, workers, engine, ray_address, progress, reparse=reparse)


def replay(
    lake: str | Path = "./lake",
    *,
    source: str | None = None,
    reason: str | None = None,
    redact: str | None = None,
    now: datetime | None = None,
    limits: Limits = LIMITS,
    progress: OnProgress | None = None,
    pseudonym_key: bytes | None = None,
) -> Report:
    """Read rejected records again, after a fix: from their files where these are still there, else from the bytes kept.

    What can be used now becomes rows and leaves `rejects`; the rest stays. `source` and `reason` choose among them.
    Without `redact` the policy is the strictest that any row of their source went through.
    """
    from etl.lake import Lake
    from etl.naming import keyed
    from etl.replaying import policy_of_rejects, read_rejects
    from etl.running import running
    from etl.waves import Told, finish

    policy = redact or policy_of_rejects(Lake.open(lake), source)
    settings = run_settings(lake, now, None, None, policy, limits, False, False)
    with running(settings) as (opened, report):
        settings = keyed(opened, settings._replace(key=pseudonym_key))
        read = read_rejects(opened, settings, source, reason, Told(progress).file)
        finish(opened, settings, report, read.results, read.staged)
    return report


__all__ = ["ENGINES", "ingest", "replay"]
