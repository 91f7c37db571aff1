"""How a run begins that compares files and reads them: with its workers, where a lake is new, as they load longest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from etl.pool import Pool, are_many
from etl.remote import is_remote

if TYPE_CHECKING:
    from etl.quiet import Asked
    from etl.report import Report
    from etl.results import FileResult
    from etl.waves import OnProgress

FIRST = 1_000
"""So many files are looked at to tell whether there is enough to read for workers."""


def start(
    asked: Asked, workers: int, engine: str, ray_address: str | None, progress: OnProgress | None, *, reparse: bool
) -> Report:
    """Read what is new."""
    with Pool(1 if engine == "ray" else workers) as pool:
        lake = asked.settings.lake
        # A lake that is not there yet knows no file: all are read, and workers may load what they need from now on.
        is_new = not is_remote(lake) and not Path(lake).exists()
        if pool.count > 1 and is_new and are_many(file.size for file in islice(asked.files(), FIRST)):
            pool.begin(asked.settings.redact)
        from etl.running import read_into
        from etl.waves import Readers

        return read_into(asked, Readers(pool, engine, ray_address), progress, reparse=reparse)


def unchanged(asked: Asked) -> Iterator[FileResult]:
    """The results of files that lie in the lake as they were."""
    from etl.running import known_results

    return known_results(asked)
