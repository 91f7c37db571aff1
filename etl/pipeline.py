"""The run, top to bottom: discover → open → detect → parse → normalise → redact → check → write → commit.

The order is a safety rule, and nothing is visible before it is committed (`etl/committing.py`). What runs is loaded
where there is something to read (`etl/running.py`), and beside it, where a lake is new, what its workers need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from etl.discover import find
from etl.errors import UsageError
from etl.limits import LIMITS, Limits
from etl.policies import check_policy
from etl.pool import Pool, are_many
from etl.remote import is_remote

if TYPE_CHECKING:
    from etl.report import Report
    from etl.waves import OnProgress

ENGINES = ("local", "ray")
FIRST = 1_000
"""So many files are found before anything else is done."""


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
    check_policy(redact)
    roots = [str(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    files = find(roots, exclude)
    first = list(islice(files, FIRST))
    with Pool(1 if engine == "ray" else workers) as pool:
        # A lake that is not there yet knows no file: all are read, and workers may load what they need from now on.
        is_new = not is_remote(str(lake)) and not Path(lake).exists()
        if pool.count > 1 and is_new and are_many(file.size for file in first):
            pool.begin(redact)
        from etl.running import read_into, run_settings
        from etl.waves import Readers

        settings = run_settings(lake, now, source, format, redact, limits, dry_run, strict)
        settings = settings._replace(mapping=mapping, key=pseudonym_key)
        readers = Readers(pool, engine, ray_address)
        return read_into(settings, chain(first, files), readers, progress, reparse=reparse, roots=roots)


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
    from etl.running import run_settings, running
    from etl.waves import Told, finish

    policy = redact or policy_of_rejects(Lake.open(lake), source)
    settings = run_settings(lake, now, None, None, policy, limits, False, False)
    with running(settings) as (opened, report):
        settings = keyed(opened, settings._replace(key=pseudonym_key))
        read = read_rejects(opened, settings, source, reason, Told(progress).file)
        finish(opened, settings, report, read.results, read.staged)
    return report


__all__ = ["ENGINES", "ingest", "replay"]
