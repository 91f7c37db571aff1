"""Files over processes: each worker reads its share into its own staging files."""

from __future__ import annotations

import heapq
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing.queues import SimpleQueue
from typing import NamedTuple

from etl.discover import FoundFile
from etl.footprint import settle
from etl.lake import StagedFile
from etl.reading import Reader
from etl.remote import is_remote, register
from etl.report import FileResult
from etl.staging import Settings

OnFile = Callable[[FileResult], None]


class ReadOut(NamedTuple):
    """What reading gave: a result a file, and the staged files of all tables."""

    results: list[FileResult]
    staged: list[StagedFile]


def read_all(files: Sequence[FoundFile], settings: Settings, workers: int, on_file: OnFile) -> ReadOut:
    """Read every file, in this process or in `workers` processes; `on_file` hears of each as it is done."""
    if workers <= 1 or len(files) <= 1:
        return _read(files, settings, "0", on_file)
    given = shares(files, min(workers, len(files)))
    context = multiprocessing.get_context("spawn")
    heard: SimpleQueue[FileResult] = context.SimpleQueue()
    results: list[FileResult] = []
    staged: list[StagedFile] = []
    with ProcessPoolExecutor(len(given), context, _listen, (heard,)) as pool:
        pending = {pool.submit(read_share, share, settings, str(number)) for number, share in enumerate(given)}
        while pending:
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            while not heard.empty():
                on_file(heard.get())
            for future in done:
                share_results, share_staged = future.result()
                results += share_results
                staged += share_staged
    order = {file.uri: number for number, file in enumerate(files)}
    return ReadOut(sorted(results, key=lambda result: order[result.uri]), staged)


def shares(files: Sequence[FoundFile], count: int) -> list[list[FoundFile]]:
    """Shares of about equal size: the largest file first, always to the smallest share."""
    made: list[list[FoundFile]] = [[] for _ in range(count)]
    heap = [(0, number) for number in range(count)]
    for file in sorted(files, key=lambda file: (-file.size, file.uri)):
        size, number = heapq.heappop(heap)
        made[number].append(file)
        heapq.heappush(heap, (size + max(file.size, 1), number))
    return [sorted(share, key=lambda file: file.uri) for share in made]


def _read(files: Sequence[FoundFile], settings: Settings, worker: str, on_file: OnFile) -> ReadOut:
    reader = Reader(settings, worker)
    results = []
    for file in files:
        result = reader.read(file)
        results.append(result)
        on_file(result)
    return ReadOut(results, reader.close())


_heard: SimpleQueue[FileResult] | None = None


def _listen(heard: SimpleQueue[FileResult]) -> None:
    """In a worker: where to tell of finished files (a queue cannot be passed with a task)."""
    global _heard
    _heard = heard
    settle()


def read_share(files: Sequence[FoundFile], settings: Settings, worker: str) -> ReadOut:
    """Read some files in a process that may have been started for it."""
    if any(is_remote(file.uri) for file in files):
        register()

    def tell(result: FileResult) -> None:
        if _heard is not None:
            _heard.put(FileResult(result.uri, result.source, result.size, state=result.state))

    return _read(files, settings, worker, tell)
