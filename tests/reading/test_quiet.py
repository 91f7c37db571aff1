"""Where a note says that nothing has changed, this is what comparing every file says too; where it may not be, files
are compared.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from etl.changes import Change, Changes
from etl.gone import Gone
from etl.lake import Label, Lake
from etl.pipeline import ingest
from etl.quiet import NOTE
from etl.report import Report
from etl.walk import FoundFile
from tests.lakes import NOW, rows
from tests.reading.nights import chat

LONG_AGO = 1_767_225_600_123_456_789
"""Nanoseconds: a time that no file is written at again."""


def _write(path: Path, *numbers: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(chat(number) + b"\n" for number in numbers))
    os.utime(path, ns=(LONG_AGO, LONG_AGO))


def _night(tmp_path: Path, lake: str = "lake", **how: Any) -> Report:
    return ingest([tmp_path / "logs"], lake=tmp_path / lake, now=NOW, **how)


def _is_quiet(run: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether it compares no file."""
    compared: list[int] = []
    of = Changes.of

    def counted(changes: Changes, files: Sequence[FoundFile]) -> list[Change]:
        compared.append(len(files))
        return of(changes, files)

    with monkeypatch.context() as patched:
        patched.setattr(Changes, "of", counted)
        run()
    return not compared


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """Three files, and a lake that knows them."""
    for number in range(3):
        _write(tmp_path / "logs" / f"{number}.jsonl", number)
    _night(tmp_path)
    assert (tmp_path / "lake" / NOTE).exists()
    return tmp_path


def _same_size(path: Path) -> None:
    text = path.read_bytes()
    path.write_bytes(text.replace(b"0", b"1", 1))
    assert path.stat().st_size == len(text)


def _label(lake: Path) -> None:
    opened = Lake.open(lake)
    with opened.batch("labelling"):
        opened.label(rows(lake)[0]["rollout_id"], Label("quality", "good"))


def _undo(lake: Path) -> None:
    opened = Lake.open(lake)
    with opened.batch("undoing"):
        opened.undo(str(rows(lake)[0]["batch_id"]))


CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "touched": lambda logs, _lake: os.utime(logs / "1.jsonl", ns=(LONG_AGO + 1_000, LONG_AGO + 1_000)),
    "of the same size": lambda logs, _lake: _same_size(logs / "0.jsonl"),
    "grown": lambda logs, _lake: _write(logs / "0.jsonl", 0, 8),
    "shorter": lambda logs, _lake: (logs / "0.jsonl").write_bytes(b""),
    "new": lambda logs, _lake: _write(logs / "7.jsonl", 7),
    "new below": lambda logs, _lake: _write(logs / "folder" / "7.jsonl", 7),
    "gone": lambda logs, _lake: (logs / "1.jsonl").unlink(missing_ok=True),
    "renamed": lambda logs, _lake: (logs / "1.jsonl").exists() and (logs / "1.jsonl").rename(logs / "9.jsonl"),
    "no log": lambda logs, _lake: (logs / "README.md").write_text("no log"),
    "labelled": lambda _logs, lake: _label(lake),
    "undone": lambda _logs, lake: _undo(lake),
    "left behind": lambda _logs, lake: shutil.copy(
        next((lake / "rollouts").rglob("*.parquet")), next((lake / "rollouts").rglob("*.parquet")).parent / "x.parquet"
    ),
    "batch left": lambda _logs, lake: (lake / ".staging" / "b_dead").mkdir(),
    "other views": lambda _logs, lake: (lake / "views.sql").write_text("SELECT 1"),
    "no card": lambda _logs, lake: (lake / "README.md").unlink(),
    "no checkpoint": lambda _logs, lake: (lake / "events" / "_delta_log" / "_last_checkpoint").unlink(),
    "no note": lambda _logs, lake: (lake / NOTE).unlink(missing_ok=True),
    "torn note": lambda _logs, lake: (lake / NOTE).write_text('{"lake": '),
    "deep note": lambda _logs, lake: (lake / NOTE).write_text("[" * 100_000),
    "other note": lambda _logs, lake: (lake / NOTE).write_text('{"lake": [], "runs": {}}'),
}
"""What may have happened since the night before, to the logs and to the lake."""


