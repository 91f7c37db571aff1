"""MLflow: versions and containers of one trace, sessions, assessments, traces without their spans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl import ingest
from etl.adapter import Sample
from etl.adapters._mlflow_values import CHUNK, complete
from etl.adapters.mlflow import Mlflow
from tests.lakes import NOW, rows

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "mlflow"
COLUMNS = ("rollout_id", "messages", "steps", "usage", "judgments", "model", "started_at", "ended_at", "status")


def _said(lake: Path) -> list[list[str]]:
    return [[message["content"] for message in row["messages"]] for row in rows(lake)]


@pytest.mark.parametrize("name", ["search_traces.parquet", "search_traces.csv"])
def test_a_data_frame_gives_the_row_of_the_lines(name: str, tmp_path: Path) -> None:
    for sample in ("traces.jsonl", name):
        ingest([SAMPLES / sample], lake=tmp_path / sample, now=NOW, strict=True)
    (lines,), (frame,) = rows(tmp_path / "traces.jsonl"), rows(tmp_path / name)
    assert {column: frame[column] for column in COLUMNS} == {column: lines[column] for column in COLUMNS}


def test_a_session_is_one_conversation_and_a_failed_call_no_turn(tmp_path: Path) -> None:
    ingest([SAMPLES / "traces.jsonl"], lake=tmp_path, now=NOW, strict=True)
    (row,) = rows(tmp_path)
    assert [m["role"] for m in row["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert (row["conversation_id"], row["model"], row["reward"]) == ("desk-900", "demo-large-2026", 0.75)
    assert [(s["tool"], s["status"]) for s in row["steps"]] == [("find_parcel", "ok"), ("find_sender", "missing")]
    assert (row["usage"]["input_tokens"], row["usage"]["cached_tokens"]) == (190, 40)
    verdicts = {j["name"]: (j["kind"], j["value"], j["label"], j["status"]) for j in row["judgments"]}
    assert verdicts == {
        "helpful": ("human", 1.0, None, None),
        "expected_response": ("human", None, "It is in depot 4.", "expectation"),
        "relevance": ("judge", None, None, "RATE_LIMIT"),
        "reward": ("rule", 0.75, None, None),
    }


def test_spans_that_come_after_their_trace_take_the_place_of_what_stood_in(tmp_path: Path) -> None:
    traces = [json.loads(line) for line in (SAMPLES / "traces.jsonl").read_text(encoding="utf-8").splitlines()[:2]]
    info = tmp_path / "info.jsonl"
    info.write_text(json.dumps({"info": traces[1]["info"], "data": {}}) + "\n", encoding="utf-8")
    spans = tmp_path / "traces.json"
    spans.write_text(json.dumps({"spans": traces[1]["data"]["spans"]}), encoding="utf-8")
    ingest([info], lake=tmp_path / "lake", now=NOW, strict=True)
    assert _said(tmp_path / "lake") == [["Where is parcel P-77?", "It is in depot 4."]]
    ingest([spans], lake=tmp_path / "lake", now=NOW, strict=True)
    (row,) = rows(tmp_path / "lake")
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert {j["name"] for j in row["judgments"]} >= {"helpful", "reward"}


def test_an_assessment_that_comes_later_is_on_its_row(tmp_path: Path) -> None:
    first, *later = (SAMPLES / "assessments.jsonl").read_text(encoding="utf-8").splitlines()
    for number, lines in enumerate(([first], later)):
        log = tmp_path / f"{number}.jsonl"
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
        ingest([log], lake=tmp_path / "lake", now=NOW, strict=True)
    (row,) = rows(tmp_path / "lake")
    assert [(j["name"], j["label"], j["reason"]) for j in row["judgments"]] == [("polite", "yes", "Found at once.")]


def test_what_is_no_trace_of_mlflow_is_not_claimed() -> None:
    others: list[Any] = [
        {"info": {"id": 1}, "data": []},
        {"trace_id": "t", "request": "a"},
        {"spans": []},
        [],
        None,
        "a",
    ]
    for value in others:
        assert Mlflow().score(Sample("/a", b"", [value])) == 0.0
    assert Mlflow().score(Sample("/a", b"", [])) == 0.0


def _piece(number: int, **delta: Any) -> dict[str, Any]:
    value = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
    return {"name": f"{CHUNK}{number}", "attributes": {"mlflow.chunk.value": json.dumps(value)}}


def _streamed() -> list[dict[str, Any]]:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "find", "arguments": ""}}
    pieces = [{"index": 0, "function": {"arguments": text}} for text in ('{"parcel"', ': "P-77"}')]
    return [_piece(0, role="assistant", content=None, tool_calls=[call]),
            *(_piece(n, tool_calls=[piece]) for n, piece in enumerate(pieces, 1))]  # fmt: skip


def _summed(content: str = "") -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "tool_calls": None}
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def test_a_response_that_lacks_its_calls_has_them_from_its_stream() -> None:
    said = _summed()
    complete(said, [*reversed(_streamed()), {"name": "exception", "attributes": {}}])
    (call,) = said["choices"][0]["message"]["tool_calls"]
    assert (call["id"], call["function"]) == ("c1", {"name": "find", "arguments": '{"parcel": "P-77"}'})


@pytest.mark.parametrize("events", [_streamed()[1:], [*_streamed(), _piece(4)], []])
def test_a_stream_with_gaps_adds_nothing(events: list[dict[str, Any]]) -> None:
    said = _summed("Looking.")
    complete(said, events)
    assert said == _summed("Looking.")


def test_calls_of_a_stream_are_steps(tmp_path: Path) -> None:
    line = json.loads((SAMPLES / "traces.jsonl").read_text(encoding="utf-8").splitlines()[1])
    model = next(span for span in line["data"]["spans"] if "CHAT_MODEL" in str(span["attributes"]))
    model["attributes"]["mlflow.spanOutputs"] = json.dumps(_summed())
    model["events"] = _streamed()
    line["data"]["spans"] = [model]
    (tmp_path / "traces.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    ingest([tmp_path / "traces.jsonl"], lake=tmp_path / "lake", now=NOW, strict=True)
    (row,) = rows(tmp_path / "lake")
    assert [(s["tool"], json.loads(s["arguments"])) for s in row["steps"]] == [("find", {"parcel": "P-77"})]
