"""Tables are read as JSON Lines: every cell arrives, told by content, and what cannot be read says so."""

from __future__ import annotations

import base64
import contextlib
import csv
import datetime as dt
import gzip
import io
import json
import zipfile
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import etl
from etl.decode import decode
from etl.errors import SourceError
from etl.opening import blocks, zip_members
from etl.tabular import delimiter
from tests.lakes import NOW

CONVERSATIONS = [
    {
        "messages": [
            {"role": "user", "content": f"Where is order {number}?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "get_order", "arguments": json.dumps({"id": number})},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "shipped"},
            {"role": "assistant", "content": f"Order {number} is on its way."},
        ]
    }
    for number in range(600)
]


def _records(path, member=None):
    text = b"".join(blocks(path, member))
    return [(number, json.loads(line)) for number, line in enumerate(text.split(b"\n"), 1) if line]


def _arrow_file(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


def _arrow_stream(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


WRITERS = {"parquet": pq.write_table, "arrow": _arrow_file, "stream": _arrow_stream}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_table_of_conversations_gives_the_rows_of_its_json_lines(kind, tmp_path):
    lines = tmp_path / "chats.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in CONVERSATIONS))
    WRITERS[kind](pa.Table.from_pylist(CONVERSATIONS), tmp_path / "table")
    hashes = []
    for number, path in enumerate((lines, tmp_path / "table")):
        lake = tmp_path / f"lake{number}"
        report = etl.ingest([path], lake=lake, now=NOW, strict=True)
        assert not report.rejects()
        rows = etl.scan(lake).select("content_hash", "source_line").sort("source_line").collect()
        assert rows["source_line"].to_list() == list(range(1, len(CONVERSATIONS) + 1))
        hashes.append(rows["content_hash"].to_list())
    assert hashes[0] == hashes[1]


def test_every_type_of_cell_has_its_form_in_json(tmp_path):
    at = dt.datetime(2026, 2, 24, 8, 0, 0, 123456, tzinfo=dt.UTC)
    table = pa.table(
        {
            "ns": pa.array([1_771_920_000_123_456_789], pa.timestamp("ns")),
            "zoned": pa.array([at], pa.timestamp("us", "UTC")),
            "day": pa.array([at.date()]),
            "lasted": pa.array([dt.timedelta(seconds=2)], pa.duration("ms")),
            "price": pa.array([Decimal("12.30")]),
            "image": pa.array([b"\x00\xff"]),
            "pairs": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
            "kind": pa.array(["x"]).dictionary_encode(),
            "large": pa.array([2**63], pa.uint64()),
            "nested": pa.array([[{"at": at, "none": None}]]),
            "missing": pa.array([float("nan")]),
            "none": pa.array([None], pa.string()),
        }
    )
    pq.write_table(table, tmp_path / "t")
    [(line, row)] = _records(tmp_path / "t")
    assert line == 1
    assert row == {
        "ns": "2026-02-24 08:00:00.123456789",
        "zoned": "2026-02-24 08:00:00.123456Z",
        "day": "2026-02-24",
        "lasted": 2000,
        "price": "12.30",
        "image": base64.b64encode(b"\x00\xff").decode(),
        "pairs": {"a": 1},
        "kind": "x",
        "large": 2**63,
        "nested": [{"at": "2026-02-24 08:00:00.123456Z"}],
        "missing": None,
        "none": None,
    }


def test_a_key_that_a_map_has_twice_is_there_twice(tmp_path):
    pairs = pa.map_(pa.string(), pa.struct([("n", pa.int64()), ("none", pa.int64())]))
    cells = [[("a", {"n": 1}), ("b", {"n": 2}), ("a", {"n": 3})], [("c", {"n": 4})], [], None]
    table = pa.table({"plain": pa.array(cells, pairs), "nested": pa.array([[cell] for cell in cells], pa.list_(pairs))})
    pq.write_table(table, tmp_path / "t")
    lines = b"".join(blocks(tmp_path / "t")).splitlines()
    assert b'"plain":{"a":{"n":1},"b":{"n":2},"a":{"n":3}}' in lines[0]
    wanted = [
        {"a": {"n": 3}, "b": {"n": 2}, "duplicate_keys": [{"a": {"n": 1}}]},
        {"c": {"n": 4}},
        {},
        None,
    ]
    assert [decode(line).value for line in lines] == [{"plain": cell, "nested": [cell]} for cell in wanted]


@pytest.mark.parametrize("cut", [0.3, 0.9])
@pytest.mark.parametrize("kind", WRITERS)
def test_a_broken_file_of_columns_is_named(kind, cut, tmp_path):
    path = tmp_path / "table"
    WRITERS[kind](pa.Table.from_pylist(CONVERSATIONS), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * cut)])
    with pytest.raises(SourceError, match="file cannot be read after row"):
        list(blocks(path))


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=30), st.sampled_from(",\t;|"), st.booleans())
def test_cells_of_delimited_text_arrive_as_they_are(tmp_path_factory, rows, mark, marked):
    folder = tmp_path_factory.mktemp("csv")
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=mark, quoting=csv.QUOTE_ALL)
    writer.writerows([("id", "role", "body"), *rows])
    (folder / "t").write_bytes(text.getvalue().encode("utf-8-sig" if marked else "utf-8"))
    assert [list(row.values()) for _, row in _records(folder / "t")] == [list(row) for row in rows]


