"""What gateways and platforms put around a call: names of fields, pages, wrappers, counts, whose call it was.

Helicone (exports and pages of its query API), Portkey (log exports), Cloudflare AI Gateway (Logpush and its API),
OpenRouter (generations with their content), Vertex AI (the BigQuery table of request-response logging), OpenAI and
Azure (stored completions), OpenPipe; and log stores that keep the record under a key of theirs.
"""

from __future__ import annotations

import re
from typing import Any

from etl.adapters._api_form import Body, arr, count, obj, text, without
from etl.adapters._chat import parsed
from etl.conversation import Tokens

REQUESTS = (
    "request", "request_body", "requestBody", "RequestBody", "full_request", "req", "body", "request_payload",
    "requestPayload", "request_json", "request_data", "raw_request", "llm_request", "model_request", "api_request",
    "upstream_request", "upstream_request_body", "req_body", "modelInput",
)  # fmt: skip
RESPONSES = (
    "response", "response_body", "responseBody", "ResponseBody", "full_response", "res", "response_payload",
    "responsePayload", "response_json", "response_data", "raw_response", "llm_response", "model_response",
    "api_response", "upstream_response", "upstream_response_body", "res_body", "resp", "resp_body", "modelOutput",
)  # fmt: skip
URLS = (
    "uri", "url", "endpoint", "request_url", "target_url", "request_path", "path", "Endpoint", "route",
)  # fmt: skip
STATUS = (
    "status", "status_code", "response_status", "statusCode", "http_status", "StatusCode", "response_status_code",
    "ResponseStatus",
)  # fmt: skip
STARTS = (
    "started_at", "start_time", "startTime", "request_created_at", "timestamp", "logging_time", "created_at",
    "createdAt", "CreatedAt", "Datetime", "time", "ts", "ts_start_ms", "timestamp_ms", "request_time", "event_time",
    "TimeGenerated",
)  # fmt: skip
ENDS = (
    "ended_at", "end_time", "endTime", "completed_at", "response_created_at", "finished_at", "ts_end_ms",
    "processed_time",
)  # fmt: skip
MODELS = ("model", "model_name", "Model", "ai_model", "response_model", "request_model")
PROVIDERS = ("provider", "Provider", "provider_name", "ai_org")
COSTS = ("cost_usd", "costUSD", "total_cost", "response_cost")
SCOPES = (
    "session_id", "sessionId", "conversation_id", "thread_id", "user_id", "helicone_user", "request_user_id",
)  # fmt: skip
_PROPERTIES = ("properties", "request_properties", "metadata", "Metadata")
_SESSIONS = (
    "Helicone-Session-Id",
    "session_id",
    "sessionId",
    "conversation_id",
    "_session",
    "_user",
    "user_id",
    "user",
)
_WRAPPERS = ("attributes", "payload", "data", "_source", "jsonPayload", "log", "event", "message", "record", "detail")
_PAGES = ("result", "results", "data", "items", "logs", "records", "rows", "hits")
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?$")
_STORED = frozenset({"chat.completion", "text_completion", "response"})
_INPUTS = (
    "prompt_tokens", "tokens_in", "TokensIn", "req_units", "native_tokens_prompt", "tokens_prompt", "input_tokens",
)  # fmt: skip
_OUTPUTS = (
    "completion_tokens", "tokens_out", "TokensOut", "res_units", "native_tokens_completion", "tokens_completion",
    "output_tokens",
)  # fmt: skip


def first(value: Body, keys: tuple[str, ...]) -> str | None:
    """The first of these keys that has a value."""
    for key in keys:
        if key in value and value[key] is not None:
            return key
    return None


def pages(value: Body) -> list[Any]:
    """The records of a page that an API gave: `{result: […]}`, `{object: list, data: […]}`."""
    if first(value, REQUESTS) and first(value, RESPONSES):
        return []
    for key in _PAGES:
        found = arr(value.get(key))
        if found and type(found[0]) is dict and (unwrapped(found[0]) is not None or is_stored(found[0])):
            return found
    return []


def unwrapped(value: Body) -> Body | None:
    """The record that has request and response: itself, or one under a key of the log store that keeps it."""
    if is_pair(value):
        return value
    for key in _WRAPPERS:
        held = value.get(key)
        inner = parsed(held) if type(held) is str and held[:1] == "{" else held
        if type(inner) is dict and is_pair(inner):
            return {**inner, **{outer: item for outer, item in value.items() if outer != key and outer not in inner}}
    return None


def is_pair(value: Body) -> bool:
    """Whether a record has a request and a response under any of their names."""
    if first(value, REQUESTS) is not None and first(value, RESPONSES) is not None:
        return True
    return _in_out(value) is not None


