"""Workers whose run was killed end at once: as long as one lives, its batch is taken for alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Another process holds the pipes, so that their end tells the workers nothing.
RUN = """
import os, signal, time
from multiprocessing.connection import Pipe
from pathlib import Path
from etl.stem import begin
pipes = [Pipe() for _ in range(2)]
stem = begin("none", {str(number): theirs for number, (_, theirs) in enumerate(pipes)}).process.pid
children = Path(f"/proc/{stem}/task/{stem}/children")
while len(workers := children.read_text().split()) < 2:
    time.sleep(0.01)
holder = os.fork()
if holder:
    print(holder, stem, *workers, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(100)
"""


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of the end of its parent")
def test_workers_end_with_the_run_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        holder, *others = map(int, run.stdout.readline().split())
        try:
            until = time.monotonic() + 20
            while any(map(_is_alive, others)) and time.monotonic() < until:
                time.sleep(0.01)
            left = [process for process in others if _is_alive(process)]
        finally:
            for process in (holder, *filter(_is_alive, others)):
                os.kill(process, signal.SIGKILL)
    assert not left
