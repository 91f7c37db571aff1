"""Langfuse's records into the stored forms of spans, annotations and traces (`_otlp_shapes.py`, `_otlp_outside.py`).

One table of names serves every version and way out: API and UI (`traceId`, `usageDetails`), the columns of a blob
storage export (`trace_id`, `provided_model_name`), the ingestion API (`generation-create` with a `body`), and the
captions of a spreadsheet (`Trace ID`). JSON may stand as text anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from etl.adapters._langchain import opened_all
from etl.adapters._langfuse_usage import amount, fields_of, snake, usage
from etl.adapters._otlp_outside import annotation_form
from etl.adapters._otlp_span import kind_of
from etl.adapters._otlp_values import fingerprint, plain_attributes, put
from etl.adapters._run_fragments import Unit
from etl.adapters._run_tools import is_tool_output

OBSERVATIONS = frozenset(
    {"SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"}
)
_KINDS = {"GENERATION": "chat", "TOOL": "execute_tool", "EMBEDDING": "embeddings", "RETRIEVER": "retrieval"}
"""Type of an observation → the operation that says what it is."""
_AGREE = {"GENERATION": ("model", "agent"), "TOOL": ("tool",), "EMBEDDING": ("embedding",), "RETRIEVER": ("retrieval",)}
"""What its OpenTelemetry attributes may say a typed observation is without being overruled."""
_EVENTS = {
    "trace-create": "trace",
    "score-create": "score",
    "span-create": "SPAN",
    "span-update": "SPAN",
    "generation-create": "GENERATION",
    "generation-update": "GENERATION",
    "event-create": "EVENT",
    "observation-create": "SPAN",
    "observation-update": "SPAN",
}
_EVENT_TYPES = frozenset(f"{kind.lower()}-{what}" for kind in OBSERVATIONS for what in ("create", "update"))
_WHO = {"ANNOTATION": "HUMAN", "EVAL": "LLM"}
_BOOKKEEPING = frozenset(
    {
        *("event_ts", "is_deleted", "html_path", "input_price", "output_price", "total_price", "usage_pricing_tier_id"),
        *("latency", "duration", "time_to_first_token", "internal_model", "tool_call_names", "usage", "usage_details"),
        *("provided_usage_details", "cost_details", "provided_cost_details", "unit", "observation_count"),
        *("prompt_tokens", "completion_tokens", "total_tokens", "input_usage", "output_usage", "total_usage"),
        *("input_cost", "output_cost", "total_cost", "calculated_input_cost", "calculated_output_cost"),
        *("calculated_total_cost", "blob_storage_file_path"),
    }
)
"""Keys of the store itself, counts (which columns hold) and what follows from times: left out."""
_TRACE_WIDE = ("project_id", "environment", "user_id", "session_id", "release", "version", "trace_name", "tags")
_TRACE_MARKS = frozenset(
    {"session_id", "user_id", "release", "bookmarked", "public", "html_path", "observations", "scores", "tags"}
    | {"project_id", "environment", "total_cost"}
)


_EMPTY = (("data", "meta"), ("batch", "metadata"))
"""What a page or a batch keeps its items under, and the key beside it."""


def what(item: Any) -> str | None:
    """observation, score, trace, event (of the ingestion API) or holder; None for anything else."""
    if not isinstance(item, dict) or "run_type" in item:
        return None
    fields = (
        item.keys() if all(isinstance(key, str) and key.islower() for key in item) else {snake(key) for key in item}
    )
    kind = item.get("type", item.get("Type"))
    if isinstance(kind, str):
        if kind in OBSERVATIONS and "id" in fields and fields & {"start_time", "trace_id"}:
            return "observation"
        if kind.upper() in OBSERVATIONS and {"id", "trace_id", "parent_observation_id"} <= fields:
            return "observation"
        if (kind in _EVENTS or kind in _EVENT_TYPES) and isinstance(item.get("body"), dict):
            return "event"
    if _is_score(fields):
        return "score"
    if isinstance(item.get("trace"), dict) and isinstance(item.get("observations"), list):
        return "holder"
    if _is_trace(fields):
        return "trace"
    for key in ("data", "batch", "observations", "traces", "scores"):
        held = item.get(key)
        if isinstance(held, list) and any(what(inner) is not None for inner in held[:3]):
            return "holder"
    if any(item.get(key) == [] and isinstance(item.get(beside), dict) for key, beside in _EMPTY):
        return "holder"
    return "readings" if item and all(map(_is_reading, item.values())) else None


def _is_reading(value: Any) -> bool:
    """What Langfuse's own reader made of an observation: `{input: {success, data | error}, output: {…}}`."""
    if not isinstance(value, dict) or not value or not value.keys() <= {"input", "output"}:
        return False
    return all(isinstance(side, dict) and isinstance(side.get("success"), bool) for side in value.values())