def as_pair(value: Body) -> Body:
    """The record with its bodies as `request` and `response`, where they have names or forms of the platform's own."""
    found = _in_out(value)
    if found is not None:
        asked, answered = found
        return {**{key: item for key, item in value.items() if key not in ("input", "output")},
                "request": asked, "response": answered}  # fmt: skip
    made = dict(value)
    if method := text(made.pop("api_method", None)):  # Vertex: the endpoint, and what was called at it
        made.setdefault("provider", "vertex")
        made["endpoint"] = f"{text(made.get('endpoint')) or text(made.get('model')) or ''}:{method}"
    for names in (REQUESTS, RESPONSES):
        key = first(made, names)
        if key is not None:
            made[key] = _body(made[key])
    if first(made, REQUESTS) and first(made, RESPONSES):
        made.pop("llmSchema", None)  # Helicone's own form of both bodies
    return made


def _body(held: Any) -> Any:
    """A body as Vertex (a list of texts), Helicone (a stream and what it came to) and Portkey (JSON text) hold it."""
    if type(held) is list and held and all(type(item) is str for item in held):
        values = [parsed(item) for item in held]
        if any(value is None for value in values):
            return "\n".join(held)
        return values[0] if len(values) == 1 else values
    if type(held) is str and held[:1] == "{":
        inner = parsed(held)
        held = inner if type(inner) is dict else held
    streamed = obj(held).get("streamed_data")
    if streamed and len(obj(held)) <= 2:
        return _body(streamed)
    return held


def is_hidden(body: Any) -> bool:
    """Whether a gateway encrypted a body (Cloudflare, with the customer's key), or says that it left it out."""
    held = obj(body)
    if held.get("type") == "encrypted" and "iv" in held:
        return True
    return type(body) is dict and held.keys() <= {"helicone_message", "_redacted", "redacted"}


def _in_out(value: Body) -> tuple[Body, Any] | None:
    """`{input, output}` where they are bodies of a chat call; OpenRouter's output is `{completion, reasoning}`."""
    asked, answered = value.get("input"), value.get("output")
    if type(answered) is not dict:
        return None
    if type(asked) is list and asked and "role" in obj(asked[0]):
        asked = {"messages": asked}
    if type(asked) is not dict or not (type(asked.get("messages")) is list or type(asked.get("prompt")) is str):
        return None
    if type(answered.get("completion")) is str and "choices" not in answered:
        said = {"role": "assistant", "content": answered["completion"], "reasoning": answered.get("reasoning")}
        rest = without(answered, "completion", "reasoning")
        return asked, {**rest, "choices": [{"index": 0, "message": said, "finish_reason": value.get("finish_reason")}]}
    if type(answered.get("choices")) is list or answered.get("error") is not None:
        return asked, answered
    return None


def is_stored(value: Body) -> bool:
    """Whether a record is a response as OpenAI stores it: with or without what was asked."""
    held = value.get("object")
    return type(held) is str and held in _STORED and (type(value.get("choices")) is list or _has_output(value))


def _has_output(value: Body) -> bool:
    return value.get("object") == "response" and type(value.get("output")) is list


def stored(value: Body) -> tuple[Body | None, Body]:
    """What was asked, where the export put it beside the response; and the response."""
    response = dict(value)
    key = "input" if _has_output(value) else "messages"
    given = next((response.pop(name) for name in (key, "input_items", "input", "messages") if name in response), None)
    listed = given if type(given) in (list, str) else arr(obj(given).get("data"))
    if not listed:
        return None, response
    settings = {name: response.pop(name) for name in ("tools", "instructions") if response.get(name)}
    return {"model": value.get("model"), key: listed, **settings}, response


def counts(rest: Body) -> Tokens | None:
    """Counts beside the bodies, for where the response has none; reads and writes of a cache are told apart."""

    def one(keys: tuple[str, ...]) -> int | None:
        return next((found for key in keys if (found := count(number(rest.get(key)))) is not None), None)

    cost = next((paid for key in COSTS if (paid := number(rest.get(key))) is not None), None)
    if cost is None and "cost_currency" not in rest:
        cost = number(rest.get("cost"))  # Portkey gives cents, and a currency beside
    found = Tokens(
        one(_INPUTS), one(_OUTPUTS), one(("prompt_cache_read_tokens",)), one(("prompt_cache_write_tokens",)),
        one(("reasoning_tokens", "native_tokens_reasoning")), cost,
    )  # fmt: skip
    return found if found != Tokens() else None


def number(value: Any) -> int | float | None:
    """A number, or one as a cell of a table has it: as text."""
    if type(value) is str and _NUMBER.match(value):
        return float(value) if "." in value else int(value)
    return value if type(value) in (int, float) else None


def scope(rest: Body) -> str | None:
    """Whose call it was: the session or user that the record, or the properties on it, name."""
    found = [name for key in SCOPES if key in rest and (name := text(rest[key]))]
    for key in _PROPERTIES:
        held = rest.get(key)
        if held:
            properties = obj(parsed(held) if type(held) is str and held[:1] == "{" else held)
            found += [name for key in _SESSIONS if key in properties and (name := text(properties[key]))]
    return "/".join(dict.fromkeys(found[:2])) or None
