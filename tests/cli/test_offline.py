"""No command looks anywhere but at this machine: no telemetry, no look-up of a newer version."""

import os
import subprocess
import sys

import pytest

from tests.lakes import REPO, make_many

# Python runs it at its start, so in every process that a command starts. What libraries in other languages open, the
# hook does not hear of: that is looked up where Linux lists the sockets that a process has.
WATCH = """
import atexit, ipaddress, os, socket, sys

def note(text):
    with open(os.environ["SEEN"], "a") as file:
        file.write(text + "\\n")

def is_here(host):
    try:
        return host in (None, "", "localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

def hook(event, args):
    if event == "socket.getaddrinfo" and not is_here(args[0]):
        note(f"{event} {args[0]}")
    elif event in ("socket.connect", "socket.sendto", "socket.bind") and isinstance(args[1], tuple):
        if not is_here(args[1][0]):
            note(f"{event} {args[1][0]}")
    elif event in ("socket.gethostbyname", "urllib.Request", "http.client.connect"):
        note(f"{event} {args[0]}")

def left():
    folder = "/proc/self/fd"
    inodes = {os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if os.path.islink(f"{folder}/{fd}")}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with open(f"/proc/self/net/{table}") as file:
            for line in list(file)[1:]:
                if f"socket:[{line.split()[9]}]" in inodes:
                    note(f"{table} socket open at the end")

sys.addaudithook(hook)
if os.path.isdir("/proc/self/fd"):
    atexit.register(left)
note("watched")
"""


@pytest.fixture
def seen(tmp_path):
    """Runs a command (or other Python), watched; gives what it looked at."""
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    paths = [str(tmp_path / "watch"), str(REPO), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**kept, "PYTHONPATH": os.pathsep.join(paths), "SEEN": str(tmp_path / "seen")}

    def run(*arguments):
        (tmp_path / "seen").write_text("")
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        first, *others = (tmp_path / "seen").read_text().splitlines()
        assert first == "watched"
        return {line for line in others if line != "watched"}

    return run


def test_a_run_looks_nowhere_else(seen, tmp_path, thorough):
    logs = [REPO / "sample_logs" / name for name in ("tau_bench", "otlp")]
    logs.append(make_many(tmp_path / "many"))
    assert not seen("-m", "etl", "ingest", *logs, "--lake", "lake", "--workers", "2")
    if not thorough:
        return
    assert not seen("-m", "etl", "sql", "FROM coverage")
    assert not seen("-m", "etl", "export", "sft", "--out", "sft")
    assert not seen("-m", "etl", "report", "--out", tmp_path / "report.html")
    assert not seen("-m", "etl", "verify")


def test_the_watch_sees(seen):
    looks = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('192.0.2.1', 9))"
    assert seen("-c", looks) == {"socket.connect 192.0.2.1", "udp socket open at the end"}
