"""What each provider's bodies say: the same whether plain or streamed, and never an exception, whatever they hold."""

from __future__ import annotations

import base64
import gzip
import json
import random
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import pytest

from etl.adapters._api_bodies import read_body
from etl.adapters._api_choice import CODECS, NO_CONVERSATION, kind_of, model_in, provider_at
from etl.adapters._api_form import Answered, Codec, packed, unpacked
from etl.adapters._api_secrets import clean_url

_KEYS = (
    *("role", "content", "messages", "input", "output", "type", "text", "choices", "message", "delta", "index", "id"),
    *("tool_calls", "function", "name", "arguments", "usage", "contents", "parts", "functionCall", "functionResponse"),
    *("args", "response", "candidates", "toolUse", "toolResult", "system", "tools", "model", "prompt", "error", "item"),
    *("contentBlockDelta", "contentBlockStart", "contentBlockIndex", "messageStop", "metadata", "content_block"),
    *("summary", "output_index", "partial_json", "call_id", "tool_call_id", "chat_history", "results", "data"),
)
_WORDS = ("user", "assistant", "tool", "", "function_call", "message_start", "content_block_delta", "text", "reasoning",
          "response.output_text.delta", "mcp_call", "web_search_call", "tool_use", "tool_result", "{", "é")  # fmt: skip


def _junk(dice: random.Random, depth: int = 5) -> Any:
    """A value of the kind that bodies have, everything in the wrong place."""
    kind = dice.randrange(8) if depth else dice.randrange(4)
    if kind < 4:
        return (None, dice.choice(_WORDS), dice.choice((-1, 0, 1, 2.5, 1 << 70)), dice.random() < 0.5)[kind]
    if kind < 6:
        return [_junk(dice, depth - 1) for _ in range(dice.randrange(4))]
    return {dice.choice(_KEYS): _junk(dice, depth - 1) for _ in range(dice.randrange(7))}


@pytest.mark.parametrize("codec", CODECS.values(), ids=lambda codec: codec.name)
def test_no_codec_raises(codec: Codec) -> None:
    for seed in range(400):
        dice = random.Random(seed)
        body = {dice.choice(_KEYS): _junk(dice) for _ in range(6)}
        items = [*codec.asked(body).items, _junk(dice), {"role": dice.choice(_WORDS), "content": _junk(dice)}]
        for message in (message for item in items for message in codec.message(item)):
            assert unpacked(packed(message)) == message
        codec.answered(body)
        codec.answered(codec.joined([_junk(dice) for _ in range(4)]))


def _aws(*events: tuple[str, Any]) -> bytes:
    """Messages of an AWS event stream."""
    out = b""
    for kind, payload in events:
        name, value, body = b":event-type", kind.encode(), json.dumps(payload).encode()
        head = bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
        prelude = struct.pack(">II", 16 + len(head) + len(body), len(head))
        prelude += struct.pack(">I", zlib.crc32(prelude))
        out += prelude + head + body + struct.pack(">I", zlib.crc32(prelude + head + body))
    return out


def _sse(*events: Any, named: bool = False) -> str:
    lines = [f"event: {event['type']}\n" if named else "" for event in events]
    return "".join(f"{line}data: {json.dumps(event)}\n\n" for line, event in zip(lines, events, strict=True))


