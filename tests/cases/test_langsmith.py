"""A vendor's Parquet with nanosecond times and JSON as text (B42)."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cases.reading import Given, Shared, given, read_in
from tests.lakes import by_id

__all__ = ["given"]

_CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q":"Norway"}'}}
_ASKED = [{"role": "user", "content": "Capital of Norway?"}]
_CALLED = [*_ASKED, {"role": "assistant", "content": "", "tool_calls": [_CALL]}]
_TOLD = [*_CALLED, {"role": "tool", "tool_call_id": "c1", "content": "Oslo"}]
_SAID = [*_TOLD, {"role": "assistant", "content": "Oslo."}]
_EIGHT = 1_771_920_000_123_456_789


def _row(own: str, sort: str, seconds: tuple[float, float], inputs: Any, outputs: Any, **more: Any) -> dict[str, Any]:
    trace, _, kind = own.partition("-")
    row: dict[str, Any] = {"id": own, "trace_id": trace, "is_root": kind == "root", "run_type": sort, "name": own}
    row |= {"parent_run_id": None if kind == "root" else f"{trace}-root", "error": None, "extra": None}
    start, end = (_EIGHT + round(second * 1_000_000_000) for second in seconds)
    row |= {"start_time": start, "end_time": end, "inputs": json.dumps(inputs), "outputs": json.dumps(outputs)}
    return {**row, "prompt_tokens": None, "completion_tokens": None, "total_tokens": None, **more}


def _tokens(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _export(folder: Path) -> Path:
    """Two files of ours, in the shape of a bulk export."""
    root = _row("T1-root", "chain", (0, 1.876543211), {"messages": _ASKED}, {"messages": _SAID}, **_tokens(60, 9))
    first, last = {"generations": [_CALLED[-1]]}, {"generations": [_SAID[-1]]}
    files = {
        "a": [
            root,
            _row("T1-llm1", "llm", (0.1, 0.5), {"messages": _ASKED}, first, **_tokens(25, 5)),
            _row("T1-tool", "tool", (0.5, 1), {"q": "Norway"}, {"output": "Oslo"}, name="search"),
            _row("T1-llm2", "llm", (1, 1.5), {"messages": _TOLD}, last, **_tokens(35, 4)),
        ],
        "b": [root, _row("T2-root", "chain", (3600, 3601), {"input": "ping"}, {"output": "pong"})],
    }
    place = folder / "export" / "year=2026" / "month=02"
    place.mkdir(parents=True)
    for name, listed in files.items():
        table = pa.Table.from_pylist(listed)
        for column in ("start_time", "end_time"):
            at = table.schema.get_field_index(column)
            table = table.set_column(at, column, table[column].cast(pa.timestamp("ns")))
        pq.write_table(table, place / f"{name}.parquet")
    return folder / "export"


@pytest.fixture(params=["UTC", "Asia/Tokyo"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The host's time zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("shared_case", [True, False], ids=["shared", "ours"])
def test_b42_parquet_with_json_text(shared_case: bool, given: Given, tmp_path: Path, lake: Path) -> None:
    report = read_in(lake, given(Shared("B42")) if shared_case else _export(tmp_path))
    found = by_id(lake)
    assert set(found) == {"T1", "T2"}
    assert report["records_in"] == report["records_used"] == 6
    first, second = found["T1"], found["T2"]
    assert first["prompt"] == "Capital of Norway?"
    assert first["final_text"] == "Oslo."
    (step,) = first["steps"]
    assert (step["call_id"], step["tool"], json.loads(step["arguments"])) == ("c1", "search", {"q": "Norway"})
    assert first["messages"][step["result_index"]]["content"] == "Oslo"
    assert first["started_at"] == dt.datetime(2026, 2, 24, 8, 0, 0, 123456, tzinfo=dt.UTC)
    assert first["ended_at"] == dt.datetime(2026, 2, 24, 8, 0, 2, tzinfo=dt.UTC)
    assert (first["usage"]["input_tokens"], first["usage"]["output_tokens"]) == (60, 9)
    assert (second["prompt"], second["final_text"], second["error"]) == ("ping", "pong", None)
