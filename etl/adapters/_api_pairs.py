"""Envelopes of calls: `{request, response}` under any of their usual names, HAR, recordings, call logs of agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from etl.adapters._api_bodies import read_body
from etl.adapters._api_calls import Exchange, telling
from etl.adapters._api_choice import NO_CONVERSATION, kind_of
from etl.adapters._api_form import Body, arr, error_text, obj, text, without
from etl.adapters._api_gateways import (
    ENDS,
    MODELS,
    PROVIDERS,
    REQUESTS,
    RESPONSES,
    STARTS,
    STATUS,
    URLS,
    as_pair,
    counts,
    first,
    is_hidden,
    is_stored,
    number,
    pages,
    scope,
    stored,
    unwrapped,
)
from etl.adapters._api_lines import Lines, is_line, when
from etl.adapters._api_secrets import without_cookie, without_credentials
from etl.conversation import Ignored, Record, Tokens, Unusable

Found = Exchange | Unusable | Ignored

_BODIES = ("parsed_body", "body", "json", "data", "content")
_GEMINI = "generateContent"


def looks(value: Any) -> float:
    """How sure one value is a call, or a file of calls."""
    if type(value) is not dict:
        return 0.0
    entries = _units(value)
    if entries:
        return (
            0.95
            if any(kind_of(text(obj(obj(e).get("request")).get("url")) or _uri(e), None, None) for e in entries)
            else 0.4
        )
    if is_line(value) or _is_openhands(value) or _is_gemini(value):
        return 0.95
    if listed := pages(value):
        return max(map(looks, listed[:8]))
    if is_stored(value):
        return 0.75
    pair = unwrapped(value)
    if "custom_id" in value or ("key" in value and "contents" in obj(value.get("request"))):
        return 0.0  # a line of a batch job
    if pair is None:
        return 0.8 if _is_failure(value) else 0.0
    found = _pair((), pair)
    if not found.captured:
        return 0.8
    asked, answered = read_body(found.request), read_body(found.response)
    return 0.95 if kind_of(found.url, asked.value, telling(answered)) else 0.0


def exchanges(records: Iterable[Record]) -> Iterator[Found]:
    """The calls of a file. Requests and responses that are lines of their own are paired by their order."""
    lines = Lines()
    for record in records:
        if type(record.value) is dict and is_line(record.value):
            yield from lines.take(record)
        else:
            yield from _closed(record)
    yield from lines.end()


def _closed(record: Record) -> Iterator[Found]:
    value = record.value
    if type(value) is not dict:
        yield Unusable(record, "not_an_object", "a call is a JSON object with a request and a response; this is none")
    elif units := _units(value):
        yield from (_unit(record, unit) for unit in units)
    elif _is_openhands(value):
        yield _openhands(record, value)
    elif _is_gemini(value):
        rest = without(value, "method", "response")
        yield Exchange(
            (record,), None, value["response"], "gemini", log={**rest, "method": value["method"]}, captured=False
        )
    elif listed := pages(value):
        yield from (_listed(record, unit) for unit in listed)
    elif is_stored(value):
        yield _stored((record,), value)
    elif (pair := unwrapped(value)) is not None or _one_side(value):
        yield _pair((record,), pair or value)
    else:
        yield Unusable(record, "no_call", "the record has neither a request nor a response; see what wrote it")


def _is_failure(value: Body) -> bool:
    """Whether a record is a request that got no response: with an address that tells, and a status or an error."""
    if first(value, REQUESTS) is None or not (value.get("error") or first(value, STATUS)):
        return False
    found = _pair((), value)
    return found.url is not None and kind_of(found.url, None, None) is not None


def _one_side(value: Body) -> bool:
    return first(value, REQUESTS) is not None or first(value, RESPONSES) is not None


def _listed(record: Record, unit: Any) -> Found:
    """One record of a page."""
    if type(unit) is not dict:
        return Unusable(record, "not_an_object", "a call is a JSON object with a request and a response; this is none")
    pair = unwrapped(unit)
    if pair is None and not is_stored(unit) and not _one_side(unit):
        return Unusable(record, "no_call", "an item of the page has neither a request nor a response")
    made = _stored((record,), unit) if is_stored(unit) else _pair((record,), pair or unit)
    made.unit = unit
    return made


def _stored(records: tuple[Record, ...], value: Body) -> Exchange:
    """A response as OpenAI stores it; what was asked may be beside it."""
    asked, answered = stored(value)
    kinds = {"response": "openai_responses", "text_completion": "openai_completions"}
    return Exchange(
        records, asked, answered, kinds.get(str(value.get("object")), "openai_chat"), captured=asked is not None
    )


def _uri(entry: Any) -> str | None:
    return text(obj(obj(entry).get("request")).get("uri"))


def _units(value: Body) -> list[Any]:
    """The exchanges of a HAR file, or of a cassette written as JSON."""
    found = arr(obj(value.get("log")).get("entries")) or arr(value.get("interactions"))
    return found if any(type(obj(item).get("request")) is dict for item in found) else []


def _unit(record: Record, unit: Any) -> Found:
    """One exchange among many; what is no call of a model is passed over by name."""
    found = http_exchange((record,), unit)
    asked, answered = read_body(found.request), read_body(found.response)
    kind = kind_of(found.url, asked.value, answered.value)
    if kind is None or not (asked.value or asked.events or answered.value or answered.events):
        return Ignored("no_model_call")
    if kind in NO_CONVERSATION:
        return Ignored(kind)
    found.unit = unit
    return found


def http_exchange(records: tuple[Record, ...], unit: Any) -> Exchange:
    """An entry of a HAR file or an interaction of a cassette: request and response with headers and bodies."""
    entry = obj(unit)
    request, response = obj(entry.get("request")), obj(entry.get("response"))
    status = response.get("status")
    code = status if type(status) is int else obj(status).get("code")
    log = without(entry, "request", "response", "startedDateTime", "time", "timings", "cache", "recorded_at")
    log["request_headers"], log["response_headers"] = headers(request.get("headers")), headers(response.get("headers"))
    log["method"] = text(request.get("method"))
    return Exchange(
        records, _http_body(request, "postData"), _http_body(response, "content"),
        url=text(request.get("url")) or text(request.get("uri")), status=code if type(code) is int else None,
        at=when(entry.get("startedDateTime")) or when(entry.get("recorded_at")) or _date(log["response_headers"]),
        log=log,
    )  # fmt: skip


_HEADERS = frozenset({
    "date", "content-type", "user-agent", "x-request-id", "request-id", "openai-organization", "openai-processing-ms",
    "anthropic-version", "anthropic-beta", "x-amzn-requestid", "x-should-retry", "retry-after", "openai-version",
    "x-stainless-retry-count",
})  # fmt: skip


def headers(logged: Any) -> Body:
    """The headers that say something about a call, by lower-case name; credentials and transport are none of them."""
    pairs: list[tuple[Any, Any]] = []
    if type(logged) is dict:
        pairs = list(logged.items())
    elif logged and type(logged) is list and type(logged[0]) is str:
        pairs = list(zip(logged[::2], logged[1::2], strict=False))
    else:
        pairs = [(obj(item).get("name"), obj(item).get("value")) for item in arr(logged)]
    found: Body = {}
    for name, value in pairs:
        if type(name) is str and name.lower() in _HEADERS:
            values = [without_cookie(each) for each in (value if type(value) is list else [value])]
            found[name.lower()] = values[0] if len(values) == 1 else values
    return without_credentials(found)


def _date(found: Body) -> str | None:
    """The time of an exchange by its response's `Date`, where the log has none of its own."""
    try:
        return parsedate_to_datetime(text(found.get("date")) or "").isoformat()
    except ValueError:
        return None


