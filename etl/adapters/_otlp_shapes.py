"""Every shape in which OpenTelemetry spans and log records are written down, into one normal form.

OTLP JSON batches (camel or snake case, Tempo's `batches`), the SDKs' own dumps (console exporter, JavaScript's
ReadableSpan), rows of a data frame (`context.trace_id`, `attributes.llm.…`), Jaeger's `data`, single spans, and objects
or lists that hold any of these. The normal form is what is stored in `events`:

    signal      "span" or "log"
    trace, id, parent, name, kind, start, end, status {code, message}
    attributes  name → plain value, nulls left out
    events      [{name, at, attributes}]      links, resource, scope, body (logs)
    rest        every other key, as it was

Ids are lower-case hex where they can be; times are integers (nanoseconds) or text, as logged. Absent is absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from etl.adapters import _otlp_agents_sdk as agents_sdk
from etl.adapters._mlflow_values import is_mlflow
from etl.adapters._mlflow_values import values as mlflow_values
from etl.adapters._otlp_tables import row_span, tagged_status, with_end, zipkin_times
from etl.adapters._otlp_values import as_list, dotted, first, identifier, kind_of, plain_attributes, put, time, value_of

BATCHES = {
    "resourceSpans": ("span", ("scopeSpans", "instrumentationLibrarySpans"), "spans"),
    "resource_spans": ("span", ("scope_spans", "instrumentation_library_spans"), "spans"),
    "resourceLogs": ("log", ("scopeLogs", "instrumentationLibraryLogs"), "logRecords"),
    "resource_logs": ("log", ("scope_logs", "instrumentation_library_logs"), "log_records"),
    "batches": ("span", ("scopeSpans", "instrumentationLibrarySpans"), "spans"),
}
"""Key of a batch → signal, keys of the groups by scope, key of the items."""
_HOLDERS = ("spans", "traces", "data", "trace", "hits")
"""Keys under which exports of several spans keep them."""
MAX_NESTING = 5
"""How deep in lists and objects spans are looked for."""

_FLAT = "attributes."
_STORED = "span.attributes."
"""How OpenSearch names them, with `@` for the dots."""
_NESTED = (
    "llm",
    "openinference",
    "gen_ai",
    "input",
    "output",
    "session",
    "tool",
    "user",
    "metadata",
    "embedding",
    "ai",
)
"""First parts of attribute names that some exports turn into nested objects."""

_TRACE = ("traceId", "trace_id", "traceID", "context.trace_id")
_ID = ("spanId", "span_id", "spanID", "context.span_id", "id")
_PARENT = ("parentSpanId", "parent_span_id", "parent_id", "parentId", "parentSpanID")
_START = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
_END = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")
_AT = ("timeUnixNano", "time_unix_nano", "timestamp", "time")
BOOKKEEPING = frozenset({"flags", "traceState", "trace_state"})
"""Keys of a span that only the tracing itself needs: left out."""
_OTHERS = ("run_type", "dotted_order", "parentObservationId", "parent_observation_id", "ml_app")
"""Keys of runs of LangSmith, observations of Langfuse and spans of Datadog: no spans."""
_DROPPED = ("droppedAttributesCount", "droppedEventsCount", "droppedLinksCount")
_PLAIN = frozenset(
    {
        "traceId",
        "spanId",
        "parentSpanId",
        "name",
        "kind",
        "startTimeUnixNano",
        "endTimeUnixNano",
        "attributes",
        "status",
    }
    | {"events", "links", "flags", "traceState", *_DROPPED}
)
_LOG_AT = ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "observed_time_unix_nano", "timestamp")


class Unit(NamedTuple):
    """One span or log record inside a framed record. `form` is its normal form, None where it is no such thing."""

    form: dict[str, Any] | None
    item: Any
    """As it stood in the record."""


def is_span(value: Any) -> bool:
    """Whether an object is one span, in any shape."""
    if not isinstance(value, dict) or any(key in value for key in _OTHERS):
        return False
    if any(isinstance(key, str) and key.startswith(_FLAT) for key in value):
        return first(value, _TRACE) is not None or first(value, _ID) is not None
    if not isinstance(value.get("name", value.get("operationName")), str):
        return False
    context = value.get("context", value.get("spanContext"))
    if isinstance(context, dict) and ("trace_id" in context or "traceId" in context):
        return True
    described = isinstance(value.get("attributes", value.get("tags")), (list, dict))
    if first(value, _TRACE) is not None:
        # An `id` beside a trace id is a run or an observation of other tools, unless it has attributes.
        if first(value, _ID[:4]) is not None and (described or first(value, _START) is not None):
            return True
        if described and first(value, _ID) is not None:
            return True
    attributes = value.get("attributes")
    return isinstance(attributes, list) and bool(attributes) and all(_is_key_value(pair) for pair in attributes)


def _is_key_value(pair: Any) -> bool:
    return isinstance(pair, dict) and isinstance(pair.get("key"), str) and isinstance(pair.get("value"), dict)


def units(value: Any) -> Iterator[Unit]:
    """Every span and log record that a framed record holds, in order; nothing where it holds none."""
    yield from _units(value, {}, MAX_NESTING)


def is_batch(value: Any) -> bool:
    """Whether an object is a batch, even an empty one."""
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in BATCHES)


def _units(value: Any, around: dict[str, Any], depth: int) -> Iterator[Unit]:
    if isinstance(value, list) and depth > 0:
        for item in value:
            yield from _units(item, around, depth - 1)
    elif isinstance(value, dict):
        batches = [key for key in BATCHES if isinstance(value.get(key), list)]
        if batches:
            for key in batches:
                for resource_group in value[key]:
                    yield from _batch(resource_group, *BATCHES[key])
        elif agents_sdk.is_span(value):
            yield Unit(agents_sdk.span_form(value, around.get("traceId")), value)
        elif is_span(value):
            yield Unit(_span(value, around), value)
        elif (told := row_span(value)) is not None:
            yield Unit(_span(told, around), value)
        elif depth > 0:
            if agents_sdk.is_trace(value):
                yield Unit(agents_sdk.trace_form(value), value)
            held = [value[key] for key in _HOLDERS if isinstance(value.get(key), (list, dict))]
            if not held:
                held = [item for item in value.values() if isinstance(item, list) and any(map(is_span, item))]
            if not held:
                return
            inner = around
            trace = first(value, _TRACE) or (agents_sdk.trace_id(value) if agents_sdk.is_trace(value) else None)
            if trace is not None:
                inner = {"traceId": trace}
            if isinstance(value.get("processes"), dict):
                inner = {**inner, "processes": value["processes"]}
            for item in held:
                yield from _units(item, inner, depth - 1)


def _batch(group: Any, signal: str, scopes: tuple[str, ...], items: str) -> Iterator[Unit]:
    """The items of one resource."""
    if not isinstance(group, dict):
        yield Unit(None, group)
        return
    resource = _attributes_of(group.get("resource"))
    put(resource, schemaUrl=group.get("schemaUrl"))
    found: list[Any] = next((group[key] for key in scopes if isinstance(group.get(key), list)), [])
    for scope_group in found:
        if not isinstance(scope_group, dict):
            yield Unit(None, scope_group)
            continue
        scope = _scope(scope_group.get("scope", scope_group.get("instrumentationLibrary")))
        put(scope, schemaUrl=scope_group.get("schemaUrl"))
        inner = scope_group.get(items)
        for item in inner if isinstance(inner, list) else ():
            if not isinstance(item, dict) or not item:
                yield Unit(None, item)
                continue
            form = _span(item, {}) if signal == "span" else _log(item)
            if resource:
                form["resource"] = resource
            if scope:
                form["scope"] = scope
            yield Unit(form, item)


def _span(item: dict[str, Any], around: Mapping[str, Any]) -> dict[str, Any]:
    """The normal form of one span, whatever its shape; `around` is what its holder says."""
    if item.keys() <= _PLAIN and "spanId" in item:
        return _plain_span(item)
    if "durationInNanos" in item:
        item = with_end(item)
    taken: set[str] = {"attributes", "status", "events", "resource", "scope", "links", "kind"}
    take = _Taker(item, taken)
    context = take.object("context", "spanContext")
    form: dict[str, Any] = {"signal": "span"}
    trace = identifier(take.first(_TRACE) or first(context, _TRACE) or around.get("traceId"))
    own = _own_id(take.first(_ID[:-1]) or first(context, _ID) or take.first(_ID))
    parent = take.first(_PARENT)
    if parent is None:
        parent = first(take.object("parentSpanContext", "parent"), ("spanId", "span_id")) or _reference(take)
    put(form, trace=trace, id=own, parent=_own_id(parent))
    name = take.first(("name", "operationName"))
    put(form, name=name if isinstance(name, str) else None, kind=kind_of(item.get("kind")))
    start, end = time(take.first(_START)), time(take.first(_END))
    duration = take.first(("duration",)) if end is None else None
    if isinstance(duration, int) and isinstance(start, int) and "operationName" in item:
        end = start + duration
    if start is None and (times := zipkin_times(item))[0] is not None:
        start, end = times
        taken.add("timestamp")
    attributes = _attributes(item, take)
    put(form, start=start, end=end, status=_status(item.get("status"), take) or tagged_status(attributes))
    put(form, attributes=attributes)
    events = [_event(event) for event in as_list(item.get("events")) + as_list(take.first(("logs",)))]
    put(form, events=[event for event in events if event])
    put(form, links=[_plain_object(link) for link in as_list(item.get("links"))])
    put(form, resource=_attributes_of(item.get("resource")) or _process(take, around))
    scope = item.get("scope", item.get("instrumentationScope", item.get("instrumentationLibrary")))
    taken |= {"instrumentationScope", "instrumentationLibrary"}
    put(form, scope=_scope(scope))
    put(form, rest=_rest(item, taken))
    return form


def _own_id(value: Any) -> str | None:
    """The id of a span. Zeros are none by the standard; exports with replaced ids count from them all the same."""
    found = identifier(value)
    return "0" * 16 if found is None and isinstance(value, str) and value.strip("0xX") == "" and value else found


def _plain_span(item: dict[str, Any]) -> dict[str, Any]:
    """The same for a span as OTLP JSON writes it, which most are: quicker."""
    form: dict[str, Any] = {"signal": "span"}
    for key, target in (("traceId", "trace"), ("spanId", "id"), ("parentSpanId", "parent")):
        made = identifier(item.get(key)) if key == "traceId" else _own_id(item.get(key))
        if made is not None:
            form[target] = made
    for key, target in (("startTimeUnixNano", "start"), ("endTimeUnixNano", "end")):
        at = time(item.get(key))
        if at is not None:
            form[target] = at
    name, kind = item.get("name"), kind_of(item.get("kind"))
    if isinstance(name, str) and name:
        form["name"] = name
    if kind is not None:
        form["kind"] = kind
    attributes = plain_attributes(item.get("attributes"))
    if is_mlflow(attributes):
        attributes = mlflow_values(attributes)
    if attributes:
        form["attributes"] = attributes
    if item.get("status"):
        put(form, status=_status(item["status"], _Taker(item, set())))
    if item.get("events"):
        put(form, events=[event for event in map(_event, as_list(item["events"])) if event])
    if item.get("links"):
        put(form, links=[_plain_object(link) for link in as_list(item["links"])])
    if not item.keys().isdisjoint(_DROPPED):
        put(form, rest={key: item[key] for key in _DROPPED if item.get(key)})
    return form


def _log(item: dict[str, Any]) -> dict[str, Any]:
    """The normal form of one log record."""
    taken: set[str] = {"attributes", "body"}
    take = _Taker(item, taken)
    form: dict[str, Any] = {"signal": "log"}
    put(form, trace=identifier(take.first(_TRACE)), id=identifier(take.first(_ID[:3])))
    attributes = _attributes(item, take)
    name = take.first(("eventName", "event_name"))
    if not isinstance(name, str) or not name:
        name = attributes.pop("event.name", None)
    put(form, name=name if isinstance(name, str) else None)
    times = [time(item.get(key)) for key in _LOG_AT]
    taken.update(_LOG_AT)
    put(form, start=next((at for at in times if at), None))
    put(form, attributes=attributes)
    if item.get("body") is not None:
        form["body"] = value_of(item["body"])
    put(form, rest=_rest(item, taken))
    return form


class _Taker:
    """Reads keys of an item and notes which."""

    def __init__(self, item: dict[str, Any], taken: set[str]) -> None:
        self._item = item
        self._taken = taken

    def first(self, keys: tuple[str, ...]) -> Any:
        """The first of these keys that holds something; all of them count as read."""
        self._taken.update(keys)
        return first(self._item, keys)

    def object(self, *keys: str) -> dict[str, Any]:
        """The first of these keys that holds an object; empty for none."""
        for key in keys:
            value = self._item.get(key)
            if isinstance(value, dict):
                self._taken.add(key)
                return value
        return {}


def _status(value: Any, take: _Taker) -> dict[str, Any] | None:
    """{"code": "ok" | "error", "message"}; None where it is unset."""
    status = value if isinstance(value, dict) else {"code": value}
    code = first(status, ("code", "status_code", "statusCode"))
    if code is None:
        code = take.first(("status_code", "statusCode"))
    message = first(status, ("message", "description", "status_message"))
    if message is None:
        message = take.first(("status_message", "statusMessage"))
    word = str(code).upper().rpartition(".")[2].removeprefix("STATUS_CODE_")
    made: dict[str, Any] = {}
    put(made, code={"1": "ok", "OK": "ok", "2": "error", "ERROR": "error"}.get(word), message=message)
    return made or None


def _attributes(item: dict[str, Any], take: _Taker) -> dict[str, Any]:
    """The attributes: an OTLP list, an object, Jaeger's tags, or keys that begin with `attributes.`."""
    made = plain_attributes(item.get("attributes"))
    made.update(plain_attributes(take.first(("tags",))))
    for key in [key for key in item if key.startswith((_FLAT, _STORED))]:
        value = take.first((key,))
        if value is not None:
            made[key.removeprefix("span.").removeprefix(_FLAT).replace("@", ".")] = value
    kind = take.first(("span_kind",))
    if isinstance(kind, str):
        made.setdefault("openinference.span.kind", kind)
    for key in _NESTED:
        if isinstance(made.get(key), dict):
            made.update(dotted(made.pop(key), key))
    return mlflow_values(made) if is_mlflow(made) else made


