"""PostHog's LLM analytics: the events of a batch export, of its API, of the SDKs' own logs, into conversations.

An event is `{uuid, event, distinct_id, timestamp, properties}`, its properties an object or JSON text. Generations,
embeddings, spans and traces are told as the runs that they were (see `_langsmith_forms.py`), metrics and feedback are
judgments; all other events are about something else. The key is the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._langchain import opened_all
from etl.adapters._langsmith_forms import units
from etl.adapters._rollouts import text
from etl.adapters._run_fragments import Unit, fragments
from etl.adapters._runs import rows_of
from etl.adapters._usage import whole_number
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.times import instant

_OTHER = "other_event"
_PAGES = ("results", "batch", "events", "data")
_TYPES = {"$ai_generation": "llm", "$ai_embedding": "embedding", "$ai_span": "chain", "$ai_trace": "chain"}
_JUDGED = frozenset({"$ai_metric", "$ai_feedback"})
_ENVELOPE = frozenset({
    "uuid", "event", "timestamp", "properties", "elements", "elements_chain", "person", "person_id",
    "team_id", "api_key", "person_properties", "set", "set_once", "site_url", "created_at", "inserted_at",
    "_inserted_at", "id", "type",
})  # fmt: skip
_HELD = frozenset({
    "$ai_trace_id", "$ai_session_id", "$ai_span_id", "$ai_generation_id", "$ai_parent_id", "$ai_span_name",
    "$ai_trace_name", "$ai_model", "$ai_provider", "$ai_latency", "$ai_input", "$ai_output", "$ai_output_choices",
    "$ai_tools", "$ai_input_state", "$ai_output_state", "$ai_is_error", "$ai_error", "$ai_stop_reason",
    "$ai_input_tokens", "$ai_output_tokens", "$ai_total_tokens", "$ai_cache_read_input_tokens",
    "$ai_cache_creation_input_tokens", "$ai_reasoning_tokens", "$ai_total_cost_usd", "$ai_input_cost_usd",
    "$ai_output_cost_usd", "$ai_cache_reporting_exclusive",
})  # fmt: skip
"""Properties that a run holds under other names, and costs that are parts of the whole."""
_AT_START = "opentelemetry"
"""Library whose events have the time at which a span began; those of all others are captured when it ended."""


class PostHog(Adapter):
    """AI events among all events."""

    name = "posthog"
    about = "PostHog LLM analytics: $ai_generation, $ai_span, $ai_trace, … events of batch exports, the API and SDKs"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "empty_page": "a page without events",
        "not_told": "a span of a trace without a generation, or what was judged of a trace that has not arrived",
        _OTHER: "an event that no model took part in",
    }

    def score(self, sample: Sample) -> float:
        """Sure of AI events; less of others, among which there may be some."""
        if not sample.values:
            return 0.0
        return sum(_claim(value) for value in sample.values) / len(sample.values)

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every AI event."""
        for record in records:
            events = [_opened(event) for event in _events(record.value)]
            others = [event for event in events if _is_event(event) and not _is_ai(event)]
            yield from (Ignored(_OTHER) for _ in others)
            rest = [event for event in events if event not in others]
            if rest or not others:
                yield from fragments(record, _units(rest), "posthog", "no event of PostHog")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of one trace, or of the traces of a session."""
        yield from rows_of(family)


def _claim(value: Any) -> float:
    events = [event for event in _events(value) if _is_event(event)]
    if not events:
        return 0.0
    return 0.96 if any(map(_is_ai, events)) else 0.7


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("event"), str)
        and isinstance(value.get("properties"), (dict, str))
        and bool(
            {"distinct_id", "uuid"} & {*value, *(value["properties"] if type(value["properties"]) is dict else ())}
        )
    )


def _is_ai(event: dict[str, Any]) -> bool:
    return event["event"] in _TYPES or event["event"] in _JUDGED


def _events(value: Any) -> Iterator[Any]:
    """The events of a page; a value that is none as it is."""
    if isinstance(value, dict) and not _is_event(value):
        page = next((value[key] for key in _PAGES if isinstance(value.get(key), list)), None)
        yield from [value] if page is None else page
    else:
        yield value


def _opened(event: Any) -> Any:
    """An event with its properties as an object, whose own values may be JSON text too."""
    if not _is_event(event):
        return event
    properties = opened_all(event["properties"])
    return {**event, "properties": properties if isinstance(properties, dict) else {}}


def _units(events: Iterable[Any]) -> Iterator[Unit]:
    for event in events:
        if not _is_event(event):
            yield Unit(None, event)
        else:
            told = _feedback(event) if event["event"] in _JUDGED else _run(event)
            yield from (unit._replace(item=event) for unit in units(told))


def _trace(event: dict[str, Any]) -> str:
    """The trace that an event is of; its own id where it names none."""
    return text(event["properties"].get("$ai_trace_id")) or text(event.get("uuid")) or str(event.get("timestamp"))


def _run(event: dict[str, Any]) -> dict[str, Any]:
    """The event as a run of LangSmith has it."""
    told, kind = event["properties"], _TYPES[event["event"]]
    trace = _trace(event)
    own = next((found for key in ("$ai_span_id", "$ai_generation_id") if (found := text(told.get(key)))), None)
    parent = text(told.get("$ai_parent_id"))
    if event["event"] == "$ai_trace":
        own, parent = trace, None
    model = kind in ("llm", "embedding")
    given = told.get("$ai_input", told.get("$ai_input_state"))
    said = told.get("$ai_output_choices", told.get("$ai_output", told.get("$ai_output_state")))
    if model and given is not None:
        given = {"messages": given, **({"tools": told["$ai_tools"]} if told.get("$ai_tools") else {})}
    if model and isinstance(said, list) and told.get("$ai_stop_reason"):
        said = [_ended(each, told["$ai_stop_reason"]) for each in said]
    failed = told.get("$ai_is_error") in (True, "true", 1)
    start, end = _times(event)
    metadata = {
        "ls_model_name": told.get("$ai_model"), "ls_provider": told.get("$ai_provider"),
        "thread_id": told.get("$ai_session_id"), "usage_metadata": _usage(told) if model else None,
    }  # fmt: skip
    return {
        "id": own or text(event.get("uuid")) or f"{trace} {event.get('timestamp')}", "trace_id": trace,
        "parent_run_id": parent, "name": told.get("$ai_span_name", told.get("$ai_trace_name")), "run_type": kind,
        "start_time": start, "end_time": end, "inputs": given, "outputs": said,
        "error": _error(told) if failed else None, "status": "error" if failed else "success",
        "total_cost": told.get("$ai_total_cost_usd") if model else None,
        "extra": {
            "metadata": {key: value for key, value in metadata.items() if value is not None},
            **{key: value for key, value in told.items() if key not in _HELD},
            **{key: value for key, value in event.items() if key not in _ENVELOPE},
        },
    }  # fmt: skip


def _ended(choice: Any, reason: Any) -> Any:
    """A choice with why it ended, which stands beside the choices."""
    plain = isinstance(choice, dict) and "role" in choice and "finish_reason" not in choice
    return {**choice, "finish_reason": reason} if plain else choice


def _times(event: dict[str, Any]) -> tuple[Any, Any]:
    """When a run began and ended."""
    at, lasted = event.get("timestamp"), event["properties"].get("$ai_latency")
    known = instant(at).micros
    if known is None or type(lasted) not in (int, float) or not 0 <= lasted < 1e7:
        return at, None
    other = int(lasted * 1e6)
    if str(event["properties"].get("$ai_lib", "")).startswith(_AT_START):
        return known, known + other
    return known - other, known


def _usage(told: dict[str, Any]) -> dict[str, Any]:
    """Counts as LangChain has them. Whether what was cached is part of the input is said, or told by the model."""
    count = {key: whole_number(value) for key, value in told.items() if key.endswith("_tokens")}
    fresh = count.get("$ai_input_tokens")
    read, written = (count.get(f"$ai_cache_{side}_input_tokens") for side in ("read", "creation"))
    beside = told.get("$ai_cache_reporting_exclusive")
    if not isinstance(beside, bool):
        named = " ".join(str(told.get(key)) for key in ("$ai_provider", "$ai_model")).lower()
        beside = "anthropic" in named or "claude" in named
    whole = fresh + (read or 0) + (written or 0) if fresh is not None and beside else fresh
    return {
        "input_tokens": whole, "output_tokens": count.get("$ai_output_tokens"),
        "input_token_details": {"cache_read": read, "cache_creation": written},
        "output_token_details": {"reasoning": count.get("$ai_reasoning_tokens")},
    }  # fmt: skip


def _error(told: dict[str, Any]) -> str:
    """What went wrong, in the words there are."""
    error = opened_all(told.get("$ai_error"))
    said = text(error.get("message")) if isinstance(error, dict) else text(error)
    return said or f"HTTP status {told.get('$ai_http_status', 'unknown')}"


def _feedback(event: dict[str, Any]) -> dict[str, Any]:
    """A metric or a person's word on a trace, as feedback of LangSmith."""
    told = event["properties"]
    made = {"trace_id": _trace(event), "run_id": told.get("$ai_span_id"), "created_at": event.get("timestamp")}
    if event["event"] == "$ai_feedback":
        said = told.get("$ai_feedback_text")
        return {**made, "key": "feedback", "comment": said, "value": None, "feedback_source": {"type": "app"}}
    return {**made, "key": text(told.get("$ai_metric_name")) or "metric", "value": told.get("$ai_metric_value")}
