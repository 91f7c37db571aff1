"""A worker process: it reads what comes through its pipe, until the run ends or is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

from etl.footprint import release
from etl.parts import Work
from etl.reading import Reader
from etl.remote import is_remote, register
from etl.report import FileResult
from etl.settings import Settings

Task = Sequence[Work]

TOLD_EVERY = 0.1
"""Seconds: to hear of each of many small files would keep the run busy."""


def work(pipe: Connection, worker: str) -> None:
    """Read what comes and say so, and give everything where a wave ends; until the run does."""
    try:
        settings: Settings = pipe.recv()
        while True:
            reader = Reader(settings, worker)
            results: list[FileResult] = []
            while (task := pipe.recv()) is not None:
                results += read_task(reader, task, pipe.send)
            pipe.send((results, reader.close()))
            del reader, results
            release()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the run has ended
    except Exception as error:  # noqa: BLE001  (the run says it)
        with suppress(OSError):
            pipe.send(error)


def read_task(reader: Reader, task: Task, tell: Callable[[tuple[list[FileResult], bool]], None]) -> list[FileResult]:
    """Read what a task names; `tell` hears of some at a time, and whether the last was among them."""
    if any(is_remote(work.file.uri) for work in task):
        register()
    results, untold = [], []
    at = time.monotonic()
    for number, work in enumerate(task, 1):
        result = reader.read(work.file, work.known) if work.part is None else reader.read_part(work)
        results.append(result)
        brief = FileResult(result.uri, result.source, result.size, state=result.state, part=result.part)
        brief.again = result.again
        untold.append(brief)
        if number == len(task) or time.monotonic() - at >= TOLD_EVERY:
            tell((untold, number == len(task)))
            untold, at = [], time.monotonic()
    return results
