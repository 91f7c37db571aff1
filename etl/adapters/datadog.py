"""Datadog's LLM Observability: spans as its export API gives them, and as its intake takes them, into conversations.

A span is `{span_id, trace_id, parent_id, span_kind, input{value, messages}, output, metrics, start_ns}`: alone on a
line, as `attributes` of a resource, or in a page; sent to the intake it keeps kind, input and output in `meta`.
It is told as the run that it was (see `_langsmith_forms.py`). The key is the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._langchain import opened_all
from etl.adapters._langsmith_forms import units
from etl.adapters._rollouts import obj, text
from etl.adapters._run_fragments import Unit, fragments
from etl.adapters._runs import rows_of
from etl.adapters._usage import whole_number
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable

_TYPES = {"llm": "llm", "tool": "tool", "embedding": "embedding", "retrieval": "retriever"}
_ROOT = frozenset({"undefined", "0", ""})
"""What stands in the place of a parent where there is none."""
_HELD = frozenset({
    "span_id", "trace_id", "parent_id", "name", "start_ns", "duration", "status", "span_kind", "input", "output",
    "meta", "metrics", "metadata", "model_name", "model_provider", "tool_definitions", "error", "session_id",
    "apm_trace_id",
})  # fmt: skip
"""Keys that a run holds under other names."""
_NANODOLLARS = 1e-9
_FINE_CLOCK = 10**17
"""From here on a time counts nanoseconds since 1970; the API has given milliseconds under the same name."""


class Datadog(Adapter):
    """Spans of LLM applications."""

    name = "datadog"
    about = "Datadog LLM Observability: spans of its export API (pages, resources, attributes) and of its intake"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "empty_page": "a page without spans",
        "not_told": "a span of a trace without model, agent or tool",
    }

    def score(self, sample: Sample) -> float:
        """Sure of spans by their keys; the share of the values that hold one."""
        if not sample.values:
            return 0.0
        return sum(any(map(_is_span, _spans(value))) for value in sample.values) / len(sample.values)

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every span."""
        for record in records:
            yield from fragments(record, _units(record.value), "datadog", "no span of LLM Observability")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of one trace."""
        yield from rows_of(family)


def _kind(span: dict[str, Any]) -> str | None:
    meta = obj(span, "meta")
    return text(span.get("span_kind")) or text(meta.get("kind")) or text(meta.get("span.kind"))


def _is_span(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"span_id", "trace_id"} <= value.keys()
        and bool(value.keys() & {"start_ns", "ml_app"})
        and _kind(value) is not None
    )


def _spans(value: Any) -> Iterator[Any]:
    """The spans of a page, a resource or a request of the intake; a value that is none of them as it is."""
    if not isinstance(value, dict) or _is_span(value):
        yield value
        return
    inner, page = value.get("attributes"), value.get("data")
    if isinstance(inner, dict) and (_is_span(inner) or isinstance(inner.get("spans"), list)):
        yield from _sent(inner)
    elif isinstance(page, dict) and isinstance(page.get("attributes"), dict):
        yield from _sent(page["attributes"])
    elif isinstance(page, list) and (value.keys() & {"meta", "links"} or page):
        for each in page:
            yield from _spans(each)
    elif isinstance(value.get("spans"), list) and any(map(_is_span, value["spans"])):
        yield from _sent(value)
    else:
        yield value


def _sent(request: dict[str, Any]) -> Iterator[Any]:
    """The spans of a request, each with what is said of all of them; one span as it is."""
    spans = request.get("spans")
    if not isinstance(spans, list):
        yield request
        return
    shared = {key: value for key, value in request.items() if key in ("ml_app", "session_id", "tags")}
    yield from ({**shared, **span} if isinstance(span, dict) else span for span in spans)


def _units(value: Any) -> Iterator[Unit]:
    for span in _spans(value):
        if _is_span(span):
            yield from (unit._replace(item=span) for unit in units(_run(span)))
        else:
            yield Unit(None, span)


def _run(span: dict[str, Any]) -> dict[str, Any]:
    """The span as a run of LangSmith has it."""
    meta, kind = obj(span, "meta"), _kind(span)
    metadata = {**obj(meta, "metadata"), **obj(span, "metadata")}
    model, provider = (
        text(span.get(key)) or text(meta.get(key)) or text(metadata.get(key))
        for key in ("model_name", "model_provider")
    )
    metrics = {**obj(meta, "metrics"), **obj(span, "metrics")}
    parent = text(span.get("parent_id"))
    given, said = (_side(span.get(side, meta.get(side)), kind) for side in ("input", "output"))
    tools = span.get("tool_definitions", meta.get("tool_definitions"))
    if isinstance(given, dict) and isinstance(tools, list):
        given["tools"] = [_definition(tool) for tool in tools]
    named = {"ls_model_name": model, "ls_provider": provider, "thread_id": _session(span)}
    told = {key: value for key, value in metadata.items() if key not in ("model_name", "model_provider")}
    if kind == "agent":
        told["ls_agent_type"] = "agent"
    error = span.get("error", meta.get("error"))
    cost = metrics.get("estimated_total_cost")
    start, end = _times(span)
    return {
        "id": str(span["span_id"]), "trace_id": str(span["trace_id"]),
        "parent_run_id": None if parent in _ROOT else parent, "name": span.get("name"),
        "run_type": _TYPES.get(str(kind), "chain"), "start_time": start, "end_time": end, "inputs": given,
        "outputs": said, "status": "error" if span.get("status") == "error" else "success",
        "error": _error(error), "total_cost": cost * _NANODOLLARS if isinstance(cost, (int, float)) else None,
        "extra": {
            "metadata": {
                **{key: value for key, value in named.items() if value}, **told, "usage_metadata": _usage(metrics),
            },
            **{key: value for key, value in span.items() if key not in _HELD},
        },
    }  # fmt: skip


def _session(span: dict[str, Any]) -> str | None:
    """The session that a span names, itself or in its tags."""
    tags = span.get("tags")
    listed = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    tagged = next((tag.partition(":")[2] for tag in listed if tag.startswith("session_id:")), None)
    return text(span.get("session_id")) or tagged or None


def _times(span: dict[str, Any]) -> tuple[int | None, int | None]:
    """Start and end in nanoseconds."""
    start, lasted = span.get("start_ns"), span.get("duration")
    if type(start) is not int:
        return None, None
    start = start if start >= _FINE_CLOCK else start * 1_000_000
    return start, start + int(lasted) if isinstance(lasted, (int, float)) else None


def _side(io: Any, kind: str | None) -> Any:
    """What went in or came out: messages, documents, or the value alone."""
    if not isinstance(io, dict):
        return io
    if isinstance(io.get("messages"), list) and io["messages"]:
        rest = {key: value for key, value in io.items() if key not in ("messages", "value")}
        return {**rest, "messages": [each for message in io["messages"] for each in _messages(message)]}
    if isinstance(io.get("documents"), list):
        return io["documents"]
    value = io.get("value")
    return opened_all(value) if kind == "tool" else value


def _messages(message: Any) -> list[Any]:
    """A message in OpenAI's form, each result of a tool in it a message of its own."""
    if not isinstance(message, dict):
        return [message]
    made = {key: value for key, value in message.items() if key not in ("tool_calls", "tool_results", "tool_id")}
    calls, results = message.get("tool_calls"), message.get("tool_results")
    if isinstance(calls, list) and calls:
        made["tool_calls"] = [_call(call) for call in calls]
    if message.get("tool_id") is not None:
        made["tool_call_id"] = message["tool_id"]
    answers = [
        {
            "role": "tool",
            "tool_call_id": found.get("tool_id"),
            "name": found.get("name"),
            "content": found.get("result"),
        }
        for found in (results if isinstance(results, list) else ())
        if isinstance(found, dict)
    ]
    return [*answers, made] if not answers or made.get("content") or "tool_calls" in made else answers


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    function = {"name": call.get("name"), "arguments": call.get("arguments")}
    return {"id": call.get("tool_id"), "type": "function", "function": function}


def _definition(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    made = {key: value for key, value in tool.items() if key != "schema"}
    return {**made, "parameters": tool["schema"]} if "schema" in tool else made


def _usage(metrics: dict[str, Any]) -> dict[str, Any]:
    """The counts of a model's span, as LangChain has them; what was cached is part of the input."""
    count = {key: whole_number(value) for key, value in metrics.items()}
    made = {"input_tokens": count.get("input_tokens"), "output_tokens": count.get("output_tokens")}
    details = {
        "cache_read": count.get("cache_read_input_tokens"),
        "cache_creation": count.get("cache_write_input_tokens"),
    }
    thought = {"reasoning": count.get("reasoning_output_tokens")}
    return {**made, "input_token_details": details, "output_token_details": thought}


def _error(error: Any) -> str | None:
    if isinstance(error, dict):
        said = [part for key in ("type", "message") if (part := text(error.get(key)))]
        return ": ".join(said) or None
    return text(error)