def _http_body(side: Body, holder: str) -> Any:
    """The body of one side, whatever wraps it: HAR's `postData` and `content`, VCR's `body{string}`."""
    held = side.get(holder)
    if type(held) is dict and ("text" in held or "mimeType" in held):
        return held.get("text")
    for key in _BODIES:
        found = side.get(key)
        if found is not None:
            inner = obj(found)
            return next((inner[name] for name in ("string", "base64_string", "text") if name in inner), found)
    return None


def _is_http(side: Any) -> bool:
    """Whether one side of a pair is HTTP with headers and body, and not the body itself."""
    return (
        type(side) is dict
        and bool({"headers", "method", "url", "uri", "status", "status_code"} & side.keys())
        and (any(key in side for key in ("body", "parsed_body", "postData")))
    )


def _pair(records: tuple[Record, ...], value: Body) -> Exchange:
    """`{request, response, …}`: what is known by name goes to its place, all else to the log."""
    rest = as_pair(value)

    def take(keys: tuple[str, ...], *types: type) -> Any:
        for key in keys:
            if key in rest and type(rest[key]) in types:
                return rest.pop(key)
        return None

    asked, answered = first(rest, REQUESTS), first(rest, RESPONSES)
    request = rest.pop(asked) if asked else None
    response = rest.pop(answered) if answered else None
    url = take(("scope",), str) if "path" in value else None
    url = (url or "") + (take(URLS, str) or "")
    made = Exchange(records, request, response, url=url or None)
    status = next((rest.pop(key) for key in STATUS if type(number(rest.get(key))) is int), None)
    refused = _refused(rest, response) if status is None else None
    if _is_http(request):
        inner = http_exchange((), {"request": request})
        made.request, made.url = inner.request, made.url or inner.url
        rest["request_http"] = inner.log
    if _is_http(response):
        inner = http_exchange((), {"response": response})
        made.response, status = (
            inner.response,
            inner.status if inner.status is not None else obj(response).get("status_code", status),
        )
        rest["response_http"] = inner.log
    for key in ("rawHeaders", "reqheaders", "headers", "request_headers", "response_headers"):
        if key in rest:
            rest[key] = headers(rest[key])
    status = number(status)
    made.status = status if type(status) is int else None
    made.at = take(STARTS, str, int, float)
    if made.at is None:
        made.at = _date(obj(rest.get("rawHeaders")))
    made.ended_at = take(ENDS, str, int, float)
    made.model, made.provider = take(MODELS, str), (take(PROVIDERS, str) or "").lower() or None
    if made.model is not None:
        made.model = made.model.rpartition("/models/")[2]
    made.scope, made.usage = scope(rest), counts(rest)
    if "error" in rest or "error_message" in rest:
        made.error = error_text(rest.pop("error", None)) or text(rest.pop("error_message", None))
    made.error = made.error or refused
    if is_hidden(made.request):
        made.request, made.captured = None, False
    if is_hidden(made.response) and (made.response or not made.captured):
        made.response, made.captured = None, False
    if not made.captured and kind_of(made.url, None, None) is None:
        made.api = "prompted"
    made.log = rest
    return made


