"""Phoenix: one span in every container, annotations that come from elsewhere and later, pipelines around models."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from etl import ingest
from etl.adapter import Sample
from etl.adapters._otlp_values import literal
from etl.adapters.phoenix import Phoenix
from tests.lakes import NOW, rows

SAMPLES = Path(__file__).parents[2] / "sample_logs" / "phoenix"
TRACE = "0af7651916cd43dd8448eb211c80319c"


def _span(number: int, kind: str, parent: int | None = None, at: str = "10:00", **attributes: Any) -> dict[str, Any]:
    return {
        "name": kind.lower(),
        "context": {"trace_id": TRACE, "span_id": f"{number:016x}"},
        "span_kind": kind,
        "parent_id": None if parent is None else f"{parent:016x}",
        "start_time": f"2026-03-14T{at}:00+00:00",
        "end_time": f"2026-03-14T{at}:30+00:00",
        "status_code": "OK",
        "attributes": {name.replace("__", "."): value for name, value in attributes.items()},
    }


def _write(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["frame.csv", "table.db"])
def test_a_frame_says_the_same_in_every_container(name: str, tmp_path: Path) -> None:
    for file, lake in ((SAMPLES / "frame.parquet", tmp_path / "a"), (SAMPLES / name, tmp_path / "b")):
        ingest([file], lake=lake, now=NOW, strict=True)
    (one,), (other,) = rows(tmp_path / "a"), rows(tmp_path / "b")
    for column in ("rollout_id", "messages", "usage", "model", "started_at", "ended_at", "final_text"):
        assert one[column] == other[column], column
    assert one["usage"]["input_tokens"] == 88
    retrieved = [json.loads(info["extra"])["retrieved"] for info in one["message_info"] if info["extra"]]
    assert retrieved[0][0]["attributes"]["retrieval.documents"][0]["document.id"] == "page-4"


def test_the_database_of_the_application_gives_the_row_of_its_export(tmp_path: Path) -> None:
    for name in ("phoenix.db", "spans.json"):
        ingest([SAMPLES / name], lake=tmp_path / name, now=NOW, strict=True)
    (stored,), (exported,) = rows(tmp_path / "phoenix.db"), rows(tmp_path / "spans.json")
    for column in ("rollout_id", "messages", "usage", "model", "tools", "started_at"):
        assert stored[column] == exported[column], column
    assert [(j["name"], j["kind"], j["label"]) for j in stored["judgments"]] == [
        ("correctness", "judge", "correct"),
        ("latency_ok", "rule", "slow"),
    ]


def test_an_annotation_that_knows_a_span_alone_finds_its_row_months_later(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    said: dict[str, Any] = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi"}
    said |= {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Hello."}
    ingest([_write(tmp_path / "spans.jsonl", _span(1, "LLM", **said))], lake=lake, now=NOW, strict=True)
    verdict = {"span_id": f"{1:016x}", "name": "tone", "annotator_kind": "HUMAN", "result": {"label": "kind"}}
    late = _write(tmp_path / "late.jsonl", {**verdict, "created_at": "2026-09-01T00:00:00+00:00"})
    report = ingest([late], lake=lake, now=NOW, strict=True).to_json()
    (row,) = rows(lake)
    assert [(j["name"], j["kind"], j["label"]) for j in row["judgments"]] == [("tone", "human", "kind")]
    assert report["rows"] == {"added": 0, "replaced": 1, "removed": 0, "unchanged": 0}


def test_an_annotation_waits_for_its_span(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    early = {"context.span_id": f"{1:016x}", "label": "good", "score": 1.0, "explanation": "It helps."}
    report = ingest([_write(tmp_path / "evals.jsonl", early, early)], lake=lake, now=NOW, strict=True).to_json()
    assert report["ignored"] == {"nothing_annotated": 1}
    ingest(
        [_write(tmp_path / "spans.jsonl", _span(1, "LLM", input__value="Hi", output__value="Hello."))],
        lake=lake,
        now=NOW,
    )
    (row,) = rows(lake)
    assert [(j["value"], j["reason"]) for j in row["judgments"]] == [(1.0, "It helps.")]


def test_a_step_of_a_pipeline_is_no_conversation_beside_a_model(tmp_path: Path) -> None:
    split = _span(2, "CHAIN", 1, "10:01", input__value='{"text": "A long page."}', output__value='["A long", "page."]')
    asked = _span(1, "CHAIN", input__value="What is it?", output__value="A page.")
    model = _span(3, "LLM", 1, "10:02", input__value="Context: A long page. What is it?", output__value="A page.")
    ingest([_write(tmp_path / "a.jsonl", asked, split, model)], lake=tmp_path / "a", now=NOW, strict=True)
    (row,) = rows(tmp_path / "a")
    assert [m["content"] for m in row["messages"]] == ["Context: A long page. What is it?", "A page."]
    ingest([_write(tmp_path / "b.jsonl", asked, split)], lake=tmp_path / "b", now=NOW, strict=True)
    (row,) = rows(tmp_path / "b")
    assert [m["content"] for m in row["messages"]] == ["What is it?", "A page."]
    report = ingest([_write(tmp_path / "c.jsonl", split)], lake=tmp_path / "c", now=NOW, strict=True).to_json()
    assert report["ignored"] == {"not_a_model_span": 1}


def test_what_is_no_span_of_phoenix_is_not_claimed() -> None:
    console = {
        "name": "a",
        "context": {"trace_id": "0x1", "span_id": "0x2"},
        "kind": "SpanKind.CLIENT",
        "attributes": {},
    }
    others: list[Any] = [console, {"label": "a", "score": 1}, {"span_id": "1", "text": "a"}, [], "text", None]
    for value in others:
        assert Phoenix().score(Sample("/a", b"", [value])) == 0.0
    assert Phoenix().score(Sample("/a", b"", [])) == 0.0


def test_python_text_that_json_cannot_hold_stays_text() -> None:
    for text in ("[1, (2,)]", "{1: 2}", "[__import__('os')]", "{'a': b'x'}", "[" * 5000):
        assert literal(text) == text
    assert literal("[{'a': None, 'b': True}]") == [{"a": None, "b": True}]


def test_attributes_that_are_nested_too_deep_stay_text_or_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "phoenix.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript("""
            CREATE TABLE traces (id INTEGER PRIMARY KEY, trace_id TEXT);
            CREATE TABLE spans (id INTEGER PRIMARY KEY, trace_rowid INT, span_id TEXT, parent_id TEXT, name TEXT,
                span_kind TEXT, start_time TEXT, end_time TEXT, attributes TEXT, events TEXT, status_code TEXT,
                status_message TEXT);
            CREATE TABLE span_annotations (id INTEGER PRIMARY KEY, span_rowid INT, name TEXT);
            INSERT INTO traces VALUES (1, 'aa');
        """)
        for number, depth in enumerate((390, 900, 960, 980, 990, 100_000)):
            attributes = '{"input": ' + "[" * depth + "]" * depth + "}"
            span = (
                None,
                1,
                f"{number:016x}",
                None,
                "llm",
                "LLM",
                "2026-03-14",
                "2026-03-14",
                attributes,
                "[]",
                "OK",
                "",
            )
            database.execute(f"INSERT INTO spans VALUES ({', '.join('?' * len(span))})", span)
        database.commit()
    report = ingest([path], lake=tmp_path / "lake", now=NOW, format="phoenix").to_json()
    assert report["files"]["failed"] == 0
    assert report["records_in"] == report["records_used"] + sum(report["rejects"].values()) + sum(
        report["ignored"].values()
    )
