"""Numbers, times, names, encodings and sizes in logs of chat messages (B14, B24, B33, B35, B51, B52)."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable

from etl import ingest
from etl.errors import UsageError
from tests.cases.reading import Given, Ours, Shared, given, read_in, told_by_id
from tests.lakes import NOW, REPO, by_id, rows, said, table

__all__ = ["given"]


def _line(key: Any, **more: Any) -> str:
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    return json.dumps({"id": key, "messages": said, **more}, ensure_ascii=False)


DIGITS = Ours(
    "digits.jsonl",
    (
        r'{"id":"b1","messages":[{"role":"user","content":"Fetch."},{"role":"assistant","content":"","tool_calls":[{"id":'
        r'"c1","type":"function","function":{"name":"get","arguments":"{\"id\": 9007199254740995, \"big\": '
        r'36893488147419103233, \"ratio\": 0.7, \"whole\": 2.0}"}}]},{"role":"tool","tool_call_id":"c1","content":'
        r'"{\"id\": 838529527931269427}"}],"metadata":{"post_id":302101010000000017,"huge":-2e500}}',
    ),
)


@pytest.mark.parametrize(
    ("log", "arguments", "result", "post", "huge"),
    [
        (
            Shared("B33.jsonl"),
            '{"id": 9007199254740993, "big": 18446744073709551617, "ratio": 0.1, "whole": 1.0}',
            '{"id": 738529527931269425}',
            202101010000000013,
            "1e400",
        ),
        (
            DIGITS,
            '{"id": 9007199254740995, "big": 36893488147419103233, "ratio": 0.7, "whole": 2.0}',
            '{"id": 838529527931269427}',
            302101010000000017,
            "-2e500",
        ),
    ],
    ids=["B33", "ours"],
)
def test_every_digit_survives(
    log: Shared | Ours, arguments: str, result: str, post: int, huge: str, given: Given, lake: Path
) -> None:
    read_in(lake, given(log))
    files = DeltaTable(lake / "rollouts").file_uris()
    found = duckdb.execute(
        "SELECT messages[2].tool_calls[1].function.arguments, messages[3].content, extra, flags FROM read_parquet(?)",
        [files],
    ).fetchall()
    ((read_arguments, read_result, extra, flags),) = found
    assert (read_arguments, read_result) == (arguments, result)
    assert json.loads(extra)["metadata"] == {"post_id": post, "huge": huge}
    assert "number_range" in flags


INSTANT = "2026-05-04T03:02:01Z"
SECONDS = 1777863721
TIMES = Ours(
    "times.jsonl",
    (
        _line("sec", created_at=SECONDS),
        _line("ms", created_at=SECONDS * 1000),
        _line("us", created_at=SECONDS * 1_000_000),
        _line("ns", created_at=str(SECONDS * 1_000_000_000)),
        _line("frac", created_at=SECONDS + 0.5),
        _line("iso_off", created_at="2026-05-03T19:02:01-08:00"),
        _line("iso_z9", created_at="2026-05-04T03:02:01.123456789Z"),
        _line("edge", created_at="2026-05-03T23:59:59.999-07:00"),
        _line("naive", created_at="2026-05-04 03:02:01"),
        _line("zero", created_at=0),
        _line("junk", created_at="yesterday"),
    ),
)


@pytest.mark.parametrize(
    ("log", "at", "edge"),
    [
        (Shared("B51.jsonl"), "2026-03-01T21:20:00", "2026-03-02T06:59:59.999"),
        (TIMES, "2026-05-04T03:02:01", "2026-05-04T06:59:59.999"),
    ],
    ids=["B51", "ours"],
)
def test_one_instant_in_every_spelling(log: Shared | Ours, at: str, edge: str, given: Given, lake: Path) -> None:
    read_in(lake, given(log))
    found = by_id(lake)
    assert len(found) == 11
    instant = dt.datetime.fromisoformat(f"{at}+00:00")
    for key in ("sec", "ms", "us", "ns", "iso_off", "naive"):
        assert found[key]["started_at"] == instant, key
        assert found[key]["day"] == at[:10]
    assert found["frac"]["started_at"] == instant.replace(microsecond=500_000)
    assert found["iso_z9"]["started_at"] == instant.replace(microsecond=123_456)
    assert found["edge"]["started_at"] == dt.datetime.fromisoformat(f"{edge}+00:00")
    assert found["edge"]["day"] == edge[:10]
    assert "naive_time" in found["naive"]["flags"]
    for key, raw in (("zero", 0), ("junk", "yesterday")):
        assert (found[key]["started_at"], found[key]["day"]) == (None, "unknown")
        assert "bad_time" in found[key]["flags"]
        assert raw in json.loads(found[key]["extra"])["unread"].values()


MODELS = ["1106", "4o", "vendor/model:free", "über-modell 1", None, "", "null", "1e5"]
STREAMS = ["007", "7", "0012", "a=b", "x%2Fy", "2026-01-01", "true", "support bot/α"]
HIVE = Ours("hive.jsonl", tuple(_line(f"h{number}", model=model) for number, model in enumerate(MODELS)))


@pytest.mark.parametrize("log", [Shared("B52.jsonl"), HIVE], ids=["B52", "ours"])
def test_a_model_is_the_text_it_was(log: Shared | Ours, given: Given, lake: Path) -> None:
    read_in(lake, given(log))
    found = by_id(lake)
    assert [found[f"h{number}"]["model"] for number in range(8)] == MODELS


def _by_duckdb(lake: Path) -> set[str]:
    query = (
        f"SELECT source FROM read_parquet('{lake}/rollouts/source=*/day=*/*.parquet',"
        " hive_types={'source': VARCHAR, 'day': VARCHAR})"
    )
    return {str(source) for (source,) in duckdb.execute(query).fetchall()}


def _by_polars(lake: Path) -> set[str]:
    frame = pl.read_parquet(DeltaTable(lake / "rollouts").file_uris(), hive_partitioning=False, columns=["source"])
    return set(frame["source"].cast(pl.String).to_list())


def _by_pyarrow(lake: Path) -> set[str]:
    found = table(lake)
    assert found is not None
    return set(found.column("source").to_pylist())


def _by_delta(lake: Path) -> set[str]:
    return {str(partition["source"]) for partition in DeltaTable(lake / "rollouts").partitions()}


def test_the_name_of_a_stream_is_exactly_itself(lake: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(_line("one") + "\n", encoding="utf-8")
    for stream in STREAMS:
        assert read_in(lake, log, source=stream)["rows"]["added"] == 1
    for reader in (_by_duckdb, _by_polars, _by_pyarrow, _by_delta):
        assert reader(lake) == set(STREAMS), reader.__name__
    for stream in ("", "__HIVE_DEFAULT_PARTITION__"):
        with pytest.raises(UsageError) as refused:
            read_in(lake, log, source=stream)
        assert "\n" not in str(refused.value)
    assert _by_delta(lake) == set(STREAMS)


UTF16 = json.dumps({"messages": [{"role": "user", "content": "Grüße 😀"}, {"role": "assistant", "content": "Hallo"}]})


@pytest.mark.parametrize("encoding", ["shared", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_read(encoding: str, given: Given, lake: Path, tmp_path: Path) -> None:
    if encoding == "shared":
        path = given(Shared("B14.utf16.json"))
    else:
        path = tmp_path / "wide.json"
        path.write_bytes(UTF16.encode(encoding))
    read_in(lake, path)
    ((prompt, final),) = [(row["prompt"], row["final_text"]) for row in rows(lake)]
    assert (prompt, final) == ("Grüße 😀", "Hallo")


_CHILD = "import sys; from etl import ingest; ingest(sys.argv[2:], lake=sys.argv[1])"


@pytest.mark.parametrize("zone", ["America/Los_Angeles", pytest.param("Asia/Tokyo", marks=pytest.mark.slow)])
def test_the_host_changes_nothing(zone: str, samples: Path, tmp_path: Path) -> None:
    logs = [samples / "openai_messages" / name for name in ("times.jsonl", "windows.jsonl", "utf16.json")]
    ingest(logs, lake=tmp_path / "here", now=NOW)
    host = {"TZ": zone, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", _CHILD, str(tmp_path / "there"), *map(str, logs)]
    subprocess.run(command, env=os.environ | host, cwd=REPO, check=True)
    assert said(tmp_path / "there") == said(tmp_path / "here")


def _exec_stream(command: str, output: str, said: str, usage: tuple[int, int, int]) -> Ours:
    """What `codex exec` prints: items started and completed, but not what was asked."""
    started = {"id": "item_1", "type": "command_execution", "command": command, "status": "in_progress"}
    done = {**started, "aggregated_output": output, "exit_code": 0, "status": "completed"}
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    events = [
        {"type": "thread.started", "thread_id": "0199bbbb-0000-7000-8000-000000000002"},
        {"type": "turn.started"},
        {"type": "item.started", "item": {**started, "aggregated_output": "", "exit_code": None}},
        {"type": "item.completed", "item": done},
        {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": said}},
        {"type": "turn.completed", "usage": dict(zip(names, usage, strict=True))},
    ]
    return Ours("exec.jsonl", tuple(map(json.dumps, events)))


CRM = Ours("crm.jsonl", ('{"type": "user", "id": 7, "name": "row"}', '{"type": "assistant", "id": 8, "name": "title"}'))
TURNS = Ours("turns.jsonl", ('{"role": "user", "content": "hi"}', '{"role": "assistant", "content": "ho"}'))


@pytest.mark.parametrize(
    ("logs", "final", "tokens"),
    [
        (
            (Shared("B24/crm-dump.jsonl"), Shared("B24/plain-openai.jsonl"), Shared("B24/exec-stream.jsonl")),
            "One file.",
            (500, 100, 20),
        ),
        ((CRM, TURNS, _exec_stream("bash -lc 'ls'", "b.py\n", "Just one.", (700, 300, 9))), "Just one.", (700, 300, 9)),
    ],
    ids=["B24", "ours"],
)
def test_no_grammar_takes_what_is_not_its_own(
    logs: tuple[Shared | Ours, ...], final: str, tokens: tuple[int, int, int], given: Given, lake: Path
) -> None:
    crm, turns, stream = (given(log) for log in logs)
    report = ingest([crm, turns, stream], lake=lake, now=NOW, strict=True)
    assert [result.uri for result in report.failed()] == [str(crm)]
    sources = {Path(row["uri"]).name: row for row in rows(lake, "sources")}
    assert set(sources) == {crm.name, turns.name, stream.name}
    assert "no known conversation format" in sources[crm.name]["error"]
    found = {Path(row["source_uri"]).name: row for row in rows(lake)}
    assert set(found) == {turns.name, stream.name}
    assert [message["role"] for message in found[turns.name]["messages"]] == ["user", "assistant"]
    row = found[stream.name]
    usage = row["usage"]
    assert (usage["input_tokens"], usage["cached_tokens"], usage["output_tokens"]) == tokens
    assert (row["prompt"], row["final_text"], row["n_steps"]) == (None, final, 1)
    assert "content_not_captured" in row["flags"]


@pytest.mark.slow
def test_a_record_of_forty_megabytes(given: Given, lake: Path, tmp_path: Path) -> None:
    script, log = given(Shared("B35.gen.py")), tmp_path / "B35.jsonl"
    subprocess.run([sys.executable, str(script), str(log)], check=True)
    report = read_in(lake, log)
    found, stored = told_by_id(lake), by_id(lake)
    assert report["rejects"] == {}
    assert set(found) == {"x1", "x2", "x3"}
    ((tool, arguments, result, status),) = found["x2"]["steps"]
    assert (tool, arguments, status, found["x2"]["final_text"]) == ("read", {"path": "big.log"}, "ok", "seen")
    assert len(result) == 16_777_216
    assert json.loads(stored["x2"]["message_info"][3]["parts"])[0]["type"] == "image_url"
