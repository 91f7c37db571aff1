"""Ingests in a process of their own, with what they cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.lakes import REPO

GOOD = b'{"messages":[{"role":"user","content":"Is it open?"},{"role":"assistant","content":"Until six."}]}\n'
"""A record that is to be read, whatever lies beside it."""

_RUN = """
import json, pathlib, re, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
import etl
report = etl.ingest([sys.argv[1]], lake=sys.argv[2])
used = resource.getrusage(resource.RUSAGE_SELF)
status = pathlib.Path("/proc/self/status")  # `ru_maxrss` is also of the process that started this one
peak = int(re.search("VmHWM:\\s*(\\d+)", status.read_text())[1]) << 10 if status.exists() else used.ru_maxrss
files = [[file.uri, file.state, file.error, dict(file.rejects), file.rows] for file in report.files]
print(json.dumps({"files": files, "cpu": used.ru_utime + used.ru_stime, "mb": peak >> 20}))
"""


class Cost(NamedTuple):
    """CPU seconds and the peak of memory, start of the program included; `files` as (state, error, rejects, rows)."""

    cpu: float
    mb: int
    files: list[tuple[str, str | None, dict[str, int], int]]


def cost(logs: Path, lake: Path) -> Cost:
    """Ingest in a new process; it must end by itself, and well."""
    ran = subprocess.run(
        [sys.executable, "-c", _RUN, str(logs), str(lake)],
        capture_output=True, cwd=REPO, timeout=300, check=False, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    told: dict[str, Any] = json.loads(ran.stdout)
    return Cost(told["cpu"], told["mb"], [tuple(file[1:]) for file in told["files"]])
