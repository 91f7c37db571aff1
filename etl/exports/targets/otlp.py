"""OpenTelemetry traces by the GenAI conventions."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from etl.exports.target import Example, Target
from etl.exports.targets._row import ROW_COLUMNS, opened, present, said

_SCHEMA = "https://opentelemetry.io/schemas/1.37.0"


class OtlpTraces(Target):
    """One batch a line, as the collector's file exporter writes it: a trace with a model span that holds the whole
    conversation, and a tool span for every call whose outcome or duration was logged.
    """

    name = "otlp"
    about = "OpenTelemetry GenAI conventions: OTLP JSON Lines, a trace a line, for tracing tools and other ETLs"
    imitates = False
    whole = True
    columns = ROW_COLUMNS

    def record(self, example: Example) -> dict[str, Any]:
        """The row as a batch of spans."""
        row = example.dialogue.row
        trace = row["rollout_id"].removeprefix("r_")
        chat = _span(
            trace, 1, None, f"chat {row['model'] or ''}".strip(), row["started_at"], row["ended_at"], _conversation(row)
        )
        spans = [chat, *_tool_spans(row, trace, chat)]
        resource = {"attributes": _attributes({"service.name": row["agent"] or row["source"]})}
        scope = {"scope": {"name": "rollout-etl"}, "spans": spans, "schemaUrl": _SCHEMA}
        return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _conversation(row: dict[str, Any]) -> dict[str, Any]:
    messages = [(message, _message(message, info)) for message, info in said(row)]
    instructions = None
    if messages and messages[0][0]["role"] == "system":
        instructions = messages.pop(0)[1]["parts"]
    answer = messages.pop()[1] if messages and messages[-1][0]["role"] == "assistant" else None
    if answer is not None:
        answer["finish_reason"] = row["finish_reason"] or "stop"
    usage = row["usage"] or {}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": row["provider"],
        "gen_ai.request.model": row["model"],
        "gen_ai.agent.name": row["agent"],
        "gen_ai.conversation.id": row["rollout_id"],
        "gen_ai.system_instructions": None if instructions is None else _text(instructions),
        "gen_ai.tool.definitions": row["tools"],
        "gen_ai.input.messages": _text([made for _, made in messages]),
        "gen_ai.output.messages": None if answer is None else _text([answer]),
        "error.type": "no_answer" if answer is None else None,
        "gen_ai.usage.input_tokens": usage.get("input_tokens"),
        "gen_ai.usage.output_tokens": usage.get("output_tokens"),
        "gen_ai.usage.cache_read.input_tokens": usage.get("cached_tokens"),
    }


def _message(message: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [part]}
    parts: list[dict[str, Any]] = []
    if message["reasoning_content"]:
        parts.append({"type": "reasoning", "content": message["reasoning_content"]})
    if message["content"] or not message["tool_calls"]:
        parts.append({"type": "text", "content": message["content"]})
    parts += [
        {
            "type": "tool_call",
            "id": call["id"],
            "name": call["function"]["name"],
            "arguments": opened(call["function"]["arguments"]),
        }
        for call in message["tool_calls"] or ()
    ]
    return {"role": message["role"], "parts": parts}


def _tool_spans(row: dict[str, Any], trace: str, chat: dict[str, Any]) -> list[dict[str, Any]]:
    """A span for each call that failed or was timed: messages do not say so."""
    spans = []
    for number, step in enumerate(row["steps"], 2):
        if step["actor"] == "user" or step["result_index"] is None:
            continue
        if step["status"] != "error" and (step["duration_ms"] is None or step["at"] is None):
            continue
        start = step["at"] or row["started_at"]
        end = start and start + dt.timedelta(milliseconds=step["duration_ms"] or 0)
        told = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": step["tool"],
            "gen_ai.tool.call.id": step["call_id"],
            "gen_ai.tool.call.arguments": step["arguments"],
            "gen_ai.tool.call.result": row["messages"][step["result_index"]]["content"],
            "error.type": (step["condition"] or "error") if step["status"] == "error" else None,
        }
        span = _span(trace, number, chat["spanId"], f"execute_tool {step['tool']}", start, end, told)
        if step["status"] == "error":
            span["status"] = present({"code": 2, "message": step["error"]})
        spans.append(span)
    return spans


def _span(
    trace: str, number: int, parent: str | None, name: str, start: Any, end: Any, attributes: dict[str, Any]
) -> dict[str, Any]:
    times = {"startTimeUnixNano": _nanoseconds(start), "endTimeUnixNano": _nanoseconds(end or start)}
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        **({"parentSpanId": parent} if parent else {}),
        "name": name,
        "kind": 3 if parent is None else 1,
        **present(times),
        "attributes": _attributes(attributes),
        "status": {},
    }


def _nanoseconds(at: dt.datetime | None) -> str | None:
    if at is None:
        return None
    past = at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return str((past.days * 86_400 + past.seconds) * 1_000_000_000 + past.microseconds * 1_000)


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if type(value) is int else {"stringValue": value}}
        for key, value in values.items()
        if value is not None
    ]


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
