"""An ingest killed at any moment, and ingests that run at once: the lake stays whole, and ends in the rows of one."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import etl
from etl.lake import Lake
from tests.bench.corpus import openai_conversations, sessions, write, write_sessions
from tests.lakes import REPO, make_many, rows


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Closed conversations in one file, sessions (which go through the events table) in others."""
    folder = tmp_path_factory.mktemp("logs")
    write(folder / "chats.jsonl", openai_conversations(), 2)
    write_sessions(folder / "sessions", sessions(), 1)
    with (folder / "chats.jsonl").open("a") as file:
        file.write('{"id": "torn", "mess')
    make_many(folder / "many")
    return folder


@pytest.fixture(scope="module")
def whole(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """What an uninterrupted run gives: rows and rejects."""
    lake = tmp_path_factory.mktemp("whole") / "lake"
    etl.ingest([logs], lake=lake)
    return _said(lake)


def _said(lake: Path) -> tuple[list[str], list[str]]:
    rollouts = rows(lake)
    assert len({row["rollout_id"] for row in rollouts}) == len(rollouts), "a rollout is there twice"
    return sorted(row["row_hash"] for row in rollouts), sorted(row["reject_id"] for row in rows(lake, "rejects"))


def _start(logs: list[Path], lake: Path, workers: int = 1) -> subprocess.Popen[bytes]:
    """An ingest as the leader of a process group of its own, with its workers in it."""
    command = [sys.executable, "-m", "etl", "ingest", *map(str, logs), "--lake", str(lake), "--json"]
    command += ["--workers", str(workers)]
    return subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


@pytest.mark.parametrize(
    ("kills", "workers"),
    [(2, 1), pytest.param(50, 1, marks=pytest.mark.slow), pytest.param(50, 2, marks=pytest.mark.slow)],
)
def test_a_killed_ingest_leaves_a_whole_lake(
    logs: Path, whole: tuple[list[str], list[str]], tmp_path: Path, kills: int, workers: int
) -> None:
    lake = tmp_path / "lake"
    started = time.monotonic()
    _start([logs], tmp_path / "timing", workers).communicate(timeout=600)
    usual = time.monotonic() - started
    chance = random.Random(7)
    for number in range(kills):
        if number % 10 == 0:
            shutil.rmtree(lake, ignore_errors=True)  # else all is in before long, and there is nothing left to tear
        process = _start([logs], lake, workers)
        time.sleep(usual * chance.uniform(0.3, 1.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=300)
        if (lake / "rollouts" / "_delta_log").is_dir():
            said, _ = _said(lake)
            assert set(said) <= set(whole[0]), "a row that no whole run gives"
    report = etl.ingest([logs], lake=lake)
    assert report.rows.replaced == 0
    assert _said(lake) == whole
    assert Lake.open(lake).verify() == []
    live = {file.path for file in Lake.open(lake).live("rollouts")}
    assert {str(path) for path in (lake / "rollouts").glob("source=*/day=*/*.parquet")} == live, "orphans"
    assert etl.ingest([logs], lake=lake).rows.added == 0


@pytest.mark.slow
def test_ingests_at_once_end_in_the_rows_of_one(logs: Path, whole: tuple[list[str], list[str]], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    copies = tmp_path / "copies"
    shutil.copytree(logs / "sessions", copies)
    inputs = [[logs], [logs / "chats.jsonl", copies], [logs / "sessions", logs / "chats.jsonl"]]
    processes = [_start(paths, lake) for paths in inputs]
    outputs = [process.communicate(timeout=600) for process in processes]
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors.decode()
    added = sum(json.loads(out)["rows"]["added"] for out, _ in outputs)
    assert added == len(whole[0])
    assert _said(lake)[0] == whole[0]
    assert Lake.open(lake).verify() == []
