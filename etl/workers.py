"""Files over processes: one queue of files and parts of large files, the largest first, from which each worker takes.

The run itself goes over each large file of lines once and hands out its parts as it comes to their ends (`parts.py`).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from etl.detection import Skipped, detect
from etl.digest import LineDigest
from etl.errors import SourceError
from etl.growing import add, before_growth, counted, grown_or_replaced
from etl.lake import StagedFile
from etl.parts import LEAST, SHARE, Work, is_parted, names_records, parts
from etl.pool import Pool, are_many
from etl.reading import Reader
from etl.report import FileResult, Reached
from etl.settings import Settings
from etl.worker import Task

OnFile = Callable[[FileResult], None]

TOGETHER_BYTES = 4 << 20
TOGETHER_FILES = 256
"""Small files are handed out together, up to so many."""
PIECES = 32
"""A run is cut into about so many parts, as long as they do not become too small."""
AHEAD = 16
"""So many tasks are made before anybody asks for them."""


class ReadOut(NamedTuple):
    """What reading gave: a result a file, and the staged files of all tables."""

    results: list[FileResult]
    staged: list[StagedFile]


def read_all(works: Sequence[Work], settings: Settings, pool: Pool, on_file: OnFile) -> ReadOut:
    """Read every file, in this process or by the pool; `on_file` hears of each as it is done."""
    if pool.count <= 1 or not are_many((work.size for work in works), settings.part_bytes):
        reader = Reader(settings)
        results = []
        for work in works:
            results.append(reader.read(work.file, work.known))
            on_file(results[-1])
        return ReadOut(results, reader.close())
    pool.tell(settings)
    queue = Queue(works, settings, on_file)
    staged: list[StagedFile] = []
    pool.hand_out(queue)
    import duckdb  # noqa: F401  (what commits is loaded while workers read)

    import etl.committing  # noqa: F401

    while pool.serve(queue):
        pass
    for found, files in pool.finish():
        queue.take_all(found)
        staged += files
    return ReadOut(queue.results(), staged)


class Queue:
    """What is to be read, and what has been: files become parts while they are handed out."""

    def __init__(self, works: Sequence[Work], settings: Settings, on_file: OnFile) -> None:
        self._works = works
        self._settings = settings
        self._on_file = on_file
        self._parted: dict[str, _Parted] = {}
        self._again: deque[Work] = deque()
        total = sum(work.size for work in works)
        self._part_bytes = max(settings.part_bytes // LEAST, min(settings.part_bytes, total // PIECES))
        self._tasks = self._all()
        self._made: deque[Task] = deque()
        self._results: dict[str, FileResult] = {}

    def next(self, idle: bool = True) -> Task | None:
        """The next task; None where there is none, for now. Who is not idle gets parts only: they are of one size."""
        if not self._made and not self.prepare():
            return (self._again.popleft(),) if self._again else None
        return self._made.popleft() if idle or self._made[0][0].part is not None else None

    def prepare(self) -> bool:
        """Make a task before somebody asks for it; False where there is none, or where enough are made."""
        if len(self._made) >= AHEAD or (task := next(self._tasks, None)) is None:
            return False
        self._made.append(task)
        return True

    def _all(self) -> Iterator[Task]:
        small: list[Work] = []
        for work in sorted(self._works, key=lambda work: (-work.size, work.file.uri)):
            if work.size >= 2 * self._part_bytes and (parted := self._part(work)) is not None:
                yield from parted
            elif work.size >= TOGETHER_BYTES:
                yield (work,)
            else:
                small.append(work)
        yield from together(small)

    def _part(self, work: Work) -> Iterator[Task] | None:
        """The tasks of a file that is read in parts; None for one that is not."""
        file = work.file
        if work.known is not None and work.known.read_bytes is not None:
            return None  # it may be read from where it stopped
        try:
            detection = detect(file.path, self._settings.format, file.member, self._settings.mapping)
            if not is_parted(file, detection, self._settings.limits):
                return None
        except (Skipped, SourceError):
            return None
        self._parted[file.uri] = parted = _Parted(work, detection.adapter.name)
        return self._parts(parted, names_records(detection.adapter))

    def _parts(self, parted: _Parted, named: bool) -> Iterator[Task]:
        file = parted.work.file
        try:
            for part in parts(file, parted.digest, self._part_bytes, named):
                if parted.whole:
                    return
                parted.handed_out += 1
                yield (Work(file, part=part, adapter=parted.adapter),)
        except SourceError:  # reading it whole says what is wrong
            self._read_whole(parted)
        else:
            parted.complete = True
            self._tell(parted)

    def _read_whole(self, parted: _Parted) -> None:
        """A row that parts gave already is the one that the whole file gives: it is staged twice and committed once."""
        if not parted.whole:
            parted.whole = True
            self._again.append(Work(parted.work.file))

    def done(self, result: FileResult) -> None:
        """A file or a part has been read."""
        parted = self._parted.get(result.uri)
        if result.part is None or parted is None:
            self._on_file(result)
            return
        parted.read += 1
        if result.again:
            self._read_whole(parted)
        self._tell(parted)

    def _tell(self, parted: _Parted) -> None:
        if parted.complete and not parted.whole and parted.read == parted.handed_out:
            self._on_file(FileResult(parted.work.file.uri, "", parted.work.file.size))

    def take_all(self, results: Iterable[FileResult]) -> None:
        """What a worker has found."""
        for result in results:
            if result.part is None:
                self._results[result.uri] = result
            elif not (parted := self._parted[result.uri]).whole:
                parted.results.append(result)

    def results(self) -> list[FileResult]:
        """A result for every file."""
        for uri, parted in self._parted.items():
            if not parted.whole:
                self._results[uri] = parted.joined(self._settings)
        return [self._results[work.file.uri] for work in self._works]


class _Parted:
    """A file that is read in parts."""

    def __init__(self, work: Work, adapter: str) -> None:
        self.work = work
        self.adapter = adapter
        self.digest = LineDigest(before_growth(work.file, work.known))
        self.handed_out = self.read = 0
        self.complete = False
        self.whole = False
        """Whether it is read again whole."""
        self.results: list[FileResult] = []

    def joined(self, settings: Settings) -> FileResult:
        """The result of the file, as if one had read it all."""
        first, *others = sorted(self.results, key=lambda result: result.part or 0)
        first.part = None
        known = {id(first.touched)}
        for result in others:
            if result.part == self.digest.whole:
                first.beginning = counted(first, settings)
            add(first, result)
            if result.touched is not None and id(result.touched) not in known:
                known.add(id(result.touched))
                first.others_touched += (result.touched,)
        first.beginning = first.beginning or counted(first, settings)
        first.parsed = (first.rejects.total(), first.ignored.total())
        first.sha256, first.size = self.digest.hexdigest(), self.digest.size
        first.change = grown_or_replaced(self.digest, self.work.known)
        if self.digest.whole:
            first.reached = Reached(self.digest.whole, self.digest.lines, self.digest.lines_hexdigest())
        return first


def together(works: Sequence[Work]) -> Iterator[Task]:
    """Small files in lots, those of a folder together; the last lots are smaller."""
    lot: list[Work] = []
    size, left, files_left = 0, sum(work.size for work in works), len(works)
    for work in sorted(works, key=lambda work: work.file.uri):
        lot.append(work)
        size += work.size
        if size >= _usual(TOGETHER_BYTES, left) or len(lot) >= _usual(TOGETHER_FILES, files_left):
            yield lot
            left, files_left = left - size, files_left - len(lot)
            lot, size = [], 0
    if lot:
        yield lot


def _usual(most: int, left: int) -> int:
    return max(most // LEAST, min(most, left // SHARE))


def shares(tasks: Iterable[Task], count: int) -> list[list[Work]]:
    """Shares of about equal size: the largest task first, always to the smallest share."""
    made: list[list[Work]] = [[] for _ in range(count)]
    heap = [(0, number) for number in range(count)]
    sized = [(sum(max(work.size, 1) for work in task), task) for task in tasks]
    for task_size, task in sorted(sized, key=lambda item: -item[0]):
        size, number = heapq.heappop(heap)
        made[number] += task
        heapq.heappush(heap, (size + task_size, number))
    return [share for share in made if share]
