"""Traces of the OpenAI Agents SDK as its own processors export them, in the terms of the GenAI conventions.

`{"object": "trace", id, workflow_name, group_id, metadata}` (perhaps with its `spans`) and `{"object": "trace.span",
id, trace_id, parent_id, started_at, ended_at, error, span_data}`, where `span_data.type` says what the span is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etl.adapters._otlp_outside import EVALUATION
from etl.adapters._otlp_values import identifier, put

_NAMES = (("trace", "trace_id"), ("id", "id"), ("parent", "parent_id"))
_USAGE = ("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens")
_SPAN = frozenset({"object", "id", "trace_id", "parent_id", "started_at", "ended_at", "span_data", "error"})
_TRACE = frozenset({"object", "id", "trace_id", "spans", "group_id", "data"})


def is_trace(value: Any) -> bool:
    """Whether an object is a trace of the SDK."""
    if not isinstance(value, dict):
        return False
    told = value.get("object") == "trace" or isinstance(value.get("workflow_name"), str)
    return told and trace_id(value) is not None


def trace_id(value: Mapping[str, Any]) -> str | None:
    """The id of a trace."""
    return identifier(value.get("id")) or identifier(value.get("trace_id"))


def is_span(value: Any) -> bool:
    """Whether an object is a span of the SDK."""
    if not isinstance(value, dict) or not isinstance(value.get("span_data"), dict):
        return False
    return value.get("object") == "trace.span" or ("started_at" in value and "type" in value["span_data"])


def trace_form(value: Mapping[str, Any]) -> dict[str, Any]:
    """The stored form of a trace: its group is the conversation."""
    form: dict[str, Any] = {"signal": "trace", "trace": trace_id(value)}
    info: dict[str, Any] = {}
    put(info, **{key: item for key, item in value.items() if key not in _TRACE})
    group = value.get("group_id")
    put(form, session=group if isinstance(group, str) else None, info=info)
    return form


def span_form(value: Mapping[str, Any], trace: Any = None) -> dict[str, Any]:
    """The normal form of a span (`_otlp_shapes.py`); `trace` is what its holder says."""
    data: Mapping[str, Any] = value["span_data"]
    kind = data.get("type")
    form: dict[str, Any] = {"signal": "span"}
    names = {"generation": "generation", "response": "response", "handoff": f"handoff to {data.get('to_agent')}"}
    name = data.get("name") or names.get(str(kind)) or kind
    put(form, **{name: identifier(value.get(key)) for name, key in _NAMES})
    if "trace" not in form:
        put(form, trace=identifier(trace))
    put(form, name=name if isinstance(name, str) else None, start=value.get("started_at"), end=value.get("ended_at"))
    error = value.get("error")
    if isinstance(error, dict):
        form["status"] = {"code": "error"}
        put(form["status"], message=error.get("message"))
    attributes, used = _attributes(str(kind), data)
    left: dict[str, Any] = {}
    put(left, **{key: item for key, item in data.items() if key not in used and key != "type"})
    put(attributes, **{f"agents.{key}": item for key, item in left.items()})
    put(form, attributes=attributes)
    if kind == "guardrail":
        verdict = {"name": data.get("name"), "score.value": float(data.get("triggered") is True)}
        put(verdict, **{"score.label": "triggered" if data.get("triggered") is True else "passed"})
        form["events"] = [{"name": EVALUATION, "attributes": {f"gen_ai.evaluation.{k}": v for k, v in verdict.items()}}]
    rest: dict[str, Any] = {}
    put(rest, **{key: item for key, item in value.items() if key not in _SPAN})
    if isinstance(error, dict) and error.get("data"):
        rest["error_data"] = error["data"]
    put(form, rest=rest)
    return form


def _attributes(kind: str, data: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Attributes of the conventions for a kind of span, and the keys they were made of."""
    made: dict[str, Any] = {}
    if kind == "generation":
        put(made, **{"gen_ai.operation.name": "chat", "gen_ai.request.model": data.get("model")})
        put(made, **{"input.value": data.get("input"), "output.value": data.get("output")})
        put(made, **{"llm.invocation_parameters": data.get("model_config")}, **_usage(data.get("usage")))
        return made, {"input", "output", "model", "model_config", "usage"}
    if kind == "response":
        response = data.get("response")
        whole = response if isinstance(response, dict) else {}
        put(made, **{"gen_ai.operation.name": "chat", "gen_ai.response.id": data.get("response_id", whole.get("id"))})
        put(made, **{"gen_ai.request.model": whole.get("model"), "input.value": _asked(data, whole)})
        put(made, **{"output.value": response}, **_usage(data.get("usage", whole.get("usage"))))
        return made, {"response_id", "response", "input", "usage"}
    if kind == "function":
        put(made, **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": data.get("name")})
        put(made, **{"gen_ai.tool.call.arguments": data.get("input"), "gen_ai.tool.call.result": data.get("output")})
        return made, {"name", "input", "output"}
    if kind == "agent":
        put(made, **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": data.get("name")})
        return made, {"name"}
    return made, {"name", "triggered"} if kind == "guardrail" else {"name"}


def _asked(data: Mapping[str, Any], response: Mapping[str, Any]) -> Any:
    """What a response was asked: the instructions and tools stand in the response."""
    given = data.get("input")
    if given is None:
        return None
    asked: dict[str, Any] = {"input": given}
    put(asked, instructions=response.get("instructions"), tools=response.get("tools"))
    return asked


def _usage(usage: Any) -> dict[str, Any]:
    """Token counts, under either pair of names."""
    if not isinstance(usage, dict):
        return {}
    made = {f"gen_ai.usage.{key}": usage[key] for key in _USAGE if usage.get(key) is not None}
    for group, name, key in (
        ("input_tokens_details", "cached_tokens", "cache_read.input_tokens"),
        ("output_tokens_details", "reasoning_tokens", "reasoning.output_tokens"),
    ):
        details = usage.get(group)
        if isinstance(details, dict) and details.get(name) is not None:
            made[f"gen_ai.usage.{key}"] = details[name]
    return made