_FINE = frozenset({"success", "succeeded", "ok", "completed", "complete", "done", "finished", "pending", "running"})


def _refused(rest: Body, response: Any) -> str | None:
    """Why there is no response, where the status of a call is a sentence (batch predictions of Vertex AI)."""
    status = text(rest.get("status"))
    return status if status is not None and not response and status.lower() not in _FINE else None


def _is_gemini(value: Body) -> bool:
    method = value.get("method")
    return type(method) is str and method.startswith(_GEMINI) and "response" in value and "request" not in value


def _is_openhands(value: Body) -> bool:
    return (
        type(value.get("messages")) is list and type(value.get("response")) is dict and "call_type" not in value
        and ("kwargs" in value or "latency_sec" in value or "context_window" in value)
    )  # fmt: skip


def _openhands(record: Record, value: Body) -> Exchange:
    """`{messages, tools, kwargs, response, cost, timestamp, latency_sec}`: a call at its end."""
    kwargs = obj(value.get("kwargs"))
    request = {**{key: item for key, item in kwargs.items() if key != "tools"}, "messages": value["messages"]}
    request["tools"] = value.get("tools") or kwargs.get("tools")
    cost = value.get("cost")
    return Exchange(
        (record,), request, value["response"], "openai_chat", ended_at=when(value.get("timestamp")),
        at=when(value.get("timestamp")), usage=Tokens(cost_usd=cost) if type(cost) in (int, float) else None,
        log=without(value, "messages", "tools", "kwargs", "response", "timestamp", "cost"),
    )  # fmt: skip
