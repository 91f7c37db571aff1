"""Files on their way into the lake, so many at a time that a run needs no more memory for a million of them.

What is to be read is gathered until it is a wave: it is read and committed before more is looked for. A wave is what a
run of its own would be (nothing of it is visible before it is committed, its files are marked as done last), only that
all of a run are one batch. So what a run that is cut off has committed stays, and the next one reads the rest. A
conversation whose records lie in files of two waves is put together by both.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from etl.changes import Change
from etl.footprint import release
from etl.lake import Lake, StagedFile
from etl.naming import keyed
from etl.report import FileResult, Report
from etl.settings import Settings
from etl.walk import FoundFile, is_recent

if TYPE_CHECKING:
    from etl.parts import Work
    from etl.pool import Pool
    from etl.workers import ReadOut


class Progress(NamedTuple):
    """How far a run is. `phase` is reading or committing; sizes are bytes on disk; of files, those found so far."""

    phase: str
    files: int
    of_files: int
    size: int
    of_size: int


OnProgress = Callable[[Progress], None]


class Told:
    """Tells of each file that was read how far the run is."""

    def __init__(self, progress: OnProgress | None) -> None:
        self._progress = progress
        self._files = self._size = self._of_files = self._of_size = 0

    def expect(self, works: Sequence[Work]) -> None:
        """These are read next."""
        self._of_files += len(works)
        self._of_size += sum(work.size for work in works)

    def file(self, result: FileResult) -> None:
        """A file has been read."""
        self._files += 1
        self._size += max(result.size, 0)
        if self._progress is not None:
            phase = "committing" if self._files == self._of_files else "reading"
            most = max(self._of_files, self._files), max(self._of_size, self._size)
            self._progress(Progress(phase, self._files, most[0], self._size, most[1]))


class Readers(NamedTuple):
    """Who reads: the processes of a pool, or a Ray cluster."""

    pool: Pool
    engine: str
    ray_address: str | None


class Waves:
    """What is found, gathered into waves; each is read and committed when it is full."""

    def __init__(
        self, lake: Lake, settings: Settings, report: Report, readers: Readers, told: Told,
        committed: Callable[[Sequence[FoundFile]], None],
    ) -> None:  # fmt: skip
        """`committed` hears of the files of each wave."""
        self._lake = lake
        self._settings = settings
        self._report = report
        self._readers = readers
        self._told = told
        self._committed = committed
        self._begun = contextlib.ExitStack()
        self._reading: Callable[[Sequence[Work]], ReadOut] | None = None
        self._waiting: list[Change] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._begun.__exit__(kind, error, trace)

    def take(self, found: Sequence[Change]) -> None:
        """Take in some files."""
        for change in found:
            if not change.is_read:
                self._report.add_unchanged(change)
                continue
            self._waiting.append(change)
            if len(self._waiting) >= self._settings.wave_files:
                self.read()

    def read(self, *, is_last: bool = False) -> None:
        """Read and commit what waits; nothing comes after the last."""
        if not self._waiting:
            return
        from etl.parts import Work

        changes, self._waiting = self._waiting, []
        is_later = self._reading is not None
        if is_later:
            release()
        reading = self._reading or self._begin()
        now_ns = time.time_ns()
        works = [Work(_timed(change.file, now_ns), change.known) for change in changes]
        self._told.expect(works)
        read = reading(works)
        if is_last:
            self._readers.pool.dismiss()
        told = {change.file.uri: change for change in changes}
        undetected = {uri for uri, change in told.items() if change.was_undetected}
        for result in read.results:
            _compare(result, told[result.uri])
        files = [change.file for change in changes]
        del changes, works, told
        finish(self._lake, self._settings, self._report, read.results, read.staged, undetected, is_later=is_later)
        self._committed(files)

    def _begin(self) -> Callable[[Sequence[Work]], ReadOut]:
        """What reads is loaded where there is something to read, and started once."""
        self._settings = settings = keyed(self._lake, self._settings)
        on_file = self._told.file
        if self._readers.engine == "ray":
            from etl.ray_reading import cluster, read_on_ray

            ray = self._begun.enter_context(cluster(self._readers.ray_address))
            self._reading = lambda works: read_on_ray(ray, works, settings, on_file)
        else:
            from etl import workers

            pool = self._readers.pool
            self._reading = lambda works: workers.read_all(works, settings, pool, on_file)
        return self._reading


def _timed(file: FoundFile, now_ns: int) -> FoundFile:
    """A file that may change once more without its time telling is kept without one: then its digest tells."""
    return file._replace(modified_ns=0) if is_recent(file.modified_ns, now_ns) else file


def _compare(result: FileResult, change: Change) -> None:
    """Say of what was read how it differs from what was known."""
    result.former = change.former
    result.is_news = bool(change.former) or not result.is_known_as(change.known)
    result.is_first = result.is_seen_first(change.known)
    # Of a longer file its beginning has told whether it has grown.
    if change.kind != "grown" or result.change == "new":
        result.change = change.kind


def finish(
    lake: Lake, settings: Settings, report: Report, read: Sequence[FileResult], staged: Sequence[StagedFile],
    undetected: Collection[str] = (), *, is_later: bool = False,
) -> None:  # fmt: skip
    """Commit what was read, and count it. `undetected` are the files among these that no adapter read before; a wave
    is a later one where the run has committed another.
    """
    news = [result for result in read if result.is_news]
    if (news or staged) and not settings.dry_run:
        from etl.committing import commit

        commit(lake, settings, report, news, staged, undetected, is_later=is_later)
    for result in read:
        report.add(result)
