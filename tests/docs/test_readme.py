"""README.md cannot rot: every command, every query and every example in it runs, and what is generated is current."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from etl.cli import cli, run
from etl.query import run_sql
from tests.docs.generated import README, generated
from tests.docs.markdown import blocks
from tests.lakes import make_many

TEXT = README.read_text(encoding="utf-8")
REPO = README.parent
SHELL = [line.strip() for block in blocks(TEXT, "sh") for line in block.text.splitlines() if line.strip()]
COMMANDS = [line for line in SHELL if re.search(r"\betl\b", line) and not line.startswith("etl serve")]
"""What ends by itself; the browser is tested in tests/serve."""
QUERIES = blocks(TEXT, "sql")
PYTHON = blocks(TEXT, "python")
ADAPTER = next(block for block in PYTHON if block.text.startswith("# etl/adapters/"))


class Ran(NamedTuple):
    """One command line of the README, and what it did."""

    line: str
    code: int
    out: str


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory):
    """A folder in which the commands of the README were typed, top to bottom, and what each did."""
    home = tmp_path_factory.mktemp("newcomer")
    shutil.copytree(REPO / "sample_logs" / "openai_messages", home / "my-logs")
    shutil.copytree(REPO / "sample_logs" / "otlp", home / "traces")
    shutil.copytree(REPO / "sample_logs" / "litellm", home / "calls")
    (home / "etl.toml").write_text(next(b.text for b in blocks(TEXT, "toml") if "[[sources]]" in b.text))
    (home / "tools.json").write_text(next(b.text for b in blocks(TEXT, "json") if "cancel_order" in b.text))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.delenv("ETL_LAKE", raising=False)
        return home, [_type(line) for line in COMMANDS]


def _type(line):
    """Run a command line as a shell would: in this process, which is quicker than one of its own, or through a pipe."""
    said, _, arguments = line.rpartition("| ")
    text = subprocess.run(["sh", "-c", said], capture_output=True, text=True, check=True).stdout if said else ""
    words = shlex.split(arguments, comments=True)
    assert words[0] == "etl"
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr("sys.stdin", io.StringIO(text))
        code = run(words[1:])
    return Ran(line, code, out.getvalue())


@pytest.mark.slow
def test_every_command_of_the_readme_runs(newcomer):
    _home, done = newcomer
    assert len(done) >= 12
    for ran in done:
        assert ran.code == (3 if "# exits 3" in ran.line else 0), ran.line
        assert ran.out


@pytest.mark.slow
def test_the_second_ingest_adds_nothing(newcomer):
    _home, done = newcomer
    first, second = [ran.out for ran in done if ran.line.startswith("etl ingest my-logs")][:2]
    assert " 0 added" not in first
    assert " 0 added" in second


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES, ids=lambda block: f"line {block.line}")
def test_every_query_of_the_readme_answers(newcomer, monkeypatch, query):
    home, _done = newcomer
    monkeypatch.chdir(home)
    assert list(run_sql("lake", query.text).rows), f"line {query.line} finds nothing in the sample logs"


@pytest.mark.slow
def test_the_python_of_the_readme_runs(newcomer, monkeypatch, capsys):
    home, _done = newcomer
    monkeypatch.chdir(home)
    for block in PYTHON:
        if block is not ADAPTER:
            exec(compile(block.text, f"README.md line {block.line}", "exec"), {})
    out = capsys.readouterr().out
    assert "'added': 0" in out
    assert "shape: (" in out


def test_the_adapter_of_the_readme_reads_its_log(tmp_path):
    """In a process of its own, with its folder beside the package's own adapters, as `ETL_ADAPTERS` puts it."""
    name = Path(ADAPTER.text.splitlines()[0].split()[-1]).name
    (tmp_path / "adapters").mkdir()
    (tmp_path / "adapters" / name).write_text(ADAPTER.text, encoding="utf-8")
    ticket = next(block.text for block in blocks(TEXT, "json") if '"ticket"' in block.text)
    (tmp_path / "tickets.jsonl").write_text(ticket + '{"ticket": "T-2", "thread": 7}\n' + ticket[:50], encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(REPO), "ETL_ADAPTERS": "adapters"}
    command = [sys.executable, "-m", "etl", "ingest", "tickets.jsonl", "many", "--json", "--workers", "2"]
    make_many(tmp_path / "many")
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["by_adapter"]["help_desk"]["rows"] == 1
    assert told["rejects"] == {"not_a_ticket": 1, "torn_tail": 1}
    row = run_sql(tmp_path / "lake", "SELECT * FROM rollouts").records()
    (rollout,) = row
    assert [message["role"] for message in rollout["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert (rollout["steps"][0]["tool"], rollout["steps"][0]["result"]) == ("track_parcel", "in transit")
    assert str(rollout["started_at"]) == "2026-03-02 09:14:00+00:00"
    edited = ticket.replace("on its way", "in your hands").replace("09:20", "09:45")
    again = _ingested(tmp_path, "edited.jsonl", edited, environment)
    assert (again["rows"]["replaced"], "superseded" in again) == (1, False)
    silent = _ingested(tmp_path, "silent.jsonl", edited.replace("in your hands", "in your house"), environment)
    assert silent["rows"]["replaced"] + silent.get("superseded", 0) == 1, "which one stays is by hash; never in silence"


def _ingested(folder, name, text, environment):
    (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "etl", "ingest", name, "--json"]
    return json.loads(subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True).stdout)


def test_every_command_is_in_the_readme():
    for name in cli.commands:
        assert re.search(rf"\betl {name}\b", TEXT), f"README.md does not mention etl {name}"


def test_every_make_target_of_the_readme_exists():
    targets = set(re.findall(r"^([a-z]+):", (REPO / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)\b", "\n".join([*SHELL, *re.findall(r"`(make [^`]+)`", TEXT)])))
    assert {"demo", "test", "check", "bench", "golden", "help"} <= named
    assert named <= targets


def test_every_option_of_the_readme_exists():
    known = {option for command in cli.commands.values() for parameter in command.params for option in parameter.opts}
    named = {word for line in COMMANDS for word in shlex.split(line, comments=True) if word.startswith("--")}
    named |= set(re.findall(r"`(--[a-z-]+)", TEXT))
    assert named <= known | {"--help"}


def test_every_link_to_a_file_leads_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", TEXT):
        assert (REPO / target).exists(), target


def test_the_generated_parts_are_current():
    assert generated(TEXT) == TEXT, "run: make derive (or python -m tests.docs.generated)"


@pytest.mark.slow
def test_the_demo_of_this_process_is_the_demo_of_the_readme(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ETL_LAKE", raising=False)
    assert run(["demo"]) == 0
    assert "etl show r_" in capsys.readouterr().out
    assert (tmp_path / "lake" / "rollouts").is_dir()