@pytest.mark.parametrize("what", ["nothing", *CHANGES])
def test_a_quiet_night_says_what_comparing_says(begun: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    shutil.copytree(begun / "lake", begun / "other")
    for lake in ("lake", "other"):
        CHANGES.get(what, lambda _logs, _lake: None)(begun / "logs", begun / lake)
    (begun / "other" / NOTE).unlink(missing_ok=True)
    for path in (begun / "logs").rglob("*"):
        if path.stat().st_mtime_ns > LONG_AGO + 1_000:  # of this moment: known without its time by the first to read it
            os.utime(path, ns=(LONG_AGO + 500, LONG_AGO + 500))
    reports: list[Report] = []
    is_quiet = _is_quiet(lambda: reports.append(_night(begun)), monkeypatch)
    assert is_quiet == (what == "nothing")
    reports.append(_night(begun, "other"))
    told = [{**report.to_json(), "batch_id": 0, "seconds": 0} for report in reports]
    assert told[0] == told[1]
    assert reports[0].files == reports[1].files
    assert reports[0].looked_at == reports[1].looked_at
    # And the night after, with the notes that both have left.
    assert [_night(begun, lake).to_json()["files"] for lake in ("lake", "other")] == 2 * [
        _night(begun).to_json()["files"]
    ]


@pytest.mark.parametrize("what", ["missing", "missing and excluded"])
def test_files_that_have_vanished_are_counted_each_night(
    begun: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    (begun / "logs" / "1.jsonl").unlink()
    how: dict[str, Any] = {"exclude": ["x*"]} if "excluded" in what else {}
    assert _night(begun, **how).vanished == 1
    assert _night(begun, **how).vanished == 1
    # What is left out may come and go unseen.
    assert _is_quiet(lambda: _night(begun, **how), monkeypatch) == (not how)


@pytest.mark.parametrize(
    "how", [{"source": "s"}, {"format": "openai_messages"}, {"exclude": ["*.txt"]}, {"redact": "none"}]
)
def test_each_way_of_asking_has_a_note_of_its_own(
    begun: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    first = _night(begun, **how).to_json()["files"]
    assert (first["seen"], first["new"]) == (3, 3 if "source" in how else 0)
    for again in (how, how, {}, {}):
        report = _night(begun, **again)
        assert report.state_counts()["unchanged"] == report.state_counts()["seen"]
    for again in (how, {}):
        assert _is_quiet(lambda again=again: _night(begun, **again), monkeypatch)  # type: ignore[misc]
    assert not _is_quiet(lambda: _night(begun, reparse=True), monkeypatch)


def test_a_lake_may_move_and_a_dry_run_keeps_nothing(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (begun / "lake").rename(begun / "moved")
    before = sorted((begun / "moved").rglob("*"))
    assert _is_quiet(lambda: _night(begun, "moved", dry_run=True), monkeypatch)
    assert sorted((begun / "moved").rglob("*")) == before
    assert _is_quiet(lambda: _night(begun, "moved"), monkeypatch)


def test_what_another_commits_meanwhile_is_noted_by_nobody(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(begun / "else" / "7.jsonl", 7)
    _write(begun / "logs" / "8.jsonl", 8)
    tell = Gone.tell

    def late(self: Gone, report: Report) -> None:
        patched.undo()
        ingest([begun / "else"], lake=begun / "lake", now=NOW)
        tell(self, report)

    with monkeypatch.context() as patched:
        patched.setattr(Gone, "tell", late)
        _night(begun)
    assert not _is_quiet(lambda: _night(begun), monkeypatch)
    assert _is_quiet(lambda: _night(begun), monkeypatch)


@pytest.mark.parametrize("modified", ["later", "this second"])
def test_what_changes_in_the_moment_in_which_it_is_read_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modified: str
) -> None:
    """The same size, the same time: only its digest tells."""
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)  # a slow machine reads it in the same moment too
    at = now + 10**12 + 1 if modified == "later" else now // 10**9 * 10**9
    path = tmp_path / "logs" / "a.jsonl"
    _write(path, 0)
    os.utime(path, ns=(at, at))
    _night(tmp_path)
    assert _night(tmp_path).state_counts()["unchanged"] == 1
    _same_size(path)
    os.utime(path, ns=(at, at))
    assert _night(tmp_path).state_counts()["replaced"] == 1
