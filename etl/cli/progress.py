"""The progress bar of a long run: on stderr, and only where that is a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from etl.waves import Progress as Told

WIDE = 80
"""Columns of a window that has room for sizes, speed and the time left."""


@contextlib.contextmanager
def shown_progress() -> Iterator[Callable[[Told], None] | None]:
    """What to hand to `ingest` as `progress`; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from etl.cli.tables import console

    err = console(stderr=True)
    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn(None if err.width < WIDE else 40)]
    if err.width >= WIDE:
        columns += [DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=err, transient=True, expand=err.width < WIDE) as bar:
        task = bar.add_task("looking for files", total=None)

        def told(progress: Told) -> None:
            bar.update(
                task,
                description=f"{progress.phase} {progress.files}/{progress.of_files} files",
                completed=progress.size,
                total=progress.of_size,
            )

        yield told
