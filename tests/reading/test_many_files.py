"""A run holds a wave of its files and no more: not what it finds, nor what it knows of them, nor what came of them."""

from __future__ import annotations

import gc
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import etl.results
import etl.running
import etl.settings
import etl.walk
import etl.waves
from etl.changes import Change, Changes
from etl.discover import find
from etl.lake import KnownFile, Lake
from etl.pipeline import ingest
from etl.quiet import NOTE
from etl.report import FileResult, Place, Report
from etl.results import HELD, Results
from etl.settings import Settings
from etl.walk import FoundFile
from tests.lakes import NOW, rows
from tests.reading.nights import chat, night, span, told

WAVE, LOT, FILES = 60, 40, 220


def _logs(folder: Path) -> Path:
    """Chats, traces whose spans lie in many files, what is rejected, skipped or fails, and an archive."""
    folder.mkdir()
    for number in range(6):
        (folder / f"chat{number}.jsonl").write_bytes(chat(number) + b"\n")
        (folder / f"span{number}.jsonl").write_bytes(span(number % 2, number) + b"\n" + span(9, number) + b"\n")
    (folder / "torn.jsonl").write_bytes(chat(7) + b"\n{oops\n" + chat(8)[:9])
    (folder / "README.md").write_text("no log")
    (folder / "bad.jsonl.gz").write_bytes(b"\x1f\x8b\x08 and no more")
    with zipfile.ZipFile(folder / "kept.zip", "w") as archive:
        for number in range(20, 23):
            archive.writestr(f"{number}.jsonl", chat(number) + b"\n")
    return folder


def _said(report: Report) -> dict[str, Any]:
    """What a report says but for its run."""
    left_out = ("batch_id", "seconds", "by_adapter")
    return {name: value for name, value in report.to_json().items() if name not in left_out}


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_waves_give_what_one_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """The same tables, whatever lies in which wave; the next night has no news, and the batch is taken back as one."""
    logs = _logs(tmp_path / "logs")
    whole = night([logs], tmp_path / "whole", monkeypatch)
    waves = night([logs], tmp_path / "waves", monkeypatch, wave_files=7, workers=workers)
    assert told(tmp_path / "waves") == told(tmp_path / "whole")
    assert _said(waves) == _said(whole)
    assert [file.uri for file in waves.files] == [file.uri for file in whole.files]
    assert [vars_of(file) for file in waves.files if not file.spans] == [vars_of(f) for f in whole.files if not f.spans]
    again = night([logs], tmp_path / "waves", monkeypatch, wave_files=7).state_counts()
    assert again == night([logs], tmp_path / "whole", monkeypatch).state_counts()
    assert again["new"] == 0
    lake = Lake.open(tmp_path / "waves")
    with lake.batch("b_undo"):
        lake.undo(waves.batch_id)
    assert not rows(tmp_path / "waves")
    assert not rows(tmp_path / "waves", "events")


def vars_of(file: FileResult) -> tuple[Any, ...]:
    """What a report keeps of a file, rows aside: those of spans are counted by the wave that completed them."""
    return file.uri, file.state, file.records_in, file.rejects, file.ignored, file.first_rejects, file.sha256


def test_a_run_that_is_cut_off_keeps_its_waves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wave is whole; the next run reads the rest."""
    logs = _logs(tmp_path / "logs")
    sources = Lake.upsert_sources
    calls: list[int] = []

    def once(lake: Lake, *given: Any, **more: Any) -> None:
        if calls:
            raise KeyboardInterrupt
        calls.append(1)
        sources(lake, *given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "upsert_sources", once)
        with pytest.raises(KeyboardInterrupt):
            night([logs], tmp_path / "lake", monkeypatch, wave_files=9)
    assert len(rows(tmp_path / "lake", "sources")) == 9
    ingest([logs], lake=tmp_path / "lake", now=NOW)
    ingest([logs], lake=tmp_path / "whole", now=NOW)
    assert told(tmp_path / "lake") == told(tmp_path / "whole")


def _objects() -> int:
    kinds = (FileResult, FoundFile, KnownFile, Change)
    return sum(isinstance(each, kinds) for each in gc.get_objects())


@pytest.mark.parametrize("how", ["", *(pytest.param(how, marks=pytest.mark.slow) for how in ("dry", "reparse"))])
def test_objects_are_those_of_a_wave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Counted when the last files were compared and read, long after as many others."""
    for number in range(FILES):
        (tmp_path / f"{number}.jsonl").write_bytes((chat(number) if number % 4 else span(number, 0)) + b"\n")
    counts: list[int] = []
    finish, of, made = etl.waves.finish, Changes.of, etl.settings.run_settings

    def finished(lake: Lake, settings: Settings, report: Report, *given: Any, **more: Any) -> None:
        finish(lake, settings, report, *given, **more)
        if len(report.results) == FILES:
            counts.append(_objects())

    def compared(changes: Changes, files: Sequence[FoundFile]) -> Any:
        found = of(changes, files)
        if len(files) < LOT:
            counts.append(_objects())
        return found

    monkeypatch.setattr(etl.running, "LOT", LOT)
    monkeypatch.setattr(etl.results, "HELD", WAVE)
    monkeypatch.setattr(etl.waves, "finish", finished)
    monkeypatch.setattr(Changes, "of", compared)
    monkeypatch.setattr("etl.pipeline.run_settings", lambda *given: made(*given)._replace(wave_files=WAVE))
    for again in (False, True):
        (tmp_path / "lake" / NOTE).unlink(missing_ok=True)
        report = ingest(
            [tmp_path / "*.jsonl"], lake=tmp_path / "lake", now=NOW, dry_run=how == "dry",
            reparse=again and how == "reparse",
        )  # fmt: skip
        assert len(report.results) == FILES
    assert len(counts) == (3 if not how else 4)
    # Of a lot what was found, how it differs and what was known; of a wave the same, and what came of it.
    assert max(counts) <= 3 * LOT + 3 * WAVE


