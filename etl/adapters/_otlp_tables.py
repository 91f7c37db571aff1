"""Spans as the stores that keep them give them: ClickHouse, SigNoz, Elasticsearch, OpenSearch, Application Insights,
Google Cloud Trace, Sentry.

Each names the same columns its own way. A row becomes a span by the keys that `_otlp_shapes.py` reads; columns that
stand for nothing there stay in it under their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etl.adapters._otlp_span import opened
from etl.adapters._otlp_values import as_list
from etl.times import instant

_CLICKHOUSE = {
    "TraceId": "traceId", "SpanId": "spanId", "ParentSpanId": "parentSpanId", "SpanName": "name", "SpanKind": "kind",
    "Timestamp": "startTime", "SpanAttributes": "attributes", "ResourceAttributes": "resource",
    "StatusCode": "status_code", "StatusMessage": "status_message", "Duration": "duration_nano",
}  # fmt: skip
_INSIGHTS = {
    "operation_Id": "traceId", "OperationId": "traceId", "id": "spanId", "Id": "spanId",
    "operation_ParentId": "parentSpanId", "ParentId": "parentSpanId", "Name": "name", "timestamp": "startTime",
    "TimeGenerated": "startTime", "customDimensions": "attributes", "Properties": "attributes",
    "duration": "duration_ms", "DurationMs": "duration_ms", "Success": "success",
}  # fmt: skip
_SIGNOZ = {
    "timestamp": "startTime", "resources_string": "resource", "status_code_string": "status_code",
    "kind_string": "kind",
}  # fmt: skip
_SENTRY = {
    "description": "name", "start_timestamp": "startTime", "timestamp": "endTime", "data": "attributes",
    "trace_id": "traceId", "span_id": "spanId", "parent_span_id": "parentSpanId",
}  # fmt: skip
_SIGNOZ_ATTRIBUTES = ("attributes_string", "attributes_number", "attributes_bool")
_TAG_STATUS = ("otel.status_code", "otel.status_description")


def row_span(row: dict[str, Any]) -> dict[str, Any] | None:
    """The span that a row of a store tells; None for anything else.

    >>> row_span({"TraceId": "t", "SpanId": "s", "SpanName": "chat", "SpanAttributes": {"a": "1"}})["attributes"]
    {'a': '1'}
    """
    hit = row.get("_source")
    if isinstance(hit, dict):
        return _hit(hit) if "traceId" in hit or "trace_id" in hit else None
    if "SpanAttributes" in row and "SpanId" in row:
        made = _renamed(row, _CLICKHOUSE)
        made["attributes"], made["resource"] = _object(made.get("attributes")), _object(made.get("resource"))
        made["events"] = _columns(made, "Events", {"Timestamp": "time", "Name": "name", "Attributes": "attributes"})
        made["links"] = _columns(made, "Links", {"TraceId": "traceId", "SpanId": "spanId", "Attributes": "attributes"})
    elif "attributes_string" in row and "span_id" in row:
        made = _renamed(row, _SIGNOZ)
        made["attributes"], made["resource"] = {}, _object(made.get("resource"))
        for key in _SIGNOZ_ATTRIBUTES:
            made["attributes"] |= _object(made.pop(key, None))
    elif ("customDimensions" in row and "operation_Id" in row) or ("Properties" in row and "OperationId" in row):
        made = _renamed(row, _INSIGHTS)
        made["attributes"] = _object(made.get("attributes"))
        if made.get("parentSpanId") == made.get("traceId"):
            made.pop("parentSpanId", None)
        if str(made.pop("success", None)).lower() == "false":
            made["status"] = {"code": "ERROR"}
    elif "start_timestamp" in row and {"op", "span_id", "trace_id"} <= row.keys():
        made = _renamed(row, _SENTRY)
        made["attributes"] = _object(made.get("attributes"))
        if row.get("status") not in (None, "ok"):
            made["status"] = {"code": "ERROR", "message": str(row["status"])}
    elif isinstance(row.get("labels"), dict) and "spanId" in row and "startTime" in row:
        made = _renamed(row, {"labels": "attributes"})
    else:
        return None
    return with_end(made)


def _hit(hit: dict[str, Any]) -> dict[str, Any]:
    """A document of an index; a data stream of OpenTelemetry has its start as the time of the document."""
    if "@timestamp" not in hit or "startTime" in hit:
        return hit
    made = {key: value for key, value in hit.items() if key not in ("@timestamp", "duration")}
    return with_end({**made, "startTime": hit["@timestamp"], "duration_nano": hit.get("duration")})


def _object(value: Any) -> dict[str, Any]:
    """A column that is an object, or JSON text of one."""
    held = opened(value)
    return held if isinstance(held, dict) else {}


def _renamed(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in row.items():
        if value not in (None, ""):
            made.setdefault(names.get(key, key), value)
    return made


def _columns(made: dict[str, Any], group: str, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """A nested table as ClickHouse flattens it: a list for each of its columns."""
    lists = {name: as_list(made.pop(f"{group}.{column}", None)) for column, name in names.items()}
    made.pop(f"{group}.TraceState", None)
    length = max(map(len, lists.values()))
    return [{name: held[n] for name, held in lists.items() if n < len(held)} for n in range(length)]


def with_end(made: dict[str, Any]) -> dict[str, Any]:
    """The span with its end, where the row has a start and how long it took."""
    for key, factor in (("duration_nano", 1), ("durationInNanos", 1), ("duration_ms", 1_000_000)):
        took, start = made.get(key), instant(made.get("startTime")).micros
        took = float(took) if isinstance(took, str) and took.replace(".", "", 1).isdecimal() else took
        if isinstance(took, (int, float)) and start is not None and "endTime" not in made:
            del made[key]
            made["endTime"] = start * 1000 + round(took * factor)
    return made


def zipkin_times(item: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Start and end of a span of Zipkin, which tells microseconds; none of another."""
    start, took = item.get("timestamp"), item.get("duration")
    if not isinstance(start, int) or "tags" not in item:
        return None, None
    return start * 1000, (start + took) * 1000 if isinstance(took, int) else None


def tagged_status(attributes: dict[str, Any]) -> dict[str, Any] | None:
    """The status that Jaeger and Zipkin keep among the tags, taken out of them."""
    code, description = (attributes.get(key) for key in _TAG_STATUS)
    error = attributes.get("error")
    if str(code).upper() not in ("OK", "ERROR") and error not in (True, "true"):
        return None
    for key in (*_TAG_STATUS, "error"):
        attributes.pop(key, None)
    if str(code).upper() == "OK":
        return {"code": "ok"}
    said = description if isinstance(description, str) else error if isinstance(error, str) else None
    return {"code": "error", **({"message": said} if said and said != "true" else {})}
