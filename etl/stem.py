"""The stem of a run: the process that its workers are forked from, and how it is started.

What reading needs takes half a second to load, and is loaded once for all workers, while the run itself loads what it
needs and looks for files. The stem is started anew for each run, by exec, so it knows the environment as it is now.
A fork is safe only where no other thread runs, as one may hold a lock that the child then never gets: the stem starts
none and makes sure of it. Where it can not, or the system's own libraries do not bear it (macOS), each worker is a
process that loads for itself.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from multiprocessing.spawn import get_executable
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

FORKS = sys.platform == "linux"
_BEGIN = "import sys; sys.path[:] = {path!r}; from etl.stem import main; main({fds!r})"
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Libraries that come with Arrow start a thread for each core when they are loaded."""
_PR_SET_PDEATHSIG = 1
"""Of the system's `prctl`: the signal that a process gets when its parent ends."""
_LOOKS = 0.1
"""Seconds between two looks at which processes have ended."""
_THREADS = Path("/proc/self/task")
_OF_ALLOCATOR = "jemalloc_bg_thd"
"""Arrow's allocator has a thread that it stops before a fork and does not need afterwards."""


class Ended(NamedTuple):
    """What the stem says of a worker that came to a bad end."""

    worker: int
    code: int


class Begun(NamedTuple):
    """A process that was started, and our end of its pipe."""

    process: subprocess.Popen[bytes]
    pipe: Connection

    def end(self, patience: float) -> None:
        """Wait for its end so many seconds, then see to it."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        if self.process.returncode is None:
            self.process.terminate()
            self.process.wait()
        self.pipe.close()

    def code(self, worker: int, patience: float) -> int | None:
        """The exit code of a worker that has ended, by its number; None where nobody knows it."""
        with suppress(EOFError, OSError):
            while self.pipe.poll(patience):
                told = self.pipe.recv()
                if isinstance(told, Ended) and told.worker == worker:
                    return told.code
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(patience)
        return None


def begin(policy: str, names: Mapping[str, Connection]) -> Begun:
    """A process that works at the other ends of these pipes, by name of the worker; these are closed here."""
    ours, theirs = Pipe()
    fds = [theirs.fileno(), *(pipe.fileno() for pipe in names.values())]
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    code = _BEGIN.format(path=sys.path, fds=fds)
    environment = {**os.environ, **_ONE_THREAD}  # noqa: TID251  (handed on as it is)
    process = subprocess.Popen(
        [os.fsdecode(get_executable()), *flags, "-c", code], pass_fds=fds, env=environment, stdin=subprocess.DEVNULL
    )
    theirs.close()
    for pipe in names.values():
        pipe.close()
    ours.send((policy, list(names)))
    return Begun(process, ours)


def main(fds: Sequence[int]) -> None:
    """In the process that was started: be the only worker, or the stem of several."""
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run hears of it and ends its workers
    run: Connection = Connection(fds[0])
    pipes = [Connection(fd) for fd in fds[1:]]
    policy, names = run.recv()
    try:
        _load(policy)
    except Exception as error:  # noqa: BLE001  (the run says it)
        for pipe in pipes:
            with suppress(OSError):
                pipe.send(error)
        return
    if len(pipes) == 1:
        _work(pipes[0], names[0])
    elif _is_alone():
        _fork(run, pipes, names)
    else:
        _start(run, pipes, policy, names)


def _end_with_parent() -> None:
    """End at once when the process is gone that started this one: what it reads nobody waits for any more, and a batch
    is taken for alive as long as one of its workers is. Elsewhere than on Linux the end of the pipe tells of it.
    """
    if FORKS:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _work(pipe: Connection, name: str) -> None:
    from etl.worker import work

    work(pipe, name)


def _load(policy: str) -> None:
    """What all workers need, before there are any. The rules of most policies are those of `secrets` and a few more."""
    from etl.adapter import adapters
    from etl.footprint import settle
    from etl.redact import Redactor
    from etl.worker import work  # noqa: F401  (with all that reads)

    settle()
    adapters()
    if policy != "none":
        Redactor().text("one text goes through the rules, so that they are loaded")


def _is_alone() -> bool:
    """Whether this process may fork: no other thread of it runs that knows nothing of forks."""
    if not FORKS:
        return False
    threads = [entry for entry in _THREADS.iterdir() if entry.name != str(os.getpid())]
    with suppress(OSError):
        return all((thread / "comm").read_text().strip() == _OF_ALLOCATOR for thread in threads)
    return False


def _fork(run: Connection, pipes: Sequence[Connection], names: Sequence[str]) -> None:
    """Fork the workers and wait for them; `run` hears of those that come to a bad end."""
    gc.collect()
    gc.freeze()
    numbers: dict[int, int] = {}
    signal.signal(signal.SIGTERM, _end)
    try:
        for number, name in enumerate(names):
            process = os.fork()
            if not process:
                _be_worker(run, pipes, number, name)
            numbers[process] = number
        for pipe in pipes:
            pipe.close()
        while numbers:
            process, status = os.wait()
            code = os.waitstatus_to_exitcode(status)
            number = numbers.pop(process)
            if code:
                with suppress(OSError):
                    run.send(Ended(number, code))
    finally:
        for process in numbers:
            os.kill(process, signal.SIGTERM)


def _be_worker(run: Connection, pipes: Sequence[Connection], number: int, name: str) -> NoReturn:
    """In the forked process, which never returns to what the stem was about."""
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _end_with_parent()
        run.close()
        for other in pipes:
            if other is not pipes[number]:
                other.close()  # else nobody would hear of the end of one whose pipe another holds
        _work(pipes[number], name)
        code = 0
    finally:
        os._exit(code)


def _start(run: Connection, pipes: Sequence[Connection], policy: str, names: Sequence[str]) -> None:
    """The workers as processes of their own, where this one cannot fork."""
    signal.signal(signal.SIGTERM, _end)
    begun = {n: begin(policy, {name: pipe}) for n, (name, pipe) in enumerate(zip(names, pipes, strict=True))}
    try:
        while begun:
            for number, each in list(begun.items()):
                if (code := each.process.poll()) is not None:
                    del begun[number]
                    if code:
                        with suppress(OSError):
                            run.send(Ended(number, code))
            time.sleep(_LOOKS)
    finally:
        for each in begun.values():
            each.process.terminate()


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)
