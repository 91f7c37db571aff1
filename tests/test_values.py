"""Values survive the whole way: from a log line into Parquet, and out again with DuckDB, Polars and pyarrow."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import polars as pl
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from etl import ingest
from etl.calls import StepRow, arguments
from etl.decode import decode, encode
from etl.row import StepTuple
from etl.schema import Step
from tests.lakes import NOW, by_id, rows, table
from tests.measured import cost

WHOLE = [0, -1, 2**31, 2**53, 2**53 + 1, 9007199254740993, 2**63 - 1, 2**63, 2**64 + 1, -(2**63) - 1, 10**40]
REAL = [0.1, 0.30000000000000004, 1.0, 1e22, 5e-324, 1.7976931348623157e308, -0.0, 123456789.123456789]


def _ingested(tmp_path: Path, *lines: str | bytes) -> Path:
    """A lake with the lines as one log of chat messages."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines))
    report = ingest([log], lake=tmp_path / "lake", now=NOW, format="openai_messages", strict=True).to_json()
    assert report["records_in"] == report["records_used"] + sum(report["rejects"].values())
    return tmp_path / "lake"


def _conversation(arguments: str, **more: Any) -> str:
    """One line: a question, a call with these arguments (JSON of any value), and its result."""
    keys = "".join(f", {json.dumps(key)}: {json.dumps(value)}" for key, value in more.items())
    return (
        '{"id": "v", "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls":'
        ' [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": ' + arguments + "}}]},"
        ' {"role": "tool", "tool_call_id": "c1", "content": "done"}]' + keys + "}"
    )


def _by_duckdb(lake: Path) -> list[tuple[str, str]]:
    files = DeltaTable(lake / "rollouts").file_uris()
    query = (
        "SELECT m.tool_calls[1].function.arguments, extra FROM (SELECT unnest(messages) AS m, extra FROM"
        " read_parquet(?, hive_types={'source': VARCHAR, 'day': VARCHAR})) WHERE m.tool_calls IS NOT NULL"
    )
    return [(str(text), str(extra)) for text, extra in duckdb.execute(query, [files]).fetchall()]


def _by_polars(lake: Path) -> list[tuple[str, str]]:
    frame = pl.read_parquet(DeltaTable(lake / "rollouts").file_uris(), hive_partitioning=False)
    return [
        (message["tool_calls"][0]["function"]["arguments"], row["extra"])
        for row in frame.select("messages", "extra").to_dicts()
        for message in row["messages"]
        if message["tool_calls"] is not None
    ]


def _by_pyarrow(lake: Path) -> list[tuple[str, str]]:
    return [
        (message["tool_calls"][0]["function"]["arguments"], row["extra"])
        for row in rows(lake)
        for message in row["messages"]
        if message["tool_calls"] is not None
    ]


readers = pytest.mark.parametrize(
    "reader", [_by_duckdb, _by_polars, _by_pyarrow], ids=lambda reader: reader.__name__[4:]
)


@readers
@pytest.mark.parametrize("spelling", ["text", "object"])
def test_numbers_keep_every_digit(
    reader: Callable[[Path], list[tuple[str, str]]], spelling: str, tmp_path: Path
) -> None:
    value = {
        "whole": WHOLE,
        "real": REAL,
        "text": ["1e5", "007", "1.0", "null", ""],
        "none": None,
        "empty": {},
        "list": [],
    }
    text = json.dumps(value)
    line = _conversation(json.dumps(text) if spelling == "text" else text, metadata=value)
    ((stored, extra),) = reader(_ingested(tmp_path, line))
    for found in (json.loads(stored), json.loads(extra)["metadata"]):
        assert found == value
        assert [type(item) for item in found["whole"] + found["real"]] == [int] * len(WHOLE) + [float] * len(REAL)
        assert [repr(item) for item in found["real"]] == [repr(item) for item in REAL]
        assert list(found) == list(value)


def test_number_texts_that_no_double_holds_stay_texts(tmp_path: Path) -> None:
    (row,) = rows(_ingested(tmp_path, _conversation("{}")[:-1] + ', "huge": 1e400, "few": [-1e999, 2.5e-400]}'))
    assert json.loads(row["extra"]) == {"huge": "1e400", "few": ["-1e999", 0.0]}
    assert "number_range" in row["flags"]


def test_a_whole_number_of_more_digits_than_python_reads_stays_text(tmp_path: Path) -> None:
    digits = "9" * (sys.get_int_max_str_digits() + 1)
    more = f', "huge": {digits}, "few": [NaN, -{digits}], "id": "a"}}'
    (row,) = rows(_ingested(tmp_path, _conversation(f'{{"n": {digits}}}')[:-1] + more))
    assert json.loads(row["extra"])["huge"] == digits
    assert digits in row["steps"][0]["arguments"]
    assert "number_range" in row["flags"]


def test_nan_and_infinity_stay_visible_and_the_json_stays_json(tmp_path: Path) -> None:
    line = _conversation('{"x": NaN}')[:-1] + ', "loss": -Infinity, "reward": NaN}'
    (row,) = rows(_ingested(tmp_path, line))
    assert row["reward"] is None
    assert "nan" in row["flags"]
    assert msgspec.json.decode(row["extra"])["loss"] == "-Infinity"
    assert msgspec.json.decode(row["steps"][0]["arguments"]) == {"x": "NaN"}


