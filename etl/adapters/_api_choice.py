"""Which API a call is of: by its address where there is one, else by the shape of its bodies."""

from __future__ import annotations

import functools
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from etl.adapters._api_anthropic import ANTHROPIC
from etl.adapters._api_cohere import COHERE
from etl.adapters._api_converse import CONVERSE
from etl.adapters._api_form import Body, arr, obj
from etl.adapters._api_gemini import GEMINI
from etl.adapters._api_openai import CHAT, COMPLETIONS
from etl.adapters._api_prompted import OLLAMA, PROMPTED
from etl.adapters._api_responses import RESPONSES

CODECS = {
    codec.name: codec for codec in (CHAT, COMPLETIONS, RESPONSES, ANTHROPIC, GEMINI, CONVERSE, PROMPTED, OLLAMA, COHERE)
}

NO_CONVERSATION = {
    "embeddings": "an embedding: numbers for a text, no conversation",
    "moderation": "a moderation check",
    "token_count": "tokens counted, nothing said",
    "files": "a file sent or fetched",
    "models": "a list of models, or one model's card",
    "media": "a picture or sound made or transcribed",
    "batches": "a batch job's state; its calls are in the batch's own files",
    "fine_tuning": "a training job's state",
    "assistants": "the Assistants API: objects kept at the provider and polled, not calls with a history",
    "compaction": "a history turned into an encrypted summary at the provider",
    "rerank": "documents ranked, nothing said",
    "telemetry": "traces or metrics sent to somebody",
    "cached_content": "a prefix kept at the provider for later calls",
}
"""Rule → what a call under it is: no conversation."""

_PATHS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"/(chat/)?embed(dings?)?$|:(batch)?embedContents?$|/embed$|/embeddings/", "embeddings"),
        (r"/moderations$", "moderation"),
        (r"/count_tokens$|/responses/input_tokens$|:countTokens$|/count-tokens$|/tokenize$", "token_count"),
        (r"/responses/compact$", "compaction"),
        (r"/files(/|$)|/uploads(/|$)|/vector_stores|/fileSearchStores|:importFile", "files"),
        (r"/images/|/audio/|/videos|:predict", "media"),
        (r"/batches(/|$)|/message_batches|/messages/batches", "batches"),
        (r"/fine_?tuning", "fine_tuning"),
        (r"/threads(/|$)|/assistants(/|$)", "assistants"),
        (r"/rerank$", "rerank"),
        (r"/traces(/|$)|/metrics(/|$)|/logs$", "telemetry"),
        (r"/cachedContents", "cached_content"),
        (r"/chat/completions(/[^/]+)?$", CHAT.name),
        (r"/responses(/[^/]+(/cancel)?)?$", RESPONSES.name),
        (r"/completions$", COMPLETIONS.name),
        (r"/v1/messages$|/messages$|:(streamR|r)awPredict$", ANTHROPIC.name),
        (r":(streamG|g)enerateContent$", GEMINI.name),
        (r"/converse(-stream)?$", CONVERSE.name),
        (r"/api/(chat|generate)$", OLLAMA.name),
        (r"/v[12]/(chat|generate)$", COHERE.name),
        (r"/models(/[^/:]+)?$|/api/tags$", "models"),
    )
)
_BEDROCK = re.compile(r"/model/([^/]+)/(?:invoke|converse)")
_NAMED = re.compile(r"/(?:models|deployments)/([^/:]+)")


def kind_of(url: str | None, request: Any, response: Any) -> str | None:
    """The name of a codec, of a rule in `NO_CONVERSATION`, or None where nothing tells.

    >>> kind_of("https://api.openai.com/v1/embeddings", {}, {})
    'embeddings'
    >>> kind_of(None, {"contents": []}, {})
    'gemini'
    """
    return _by_path(url) or streamed(response) or _by_shape(obj(request), obj(response))


@functools.lru_cache(4096)
def _by_path(url: str | None) -> str | None:
    path = unquote(_parts(url)[1])
    path = path if path.startswith("/") else f"/{path}"
    return next((name for pattern, name in _PATHS if pattern.search(path)), None)


def _parts(url: str | None) -> tuple[str, str]:
    """Host and path of an address; empty where it is none."""
    try:
        parts = urlsplit(url or "")
        return parts.hostname or "", parts.path
    except ValueError:
        return "", ""


_EVENTS = {
    **dict.fromkeys(
        ("message_start", "message_delta", "content_block_start", "content_block_delta", "message_stop"), ANTHROPIC.name
    ),
    **dict.fromkeys(
        ("message-start", "message-end", "content-delta", "tool-call-start", "stream-start", "text-generation"),
        COHERE.name,
    ),
}
"""Type of a stream's event → whose stream it is."""
_KEYED_EVENTS = frozenset({"messageStart", "contentBlockStart", "contentBlockDelta", "messageStop"})