_CHAT_STREAM = _sse(
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Go"}}]},
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "od."}}]},
    {
        "id": "c",
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f"}}]}}],
    },
    {
        "id": "c",
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 1, "id": "u", "function": {"name": "g"}}]}}],
    },
    {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]}}]},
    {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]}}]},
    {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}}]},
    {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"id": "c", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}},
)
_ANTHROPIC_STREAM = _sse(
    {"type": "message_start", "message": {"id": "c", "model": "m", "content": [], "usage": {"input_tokens": 9}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Good."}},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ":1}"}},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "u", "name": "g", "input": {}},
    },
    {"type": "message_delta", "delta": {"stop_reason": "tool_calls"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
    named=True,
)
_CONVERSE_STREAM = _aws(
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Good."}}),
    ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t", "name": "f"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"a":1}'}}}),
    ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "u", "name": "g"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": "{}"}}}),
    ("messageStop", {"stopReason": "tool_calls"}),
    ("metadata", {"usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13}}),
)
_GEMINI_STREAM = [
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Go"}]}, "index": 0}]},
    {"candidates": [{"content": {"parts": [{"text": "od."}, {"functionCall": {"name": "f", "args": {"a": 1}}}]}}]},
    {
        "candidates": [
            {"content": {"parts": [{"functionCall": {"name": "g", "args": {}}}]}, "finishReason": "tool_calls"}
        ],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13},
    },
]
_RESPONSES_STREAM = _sse(
    {"type": "response.created", "response": {"id": "c", "model": "m", "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "role": "assistant"}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Good."},
    {
        "type": "response.output_item.added",
        "output_index": 1,
        "item": {"type": "function_call", "call_id": "t", "name": "f"},
    },
    {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a":1}'},
    {
        "type": "response.output_item.added",
        "output_index": 2,
        "item": {"type": "function_call", "call_id": "u", "name": "g"},
    },
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"},
)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("openai_chat", _CHAT_STREAM), ("anthropic_messages", _ANTHROPIC_STREAM),
        ("bedrock_converse", _CONVERSE_STREAM), ("bedrock_converse", _CONVERSE_STREAM.hex()),
        ("bedrock_converse", base64.b64encode(_CONVERSE_STREAM).decode()),
        ("openai_chat", gzip.compress(_CHAT_STREAM.encode())), ("gemini", _GEMINI_STREAM),
        ("gemini", json.dumps(_GEMINI_STREAM)), ("gemini", _sse(*_GEMINI_STREAM)),
    ],
)  # fmt: skip
def test_streams_say_what_plain_bodies_say(name: str, body: Any) -> None:
    answered = _streamed(name, body)
    (choice,) = answered.choices
    (message,) = choice.messages
    calls = message.calls or []
    assert message.content == "Good."
    assert [(call.name, _object(call.arguments)) for call in calls] == [("f", {"a": 1}), ("g", {})]
    assert [call.id for call in calls] == ([None, None] if name == "gemini" else ["t", "u"])
    assert choice.finish_reason == "tool_calls"
    assert answered.usage is not None
    assert (answered.usage.input_tokens, answered.usage.output_tokens) == (9, 4)
    assert answered.done


def _streamed(name: str, body: Any) -> Answered:
    read = read_body(body)
    assert read.events is not None
    return CODECS[name].answered(CODECS[name].joined(read.events))


def _object(arguments: Any) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def test_a_broken_stream_gives_what_came_and_says_so() -> None:
    broken = _streamed("openai_responses", _RESPONSES_STREAM)
    assert not broken.done
    said = [message for choice in broken.choices for message in choice.messages]
    assert [message.content for message in said] == ["Good.", "", ""]
    assert [call.name for message in said for call in message.calls or ()] == ["f", "g"]
    assert not _streamed("openai_chat", _CHAT_STREAM[: _CHAT_STREAM.index('"finish_reason"') - 60]).done
    assert read_body(_CHAT_STREAM[:-20]).whole is False
    assert read_body(_CONVERSE_STREAM[:-3]).whole is False
    assert read_body(gzip.compress(_CHAT_STREAM.encode())[:-12]).whole is False


@pytest.mark.parametrize(
    ("name", "usage", "expected"),
    [
        (
            "anthropic_messages",
            {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 3, "output_tokens": 7},
            (98, 7, 90, 3, None),
        ),
        (
            "openai_chat",
            {"prompt_tokens": 98, "prompt_tokens_details": {"cached_tokens": 90}, "completion_tokens": 7,
             "completion_tokens_details": {"reasoning_tokens": 4}},
            (98, 7, 90, None, 4),
        ),
        (
            "openai_responses",
            {"input_tokens": 98, "input_tokens_details": {"cached_tokens": 90}, "output_tokens": 7,
             "output_tokens_details": {"reasoning_tokens": 4}},
            (98, 7, 90, None, 4),
        ),
        (
            "gemini",
            {"promptTokenCount": 98, "cachedContentTokenCount": 90, "candidatesTokenCount": 3, "thoughtsTokenCount": 4},
            (98, 7, 90, None, 4),
        ),
        (
            "bedrock_converse",
            {"inputTokens": 5, "cacheReadInputTokens": 90, "cacheReadInputTokenCount": 90,
             "cacheWriteInputTokenCount": 3, "outputTokens": 7},
            (98, 7, 90, 3, None),
        ),
        ("ollama", {"prompt_eval_count": 98, "eval_count": 7}, (98, 7, None, None, None)),
        (
            "prompted",
            {"inputTextTokenCount": 98, "results": [{"outputText": "a", "tokenCount": 7}]},
            (98, 7, None, None, None),
        ),
        ("openai_chat", {"total_tokens": 3}, None),
    ],
)  # fmt: skip
def test_usage_of_every_provider_in_one_convention(
    name: str, usage: Any, expected: Sequence[int | None] | None
) -> None:
    found = CODECS[name].answered({**usage, "usage": usage, "usageMetadata": usage}).usage
    counts = found and (
        found.input_tokens, found.output_tokens, found.cached_tokens, found.cache_write_tokens, found.reasoning_tokens
    )  # fmt: skip
    assert counts == expected


_AZURE = "https://x.openai.azure.com/openai/deployments"
_BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com"
_GOOGLE = "https://generativelanguage.googleapis.com/v1beta"


@pytest.mark.parametrize(
    ("url", "kind", "model", "provider"),
    [
        (f"{_AZURE}/demo/chat/completions?api-version=1", "openai_chat", "demo", "azure"),
        ("https://api.openai.com/v1/responses/resp_1", "openai_responses", None, "openai"),
        ("https://api.openai.com/v1/responses/input_tokens", "token_count", None, "openai"),
        (f"{_BEDROCK}/model/a.b%3A0/converse-stream", "bedrock_converse", "a.b:0", "bedrock"),
        (f"{_GOOGLE}/models/demo:streamGenerateContent?alt=sse", "gemini", "demo", "google"),
        ("https://api.anthropic.com/v1/messages/count_tokens", "token_count", None, "anthropic"),
        ("https://api.openai.com/v1/models", "models", None, "openai"),
        ("http://[broken", None, None, None),
    ],
)  # fmt: skip
def test_addresses(url: str, kind: str | None, model: str | None, provider: str | None) -> None:
    assert (kind_of(url, None, None), model_in(url), provider_at(url)) == (kind, model, provider)
    assert kind is None or kind in CODECS or kind in NO_CONVERSATION
    clean_url(url)
