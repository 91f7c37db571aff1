"""A file of lines that is read in parts gives what it gives whole: rows, names, places, rejects and counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import etl.stem
import etl.workers
from etl.detection import detect
from etl.digest import LineDigest
from etl.discover import discover
from etl.errors import LakeError
from etl.framing import LIMITS
from etl.parts import Work, is_parted, parts
from etl.pipeline import ingest
from etl.pool import Pool
from etl.settings import Settings
from etl.workers import ReadOut, read_all
from tests.contract.harness import sample_logs
from tests.lakes import NOW, REPO, make_many
from tests.reading.nights import CHATS, ODD, SPANS, chat, in_parts, night, span, told

_ENDS = (b"", b"\n", b'{"mess', b"\n\x00\x00", chat(1))


def _bodies(lines: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """Files: of lines, with some beginning and some end."""
    begun = st.sampled_from((b"", b"\xef\xbb\xbf", b"\n"))
    many = st.lists(st.sampled_from(lines), min_size=3, max_size=40)
    return st.builds(
        lambda head, first, body, end: head + first + b"\n" + b"\n".join(body) + end,
        begun, st.just(lines[0]), many, st.sampled_from(_ENDS),
    )  # fmt: skip


_BODIES = st.one_of(_bodies(CHATS), _bodies(CHATS + ODD), _bodies(SPANS))


@settings(max_examples=4, deadline=None)
@given(body=_BODIES, size=st.integers(1, 2000))
def test_parts_give_what_the_whole_gives(body: bytes, size: int) -> None:
    """Some files; the others are slow."""
    _read_in_parts(body, size)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(body=_BODIES, size=st.integers(1, 2000))
def test_parts_of_many_files_give_what_the_whole_gives(body: bytes, size: int) -> None:
    """As above."""
    _read_in_parts(body, size)


def _read_in_parts(body: bytes, size: int) -> None:
    """At any size of the parts, read in any order by two readers."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        log = Path(folder, "log.jsonl")
        log.write_bytes(body)
        night([log], Path(folder, "whole"), patch, least_growing=0)
        night([log], Path(folder, "parts"), patch, in_parts, least_growing=0, part_bytes=size)
        assert told(Path(folder, "parts")) == told(Path(folder, "whole"))


def _parted_samples() -> list[list[Path]]:
    """The samples whose lines their adapter reads apart: the first of each adapter, the second of each, and so on."""
    turns: list[list[Path]] = []
    seen: Counter[str] = Counter()
    for sample in sample_logs():
        for file in discover([sample.path]):
            if is_parted(file, detect(sample.path, sample.adapter.name), LIMITS):
                if seen[sample.adapter.name] == len(turns):
                    turns.append([])
                turns[seen[sample.adapter.name]].append(sample.path)
                seen[sample.adapter.name] += 1
    return turns


def test_every_adapter_keeps_its_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thorough: bool) -> None:
    """Samples of which each line is a part give the same rows: all of them with `--thorough`, else one an adapter."""
    for turn, paths in enumerate(_parted_samples() if thorough else _parted_samples()[:1]):
        whole, parted = tmp_path / f"whole{turn}", tmp_path / f"parts{turn}"
        night(paths, whole, monkeypatch, least_growing=0)
        night(paths, parted, monkeypatch, in_parts, least_growing=0, part_bytes=1)
        assert told(parted) == told(whole), paths


def test_parts_cover_a_file_and_begin_with_lines(tmp_path: Path) -> None:
    """Each begins where the one before ends, after a line end, and knows its line; the torn tail is one of its own."""
    body = b"\n".join(chat(number % 7) for number in range(200)) + b'\n{"torn'
    (tmp_path / "log.jsonl").write_bytes(body)
    (file,) = discover([tmp_path / "log.jsonl"])
    digest = LineDigest()
    found = list(parts(file, digest, 1 << 10, named=True))
    assert (found[0].start, found[-1].end) == (0, len(body))
    assert [part.end for part in found[:-1]] == [part.start for part in found[1:]]
    assert all(body[after.start - 1 : after.start] == b"\n" for _, after in pairwise(found))
    assert [part.line for part in found] == [body[: part.start].count(b"\n") + 1 for part in found]
    assert found[-1].start == digest.whole == body.rindex(b"\n") + 1


