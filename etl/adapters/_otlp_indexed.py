"""Dialects that number a conversation in attribute names: OpenLLMetry (Traceloop) and OpenInference (Phoenix, Arize).

And the exchange: request and response whole, in one attribute each.
"""

from __future__ import annotations

from typing import Any

import msgspec

from etl.adapters._otlp_exchange import about_response, beyond, request, response
from etl.adapters._otlp_messages import messages
from etl.adapters._otlp_span import opened
from etl.adapters._otlp_turn import Reader, Turn, choices
from etl.adapters._otlp_values import put
from etl.conversation import Message


def openllmetry(reader: Reader) -> Turn | None:
    """`gen_ai.prompt.N.role`, `.content`, `.tool_calls.M.…`, `gen_ai.completion.N.…`, `llm.request.functions.N.…`."""
    history = [made for item in reader.numbered("gen_ai.prompt") for made in messages(_said(item))]
    answers = [messages(_said(item), "assistant") for item in reader.numbered("gen_ai.completion")]
    if not history and not answers:
        return None
    tools = [_definition(item) for item in reader.numbered("llm.request.functions")]
    return reader.turn(history, answers, tools)


def _said(item: Any) -> Any:
    """A message of attributes: these hold no null, so that an absent content is an empty one."""
    return {"content": "", **item} if isinstance(item, dict) and not item.keys() & {"contents", "parts"} else item


def _definition(item: Any) -> Any:
    """A tool whose parameters are JSON text."""
    if not isinstance(item, dict):
        return item
    return {key: opened(value) if key in ("parameters", "input_schema") else value for key, value in item.items()}


def openinference(reader: Reader) -> Turn | None:
    """`llm.input_messages.N.message.…` flat, half nested or nested; `llm.prompts`, `llm.choices`; `llm.tools`."""
    history = _spoken(reader.listed("llm.input_messages"), "user")
    answered = _spoken(reader.listed("llm.output_messages"), "assistant")
    several = _several(reader.span.attributes.get("llm.invocation_parameters"))
    answers = choices(answered, several)
    prompts: list[Message] = []
    if not history and not answered:
        prompts = _texts(reader.listed("llm.prompts"), "prompt", "user")
        answers = [[made] for made in _texts(reader.listed("llm.choices"), "completion", "assistant")]
        prompts = prompts or (_token_prompts(reader.span.attributes.get("input.value")) if answers else [])
        history = prompts
    if not history and not answers:
        return None
    tools = [_schema(item) for item in reader.listed("llm.tools")]
    given = reader.take("input.value")
    if isinstance(given, dict):
        whole = request(given).history
        history = whole if _tells_more(whole, history) else history
        _complete(history, whole)
    said = reader.take("output.value")
    about = about_response(said)
    if isinstance(said, dict):
        for answer, whole in zip(answers, response(said), strict=False):
            _complete(answer, whole)
    reader.used.update({"input.mime_type", "output.mime_type"} & reader.span.attributes.keys())
    turn = reader.turn(history, answers, tools)
    if turn is not None:
        turn.response_id = about.get("id")
        put(turn.rest, output=about.get("rest"))
        if len(prompts) > 1:
            turn = _batch(turn, prompts)
    return turn


def _token_prompts(asked: Any) -> list[Message]:
    """The prompts of a completion request that gave tokens and no text."""
    given = opened(asked)
    listed = given.get("prompt") if isinstance(given, dict) else None
    if not isinstance(listed, list) or not listed:
        return []
    several = listed if all(isinstance(item, list) for item in listed) else [listed]
    if not all(type(token) is int for prompt in several for token in prompt):
        return []
    return [Message("user", parts=[{"type": "token_ids", "token_ids": prompt}]) for prompt in several]


def _batch(turn: Turn, prompts: list[Message]) -> Turn:
    """Several prompts in one request: each is a turn of its own, with its share of the choices, which come in order."""
    each, over = divmod(len(turn.answers), len(prompts))
    if over:
        return turn
    parts = [
        msgspec.structs.replace(turn, inputs=[prompt], answers=turn.answers[number * each : (number + 1) * each])
        for number, prompt in enumerate(prompts)
    ]
    parts[0].batch = parts
    return parts[0]


def _spoken(items: list[Any], role: str) -> list[Message]:
    found: list[Message] = []
    for item in items:
        value = item.get("message", item) if isinstance(item, dict) else item
        value = _said(value)
        if isinstance(value, dict) and isinstance(value.get("function_call_name"), str):
            arguments = value.get("function_call_arguments_json")
            value = {**value, "function_call": {"name": value["function_call_name"], "arguments": arguments}}
            del value["function_call_name"]
            value.pop("function_call_arguments_json", None)
        found += messages(value, role)
    return found


def _several(parameters: Any) -> bool:
    """Whether more than one choice was asked for."""
    asked = opened(parameters)
    return isinstance(asked, dict) and type(asked.get("n")) is int and asked["n"] > 1


def _texts(items: list[Any], wrapper: str, role: str) -> list[Message]:
    found = []
    for item in items:
        inner = item.get(wrapper, item) if isinstance(item, dict) else item
        found += messages(inner.get("text", "") if isinstance(inner, dict) else inner, role)
    return found


def _schema(item: Any) -> Any:
    """A tool definition: `tool.json_schema` is JSON text."""
    inner = item.get("tool", item) if isinstance(item, dict) else item
    return opened(inner.get("json_schema", inner)) if isinstance(inner, dict) else opened(inner)


def _tells_more(whole: list[Message], told: list[Message]) -> bool:
    """Whether the request itself has results of calls that the numbered attributes leave out, and all that these have:
    several results in one message have one name there, so that the last one replaced the others.
    """
    answered, kept = ([each for each in history if each.role == "tool"] for history in (whole, told))
    names = {message.call_id for message in answered} - {None}
    if not names > {message.call_id for message in kept}:
        return False
    return [m.content for m in whole if m.role != "tool"] == [m.content for m in told if m.role != "tool"]


def _complete(told: list[Message], whole: list[Message]) -> None:
    """Add what only the provider's own format has (audio, why a response ended), message by message.

    `input.value` and `output.value` of a model span are the whole request and response once more; beyond this they say
    nothing new and are left out.
    """
    if len(told) != len(whole):
        return
    for message, other in zip(told, whole, strict=True):
        if message.role == other.role:
            message.parts = message.parts or other.parts
            message.finish_reason = message.finish_reason or other.finish_reason
            message.reasoning = message.reasoning or other.reasoning


EXCHANGES = (
    ("input.value", "output.value"),
    ("langfuse.observation.input", "langfuse.observation.output"),
    ("traceloop.entity.input", "traceloop.entity.output"),
    ("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),
    ("mlflow.spanInputs", "mlflow.spanOutputs"),
)
"""Attributes that hold a request and its response, of any framework."""


def exchange(reader: Reader) -> Turn | None:
    """Request and response as the framework saw them, in one attribute each."""
    for asked, answered in EXCHANGES:
        given, said = reader.take(asked), reader.take(answered)
        given, said = given if given != {} else None, said if said != {} else None
        if given is not None or said is not None:
            made, about = request(given), about_response(said)
            reader.used.update({"input.mime_type", "output.mime_type"} & reader.span.attributes.keys())
            turn = reader.turn(made.history, beyond(made.history, response(said)), made.tools)
            if turn is not None:
                turn.shaped = made.shaped
                turn.response_id, turn.finish, turn.usage = (about.get(key) for key in ("id", "finish_reason", "usage"))
                put(turn.rest, input=dict(made.rest), output=about.get("rest"))
            return turn
    return None