def _is_trace(fields: Any) -> bool:
    """An id, a time, and what only traces have: enough of it that no chat log with a user and a session is one."""
    if not {"id", "timestamp"} <= fields or "messages" in fields or not fields & _TRACE_MARKS:
        return False
    own = {"project_id", "environment"} <= fields or bool(
        fields & {"bookmarked", "public", "html_path", "observations"}
    )
    return own or (bool(fields & {"input", "output"}) and len(fields & _TRACE_MARKS) >= 3)


def _is_score(fields: Any) -> bool:
    said = fields & {"value", "string_value"}
    of = fields & {"trace_id", "observation_id", "session_id"}
    marks = fields & {"data_type", "source", "config_id"}
    return bool("name" in fields and said and of and marks and "type" not in fields)


def units(item: Any, trace: str | None = None) -> Iterator[Unit]:
    """Everything that a framed record holds: an observation, a score, a trace with both, a page or batch of them."""
    if isinstance(item, list):
        for inner in item:
            yield from units(inner, trace)
        return
    kind = what(item)
    if kind == "observation":
        yield _observation(fields_of(item), item, trace)
    elif kind == "score":
        yield _score(fields_of(item), item, trace)
    elif kind == "trace":
        yield from _trace(item)
    elif kind == "event":
        yield from _event(item)
    elif kind == "holder":
        yield from _held(item)
    elif kind == "readings":
        yield from _readings(item)
    else:
        yield Unit(None, item)


def _held(item: dict[str, Any]) -> Iterator[Unit]:
    inner = item.get("trace")
    own = inner.get("id") if isinstance(inner, dict) else None
    trace = own if isinstance(own, str) else None
    if isinstance(inner, dict):
        yield from units(inner)
    for key in ("data", "batch", "traces", "observations", "scores"):
        held = item.get(key)
        if isinstance(held, list):
            yield from units(held, trace)


def _readings(item: dict[str, Any]) -> Iterator[Unit]:
    """Observations by their ids as chat messages, without times or a trace: those of one object are one."""
    trace = f"readings {fingerprint(item)}"
    for name, reading in item.items():
        sides = {side: told.get("data") for side, told in reading.items() if told["success"]}
        spoken = [message for message in _list(sides.get("output")) if isinstance(message, dict) and "role" in message]
        tools = next((message["tools"] for message in spoken if message.get("tools")), None)
        sort = "GENERATION" if spoken and "input" in sides else "SPAN"
        fields: dict[str, Any] = {"id": name, "type": sort, "tool_definitions": tools}
        for side, data in sides.items():
            objects = [each for each in _list(data) if isinstance(each, dict)]
            plain = [{key: part for key, part in each.items() if key != "tools"} for each in objects]
            fields[side] = plain if plain and len(plain) == len(data) else data
        left = {f"{side}_error": told["error"] for side, told in reading.items() if "error" in told}
        yield _observation({**fields, **left}, item, trace)


def _event(item: dict[str, Any]) -> Iterator[Unit]:
    """An event of the ingestion API: a trace, a score, or an observation that it creates or updates."""
    body = (
        {"timestamp": item.get("timestamp"), **item["body"]} if item["type"] == "trace-create" else dict(item["body"])
    )
    sort = _EVENTS.get(item["type"]) or str(item["type"]).rpartition("-")[0].upper()
    if sort == "trace":
        yield from _trace(body)
    elif sort == "score":
        yield _score(fields_of(body), item, None)
    else:
        fields = fields_of(body)
        typed = fields.get("type")
        yield _observation({**fields, "type": typed if isinstance(typed, str) else sort}, item, None)


