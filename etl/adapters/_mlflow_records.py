"""Every form of an MLflow trace into one: signal `trace` with its info, spans and annotations (`_otlp_outside.py`).

Version 3: `info` with `trace_id`, `trace_metadata`, `state`; spans with base64 ids. Version 2: `info` with
`request_id`, `request_metadata`, `status`; spans with `context`. An artifact file holds the spans alone.
A row of `search_traces` has the trace as JSON text, or its parts as columns. A trace's sums over its spans, and what it
says again of the first and last of them, are left out where the spans are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etl.adapters._mlflow_values import CHUNK, INPUTS, OUTPUTS, REQUEST_ID, complete, is_mlflow, read, values
from etl.adapters._otlp_outside import annotation_form
from etl.adapters._otlp_shapes import units
from etl.adapters._otlp_values import identifier, literal, plain_attributes, put
from etl.times import instant

_IDS = ("trace_id", "request_id")
_METADATA = ("trace_metadata", "request_metadata")
_DURATIONS = ("execution_duration_ms", "execution_time_ms", "execution_duration")
_SESSION = "mlflow.trace.session"
_OF_INFO = frozenset({*_METADATA, "trace_location", *_DURATIONS, "experiment_id", "request_time"})
_OF_ROW = frozenset({*_METADATA, "execution_duration", "execution_time_ms", "client_request_id", "assessments"})
_SUMS = frozenset(
    {"mlflow.trace.sizeStats", "mlflow.trace.sizeBytes", "mlflow.trace_schema.version", "mlflow.trace.infoFinalized"}
)
_TOLD = frozenset({"mlflow.traceInputs", "mlflow.traceOutputs", "mlflow.trace.tokenUsage", "mlflow.trace.cost"})
"""What a trace says again of its spans."""
_TIMES = ("request_time", "timestamp_ms")


def claim(value: Any) -> float:
    """How sure one value is of MLflow."""
    if isinstance(value, list):
        return claim(value[0]) if value else 0.0
    if not isinstance(value, dict):
        return 0.0
    if _is_trace(value) or _is_row(value) or _is_assessment(value):
        return 0.95
    held = value.get("traces", value.get("trace"))
    if isinstance(held, (list, dict)):
        return claim(held)
    spans = _spans_of(value)
    return 0.95 if spans and is_mlflow(plain_attributes(spans[0].get("attributes"))) else 0.0


def _info_of(value: Mapping[str, Any]) -> dict[str, Any] | None:
    info = read(value.get("info", value.get("trace_info")))
    return info if isinstance(info, dict) and any(isinstance(info.get(key), str) for key in _IDS) else None


def _is_trace(value: Mapping[str, Any]) -> bool:
    info = _info_of(value)
    if info is not None:
        return bool(info.keys() & _OF_INFO)
    named = any(isinstance(value.get(key), str) for key in _IDS)
    return named and "trace_location" in value and ("trace_metadata" in value or "state" in value)


def _is_row(value: Mapping[str, Any]) -> bool:
    """A row of `search_traces`."""
    named = any(isinstance(value.get(key), str) for key in _IDS)
    return named and len(value.keys() & _OF_ROW) > 1 and bool(value.keys() & {"trace", "spans", "request", "response"})


def _is_assessment(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("assessment_name"), str) and isinstance(value.get("trace_id"), str)


def _spans_of(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The spans of an artifact file, or of one span by itself."""
    if isinstance(value.get("attributes"), (dict, list)) and isinstance(value.get("name"), str):
        return [dict(value)]
    held = value.get("spans")
    return [span for span in held if isinstance(span, dict)] if isinstance(held, list) else []


def forms(value: Any) -> list[dict[str, Any]]:
    """The stored forms of all that a record holds: traces, assessments; nothing where it holds neither."""
    if isinstance(value, list):
        return [form for item in value for form in forms(item)]
    if not isinstance(value, dict):
        return []
    if _is_assessment(value):
        return [_assessment(value, trace_key(value["trace_id"]))]
    if _is_row(value):
        return _row(value)
    info = _info_of(value) or (value if _is_trace(value) else None)
    if info is not None:
        data = read(value.get("data"))
        return [_trace(info, data if isinstance(data, dict) else value)]
    for key in ("traces", "trace"):
        if isinstance(value.get(key), (list, dict)):
            return forms(value[key])
    by_trace: dict[str, list[dict[str, Any]]] = {}
    for span in _spans(_spans_of(value)):
        by_trace.setdefault(str(span.get("trace")), []).append(span)
    return [_with_spans({"signal": "trace", "trace": trace}, spans) for trace, spans in by_trace.items()]


def trace_key(name: str) -> str:
    """The id of a trace, without what stands before it.

    >>> trace_key("tr-61D8282F7B302E9F8966F1FB382CE9A5"), trace_key("trace:/main.logs/0123"), trace_key("r-1")
    ('61d8282f7b302e9f8966f1fb382ce9a5', '0123', 'r-1')
    """
    last = name.rpartition("/")[2] if name.startswith("trace:/") else name
    return identifier(last.removeprefix("tr-")) or name


