"""Records that no reader should have to take: endless, bottomless, of a million digits or keys."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import etl
from etl.framing import Limits, frame
from etl.scanning import Broken
from etl.tabular import delimited_lines
from tests.fuzz.path import peak_mb
from tests.lakes import NOW, rows
from tests.measured import GOOD, cost

DEEP = 100_000
LIMITS = Limits(record_bytes=10_000)


@pytest.fixture(autouse=True, scope="module")
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the first ingest of a process loads and compiles is not what a record costs."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "log.jsonl").write_bytes(GOOD)
    etl.ingest([folder / "log.jsonl"], lake=folder / "lake", now=NOW)


def _ingested(text: bytes, tmp_path: Path, seconds: float = 5.0) -> tuple[dict[str, int], int]:
    """Rejects by reason and rows; it may take so many CPU seconds."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(text)
    started = time.process_time()
    report = etl.ingest([log], lake=tmp_path / "lake", now=NOW, strict=True, format="openai_messages")
    assert time.process_time() - started < seconds * max(1.0, len(text) / 1e6)
    (file,) = report.files
    return dict(file.rejects), len(rows(tmp_path / "lake"))


@pytest.mark.parametrize("size", [11_000, 3_000_000])
@pytest.mark.parametrize("block", [100, 4_096, 1 << 20])
def test_a_line_that_is_too_long_is_passed_over_and_the_rest_read(size: int, block: int) -> None:
    text = GOOD + b'{"messages":"' + b"a" * size + b'"}\n' + GOOD
    framed = list(frame((text[at : at + block] for at in range(0, len(text), block)), LIMITS))
    long = framed[1]
    assert isinstance(long, Broken)
    assert (long.reason, long.length, long.line) == ("too_long", size + 15, 2)
    assert len(long.raw) == 1024
    assert [item.raw for item in (framed[0], framed[2])] == [GOOD.strip()] * 2
    assert framed[2].line == 3
    assert framed[2].offset == len(text) - len(GOOD)


@pytest.mark.parametrize("block", [100, 4_096, 1 << 20])
def test_so_is_an_element_of_an_array(block: int) -> None:
    text = b"[\n" + GOOD + b",\n" + b'{"messages":"' + b"a" * 2_000_000 + b'"},\n' + GOOD + b"]"
    limits = Limits(record_bytes=10_000, whole_array_bytes=1_000)
    framed = list(frame((text[at : at + block] for at in range(0, len(text), block)), limits))
    assert [getattr(item, "reason", None) for item in framed] == [None, "too_long", None]


def test_so_is_a_row_of_a_table() -> None:
    text = b"a,b\n1,2\n3," + b"x" * 500_000 + b"\n5,6\n"
    blocks = (text[at : at + 1_000] for at in range(0, len(text), 1_000))
    lines = b"".join(delimited_lines(blocks, ",", 10_000)).split(b"\n")
    assert [json.loads(lines[1]), json.loads(lines[3])] == [{"a": "1", "b": "2"}, {"a": "5", "b": "6"}]
    assert lines[2].startswith(b"3,xxx")
    assert len(lines[2]) < 2_000


@pytest.mark.slow
def test_a_line_of_ten_gigabytes(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with log.open("wb") as file:
        file.write(GOOD + b'{"messages":"')
        file.seek(10 << 30, 1)  # a hole: nothing on disk
        file.write(b'"}\n' + GOOD)
    spent = cost(log, tmp_path / "lake")
    assert spent.files == [("done", None, {"too_long": 1}, 2)]
    assert spent.mb < 700
    assert spent.cpu < 100


@pytest.mark.parametrize("text", [b"[" * DEEP + b"]" * DEEP, b'{"messages":' * DEEP + b"1" + b"}" * DEEP])
def test_what_is_nested_too_deep_is_rejected_by_name(text: bytes, tmp_path: Path) -> None:
    assert _ingested(GOOD + text + b"\n" + GOOD, tmp_path) == ({"too_deep": 1}, 2)


def test_arguments_that_are_nested_too_deep_stay_text(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":' * DEEP + "1" + "}" * DEEP}}
    messages = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    assert _ingested(json.dumps({"messages": messages}).encode() + b"\n", tmp_path) == ({}, 1)
    (row,) = rows(tmp_path / "lake")
    (step,) = row["steps"]
    assert (step["arguments"], len(step["raw_arguments"])) == ("{}", 6 * DEEP + 1)


@pytest.mark.parametrize(
    "number",
    [
        b"9" * 1_000_000,
        *(
            pytest.param(number, marks=pytest.mark.slow)
            for number in (b"-0." + b"9" * 1_000_000 + b"e99", b"1e" + b"9" * 1_000_000)
        ),
    ],
)
def test_a_number_of_a_million_digits(number: bytes, tmp_path: Path) -> None:
    assert _ingested(GOOD.replace(b"]}", b'],"n":' + number + b"}") + GOOD, tmp_path) == ({}, 2)


@pytest.mark.parametrize(
    "kind",
    [
        "one key again and again",
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("many keys", "numbers of one hash", "half characters")
        ),
    ],
)
def test_what_makes_tables_slow_does_not(kind: str, tmp_path: Path) -> None:
    """Python hashes text with a secret of its process, so only numbers can be made to collide; and they are no keys."""
    if kind == "many keys":
        text = GOOD.replace(b"]}", b"]," + b",".join(b'"k%d":1' % n for n in range(100_000)) + b"}")
    elif kind == "one key again and again":
        text = GOOD.replace(b"]}", b"]," + b",".join([b'"k":1'] * 100_000) + b"}")
    elif kind == "numbers of one hash":
        text = b"".join(GOOD.replace(b"]}", b'],"id":%d}' % (n * (2**61 - 1))) for n in range(5_000))
    else:
        said = b",".join(b'{"role":"user","content":"a%d\\ud800"}' % n for n in range(5_000))
        text = GOOD.replace(b"[", b"[" + said + b",")
    rejects, found = _ingested(text, tmp_path, 10)
    assert (rejects, found) == ({}, 5_000 if kind == "numbers of one hash" else 1)


@pytest.mark.parametrize(
    "piece",
    [
        b'{"a":1',
        *(
            pytest.param(piece, marks=pytest.mark.slow)
            for piece in (b'{"', b'{"a":"b', b'"', b"[", b'{"a":1}"x"', b'{"a":')
        ),
    ],
)
def test_a_line_that_breaks_again_and_again_costs_no_more_than_others(piece: bytes, tmp_path: Path) -> None:
    rejects, found = _ingested(GOOD + piece * (200_000 // len(piece)) + b"\n" + GOOD, tmp_path)
    assert found == 2
    assert rejects


@pytest.mark.slow
def test_many_broken_records_take_no_memory_each(tmp_path: Path) -> None:
    before = peak_mb()
    rejects, found = _ingested(GOOD * 2 + b'{\n"a":' * 60_000, tmp_path, 15)
    assert (rejects["not_json"], found) == (60_000, 2)
    assert peak_mb() - before < 300