def _trace(item: dict[str, Any]) -> Iterator[Unit]:
    """A trace: what it says itself, then its observations and scores."""
    fields = fields_of(item)
    name = _text(fields.get("id"))
    observations, scores = fields.pop("observations", None), fields.pop("scores", None)
    corrections = fields.pop("corrections", None)
    session = _text(fields.get("session_id"))
    metadata = _metadata(fields)
    span: dict[str, Any] = {"signal": "span", "trace": name, "id": f"trace {name}", "stand_in": True}
    put(span, name=_text(fields.get("name")), start=fields.get("timestamp"))
    attributes = plain_attributes(opened_all(metadata.pop("attributes", None)))  # those of its first observation
    put(attributes, input=fields.pop("input", None), output=fields.pop("output", None))
    attributes.update(usage(fields))
    put(span, attributes=attributes, resource=_resource(dict(fields), dict(metadata)))
    info = {"name": span.get("name"), **_rest(fields, metadata, ("id", "name", "timestamp"))}
    form = {"signal": "trace", "trace": name, "info": info, "spans": [span], "start": fields.get("timestamp")}
    yield Unit(form if name is not None else None, item, name, session)
    for held in (observations, scores, corrections):
        opened = opened_all(held)
        if isinstance(opened, list) and any(isinstance(inner, dict) for inner in opened):
            yield from units([_of(inner, name) for inner in opened if not isinstance(inner, str)], name)


def _of(inner: Any, trace: str | None) -> Any:
    """A score inside a trace, which need not name it again."""
    lacking = isinstance(inner, dict) and what(inner) is None and what({**inner, "traceId": trace}) == "score"
    return {**inner, "traceId": trace} if lacking else inner


def _observation(fields: dict[str, Any], item: Any, trace: str | None) -> Unit:
    """The normal form of an observation."""
    metadata = _metadata(fields)
    attributes = plain_attributes(opened_all(metadata.pop("attributes", None)))
    sort = fields["type"] = fields["type"].upper()
    if sort == "SPAN" and is_tool_output(fields.get("output")):
        sort = fields["type"] = "TOOL"
    trace = _text(fields.get("trace_id")) or trace
    form: dict[str, Any] = {"signal": "span"}
    put(form, trace=trace, id=_text(fields.get("id")), parent=_text(fields.get("parent_observation_id")))
    put(form, name=_text(fields.get("name")), start=fields.get("start_time"), end=fields.get("end_time"))
    failed = fields.get("level") == "ERROR"
    put(form, status={"code": "error", "message": fields.get("status_message")} if failed else None)
    _say_kind(attributes, sort, form)
    _say_facts(attributes, fields, metadata)
    _say_words(attributes, fields, metadata)
    taken = ("id", "trace_id", "parent_observation_id", "name", "start_time", "end_time", "input", "output", "model")
    taken += ("provided_model_name", "tool_definitions", *(("status_message",) if failed else ()))
    put(form, attributes=attributes, resource=_resource(fields, metadata), scope=metadata.get("scope"))
    rest = _rest(fields, metadata, taken)
    if rest.get("level") == "DEFAULT":
        rest.pop("level")
    put(form, rest={**rest, **form.get("rest", {})})
    return Unit(form, item, trace, _text(fields.get("session_id")))


def _say_kind(attributes: dict[str, Any], sort: str, form: dict[str, Any]) -> None:
    """What it is: its type, unless its attributes say the same more closely."""
    attributes["langfuse.observation.type"] = sort.lower()
    wanted = _KINDS.get(sort)
    if wanted is not None and kind_of(attributes) not in _AGREE[sort]:
        logged = attributes.get("gen_ai.operation.name")
        if logged is not None:
            form["rest"] = {"operation": logged}
        attributes["gen_ai.operation.name"] = wanted