def test_results_come_back_whole() -> None:
    """Written down or not, with everything that a report tells."""
    made = [FileResult(f"/logs/{number}", "s", number, rows=number, state="failed") for number in range(HELD + 3)]
    for file in made[::7]:
        file.rejects.update({"torn_tail": 2})
        file.first_rejects["torn_tail"] = (Place(file.uri, 1, 0), "cut \udcff off")
    results = Results()
    for file in made:
        results.add(file)
    assert list(results) == made == list(results)
    assert len(results) == len(made)


_names = st.lists(st.sampled_from(["a", "a.b", "a0", "a!", "b", "é", "z-wal", "z"]), min_size=1, max_size=4)


_GLOBS = ("*", "a*", "**", "**/*", "**/a*", "*/a", "*/*", "**/[ab]", "a/**/z*")


@given(st.lists(_names, max_size=12), st.integers(1, 4), st.lists(_names, max_size=3), st.sampled_from(_GLOBS))
def test_files_come_by_path_each_once(paths: list[list[str]], many: int, roots: list[list[str]], glob: str) -> None:
    """However few names are held as they are, and however roots lie in one another; globs are those of `Path.glob`."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(etl.walk, "MANY", many)
        top = Path(name).resolve()
        for parts in paths:
            path = top.joinpath(*parts)
            if not any(parent.is_file() for parent in path.parents) and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"{}")
        given = [top, *(path for parts in roots if (path := top.joinpath(*parts)).exists())]
        found = [file.uri for file in find(given)]
        assert found == sorted(found) == sorted(_walked(top))
        matched = list(top.glob(glob))
        files = {str(path) for path in matched if path.is_file()}.union(*map(_walked, matched))
        assert not matched or [file.uri for file in find([top / glob])] == sorted(files)


def _walked(top: Path) -> Iterable[str]:
    return (f"{folder}/{name}" for folder, _, names in os.walk(top) for name in names)


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (["x"], ["b/y.log", "c.log"]),
        (["*.log"], []),
        (["b/*"], ["c.log", "x/b/x.log"]),
        (["logs/c.log"], ["b/x/y.log", "b/y.log", "x/b/x.log"]),
    ],
)
def test_what_is_excluded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exclude: list[str], left: list[str]) -> None:
    """By the path as it was given, below the folder that was given, by name, and by the name of a folder on the way."""
    for name in ("b/x/y.log", "b/y.log", "c.log", "x/b/x.log"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    monkeypatch.chdir(tmp_path)
    assert [file.uri.removeprefix(f"{tmp_path}/logs/") for file in find(["logs"], exclude)] == left


def test_known_files_are_looked_up_by_name(tmp_path: Path) -> None:
    """Those asked for and no others, whatever row group they lie in."""
    for number in range(30):
        (tmp_path / f"{number:02}.jsonl").write_text(json.dumps({"messages": []}) + "\n")
    ingest([tmp_path / "*.jsonl"], lake=tmp_path / "lake", source="s", now=NOW)
    lake = Lake.open(tmp_path / "lake")
    every = lake.known_files(["s"])["s"]
    asked = [*sorted(every)[::7], str(tmp_path / "none.jsonl")]
    assert lake.known_files(["s"], asked) == {"s": {uri: every[uri] for uri in asked[:-1]}}
    assert lake.known_files(["t"], asked) == {"t": {}}
    assert lake.known_files(None, []) == {"s": {}}
