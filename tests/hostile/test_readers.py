"""Containers that are made to break what reads them: SQLite, YAML, Parquet, XML."""

from __future__ import annotations

import ast
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import etl
from etl.adapters._yaml import YamlError, decode_yaml
from etl.framing import LIMITS
from tests.lakes import NOW, REPO, rows

PAGE = 512


def _database(path: Path, blobs: str = "CREATE TABLE blobs (id TEXT, data BLOB)") -> bytearray:
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA page_size = {PAGE}")
        database.execute(blobs)
        database.execute("CREATE TABLE meta (key TEXT, value TEXT)")
        database.execute("INSERT INTO meta VALUES ('0', '7b7d')")
        database.execute('INSERT INTO blobs (id, data) VALUES (\'a\', \'{"role":"user","content":"hi"}\')')
        database.commit()
    return bytearray(path.read_bytes())


def _pointing(child: int, times: int) -> bytes:
    """An inner page of a tree, each of whose branches is the same page."""
    page = bytearray(PAGE)
    cells = [child.to_bytes(4, "big") + bytes([number + 1]) for number in range(times)]
    page[0] = 5
    page[3:5], page[8:12] = times.to_bytes(2, "big"), child.to_bytes(4, "big")
    at = PAGE
    for number, cell in enumerate(cells):
        at -= len(cell)
        page[at : at + len(cell)] = cell
        page[12 + 2 * number : 14 + 2 * number] = at.to_bytes(2, "big")
    page[5:7] = at.to_bytes(2, "big")
    return bytes(page)


def test_pages_of_a_database_that_say_without_end(tmp_path: Path, lake: Path) -> None:
    log = tmp_path / "store.db"
    data = _database(log)
    leaf, first = bytes(data[PAGE : 2 * PAGE]), len(data) // PAGE + 1
    assert leaf[0] == 13
    pages = [leaf, *(_pointing(first + level, 60) for level in range(8))]
    data[PAGE : 2 * PAGE] = _pointing(first + 8, 60)  # 60 to the 9th rows, in 6 KB
    data += b"".join(pages)
    data[28:32] = (len(data) // PAGE).to_bytes(4, "big")
    log.write_bytes(data)
    (file,) = etl.ingest([log], lake=lake, now=NOW, strict=True, format="cursor").files
    assert dict(file.rejects) == {"damaged_database": 1}
    assert any("its rows say more than the file holds" in row["message"] for row in rows(lake, "rejects"))


def test_generated_columns_are_not_computed(tmp_path: Path, lake: Path) -> None:
    log = tmp_path / "store.db"
    _database(log, "CREATE TABLE blobs (id TEXT, data BLOB, more TEXT AS (hex(zeroblob(100000000))))")
    (file,) = etl.ingest([log], lake=lake, now=NOW, strict=True, format="cursor").files
    assert not file.rejects
    assert file.state == "done"


def _laughs(anchor: str) -> bytes:
    lines = ["a0: &a0 [lol]"]
    lines += [anchor.format(here=n, before=n - 1) for n in range(1, 10)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    "text",
    [
        _laughs("a{here}: &a{here} [" + ",".join(["*a{before}"] * 10) + "]"),
        b"a: &a [*a]",
        b"a: &a {b: *a}",
        b"a: &a " + b"x" * 100_000 + b"\nb: [" + b"*a," * 10_000 + b"]",
    ],
    ids=["billion laughs", "a list in itself", "a mapping in itself", "one long text"],
)
def test_aliases_that_say_too_much_are_refused(text: bytes) -> None:
    with pytest.raises(YamlError, match=r"aliases say|nested deeper"):
        decode_yaml(text, LIMITS)


def test_merged_mappings_are_not_multiplied() -> None:
    merged = _laughs("a{here}: &a{here} {{<<: [" + ",".join(["*a{before}"] * 2) + "]}}")
    assert decode_yaml(merged, LIMITS)["a1"] == {"<<": [["lol"], ["lol"]]}


@pytest.mark.parametrize("opener", [b"[", b"{a: ", b"- ", b"? "])
def test_yaml_that_is_nested_too_deep_is_refused(opener: bytes) -> None:
    with pytest.raises(YamlError):
        decode_yaml(opener * 100_000, LIMITS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"!!python/object/apply:os.system ['exit 1']", ["exit 1"]),
        (b"!!python/object:requests.structures.CaseInsensitiveDict {a: 1}", {"a": 1}),
        (b"!!python/name:os.system x", "x"),
        (b"!ruby/object:OpenStruct {a: b}", {"a": "b"}),
        (b"!!timestamp nonsense", "nonsense"),
        (b"!!int nonsense", "nonsense"),
        (b"!!bool nonsense", "nonsense"),
        (b"!!binary nonsense%", "nonsense%"),
        (b"!!binary aGk=", "hi"),
        (b"2026-04-01", "2026-04-01"),
        (b"190:20:30", "190:20:30"),
        (b".inf", ".inf"),
        (b"12_000", 12000),
        (b"{1: a, null: b, [x]: c}", {"1": "a", "None": "b", "['x']": "c"}),
    ],
)
def test_tags_construct_nothing(text: bytes, value: object) -> None:
    assert decode_yaml(text, LIMITS) == value


@pytest.mark.parametrize("number", [b"9" * 1_000_000, b"0x" + b"f" * 1_000_000, b"1" + b":59" * 300_000])
def test_numbers_of_a_million_digits_stay_text_in_yaml(number: bytes) -> None:
    assert decode_yaml(number, LIMITS) == number.decode()


def test_a_parquet_footer_that_lies_costs_the_file_alone(tmp_path: Path, lake: Path) -> None:
    """Every byte of the footer, one after another, says something else: the run goes on, and no row is made up."""
    whole = tmp_path / "whole.parquet"
    messages = [[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]] * 3
    pq.write_table(pa.table({"messages": messages}), whole, compression="none", store_schema=False)
    data = whole.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    folder = tmp_path / "logs"
    folder.mkdir()
    for place in range(start, len(data), 9):
        spoiled = bytearray(data)
        spoiled[place] ^= 0xFF
        (folder / f"{place}.parquet").write_bytes(spoiled)
    (folder / "long.parquet").write_bytes(data[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1")
    report = etl.ingest([folder], lake=lake, now=NOW)
    assert {file.state for file in report.files} <= {"done", "failed", "skipped"}
    assert all(file.error for file in report.files if file.state != "done")


def test_nothing_parses_xml() -> None:
    """No entity can be expanded by what is not there; markup of logs is read with regular expressions or as HTML."""
    for file in sorted((REPO / "etl").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] in ("xml", "lxml", "defusedxml", "xmltodict")], (
                file
            )