def streamed(event: Any) -> str | None:
    """The codec whose stream an event is of, where the event tells by itself.

    >>> streamed({"type": "message_start", "message": {}}), streamed({"type": "ping"})
    ('anthropic_messages', None)
    """
    value = obj(event)
    kind = value.get("type", value.get("event_type"))
    if type(kind) is str:
        if kind.startswith("response.") and value.keys() & {"response", "sequence_number", "item_id"}:
            return RESPONSES.name if "event_id" not in value else None  # else of a realtime session
        return _EVENTS.get(kind)
    if value.get("object") == "chat.completion.chunk":
        return CHAT.name
    return CONVERSE.name if value.keys() & _KEYED_EVENTS else None


_OBJECTS = {
    "file": "files", "vector_store": "files", "upload": "files", "model": "models", "batch": "batches",
    "fine_tuning.job": "fine_tuning", "thread": "assistants", "assistant": "assistants", "thread.run": "assistants",
    "thread.message": "assistants", "embedding": "embeddings",
}  # fmt: skip
"""`object` of a response → the rule that it falls under."""
_COUNTED = frozenset({
    "input_tokens", "object", "totalTokens", "promptTokensDetails", "totalBillableCharacters", "inputTokens",
})  # fmt: skip
"""Keys of a response that only counts."""


def _no_conversation(response: Body) -> str | None:
    """What a response is that answers no question, told by its shape."""
    first = obj(next(iter(arr(response.get("data"))), None))
    if "embedding" in first or "embeddings" in response or "embedding" in response:
        return "embeddings"
    if "b64_json" in first:
        return "media"
    if "flagged" in obj(next(iter(arr(response.get("results"))), None)):
        return "moderation"
    if response and response.keys() <= _COUNTED:
        return "token_count"
    held = response.get("object") if response.get("object") != "list" else first.get("object")
    return _OBJECTS.get(held) if type(held) is str else None


def _by_shape(request: Body, response: Body) -> str | None:
    if "contents" in request or "candidates" in response or "promptFeedback" in response:
        return GEMINI.name
    if (other := _no_conversation(response)) is not None:
        return other
    if "output" in response and type(response["output"]) is list:
        return RESPONSES.name
    if "choices" in response:
        return COMPLETIONS.name if "prompt" in request and "messages" not in request else CHAT.name
    if response.get("type") == "message" or "stop_reason" in response or "anthropic_version" in request:
        return ANTHROPIC.name if "content" in response or "messages" in request else PROMPTED.name
    if {"inferenceConfig", "toolConfig", "system"} & request.keys() and _keyed(request):
        return CONVERSE.name
    if (
        "stopReason" in response
        or "messageStop" in response
        or type(obj(response.get("output")).get("message")) is dict
    ):
        return CONVERSE.name
    if "input" in request and ("model" in request or "previous_response_id" in request):
        return RESPONSES.name
    if "messages" in request:
        return _by_messages(request, response)
    if any(key in request for key in ("prompt", "inputText")):
        return PROMPTED.name
    return None


def _by_messages(request: Body, response: Body) -> str:
    if "done" in response or "eval_count" in response:
        return OLLAMA.name
    if type(response.get("message")) is dict:
        return COHERE.name
    if _keyed(request):
        return CONVERSE.name
    return ANTHROPIC.name if "system" in request else CHAT.name


def _keyed(request: Body) -> bool:
    """Whether content blocks have their type as their key, as Bedrock's have."""
    for message in arr(request.get("messages"))[:4]:
        for block in arr(obj(message).get("content"))[:4]:
            if type(block) is dict:
                return "type" not in block
    return False


@functools.lru_cache(4096)
def model_in(url: str | None) -> str | None:
    """The model that an address names (Bedrock, Gemini, Azure deployments).

    >>> model_in("https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b-v1%3A0/invoke")
    'a.b-v1:0'
    """
    path = _parts(url)[1]
    found = _BEDROCK.search(path) or _NAMED.search(path)
    return unquote(found.group(1)) if found else None


_HOSTS = (
    ("openai.azure.com", "azure"), ("api.openai.com", "openai"), ("api.anthropic.com", "anthropic"),
    ("generativelanguage.googleapis", "google"), ("aiplatform.googleapis", "vertex"), ("bedrock", "bedrock"),
    ("openrouter.ai", "openrouter"), ("api.cohere", "cohere"), ("api.deepseek.com", "deepseek"),
    ("api.mistral.ai", "mistral"), ("api.groq.com", "groq"), ("cerebras.ai", "cerebras"), ("api.x.ai", "xai"),
    ("together.", "together"), ("fireworks.ai", "fireworks"), ("gateway.ai.cloudflare.com", "cloudflare"),
)  # fmt: skip


@functools.lru_cache(4096)
def provider_at(url: str | None) -> str | None:
    """Who serves an address."""
    host = _parts(url)[0]
    return next((name for part, name in _HOSTS if part in host), None)