def _attributes_of(holder: Any) -> dict[str, Any]:
    """The attributes of a resource."""
    if not isinstance(holder, dict):
        return {}
    return plain_attributes(holder.get("attributes", {} if "attributes" in holder else holder))


def _scope(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    made = {key: item for key, item in value.items() if key != "attributes" and item not in (None, "", [], {})}
    return {**made, **plain_attributes(value.get("attributes"))}


def _event(value: Any) -> dict[str, Any]:
    """The normal form of a span event (or of Jaeger's log, whose `event` field is its name)."""
    if not isinstance(value, dict):
        return {}
    attributes = plain_attributes(value.get("attributes", value.get("fields")))
    name = value.get("name", attributes.get("event") if "fields" in value else None)
    made: dict[str, Any] = {}
    put(made, name=name if isinstance(name, str) else None, at=time(first(value, _AT)), attributes=attributes)
    return made


def _plain_object(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: plain_attributes(item) if key == "attributes" else item for key, item in value.items()}


def _reference(take: _Taker) -> Any:
    """The parent in Jaeger's references."""
    for reference in as_list(take.first(("references",))):
        if isinstance(reference, dict) and reference.get("refType") == "CHILD_OF":
            return reference.get("spanID")
    return None


def _process(take: _Taker, around: Mapping[str, Any]) -> dict[str, Any]:
    """The resource that Jaeger keeps beside the spans."""
    processes = around.get("processes")
    name = take.first(("processID",)) if processes else None
    process = processes.get(name) if isinstance(processes, dict) and isinstance(name, str) else None
    if not isinstance(process, dict):
        return {}
    made = plain_attributes(process.get("tags"))
    put(made, **{"service.name": process.get("serviceName")})
    return made


def _rest(item: dict[str, Any], taken: set[str]) -> dict[str, Any]:
    left = {key: value for key, value in item.items() if key not in taken and key not in BOOKKEEPING}
    return {key: value for key, value in left.items() if value not in (None, "", [], {})}
