"""The OTLP adapter: shapes, keys and accounts; cases; junk in every attribute."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from etl import ingest
from etl.adapter import FileContext, Sample
from etl.adapters._otlp_shapes import units
from etl.adapters.otlp import Otlp
from etl.adapters.phoenix import Phoenix
from etl.conversation import Fragment, Ignored, Record, Unusable
from etl.decode import decode
from etl.framing import frame
from etl.normalise import FileMemory, Stream, normalise
from etl.times import instant
from tests.adapters.traces import (
    START,
    TRACE,
    batch,
    chat,
    families,
    logs,
    pairs,
    parsed,
    rows_of,
    span,
    spoken,
    stored,
    text,
)
from tests.lakes import NOW, REPO, rows

SAMPLES = REPO / "sample_logs" / "otlp"
HI = text("user", "Hi")
HELLO = text("assistant", "Hello.", "stop")
ISO = ("2026-03-14T09:00:01+00:00", "2026-03-14T09:00:02.5Z")
FLAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m-1",
    "gen_ai.input.messages": json.dumps([HI]),
    "gen_ai.output.messages": json.dumps([HELLO]),
    "gen_ai.usage.input_tokens": 10,
}


def _named(**more: Any) -> dict[str, Any]:
    return {"name": "chat m-1", **more}


SHAPES: dict[str, Any] = {
    "batch": batch([chat(2, 1, 2.5, [HI], [HELLO], parent=None)]),
    "batches of Tempo": {"batches": batch([chat(2, 1, 2.5, [HI], [HELLO], parent=None)])["resourceSpans"]},
    "snake case": {
        "resource_spans": [
            {
                "scope_spans": [
                    {
                        "spans": [
                            _named(
                                trace_id=TRACE,
                                span_id="2",
                                start_time_unix_nano=START + 10**9,
                                end_time_unix_nano=START + 25 * 10**8,
                                attributes=[{"key": key, "value": {"string_value": str(v)}} for key, v in FLAT.items()],
                            )
                        ]
                    }
                ]
            }
        ]
    },
    "base64 ids": _named(
        traceId="XxwKO50uTH+Kax0OLzpLXA==", spanId="AAAAAAAAAAI=", startTime=ISO[0], endTime=ISO[1], attributes=FLAT
    ),
    "console exporter": _named(
        context={"trace_id": f"0x{TRACE}", "span_id": "0x0000000000000002", "trace_state": "[]"},
        kind="SpanKind.CLIENT",
        parent_id=None,
        start_time=ISO[0],
        end_time=ISO[1],
        attributes=FLAT,
        status={"status_code": "UNSET"},
    ),
    "ReadableSpan": _named(
        spanContext={"traceId": TRACE, "spanId": "2"},
        attributes=FLAT,
        startTime=[START // 10**9 + 1, 0],
        endTime=[START // 10**9 + 2, 500_000_000],
        status={"code": 0},
    ),
    "data frame": {
        "context.trace_id": TRACE,
        "context.span_id": "2",
        "parent_id": None,
        "start_time": START // 10**6 + 1000,
        "end_time": START // 10**6 + 2500,
        "attributes.other": None,
        **{f"attributes.{key}": value for key, value in FLAT.items()},
    },
    "trace with its spans": {
        "traces": [{"trace_id": TRACE, "spans": [_named(id="2", start_time=START + 10**9, trace_id=TRACE,
                                                        end_time=START + 25 * 10**8, attributes=FLAT)]}]
    },
    "spans by operation": {"chat": [_named(spanContext={"traceId": TRACE, "spanId": "2"}, attributes=FLAT,
                                           startTime=ISO[0], endTime=ISO[1])]},
    "Jaeger": {
        "data": [
            {
                "traceID": TRACE,
                "spans": [
                    {
                        "traceID": TRACE,
                        "spanID": "2",
                        "operationName": "chat m-1",
                        "references": [],
                        "startTime": START // 1000 + 10**6,
                        "duration": 1_500_000,
                        "tags": [{"key": key, "type": "string", "value": value} for key, value in FLAT.items()],
                        "processID": "p1",
                    }
                ],
                "processes": {"p1": {"serviceName": "desk", "tags": []}},
            }
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_span_says_the_same_in_every_shape(shape: str) -> None:
    value = SHAPES[shape]
    adapter = Phoenix() if shape == "data frame" else Otlp()
    assert adapter.score(Sample("/logs/a.json", b"", [value])) >= 0.9
    (row,) = rows_of(value)
    assert row.native_id == TRACE
    assert spoken(row) == [("user", "Hi"), ("assistant", "Hello.")]
    assert (row.model, row.finish_reason) == ("m-1", "stop")
    assert row.usage is not None
    assert row.usage.input_tokens == 10
    assert instant(row.started_at).micros == START // 1000 + 1_000_000
    assert instant(row.ended_at).micros == START // 1000 + 2_500_000


def test_records_of_other_tracing_tools_are_left_to_their_adapters() -> None:
    run = {"id": "r1", "trace_id": "t1", "name": "chain", "run_type": "llm", "start_time": ISO[0], "inputs": {}}
    observation = {
        "id": "o1",
        "traceId": "t1",
        "name": "chat",
        "type": "GENERATION",
        "startTime": ISO[0],
        "input": "[]",
    }
    mlflow = {"name": "chat", "trace_id": "t1", "span_id": "s1", "attributes": {"mlflow.spanType": '"LLM"'}}
    message = {"role": "user", "content": "Hi", "name": "a", "id": "m1"}
    for value in (run, observation, mlflow, message, {"data": {"spans": [mlflow]}}, {"messages": [message]}):
        assert Otlp().score(Sample("/logs/a.json", b"", [value])) == 0


def test_values_of_every_kind_come_out_plain() -> None:
    attributes = {"text": "a", "count": 2**53 + 1, "share": 0.5, "on": True, "list": ["a", 1], "tree": {"b": {"c": []}}}
    listed = [*pairs(attributes), {"key": "raw", "value": {"bytesValue": "AAE="}}, {"key": "none", "value": {}}]
    listed.append({"key": "empty", "value": {"kvlistValue": {}}})
    (unit,) = units(batch([{**span(2, 1, 2, {}), "attributes": listed, "parentSpanId": ""}]))
    assert unit.form is not None
    assert unit.form["attributes"] == {**attributes, "raw": "AAE=", "empty": {}}
    assert "parent" not in unit.form


def test_units_are_accounted_for_one_by_one() -> None:
    spans = batch([chat(2, 1, 2, [HI], [HELLO]), span(3, 1, 2, {"http.request.method": "GET"})])
    spans["resourceSpans"][0]["scopeSpans"][0]["spans"] += [None, {}, "torn"]
    app = {"timeUnixNano": "1", "body": {"stringValue": "started"}}
    outcomes = parsed(spans, logs([app, app]), {"resourceSpans": []}, {"resourceMetrics": []}, {"a": 1}, 7)
    assert sum(isinstance(outcome, Fragment) for outcome in outcomes) == 2
    rejects = [outcome for outcome in outcomes if isinstance(outcome, Unusable)]
    assert [reject.reason for reject in rejects] == ["not_a_span"] * 5
    assert len({(reject.record.line, reject.record.offset) for reject in rejects}) == 5
    assert rejects[2].record.raw == b'"torn"'
    rules = [outcome.rule for outcome in outcomes if isinstance(outcome, Ignored)]
    assert rules == ["log_without_message", "log_without_message", "empty_batch", "metrics"]
    assert set(rules) < Otlp.ignores.keys()


def test_what_names_no_trace_is_a_conversation_by_itself() -> None:
    bare = {"name": "chat", "kind": "SPAN_KIND_INTERNAL", "attributes": pairs(FLAT)}
    first, second = rows_of(bare, {**bare, "attributes": pairs({**FLAT, "gen_ai.usage.input_tokens": 11})})
    assert first.native_id != second.native_id
    assert len(rows_of(bare, bare)) == 1


def test_a_lone_surrogate_is_told_of_on_the_span_that_has_it() -> None:
    raw = json.dumps(batch([chat(2, 1, 2, [HI], [HELLO])])).replace('"desk"', '"half \\ud83d"').encode()
    value, notes, mended = decode(raw)
    record = Record(value, raw, 1, 0, notes, mended)
    (event,) = stored(Otlp().parse(iter([record]), FileContext("/a")))
    list(Otlp().assemble([event]))
    assert event.record.notes == ("lone_surrogate",)
    assert event.record.mended == (("half �", "half \\ud83d"),)


def test_a_lone_surrogate_in_json_inside_an_attribute_is_told_of_too() -> None:
    asked = '[{"role": "user", "parts": [{"type": "text", "content": "half \\ud83d of it"}]}]'
    value = batch([span(2, 1, 2, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": asked})])
    (row,) = rows_of(value)
    made = normalise(row, Stream("s", "otlp", 1, "/a"), FileMemory())
    assert made.messages[0].content == "half � of it"
    assert "lone_surrogate" in made.flags
    assert "\\ud83d" in (made.message_info[0].extra or "")


def test_two_export_shapes_of_one_span_give_equal_rows(shared: Path, lake: Path) -> None:
    ingest([shared / "cases" / "B37.jsonl"], lake=lake, now=NOW, strict=True)
    first, second = rows(lake)
    for row in (first, second):
        assert [message["content"] for message in row["messages"]] == [
            "Be exact.",
            *(f"turn {n}" for n in range(11)),
            "",
        ]
        (step,) = row["steps"]
        assert (step["call_id"], step["tool"], json.loads(step["arguments"])) == (
            "call_1",
            "read_file",
            {"path": "migrations/007.sql"},
        )
        assert step["result_index"] is None
        assert row["final_text"] == ""
        assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (120, 15)
        assert row["started_at"] == dt.datetime(2026, 2, 22, 9, tzinfo=dt.UTC)
        assert row["ended_at"] == dt.datetime(2026, 2, 22, 9, 0, 2, 500_000, tzinfo=dt.UTC)
        assert row["prompt"] == "turn 0"
    assert {first["conversation_id"], second["conversation_id"]} == {"t1", "t2"}
    assert [m["role"] for m in first["messages"]] == [m["role"] for m in second["messages"]]


def test_spans_whose_parents_never_came_are_rows_all_the_same(shared: Path, lake: Path) -> None:
    report = ingest([shared / "cases" / "B40.otlp.json"], lake=lake, now=NOW, strict=True).to_json()
    assert report["rejects"] == {}
    found = {row["conversation_id"][:2]: row for row in rows(lake)}
    one, other = found["8a"], found["9b"]
    assert [(message["role"], message["content"]) for message in one["messages"]] == [
        ("user", "Find x."),
        ("assistant", ""),
        ("tool", "found"),
    ]
    (step,) = one["steps"]
    assert (step["call_id"], step["tool"], json.loads(step["arguments"]), step["result_index"]) == (
        "k1",
        "lookup",
        {"q": "x"},
        2,
    )
    assert {"incomplete", "ambiguous_parent"} <= set(one["flags"])
    assert one["final_text"] == ""
    assert [message["content"] for message in other["messages"]] == ["Other trace.", "Yes."]
    assert other["final_text"] == "Yes."
    missing = [json.loads(row["extra"])["missing_parents"] for row in (one, other)]
    assert missing == [["00000000000000c1", "00000000000000ff"], ["00000000000000de"]]


JUNK: list[Any] = [
    None,
    True,
    -1.5,
    "unexpected",
    "",
    [],
    {},
    [None, 1, "a", [2], {"k": True}],
    {"type": [1], "content": {"text": 7}},
    {"role": {}, "parts": {"a": []}},
    [{"role": [], "parts": [{"type": {}}]}],
    "[{",
    '{"a": [1, 2',
    2**70,
    {"a": {"b": {}}},
    [[["x"]]],
    '"[1]"',
    [{"message": {"message": {}}}],
    {"messages": "x"},
]


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json*")), ids=lambda path: path.name)
def test_junk_in_every_attribute_gives_rows_and_no_exception(path: Path, thorough: bool) -> None:
    """The contract tests spoil fields of the files; here it is attributes, bodies and events, by turns: all with
    `--thorough`, else one in eight.
    """
    framed = [item for item in frame(iter([path.read_bytes()])) if isinstance(item, Record)]
    events = stored(Otlp().parse(iter(framed), FileContext(str(path))))
    stream = Stream("s", "otlp", 1, str(path))
    number = 0
    for family in families(events):
        for event in family:
            for holder, key in _places(event.record.value):
                kept = holder[key]
                number += 1
                if number % 8 and not thorough:
                    continue
                for junk in JUNK[number % 3 :: 3]:
                    holder[key] = junk
                    for outcome in Otlp().assemble(family):
                        if not isinstance(outcome, (Ignored, Unusable)):
                            normalise(outcome, stream, FileMemory())
                holder[key] = kept


def _places(form: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Where a form can be spoiled: its keys, its attributes, what its log record or its events say."""
    held = [form.get(part) for part in ("attributes", "body", "status")] + [form, *form.get("events", ())]
    return [(holder, key) for holder in held if isinstance(holder, dict) for key in holder]