def test_lines_are_those_of_the_delimited_text(tmp_path):
    plain = "".join(f"{number},plain\n" for number in range(20))
    (tmp_path / "t").write_text('id,text\n1,"two\nlines"\n\n' + plain + "2,one\n3,more,cells\n4\n")
    first, *_, one, more, fewer = _records(tmp_path / "t")
    assert first == (2, {"id": "1", "text": "two\nlines"})
    assert one == (25, {"id": "2", "text": "one"})
    assert more == (26, {"id": "3", "text": "more", "column_3": "cells"})
    assert fewer == (27, {"id": "4"})


def test_rows_that_are_no_text_or_close_no_quote_keep_their_bytes(tmp_path):
    rows = b"".join(b"%d,ok\n" % number for number in range(40))
    (tmp_path / "t").write_bytes(b"id,text\n" + rows + b'40,caf\xe9\n41,ok\n42,"open\n43,lost\n')
    text = b"".join(blocks(tmp_path / "t"))
    assert b'{"id":"39","text":"ok"}\n40,caf\xe9\n{"id":"41","text":"ok"}\n42,"open\n43,lost\n' in text


@pytest.mark.parametrize(
    "text",
    [
        b"Dear all, hello\nplease note, this, is text\n",
        b'{"a": 1,\n "b": 2}\n',
        b"one\ntwo\n",
        b"a,a\n1,2\n",
        b"a,b\n",
        b"",
    ],
)
def test_what_is_no_table_is_none(text):
    assert delimiter(text) is None


def test_compressed_and_archived_tables_are_opened(tmp_path):
    pq.write_table(pa.table({"text": ["hi"]}), tmp_path / "t.parquet")
    (tmp_path / "t.gz").write_bytes(gzip.compress((tmp_path / "t.parquet").read_bytes()))
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.write(tmp_path / "t.parquet", "t.parquet")
    assert _records(tmp_path / "t.gz") == _records(tmp_path / "t.zip", "t.parquet") == [(1, {"text": "hi"})]


@pytest.mark.parametrize("write", [_arrow_file, _arrow_stream])
def test_lengths_that_lie_are_a_broken_file(write, tmp_path):
    path = tmp_path / "lying.arrow"
    write(pa.table({"said": [["a", "b"], ["c"], []]}), path)
    whole = path.read_bytes()
    for place in range(16, len(whole), 3):
        path.write_bytes(whole[:place] + bytes((whole[place] ^ 0xFF,)) + whole[place + 1 :])
        with contextlib.suppress(SourceError):  # and the process goes on
            _records(path)


def test_dates_that_python_lacks_are_text(tmp_path):
    path = tmp_path / "dates.arrow"
    days = pa.array([0, 2**31 - 1, -(2**31)], pa.date32())
    _arrow_file(pa.table({"day": days, "days": pa.array([[0], [2**31 - 1], None], pa.list_(pa.date32()))}), path)
    records = [record for _, record in _records(path)]
    assert records[0] == {"day": "1970-01-01", "days": ["1970-01-01"]}
    assert all(isinstance(record["day"], str) for record in records)


def test_a_damaged_archive_is_a_source_error_and_nothing_else(tmp_path):
    path = tmp_path / "logs.zip"
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("a.jsonl", b'{"a": 1}\n' * 50)
        whole = path.read_bytes()
        for place in range(0, len(whole), 3):
            path.write_bytes(whole[:place] + bytes((whole[place] ^ 0xFF,)) + whole[place + 1 :])
            said = ""
            try:
                for member in zip_members(path):
                    b"".join(blocks(path, member))
            except SourceError as error:
                said = str(error)
            assert len(said) < 400 + len(str(path))


def test_columns_of_one_name_lose_no_cell(tmp_path):
    path = tmp_path / "twice.arrow"
    _arrow_file(pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"]), path)
    assert _records(path) == [(1, {"a": 1, "a_2": 2, "b": 3})]
    text = tmp_path / "long.csv"
    text.write_bytes(b"a,column_3\n" + b"1,2\n" * 30 + b"1,2,3\n")
    assert _records(text)[-1] == (32, {"a": "1", "column_3": "2", "column_3_3": "3"})
