"""What has become of each file since the night before, and a night without news writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from etl.lake import Lake
from etl.pipeline import ingest
from tests.lakes import NOW, rows
from tests.reading.nights import chat

LINES = [chat(number) + b"\n" for number in range(9)]


def _night(tmp_path: Path, **settings: object) -> dict[str, int]:
    report = ingest([tmp_path / "logs"], lake=tmp_path / "lake", now=NOW, **settings)  # type: ignore[arg-type]
    return {state: count for state, count in report.to_json()["files"].items() if count}


def _write(tmp_path: Path, name: str, *lines: bytes) -> Path:
    (tmp_path / "logs").mkdir(exist_ok=True)
    path = tmp_path / "logs" / name
    path.write_bytes(b"".join(lines))
    return path


@pytest.mark.parametrize("source", [None, "s"])
def test_a_night_without_news_writes_nothing(tmp_path: Path, source: str | None) -> None:
    _write(tmp_path, "a.jsonl", *LINES)
    _write(tmp_path, "README.md", b"no log")
    _write(tmp_path, "pointer.jsonl", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert _night(tmp_path, source=source) == {"seen": 3, "new": 1, "skipped": 1, "failed": 1}
    lake = Lake.open(tmp_path / "lake")
    versions = [lake.version(table) for table in ("rollouts", "rejects", "sources", "events")]
    assert _night(tmp_path, source=source) == {"seen": 3, "unchanged": 1, "skipped": 1, "failed": 1}
    lake = Lake.open(tmp_path / "lake")
    assert [lake.version(table) for table in ("rollouts", "rejects", "sources", "events")] == versions
    _write(tmp_path, "README.md", *LINES[:1])
    assert _night(tmp_path, source=source) == {"seen": 3, "new": 1, "unchanged": 1, "failed": 1}


@pytest.mark.parametrize("size", [1, 400])
def test_what_was_written_anew_is_told_from_what_has_grown(tmp_path: Path, size: int) -> None:
    """Also where a file is long enough to be read on."""
    many = [chat(number) + b"\n" for number in range(100, 100 + size)]
    for name in ("grows", "shrinks", "other", "longer", "same"):
        _write(tmp_path, f"{name}.jsonl", *many, LINES[0])
    _night(tmp_path)
    _write(tmp_path, "grows.jsonl", *many, *LINES[:3])
    _write(tmp_path, "shrinks.jsonl", LINES[0])
    _write(tmp_path, "other.jsonl", *many, LINES[1])
    _write(tmp_path, "longer.jsonl", *many, LINES[2], *LINES[:4])
    assert _night(tmp_path) == {"seen": 5, "grown": 1, "replaced": 3, "unchanged": 1}
    assert _night(tmp_path, reparse=True) == {"seen": 5, "unchanged": 5}


def test_what_is_gone_is_counted_and_its_rows_stay(tmp_path: Path) -> None:
    paths = [_write(tmp_path, f"{number}.jsonl", LINES[number]) for number in range(4)]
    (tmp_path / "elsewhere.jsonl").write_bytes(LINES[7])
    ingest([tmp_path / "elsewhere.jsonl"], lake=tmp_path / "lake", now=NOW)
    _night(tmp_path)
    (tmp_path / "elsewhere.jsonl").unlink()
    paths[0].unlink()
    paths[1].rename(tmp_path / "logs" / "moved.jsonl")
    assert _night(tmp_path) == {"seen": 3, "moved": 1, "unchanged": 2, "vanished": 1}
    assert _night(tmp_path) == {"seen": 3, "unchanged": 3, "vanished": 1}
    assert _night(tmp_path, exclude=["3.jsonl"]) == {"seen": 2, "unchanged": 2, "vanished": 1}
    assert len(rows(tmp_path / "lake")) == 5


def test_what_is_gone_is_counted_beside_files_of_other_places(tmp_path: Path) -> None:
    for number in range(3):
        _write(tmp_path, f"{number}.jsonl", LINES[number])
    beside = tmp_path / "beside.jsonl"
    beside.write_bytes(LINES[7])
    for gone in (0, 1, 2):
        counts = ingest([tmp_path / "logs", beside], lake=tmp_path / "lake", now=NOW).state_counts()
        assert (counts["seen"], counts["vanished"]) == (4 - gone, gone)
        (tmp_path / "logs" / f"{gone}.jsonl").unlink()