def _row(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row of a data frame: the trace in it, else its columns; lists and objects may be Python's text of them."""
    plain = {key: literal(read(item)) if isinstance(item, str) else item for key, item in value.items()}
    whole = plain.get("trace")
    if isinstance(whole, dict) and _info_of(whole) is not None:
        found = forms(whole)
        said = {form["id"]: form for form in _assessments(plain, found[0]["trace"])} if found else {}
        if said and "annotations" not in found[0]:
            found[0]["annotations"] = list(said.values())
        return found
    texts = {key: value[key] for key in (*_IDS, "client_request_id") if key in value}
    data = {key: plain[key] for key in ("spans", "request", "response") if plain.get(key) is not None}
    return [_trace({**{key: item for key, item in plain.items() if key not in (*data, "trace")}, **texts}, data)]


def _trace(info: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    name = next(info[key] for key in _IDS if isinstance(info.get(key), str))
    trace = trace_key(name)
    metadata: dict[str, Any] = next((info[key] for key in _METADATA if isinstance(info.get(key), dict)), {})
    spans = _spans([span for span in map(read, _listed(data.get("spans"))) if isinstance(span, dict)])
    form: dict[str, Any] = {"signal": "trace", "trace": trace}
    session = metadata.get(_SESSION)
    put(form, session=session if isinstance(session, str) else None, annotations=_assessments(info, trace))
    told = _TOLD if spans else frozenset[str]()
    about = {key: item for key, item in metadata.items() if key not in _SUMS | told and key != _SESSION and item != ""}
    hidden = {*_IDS, *_METADATA, "assessments", *(("request_preview", "response_preview") if spans else ())}
    put(form, info={**{key: item for key, item in info.items() if key not in hidden and item not in (None, "", {}, [])},
                    **({"metadata": about} if about else {})})  # fmt: skip
    if not spans:
        spans = [_stand_in(info, data, metadata)]
    return _with_spans(form, spans)


def _with_spans(form: dict[str, Any], spans: list[dict[str, Any]]) -> dict[str, Any]:
    """The spans under their trace, and when the first of them began."""
    for span in spans:
        span["trace"] = form["trace"]
    starts = [span["start"] for span in spans if span.get("start") is not None]
    put(form, start=min(starts, key=lambda at: instant(at).micros or 0) if starts else None, spans=spans)
    return form


def _spans(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The forms of spans, named by MLflow's own trace id where they have it; pieces of a stream are counted."""
    made = []
    for unit in units(given):
        form = unit.form
        if form is None:
            continue
        attributes = form.get("attributes", {})
        name = attributes.pop(REQUEST_ID, None)
        if isinstance(name, str):
            form["trace"] = trace_key(name)
        events = form.get("events", [])
        whole = [event for event in events if not str(event.get("name")).startswith(CHUNK)]
        if len(whole) < len(events):
            complete(attributes.get(OUTPUTS), events)
            form["events"] = whole
            form.setdefault("rest", {})["stream_chunks"] = len(events) - len(whole)
        made.append(form)
    return made


def _stand_in(info: Mapping[str, Any], data: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A span for a trace whose spans are not there: what it was asked and what it gave back."""
    tags = info.get("tags")
    name = tags.get("mlflow.traceName") if isinstance(tags, dict) else None
    asked = data.get("request", metadata.get("mlflow.traceInputs", info.get("request_preview")))
    said = data.get("response", metadata.get("mlflow.traceOutputs", info.get("response_preview")))
    usage = read(metadata.get("mlflow.trace.tokenUsage"))
    attributes: dict[str, Any] = {"mlflow.spanType": "AGENT"}
    put(attributes, **{INPUTS: read(asked), OUTPUTS: read(said), "mlflow.chat.tokenUsage": usage})
    start = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    form: dict[str, Any] = {"signal": "span", "id": "trace", "stand_in": True, "attributes": values(attributes)}
    failed = {"code": "error"} if info.get("state", info.get("status")) == "ERROR" else None
    put(form, name=name, start=start, end=_end(start, info), status=failed)
    return form


def _end(start: Any, info: Mapping[str, Any]) -> Any:
    """When a trace ended, in nanoseconds; its duration is milliseconds, or text of seconds."""
    began = instant(start).micros
    took = next((info[key] for key in _DURATIONS if info.get(key) is not None), None)
    if isinstance(took, str) and took.endswith("s"):
        try:
            took = float(took[:-1]) * 1000
        except ValueError:
            return None
    if began is None or not isinstance(took, (int, float)) or isinstance(took, bool) or not 0 <= took < 1e12:
        return None
    return (began + round(took * 1000)) * 1000


def _assessments(holder: Mapping[str, Any], trace: str) -> list[dict[str, Any]]:
    return [_assessment(item, trace) for item in _listed(holder.get("assessments")) if isinstance(item, dict)]


def _assessment(value: Mapping[str, Any], trace: str) -> dict[str, Any]:
    """Feedback is a verdict; an expectation is what should have come, and says so in its status."""
    source = value.get("source")
    who = source.get("source_type", source.get("type")) if isinstance(source, dict) else source
    feedback, expected = value.get("feedback"), value.get("expectation")
    held = feedback if isinstance(feedback, dict) else expected if isinstance(expected, dict) else value
    said = held.get("value")
    serialized = held.get("serialized_value")
    if said is None and isinstance(serialized, dict):
        said = read(serialized.get("value"))
    if said is None:
        kinds = ("numeric_value", "boolean_value", "string_value")
        said = next((value[key] for key in kinds if value.get(key) is not None), None)
    error = held.get("error")
    status = "expectation" if expected is not None else "overridden" if value.get("valid") is False else None
    if isinstance(error, dict):
        status = str(error.get("error_code") or "error")
    used = ("assessment_name", "name", "trace_id", "feedback", "expectation", "rationale", "span_id", "valid")
    rest: dict[str, Any] = {}
    put(rest, **{key: item for key, item in value.items() if key not in used}, error=error)
    span = identifier(value.get("span_id")) if isinstance(value.get("span_id"), str) else None
    return annotation_form(
        "span" if span else "trace",
        span or trace,
        value.get("assessment_name", value.get("name")),
        who,
        value=said,
        reason=value.get("rationale") if isinstance(value.get("rationale"), str) else None,
        status=status,
        rest=rest,
    )


def _listed(value: Any) -> list[Any]:
    value = literal(read(value))
    return value if isinstance(value, list) else []