def test_values_that_span_lines_are_not_parted(tmp_path: Path) -> None:
    """Pretty-printed values one after another, and arrays, are read whole."""
    values = [json.loads(chat(number)) for number in range(50)]
    texts = {"concatenated": "\n".join(json.dumps(value, indent=1) for value in values), "array": json.dumps(values)}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (file,) = discover([tmp_path / name])
        assert not is_parted(file, detect(file.path), LIMITS)


@pytest.fixture(params=["forked", "started"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How workers come to be: from the stem, or where that cannot fork each as a process of its own."""
    if request.param == "started":
        begin = etl.stem._BEGIN.replace("from etl.stem", "import etl.stem; etl.stem.FORKS = False; from etl.stem")
        monkeypatch.setattr(etl.stem, "_BEGIN", begin)
    return str(request.param)


@pytest.mark.usefixtures("how")
def test_two_processes_share_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversations in two parts are put together; equal records of different parts stay apart; small files too."""
    (tmp_path / "logs").mkdir()
    big = [chat(number % 300) for number in range(900)]
    (tmp_path / "logs" / "chats.jsonl").write_bytes(b"\r\n".join(big) + b'\r\n{"torn')
    spread = [span(number % 50, number // 50) for number in range(300)]
    (tmp_path / "logs" / "spans.jsonl").write_bytes(b"\n".join(spread) + b"\n")
    for number in range(20):
        (tmp_path / "logs" / f"{number}.jsonl").write_bytes(chat(1000 + number) + b"\n")
    (tmp_path / "logs" / "README.md").write_text("no log")
    sizes: dict[str, Any] = {"least_growing": 0, "part_bytes": 8192}
    heard: list[str] = []

    def two(works: list[Work], run: Settings, _workers: int, _on_file: object) -> ReadOut:
        with Pool(2) as pool:
            return read_all(works, run, pool, lambda result: heard.append(result.uri))

    night([tmp_path / "logs"], tmp_path / "one", monkeypatch, **sizes)
    report = night([tmp_path / "logs"], tmp_path / "two", monkeypatch, two, **sizes)
    assert told(tmp_path / "two") == told(tmp_path / "one")
    assert sorted(heard) == sorted(result.uri for result in report.files)
    again = night([tmp_path / "logs"], tmp_path / "two", monkeypatch, two, **sizes)
    assert again.state_counts()["unchanged"] == 22


def _kill_a_worker() -> None:
    """One of the processes that the stem has forked or started."""
    (stem,) = (child for child in _children("self") if b"etl.stem" in Path(f"/proc/{child}/cmdline").read_bytes())
    os.kill(_children(stem)[0], signal.SIGKILL)


def _children(process: str | int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


@pytest.mark.usefixtures("how")
def test_a_worker_that_is_killed_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is committed, and the next run reads everything."""
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_bytes(chat(number) + b"\n")

    def kill(works: list[Work], run: Settings, _workers: int, _on_file: object) -> ReadOut:
        with Pool(2) as pool:
            return read_all(works, run._replace(part_bytes=1 << 10), pool, lambda _result: _kill_a_worker())

    with monkeypatch.context() as patched:
        patched.setattr(etl.workers, "read_all", kill)
        with pytest.raises(LakeError, match=r"a worker process ended in the middle .*exit code -9"):
            ingest([tmp_path / "0.jsonl", tmp_path / "1.jsonl", tmp_path / "2.jsonl"], lake=tmp_path / "lake", now=NOW)
    assert not told(tmp_path / "lake")["rollouts"]
    assert ingest([tmp_path / "*.jsonl"], lake=tmp_path / "lake", now=NOW).rows.added == 3


ALONE = """
import etl.stem
etl.stem._load("secrets")
assert etl.stem._is_alone() is (etl.stem.sys.platform == "linux")
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
assert not etl.stem._is_alone()
"""
SCRIPT = """
import sys, etl
print(etl.ingest(sys.argv[1], lake=sys.argv[2], workers=2).rows.added)
"""


def _run(code: str, *arguments: Path) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(REPO), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_stem_forks_only_where_no_other_thread_runs() -> None:
    """What reading needs starts none; any other is seen."""
    _run(ALONE)


def test_a_script_may_start_workers_as_it_is(tmp_path: Path) -> None:
    """No process runs it a second time."""
    many = make_many(tmp_path / "logs")
    (many / "chat.jsonl").write_bytes(chat(1) + b"\n")
    assert _run(SCRIPT, many, tmp_path / "lake").split() == ["1"]
