"""Attributes of MLflow's spans, each JSON text in the log, as plain values without what they say twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from etl.adapters._api_openai import CHAT
from etl.adapters._usage import tokens
from etl.decode import JsonError, decode

INPUTS, OUTPUTS = "mlflow.spanInputs", "mlflow.spanOutputs"
REQUEST_ID = "mlflow.traceRequestId"
_USAGE, _COST, _MODEL = "mlflow.chat.tokenUsage", "mlflow.llm.cost", "mlflow.llm.model"
_REPEATS = ("mlflow.chat.messages", "mlflow.chat.tools")
"""The request once more, in MLflow's own form."""
CHUNK = "mlflow.chunk.item."
"""Events of a stream: the response is put together in the span's outputs, its text alone in some versions."""


def is_mlflow(attributes: Mapping[str, Any]) -> bool:
    """Whether attributes are those of a span of MLflow."""
    return INPUTS in attributes or "mlflow.spanType" in attributes or REQUEST_ID in attributes


def values(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes opened; what merely repeats a key of the inputs is said once, token counts by their column.

    >>> values({"mlflow.spanType": '"LLM"', "mlflow.spanInputs": '{"model": "m"}', "model": '"m"', "stream": "null"})
    {'mlflow.spanType': 'LLM', 'mlflow.spanInputs': {'model': 'm'}, 'mlflow.llm.model': 'm'}
    """
    plain = {key: read(value) for key, value in attributes.items()}
    made = {key: value for key, value in plain.items() if value is not None}
    asked, said = made.get(INPUTS), made.get(OUTPUTS)
    if isinstance(asked, dict):
        for key in [key for key in made if key in asked and made[key] == asked[key]]:
            del made[key]
        for key in _REPEATS:
            made.pop(key, None)
    _name_model(made, asked, said)
    usage = made.pop(_USAGE, None)
    if isinstance(usage, dict) and not (isinstance(said, dict) and tokens(said.get("usage")) is not None):
        made.update(_counts(usage, made.get("mlflow.message.format")))
    cost = made.pop(_COST, None)
    if isinstance(cost, dict):
        made.update({f"{_COST}.{key}": amount for key, amount in cost.items()})
    return made


def _name_model(made: dict[str, Any], asked: Any, said: Any) -> None:
    """The model that answered, which older versions log in the response alone; the one asked for where it differs."""
    named = [body["model"] for body in (said, asked) if isinstance(body, dict) and isinstance(body.get("model"), str)]
    if named:
        made.setdefault(_MODEL, named[0])
        if named[-1] != made[_MODEL]:
            made.setdefault("request.model", named[-1])


def read(value: Any) -> Any:
    """The value of JSON text; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return decode(value.encode("utf-8", "surrogatepass")).value
    except JsonError:
        return value


def complete(said: Any, events: Sequence[Mapping[str, Any]]) -> None:
    """Give a response what the pieces of its stream have and it has not (its calls), where all of them are there."""
    choices = said.get("choices") if isinstance(said, dict) else None
    pieces: dict[str, Any] = {}
    for event in events:
        name, fields = str(event.get("name")), event.get("attributes")
        if name.startswith(CHUNK) and isinstance(fields, dict):
            pieces[name.removeprefix(CHUNK)] = read(fields.get("mlflow.chunk.value"))
    listed = [pieces.get(str(number)) for number in range(len(pieces))]
    chunks = [item for item in listed if isinstance(item, dict) and isinstance(item.get("choices"), list)]
    if not isinstance(choices, list) or len(chunks) < len(listed):
        return
    joined = {item.get("index"): item.get("message") for item in CHAT.joined(chunks).get("choices", ())}
    for choice in choices:
        message = choice.get("message") if isinstance(choice, dict) else None
        whole = joined.get(choice.get("index")) if isinstance(message, dict) else None
        if isinstance(message, dict) and isinstance(whole, dict):
            message.update({key: item for key, item in whole.items() if message.get(key) in (None, "", [])})


def _counts(usage: Mapping[str, Any], style: Any) -> dict[str, Any]:
    """Counts by name; Anthropic's input does not hold what was cached."""
    made = {f"{_USAGE}.{key}": count for key, count in usage.items() if key != "total_tokens"}
    fresh = usage.get("input_tokens")
    if style == "anthropic" and type(fresh) is int:
        beside = (usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens"))
        made[f"{_USAGE}.input_tokens"] = fresh + sum(count for count in beside if type(count) is int)
    return made
