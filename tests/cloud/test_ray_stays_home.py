"""Ray reports its usage to its makers unless it is told not to: it is told so in every run that we start."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import etl as product
from tests.lakes import REPO

OFF = "RAY_USAGE_STATS_ENABLED"

# Asked right before the cluster ends: what each process that came from this one was told.
ASK = """
import os, pathlib, sys
import ray
import etl
end = ray.shutdown
def ask():
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(process.name)] = parent, (process / "environ").read_bytes().split(b"\\0")
        except OSError:
            continue
    def is_ours(pid):
        return pid in found and (found[pid][0] == os.getpid() or is_ours(found[pid][0]))
    # Processes that name themselves write over their settings: these count for neither.
    ours = [settings for pid, (_, settings) in found.items() if is_ours(pid)]
    for answer in (b"0", b"1"):
        print(sum(b"RAY_USAGE_STATS_ENABLED=" + answer in settings for settings in ours))
    end()
ray.shutdown = ask
etl.ingest([sys.argv[1]], lake=sys.argv[2], engine="ray")
"""


def test_ray_is_told_before_it_starts(tmp_path, monkeypatch):
    ray = types.SimpleNamespace(
        is_initialized=lambda: False,
        exceptions=types.SimpleNamespace(RayError=ZeroDivisionError),
        shutdown=lambda: None,
    )

    def init(**_):
        assert os.environ[OFF] == "0"
        raise ZeroDivisionError("started")

    ray.init = init
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setenv(OFF, "1")
    (tmp_path / "log.jsonl").write_text('{"messages": [{"role": "user", "content": "hi"}]}\n')
    for address in (None, "auto"):
        with pytest.raises(ZeroDivisionError, match="started"):
            product.ingest([tmp_path / "log.jsonl"], lake=tmp_path / "lake", engine="ray", ray_address=address)
        monkeypatch.setenv(OFF, "1")


def test_ray_starts_in_one_place_only():
    """The test above is about all of it: nothing else in the product starts Ray, and what tests start is told too."""
    starts = {
        path.relative_to(REPO).as_posix(): OFF in path.read_text(encoding="utf-8")
        for folder in ("etl", "tests")
        for path in (REPO / folder).rglob("*.py")
        if path != Path(__file__) and _starts_ray(path.read_text(encoding="utf-8"))
    }
    assert [name for name in starts if name.startswith("etl/")] == ["etl/ray_reading.py"]
    assert all(starts.values()), starts


def _starts_ray(text: str) -> bool:
    return "ray.init(" in text or "cluster_utils" in text


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are asked where Linux lists them")
def test_no_process_of_a_cluster_reports(tmp_path):
    pytest.importorskip("ray")
    environment = {**os.environ, "PYTHONPATH": str(REPO), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", OFF: "1"}
    command = [sys.executable, "-c", ASK, str(REPO / "sample_logs" / "openai_messages"), str(tmp_path / "lake")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    off, on = map(int, done.stdout.split()[-2:])
    assert off >= 3
    assert on == 0