def test_empty_null_and_missing_are_three_things(tmp_path: Path) -> None:
    lines = [
        '{"id": "empty", "model": "", "note": "", "messages": [{"role": "user", "content": ""}]}',
        '{"id": "null", "model": null, "note": null, "messages": [{"role": "user", "content": null}]}',
        '{"id": "missing", "messages": [{"role": "user"}]}',
    ]
    found = by_id(_ingested(tmp_path, *lines))
    assert [found[name]["model"] for name in ("empty", "null", "missing")] == ["", None, None]
    notes = [json.loads(found[name]["extra"] or "{}") for name in ("empty", "null", "missing")]
    assert [note.get("note", "absent") for note in notes] == ["", None, "absent"]
    assert all(found[name]["messages"][0]["content"] == "" for name in found)


def test_texts_that_look_like_something_else(tmp_path: Path) -> None:
    texts = [
        "1e5",
        "007",
        "null",
        "true",
        "NaN",
        "2026-01-01",
        " padded ",
        "a\u0000b",
        "\u2028\u2029\u0085\x0b\x0c",
        "\r\n",
        "'\"\\",
    ]
    message = [{"role": "user", "content": text} for text in texts]
    (row,) = rows(
        _ingested(tmp_path, json.dumps({"id": texts[0], "model": texts[1], "messages": message}, ensure_ascii=False))
    )
    assert [message["content"] for message in row["messages"]] == texts
    assert (row["conversation_id"], row["model"]) == (texts[0], texts[1])
    found = duckdb.execute(
        "SELECT list_transform(messages, lambda m: m.content) FROM read_parquet(?)",
        [DeltaTable(tmp_path / "lake" / "rollouts").file_uris()],
    ).fetchall()
    assert found == [(texts,)]


def test_a_key_that_occurs_twice_is_flagged_and_both_values_stay(tmp_path: Path) -> None:
    said = '{"role": "user", "content": "a", "content": "b"}'
    line = '{"id": "d", "model": "first", "model": "second", "messages": [' + said + "]}"
    (row,) = rows(_ingested(tmp_path, line))
    assert (row["model"], row["messages"][0]["content"]) == ("second", "b")
    assert "duplicate_keys" in row["flags"]
    assert '"first"' in row["extra"]
    assert '"a"' in row["message_info"][0]["extra"]


def test_a_lone_surrogate_is_replaced_flagged_and_its_escape_kept(tmp_path: Path) -> None:
    line = (
        r'{"id": "s", "messages": [{"role": "user", "content": "pair \ud83d\ude80, half \ud83d here"},'
        r' {"role": "assistant", "content": "fine"}]}'
    )
    in_arguments = _conversation(r'"{\"p\": \"\\ud83e box\"}"').replace('"v"', '"t"')
    found = by_id(_ingested(tmp_path, line, in_arguments))
    assert found["s"]["messages"][0]["content"] == "pair 🚀, half � here"
    assert found["s"]["message_info"][0]["extra"] is not None
    assert r"\ud83d here" in json.loads(found["s"]["message_info"][0]["extra"])["lone_surrogates"][0]
    assert found["s"]["message_info"][1]["extra"] is None
    assert "lone_surrogate" in found["s"]["flags"]
    assert json.loads(found["t"]["steps"][0]["arguments"]) == {"p": "� box"}
    assert found["t"]["steps"][0]["raw_arguments"] == r'{"p": "\ud83e box"}'
    assert "lone_surrogate" in found["t"]["flags"]
    stored = table(tmp_path / "lake")
    assert stored is not None
    stored.validate(full=True)


def test_invalid_utf8_is_replaced_and_flagged(tmp_path: Path) -> None:
    line = (
        b'{"id": "u", "messages": [{"role": "user", "content": "caf\xe9 \xff"}, {"role": "assistant", "content": ""}]}'
    )
    (row,) = rows(_ingested(tmp_path, line))
    assert row["messages"][0]["content"] == "caf� �"
    assert "invalid_utf8" in row["flags"]


def test_a_line_of_fifty_megabytes(tmp_path: Path) -> None:
    size = 50_000_000
    small = json.dumps(
        {"id": "small", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}
    )
    before, after = small.replace("small", "before"), small.replace("small", "after")
    log = tmp_path / "log.jsonl"
    log.write_text(before + "\n" + after + "\n", encoding="utf-8")
    usual = cost(log, tmp_path / "usual").mb
    with log.open("w", encoding="utf-8") as file:
        file.write(before + "\n")
        file.write('{"id": "big", "messages": [{"role": "user", "content": "read"}, {"role": "tool", "content": "')
        for _ in range(size // 1_000_000):
            file.write("0123456789" * 100_000)
        file.write('"}]}\n' + after + "\n")
    peak = cost(log, tmp_path / "lake").mb
    found = by_id(tmp_path / "lake")
    assert set(found) == {"before", "big", "after"}
    assert len(found["big"]["messages"][1]["content"]) == size
    assert peak - usual < 7 * size >> 20, f"{peak - usual} MiB for one line of 50 MB"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_decoding_and_encoding_lose_nothing(value: Any) -> None:
    decoded = decode(json.dumps(value).encode())
    if not decoded.mended:
        assert decoded.value == value
        assert json.loads(encode(decoded.value)) == value


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_arguments_are_one_object_in_every_spelling(value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    spelled = [arguments(value), arguments(text), arguments(json.dumps(text))]
    assert [json.loads(each.text) for each in spelled] == [value] * 3
    assert all(each.raw is None for each in spelled)


@given(st.text() | JSON)
def test_arguments_of_any_kind_become_an_object(value: Any) -> None:
    for given_value in (value, json.dumps(value)):
        parsed = arguments(given_value)
        assert isinstance(json.loads(parsed.text), dict)
        assert (
            parsed.raw is not None
            or isinstance(value, dict)
            or given_value in (None, "null")
            or json.loads(parsed.text)
        )


def test_a_step_has_its_fields_in_one_order() -> None:
    """It is handed on by place, from the pairing of calls to the column."""
    assert StepRow.__struct_fields__ == StepTuple._fields == tuple(Step.model_fields)
