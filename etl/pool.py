"""The worker processes of a run, each at the other end of a pipe.

They start when there is enough to read for them and stay for all waves that follow. The run itself hands out what there
is to read, and hears what came of it. This module loads little: where a lake is new, workers are started first of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, Pipe, wait
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from etl.errors import LakeError
from etl.settings import PART_BYTES
from etl.stem import Begun, begin

if TYPE_CHECKING:
    from etl.report import FileResult
    from etl.settings import Settings
    from etl.worker import Task
    from etl.workers import Queue, ReadOut

ALSO = 1 << 16
"""What a file costs besides its bytes, in bytes."""
PATIENCE = 5.0
"""Seconds that processes get to end, and to say why."""


def are_many(sizes: Iterable[int], part_bytes: int = PART_BYTES) -> bool:
    """Whether reading files of these sizes takes so long that it is worth while to start workers, who then share it."""
    weights = [max(size, 0) + ALSO for size in sizes]
    if max(weights, default=0) >= 2 * part_bytes + ALSO:
        return True
    return len(weights) > 1 and sum(weights) >= part_bytes


class Pool:
    """So many workers, or one process that reads by itself."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._begun: Begun | None = None
        self._given: dict[Connection, int] = {}
        self._is_told = False

    def begin(self, policy: str) -> None:
        """Start the workers, unless they have been: loading takes them a while in which the run can go on."""
        if self._begun is not None:
            return
        pipes = [Pipe() for _ in range(self.count)]
        self._given = {ours: 0 for ours, _ in pipes}
        self._begun = begin(policy, {str(number): theirs for number, (_, theirs) in enumerate(pipes)})

    def tell(self, settings: Settings) -> None:
        """What to read by, once for all waves."""
        self.begin(settings.redact)
        if not self._is_told:
            self._is_told = True
            for pipe in self._given:
                self._send(pipe, settings)

    def dismiss(self) -> None:
        """There is nothing more to read: the workers end while the run goes on."""
        for pipe in self._given:
            pipe.close()
        self._given = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.dismiss()
        if self._begun is not None:
            self._begun.end(PATIENCE if kind is None else 0)  # the pipes of the workers have ended

    def serve(self, queue: Queue) -> bool:
        """Give idle workers something to do and hear of what is done; False when all is."""
        self.hand_out(queue)
        if not any(self._given.values()):
            return False
        while not (ready := self._ready(0)) and queue.prepare():
            pass
        for pipe in ready or self._ready():
            for result in self._heard(pipe):
                queue.done(result)
        return True

    def hand_out(self, queue: Queue) -> None:
        """Give idle workers something to do, and those that are at work a part to go on with."""
        for ahead in (0, 1):
            for pipe, given in self._given.items():
                if given == ahead and (task := queue.next(idle=not ahead)) is not None:
                    self._send(pipe, task)
                    self._given[pipe] += 1

    def _ready(self, seconds: float | None = None) -> list[Connection]:
        """The pipes in which there is something; what is unsaid is waited for."""
        return [pipe for pipe in wait(list(self._given), seconds) if isinstance(pipe, Connection)]

    def _heard(self, pipe: Connection) -> list[FileResult]:
        told: list[FileResult]
        told, is_last = self._received(pipe)
        self._given[pipe] -= is_last
        return told

    def _send(self, pipe: Connection, what: Settings | Task | None) -> None:
        try:
            pipe.send(what)
        except OSError:
            raise self._lost(pipe) from None

    def _received(self, pipe: Connection) -> Any:
        try:
            found = pipe.recv()
        except (EOFError, OSError):
            raise self._lost(pipe) from None
        if isinstance(found, BaseException):
            raise found
        return found

    def _lost(self, pipe: Connection) -> LakeError:
        code = None if self._begun is None else self._begun.code(list(self._given).index(pipe), PATIENCE)
        return LakeError(
            f"a worker process ended in the middle of its work (exit code {code}); nothing was committed. "
            "If memory ran out, run again with fewer workers"
        )

    def finish(self) -> Iterator[ReadOut]:
        """What each worker read since it was last asked, once it has written everything."""
        from etl.workers import ReadOut

        for pipe in self._given:
            self._send(pipe, None)
        for pipe in self._given:
            yield ReadOut(*self._received(pipe))
