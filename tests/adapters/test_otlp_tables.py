"""One span as each store has it: ClickHouse, SigNoz, Elasticsearch, OpenSearch, Azure Monitor, Zipkin, Jaeger."""

from __future__ import annotations

import json
from typing import Any

import pytest

from etl.adapters._otlp_shapes import units
from etl.times import instant
from tests.adapters.traces import START, TRACE, rows_of, spoken, text

SAID = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.input.messages": json.dumps([text("user", "Hi")]),
    "gen_ai.output.messages": json.dumps([text("assistant", "Bye", "stop")]),
}
ID, BEGIN = "00000000000000aa", "2026-03-14T09:00:00Z"
NESTED = {"gen_ai": {
    "operation": {"name": "chat"}, "request": {"model": "m"},
    "input": {"messages": SAID["gen_ai.input.messages"]}, "output": {"messages": SAID["gen_ai.output.messages"]},
}}  # fmt: skip

ROWS: dict[str, Any] = {
    "clickhouse": {
        "Timestamp": "2026-03-14 09:00:00.000000000", "TraceId": TRACE, "SpanId": ID, "ParentSpanId": "",
        "SpanName": "chat m", "SpanKind": "Client", "ResourceAttributes": {"service.name": "desk"},
        "SpanAttributes": SAID, "Duration": 1_500_000_000, "StatusCode": "Error", "StatusMessage": "bad",
        "Events.Timestamp": [], "Events.Name": [], "Events.Attributes": [], "Links.TraceId": [], "Links.SpanId": [],
    },
    "signoz": {
        "timestamp": BEGIN, "trace_id": TRACE, "span_id": ID, "name": "chat m", "duration_nano": 1_500_000_000,
        "attributes_string": SAID, "attributes_number": {}, "resources_string": {"service.name": "desk"},
        "status_code_string": "Error", "status_message": "bad",
    },
    "elastic": {"_index": "traces", "_source": {
        "@timestamp": BEGIN, "trace_id": TRACE, "span_id": ID, "name": "chat m", "duration": 1_500_000_000,
        "attributes": NESTED, "resource": {"attributes": {"service.name": "desk"}},
        "status": {"code": "Error", "message": "bad"},
    }},
    "opensearch": {"_source": {
        "traceId": TRACE, "spanId": ID, "parentSpanId": "", "name": "chat m", "startTime": BEGIN,
        "durationInNanos": 1_500_000_000, "status": {"code": 2, "message": "bad"},
        **{"span.attributes." + name.replace(".", "@"): value for name, value in SAID.items()},
    }},
    "insights": {
        "timestamp": BEGIN, "operation_Id": TRACE, "operation_ParentId": TRACE, "id": ID, "name": "chat m",
        "duration": 1500.0, "success": "False", "customDimensions": json.dumps(SAID),
    },
    "log analytics": {
        "TimeGenerated": BEGIN, "OperationId": TRACE, "ParentId": TRACE, "Id": ID, "Name": "chat m",
        "DurationMs": 1500, "Success": False, "Properties": json.dumps(SAID),
    },
    "zipkin": {
        "traceId": TRACE, "id": ID, "name": "chat m", "timestamp": START // 1000, "duration": 1_500_000,
        "localEndpoint": {"serviceName": "desk"}, "tags": {**SAID, "otel.status_code": "ERROR", "error": "bad"},
    },
    "jaeger": {"data": [{"traceID": TRACE, "processes": {}, "spans": [{
        "traceID": TRACE, "spanID": ID, "operationName": "chat m", "startTime": START // 1000, "duration": 1_500_000,
        "tags": [{"key": name, "type": "string", "value": value} for name, value in SAID.items()]
        + [{"key": "error", "type": "bool", "value": True},
           {"key": "otel.status_description", "type": "string", "value": "bad"}],
    }]}]},
}  # fmt: skip


@pytest.mark.parametrize("store", ROWS)
def test_a_row_of_a_store_is_the_span_it_was(store: str) -> None:
    (row,) = rows_of(ROWS[store])
    assert spoken(row) == [("user", "Hi"), ("assistant", "Bye")]
    assert row.error == ("error" if store in ("insights", "log analytics") else "bad")
    assert row.model == "m"
    begin, end = (instant(message.at).micros for message in row.messages)
    assert (begin, end) == (START // 1000, START // 1000 + 1_500_000)


def test_the_end_of_a_span_whose_start_is_lost_stays() -> None:
    span = {"context": {"trace_id": TRACE, "span_id": ID}, "name": "chat m", "start_time": None, "end_time": BEGIN}
    (unit,) = units({**span, "parent_id": None, "attributes": SAID})
    assert unit.form is not None
    assert unit.form["end"] == BEGIN
