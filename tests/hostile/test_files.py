"""Folders, special files, archives and names that are made to mislead."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import etl
from etl.discover import discover
from tests.lakes import NOW, rows
from tests.measured import GOOD

Runs = Callable[..., tuple[int, str, str]]


@pytest.fixture
def loops(tmp_path: Path) -> Path:
    """A folder whose links lead back to it, with one log."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "log.jsonl").write_bytes(GOOD)
    for name, target in {"one": ".", "two": ".", "up": "../logs", "self": "self", "gone": "nowhere"}.items():
        (folder / name).symlink_to(target)
    return folder


def test_links_that_lead_back_are_not_followed(loops: Path, lake: Path) -> None:
    report = etl.ingest([loops], lake=lake, now=NOW)
    states = {Path(file.uri).name: file.state for file in report.files}
    assert states == {"log.jsonl": "done", "self": "failed", "gone": "failed"}
    assert len(rows(lake)) == 1


@pytest.mark.parametrize("pattern", ["**/*.jsonl", "**/**/*.jsonl", "*.jsonl", "lo**.jsonl"])
def test_nor_are_they_by_a_glob(loops: Path, pattern: str) -> None:
    assert [Path(file.uri) for file in discover([loops / pattern])] == [loops / "log.jsonl"]


def test_pipes_and_devices_are_not_opened(tmp_path: Path, lake: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    report = etl.ingest([folder, "/dev/zero"], lake=lake, now=NOW)
    assert [file.state for file in report.files] == ["skipped"] * 3
    assert all("not a regular file" in str(file.error) for file in report.files)


def test_members_are_named_and_never_unpacked_to_their_names(tmp_path: Path, lake: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    archive = folder / "logs.zip"
    names = ["../../slipped.jsonl", str(tmp_path / "absolute.jsonl"), "..\\back.jsonl", "link\n\x1b[31m.jsonl"]
    with zipfile.ZipFile(archive, "w") as made:
        for number, name in enumerate(names):
            made.writestr(name, GOOD.replace(b"six", b"%d" % number))
    before = sorted(tmp_path.rglob("*"))
    report = etl.ingest([archive], lake=lake, now=NOW, strict=True)
    assert [file.state for file in report.files] == ["done"] * len(names)
    assert sorted(path for path in tmp_path.rglob("*") if lake not in (path, *path.parents)) == before
    assert {row["source_uri"].partition("!")[0] for row in rows(lake)} == {str(archive)}


def test_members_of_one_name_are_each_read(tmp_path: Path, lake: Path) -> None:
    archive = tmp_path / "logs.zip"
    with warnings.catch_warnings(), zipfile.ZipFile(archive, "w") as made:
        warnings.simplefilter("ignore")
        for answer in (b"six", b"seven", b"eight"):
            made.writestr("log.jsonl", GOOD.replace(b"six", answer))
    etl.ingest([archive], lake=lake, now=NOW, strict=True)
    said = {row["source_uri"].partition("!")[2]: row["final_text"] for row in rows(lake)}
    assert said == {"log.jsonl": "Until six.", "log.jsonl#2": "Until seven.", "log.jsonl#3": "Until eight."}


@pytest.mark.parametrize("content", [GOOD, pytest.param(b"\x00\x01not a log", marks=pytest.mark.slow)])
def test_names_stay_in_their_line_and_move_no_cursor(content: bytes, tmp_path: Path, lake: Path, etl: Runs) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in (b"a\nb.jsonl", b"\x1b[2J\x1b]0;x\x07.jsonl", b"\xff\xfe.jsonl", "\u202egpj.jsonl".encode()):
        with contextlib.suppress(OSError):  # not every file system takes every name
            Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(content)
    assert list(folder.iterdir())
    for arguments in (["ingest", folder], ["sources"], ["rejects"], ["sql", "SELECT uri FROM sources"]):
        code, out, err = etl(*arguments, "--lake", lake)
        assert code in (0, 1, 2, 3)
        assert not set(out + err) & set("\x1b\x07\u202e\x9b"), arguments
        assert "b.jsonl" not in [line[:7] for line in (out + err).splitlines()], arguments
    code, out, _ = etl("sources", "--lake", lake, "--json")
    assert code == 0
    json.loads(out)
