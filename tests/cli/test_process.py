"""The command as a process of its own: what it loads, terminals, pipes, Ctrl-C."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from etl.lake import Lake
from etl.query import run_sql

ETL = [sys.executable, "-m", "etl"]
HEAVY = {"deltalake", "duckdb", "polars", "prompt_toolkit", "pyarrow", "pydantic", "rich", "msgspec"}


@pytest.fixture
def environment():
    """What a fresh shell has, and little else."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
    return {**kept, "TERM": "xterm", "COLUMNS": "100", "LANG": "C.UTF-8"}


@pytest.mark.parametrize("statement", ["import etl", "from etl.cli import run; run(['--help'])"])
def test_importing_and_helping_load_nothing_heavy(statement, environment):
    code = f"{statement}\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(done.stderr.split())


NOT_TO_COMPARE = HEAVY | {
    "multiprocessing",
    "numpy",
    "etl.adapter",
    "etl.changes",
    "etl.lake.lake",
    "etl.schema",
}


@pytest.mark.parametrize("how", ["--json", "for people", "of a file"])
def test_a_night_without_news_loads_nothing_heavy(tmp_path, environment, how):
    chats, lake, config = tmp_path / "chats.jsonl", str(tmp_path / "lake"), tmp_path / "etl.toml"
    chats.write_text('{"messages": [{"role": "user", "content": "Is it open?"}]}\n')
    config.write_text(
        '[[sources]]\nname = "shop"\npaths = ["chats.jsonl"]\nformat = "openai_messages"\nredact = "secrets"'
    )
    asked = ["--config", str(config)] if how == "of a file" else [str(chats), "--lake", lake]
    night = ["ingest", *asked, *([] if how == "for people" else ["--json"])]
    code = f"from etl.cli import run; run({night})\nimport sys; print(*sys.modules, file=sys.stderr)"
    runs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    if "--json" in night:
        assert [json.loads(ran.stdout)["files"]["unchanged"] for ran in runs] == [0, 1]
    heavy = NOT_TO_COMPARE - ({"msgspec"} if how == "of a file" else set())
    assert not heavy.intersection(runs[1].stderr.split())