def _say_facts(attributes: dict[str, Any], fields: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Model, provider and counts, under the names that `_otlp_facts.py` knows."""
    model = _text(fields.get("provided_model_name")) or _text(fields.get("model"))
    if model is not None:
        attributes.setdefault("gen_ai.response.model", model)
    provider = metadata.pop("ls_provider", None)
    if isinstance(provider, str):
        attributes.setdefault("gen_ai.provider.name", provider)
    agent = metadata.get("agent_name", metadata.get("lc_agent_name"))
    if isinstance(agent, str):
        attributes.setdefault("gen_ai.agent.name", agent)
    if fields.get("type") == "GENERATION" or model is not None:
        attributes.update(usage(fields))


def _say_words(attributes: dict[str, Any], fields: dict[str, Any], metadata: dict[str, Any]) -> None:
    """What went in and came out, and the tools that were offered. What an attribute says again is left out."""
    given, said = fields.get("input"), fields.get("output")
    for name in [name for name, value in attributes.items() if isinstance(value, str) and value in (given, said)]:
        if len(attributes[name]) > 1:
            del attributes[name]
    put(attributes, input=given, output=said, tool_calls=opened_all(fields.pop("tool_calls", None)))
    if fields["type"] == "TOOL":
        attributes.setdefault("gen_ai.tool.name", _text(fields.get("name")) or "tool")
    offered = _offered(fields.get("tool_definitions")) or _offered(metadata.pop("tools", None))
    if offered and "gen_ai.tool.definitions" not in attributes:
        attributes["gen_ai.tool.definitions"] = offered


def _offered(value: Any) -> list[Any]:
    """Tool definitions: a list, or an object by name, of objects or their JSON text."""
    value = opened_all(value)
    if isinstance(value, dict):
        named = [(name, opened_all(inner)) for name, inner in value.items()]
        return [{"name": name, **inner} for name, inner in named if isinstance(inner, dict)]
    return [opened_all(inner) for inner in value] if isinstance(value, list) else []


def _metadata(fields: dict[str, Any]) -> dict[str, Any]:
    """The metadata, taken out of the fields; what is no object stays under `metadata`."""
    found = opened_all(fields.pop("metadata", None))
    if isinstance(found, dict):
        return {str(key): value for key, value in found.items() if value not in (None, "", [], {})}
    return {} if found in (None, "", []) else {"metadata": found}


def _resource(fields: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
    """What all observations of a trace share: told once a row."""
    made = plain_attributes(opened_all(metadata.pop("resourceAttributes", None)))
    name = made.get("service.name")
    if isinstance(name, str) and name.startswith("unknown_service"):
        del made["service.name"]
    for key in _TRACE_WIDE:
        value = opened_all(fields.pop(key, None))
        if value not in (None, "", [], {}):
            made[key] = value
    version = made.get("release", made.get("version"))
    if isinstance(version, str):
        made.setdefault("service.version", version)
    return made


def _rest(fields: dict[str, Any], metadata: dict[str, Any], taken: tuple[str, ...]) -> dict[str, Any]:
    """Everything that nothing else holds."""
    held = {*taken, *_BOOKKEEPING, "type", "bookmarked", "public"}
    left = {key: opened_all(value) for key, value in fields.items() if key not in held}
    left = {key: value for key, value in left.items() if value not in (None, "", [], {})}
    about = {key: value for key, value in metadata.items() if key != "scope"}
    return {**left, **({"metadata": about} if about else {})}


_SCORE_LEFT = (
    *("id", "timestamp", "created_at", "updated_at", "author_user_id", "config_id", "queue_id", "execution_trace_id"),
    *("dataset_run_id", "evaluator_id", "evaluation_rule_id"),
)


def _score(fields: dict[str, Any], item: Any, trace: str | None) -> Unit:
    """A score as an annotation of its observation, else of its trace or session."""
    trace = _text(fields.get("trace_id")) or trace
    of, target = "trace", trace
    session = _text(fields.get("session_id"))
    if _text(fields.get("observation_id")):
        of, target = "span", _text(fields["observation_id"])
    elif trace is None and session is not None:
        of, target = "session", session
    sort = fields.get("data_type")
    value, label = fields.get("value"), fields.get("string_value") or fields.get("long_string_value")
    if sort in ("TEXT", "CATEGORICAL", "CORRECTION") and label is not None:
        value = None if sort != "CATEGORICAL" else value
    if isinstance(value, str) and label is None and amount(value) is None:
        value, label = None, value
    metadata = _metadata(fields)
    left: dict[str, Any] = {key: fields[key] for key in _SCORE_LEFT if key in fields}
    if metadata:
        left["metadata"] = metadata
    source = str(fields.get("source", ""))
    put(left, data_type=sort if sort != "NUMERIC" else None, source=source if source not in _WHO else None)
    form = annotation_form(
        of, str(target), fields.get("name"), _WHO.get(source, source),
        value=value, label=label, reason=fields.get("comment"), rest=left,
    )  # fmt: skip
    return Unit(form if target is not None else None, item, trace, session)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else str(value) if type(value) is int else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
