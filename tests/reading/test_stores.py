"""An object store that breaks off costs the file that was read, whatever of it was read first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etl.discover import members
from etl.errors import LakeError, SourceError
from etl.lake.errors import one_line
from etl.opening import blocks, small_text, span
from etl.pipeline import ingest
from etl.walk import found_at

exceptions = pytest.importorskip("obstore.exceptions")


class Breaking:
    """A file that gives some bytes and then no more."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __enter__(self) -> Breaking:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def read(self, size: int = -1) -> bytes:
        data, self._data = self._data[:size], self._data[size:]
        if len(data) < size:
            raise exceptions.GenericError("Generic S3 error: after 10 retries")
        return data

    def seek(self, _place: int) -> None:
        pass


def breaks(monkeypatch: pytest.MonkeyPatch, name: str, gives: int) -> None:
    """Opening a file of that name gives so many of its bytes."""
    usual: Callable[..., Any] = Path.open

    def opened(path: Path, *args: Any, **more: Any) -> Any:
        if path.name != name or args != ("rb",):
            return usual(path, *args, **more)
        with usual(path, "rb") as file:
            return Breaking(file.read(gives))

    monkeypatch.setattr(Path, "open", opened)


@pytest.mark.parametrize("read", [blocks, lambda path: span(path, 0, 400)])
def test_each_way_to_read_says_so(read: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"{" + b" " * 200)
    breaks(monkeypatch, "a.jsonl", 0)
    with pytest.raises(SourceError, match="10 retries"):
        list(read(file))
    assert small_text(file) is None
    found = found_at(str(file))
    assert members(found) == [found]


@pytest.mark.parametrize("gives", [0, 500])
def test_a_store_that_breaks_off_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gives: int) -> None:
    turns = [{"role": "user", "content": "ask"}, {"role": "assistant", "content": "answer " * 20}]
    for name in "abc":
        lines = (json.dumps({"id": f"{name}{number}", "messages": turns}) + "\n" for number in range(400))
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    breaks(monkeypatch, "b.jsonl", gives)
    report = ingest(sorted(tmp_path.glob("*.jsonl")), lake=tmp_path / "lake", source="s")
    assert [(Path(file.uri).name, file.state) for file in report.files] == [
        ("a.jsonl", "done"),
        ("b.jsonl", "failed"),
        ("c.jsonl", "done"),
    ]
    assert "10 retries" in (report.files[1].error or "")


def test_a_bucket_that_is_not_there_is_no_file_that_is_gone() -> None:
    with pytest.raises(LakeError, match="there is no such bucket"), one_line("create the lake s3://none/lake"):
        raise exceptions.GenericError("404 Not Found: <Error><Code>NoSuchBucket</Code></Error>")