def test_a_closed_pipe_ends_it_without_a_word(sample_lake, environment):
    endless = "SELECT * FROM range(10_000_000)"
    with subprocess.Popen(
        [*ETL, "sql", endless, "--csv", "--lake", str(sample_lake)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout
        assert running.stderr
        assert running.stdout.readline() == b"range\n"
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(120) == 128 + signal.SIGPIPE


def test_an_encoding_that_lacks_a_letter_stops_nothing(sample_lake, environment):
    command = [*ETL, "sql", "SELECT 'τ' AS x", "--json", "--lake", str(sample_lake)]
    narrow = {**environment, "PYTHONIOENCODING": "latin-1"}
    ran = subprocess.run(command, env=narrow, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["rows"] == [{"x": "τ"}]


def _on_a_terminal(arguments, environment, until, then):
    """Run with stderr on a terminal, call `then` once `until` is there. Gives the exit code, stdout, what it saw."""
    master, slave = pty.openpty()
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=slave) as running:
        os.close(slave)
        seen = b""
        ends = time.monotonic() + 300
        while time.monotonic() < ends:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                portion = os.read(master, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not portion:
                break
            seen += portion
            if until in seen:
                until = b"\0never"
                then(running)
        assert running.stdout
        out = running.stdout.read()
        code = running.wait(120)
    os.close(master)
    return code, out.decode(), seen.decode()


@pytest.fixture
def big_log(tmp_path):
    """A log that takes a second or two to read."""
    line = '{"id": "c%d", "messages": [{"role": "user", "content": "%s"}, {"role": "assistant", "content": "yes"}]}\n'
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(8):
        with (folder / f"{number}.jsonl").open("w") as file:
            file.writelines(line % (number * 10_000 + row, f"question {row} " * 40) for row in range(4_000))
    return folder


def test_progress_shows_on_a_terminal_and_not_in_a_pipe(samples, environment, tmp_path):
    command = [*ETL, "ingest", str(samples / "tau_bench"), "--json", "--lake"]
    code, out, seen = _on_a_terminal([*command, str(tmp_path / "one")], environment, b"reading", lambda running: None)
    assert code == 0
    assert out.startswith('{"batch_id"')
    assert " files" in seen
    piped = subprocess.run(
        [*command, str(tmp_path / "two")], env={**environment, "FORCE_COLOR": "1"}, capture_output=True, check=True
    )
    assert piped.stderr == b""


@pytest.mark.slow
def test_ctrl_c_leaves_a_whole_lake(big_log, environment, tmp_path):
    lake = tmp_path / "lake"
    command = [*ETL, "ingest", str(big_log), "--lake", str(lake)]
    code, out, seen = _on_a_terminal(
        command, environment, b"reading", lambda running: running.send_signal(signal.SIGINT)
    )
    assert (code, out) == (130, ""), seen[-600:]
    assert "interrupted; nothing half-written is visible" in seen
    assert "Traceback" not in seen
    again = [*ETL, "ingest", str(big_log / "0.jsonl"), "--lake", str(lake)]
    subprocess.run(again, env=environment, stdout=subprocess.DEVNULL, check=True)
    assert Lake.open(lake).verify() == []
    assert list(run_sql(lake, "SELECT count(*) FROM rollouts").rows) == [(4_000,)]


@pytest.mark.parametrize("arguments", [["sql", "FROM range(200_000)"], ["formats"]], ids=["sql", "formats"])
def test_a_closed_pipe_ends_a_table_the_same_way(sample_lake, environment, arguments):
    with subprocess.Popen(
        [*ETL, *arguments, *(["--lake", str(sample_lake)] if arguments[0] == "sql" else [])],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(120) == 128 + signal.SIGPIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["sql", "FROM range(9)"], ["formats", "--json"], ["--help"]], ids=str)
def test_a_full_disk_behind_stdout_is_one_line(sample_lake, environment, arguments):
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [*ETL, *arguments], env={**environment, "ETL_LAKE": str(sample_lake)}, stdout=full, stderr=subprocess.PIPE
        )
    assert ran.returncode == 1
    assert ran.stderr.decode() == (
        "etl: cannot write the answer to stdout: No space left on device; what was committed stays\n"
    )


@pytest.mark.parametrize(("rows", "paged"), [(10, True), pytest.param(10_000, False, marks=pytest.mark.slow)])
def test_a_long_conversation_goes_through_the_pager(sample_lake, environment, rows, paged):
    """On a terminal, where it is longer than the window."""
    (rollout_id,) = next(
        run_sql(sample_lake, "SELECT rollout_id FROM rollouts ORDER BY len(messages) DESC LIMIT 1").rows
    )
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    shell = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
    command = [*ETL, "show", rollout_id, "--lake", str(sample_lake)]
    with subprocess.Popen(
        command, env={**shell, "PAGER": "sed s/^/paged:/"}, stdin=slave, stdout=slave, stderr=slave
    ) as running:
        os.close(slave)
        seen = b""
        try:
            while portion := os.read(master, 65536):
                seen += portion
        except OSError:
            pass  # the terminal is gone with its last process
        assert running.wait(120) == 0
    os.close(master)
    assert rollout_id.encode() in seen
    assert (b"paged:" in seen) == paged
    assert b"\x1b[" in seen, "with colours"


def test_what_opened_object_stores_is_not_taken_down(environment):
    code = (
        "import atexit, sys, types\n"
        "from etl.cli import main\n"
        "class Held:\n    def __del__(self): print('taken down')\n"
        "held = Held()\n"
        "atexit.register(print, 'hooks ran')\n"
        "sys.modules['obstore.exceptions'] = types.SimpleNamespace(BaseError=ValueError)\n"
        "sys.argv = ['etl', 'retain', '--lake', '/there/is/none']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "hooks ran\n")
    assert "there is no lake" in done.stderr
