"""Spans for tests, as an OTLP exporter writes them, and what becomes of them without a lake or through a real one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from etl.adapter import FileContext
from etl.adapters.otlp import Otlp
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent
from etl.decode import decode
from etl.events import EventBatch, events_table
from etl.times import instant

START = 1_773_478_800_000_000_000  # 2026-03-14T09:00:00Z, in nanoseconds
TRACE = "5f1c0a3b9d2e4c7f8a6b1d0e2f3a4b5c"


def any_value(value: Any) -> dict[str, Any]:
    """A plain value as OTLP's AnyValue."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(value)} if value else {}}
    return {"stringValue": value}


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP's list of key and value."""
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def span(
    number: int,
    begin: float,
    end: float,
    attributes: dict[str, Any],
    parent: int | None = None,
    trace: str = TRACE,
    error: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A span with times in seconds after START."""
    made: dict[str, Any] = {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "name": str(attributes.get("gen_ai.operation.name", "span")),
        "kind": 1,
        "startTimeUnixNano": str(START + round(begin * 1_000_000_000)),
        "endTimeUnixNano": str(START + round(end * 1_000_000_000)),
        "attributes": pairs(attributes),
        "status": {} if error is None else {"code": 2, "message": error},
        **more,
    }
    if parent is not None:
        made["parentSpanId"] = f"{parent:016x}"
    return made


def text(role: str, content: str, finish: str | None = None) -> dict[str, Any]:
    """A message of one text part."""
    made: dict[str, Any] = {"role": role, "parts": [{"type": "text", "content": content}]}
    return made if finish is None else {**made, "finish_reason": finish}


def asks(call_id: str | None, name: str, **arguments: Any) -> dict[str, Any]:
    """An assistant message that makes one call."""
    part = {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
    return {"role": "assistant", "parts": [{key: value for key, value in part.items() if value is not None}]}


def gives(call_id: str | None, response: Any) -> dict[str, Any]:
    """A tool message with one result."""
    part = {"type": "tool_call_response", "id": call_id, "response": response}
    return {"role": "tool", "parts": [{key: value for key, value in part.items() if value is not None}]}


def chat(
    number: int,
    begin: float,
    end: float,
    history: list[Any] | None,
    answers: list[Any] | None,
    parent: int | None = 1,
    usage: tuple[int, int] | None = (10, 2),
    trace: str = TRACE,
    error: str | None = None,
    **attributes: Any,
) -> dict[str, Any]:
    """A model span of the current conventions; names in `attributes` have `__` for a dot."""
    named: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
    if history is not None:
        named["gen_ai.input.messages"] = json.dumps(history)
    if answers is not None:
        named["gen_ai.output.messages"] = json.dumps(answers)
    if usage is not None:
        named |= {"gen_ai.usage.input_tokens": usage[0], "gen_ai.usage.output_tokens": usage[1]}
    named |= {key.replace("__", "."): value for key, value in attributes.items()}
    return span(number, begin, end, named, parent, trace, error)


def tool(number: int, begin: float, end: float, name: str, parent: int | None = 1, **given: Any) -> dict[str, Any]:
    """A tool span; `call_id`, `arguments`, `result`, `error` and `trace` as given."""
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    for key, attribute in (("call_id", "id"), ("arguments", "arguments"), ("result", "result")):
        if key in given:
            value = given[key]
            named[f"gen_ai.tool.call.{attribute}"] = value if isinstance(value, str) else json.dumps(value)
    return span(number, begin, end, named, parent, given.get("trace", TRACE), given.get("error"))


def batch(spans: Iterable[dict[str, Any]], service: str = "desk") -> dict[str, Any]:
    """An export batch."""
    scope_spans = [{"scope": {"name": "demo"}, "spans": list(spans)}]
    return {
        "resourceSpans": [{"resource": {"attributes": pairs({"service.name": service})}, "scopeSpans": scope_spans}]
    }


def log(number: int, at: float, name: str, body: Any, trace: str = TRACE, **attributes: Any) -> dict[str, Any]:
    """A log record of a span."""
    return {
        "observedTimeUnixNano": str(START + round(at * 1_000_000_000)),
        "eventName": name,
        "body": any_value(body),
        "attributes": pairs({key.replace("__", "."): value for key, value in attributes.items()}),
        "traceId": trace,
        "spanId": f"{number:016x}",
    }


def logs(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """An export batch of log records."""
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": list(records)}]}]}


def parsed(*values: Any) -> list[Outcome]:
    """What the adapter makes of framed records."""
    records = []
    for number, value in enumerate(values):
        raw = json.dumps(value).encode()
        records.append(Record(*decode(raw)[:1], raw, number + 1, number * 1000))
    return list(Otlp().parse(iter(records), FileContext("/logs/spans.jsonl")))


def stored(outcomes: Iterable[Outcome]) -> list[StoredEvent]:
    """Fragments as the events table gives them back: written, copies dropped, read."""
    events: dict[str, StoredEvent] = {}
    for outcome in outcomes:
        if isinstance(outcome, Fragment):
            row = EventBatch(source="s", adapter="otlp", uri="/logs/spans.jsonl", batch_id="b")
            row.add(outcome)
            written, *_ = events_table([row.take()]).to_pylist()
            raw = written["payload"].encode()
            value, notes, mended = decode(raw)
            record = Record(value, raw, written["source_line"], written["source_offset"], notes, mended)
            at = instant(outcome.at).micros
            events.setdefault(
                written["record_key"], StoredEvent(outcome.key, record, outcome.link, at, "/logs/spans.jsonl")
            )
    return list(events.values())


def families(events: Sequence[StoredEvent]) -> list[list[StoredEvent]]:
    """Events whose keys share a link together, as `EventStore` gives them."""
    name = {event.key: event.key for event in events}
    for _ in events:
        for link, group in groupby(sorted(events, key=lambda event: event.link or ""), key=lambda event: event.link):
            if link is not None:
                keys = {event.key for event in group}
                least = min(name[key] for key in keys)
                name |= {key: least for key in name if name[key] in {name[other] for other in keys}}
    ordered = sorted(events, key=lambda event: (name[event.key], event.key, event.at or 0))
    return [list(group) for _, group in groupby(ordered, key=lambda event: name[event.key])]


def rows_of(*values: Any) -> list[Conversation]:
    """The conversations of framed records, by key and start."""
    made = [
        outcome
        for family in families(stored(parsed(*values)))
        for outcome in Otlp().assemble(family)
        if isinstance(outcome, Conversation)
    ]
    return sorted(made, key=lambda row: (str(row.native_id), row.branch != "", str(row.started_at), row.branch))


def ignored(*values: Any) -> dict[str, int]:
    """What the assembly of framed records ignores."""
    counts: dict[str, int] = {}
    for family in families(stored(parsed(*values))):
        for outcome in Otlp().assemble(family):
            if isinstance(outcome, Ignored):
                counts[outcome.rule] = counts.get(outcome.rule, 0) + outcome.n
    return counts


def spoken(row: Conversation) -> list[tuple[str, str]]:
    """Role and text of each message; a call as `name(arguments)`."""
    lines = []
    for message in row.messages:
        calls = "".join(f" {call.name}({json.dumps(call.arguments, sort_keys=True)})" for call in message.calls or ())
        lines.append((message.role, (message.content + calls).strip()))
    return lines


def write_lines(path: Path, values: Iterable[Any]) -> Path:
    """JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path
