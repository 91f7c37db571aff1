"""Outputs that are the pieces of a streamed answer, as a traced generator logs them: joined into the whole answer.

The providers' own chunks are joined as they are in logged API calls (`_api_openai.py` and its like).
"""

from __future__ import annotations

from typing import Any

from etl.adapters._api_anthropic import ANTHROPIC
from etl.adapters._api_openai import CHAT
from etl.adapters._api_responses import RESPONSES

_ANTHROPIC = frozenset(
    {"message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta"}
    | {"content_block_stop", "ping"}
)


def whole(value: Any) -> Any:
    """The answer that chunks make up; any other value as it is.

    >>> pieces = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": t}}]} for t in "Hi"]
    >>> whole({"output": pieces})["choices"][0]["message"]["content"]
    'Hi'
    """
    listed = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    if not isinstance(listed, list) or len(listed) < 2 or not all(isinstance(item, dict) for item in listed):
        return value
    listed = [_plain(item) for item in listed]
    if all(_is_chat_chunk(item) for item in listed):
        return CHAT.joined(listed)
    names = [item.get("type") for item in listed]
    if "message_start" in names and all(isinstance(name, str) and name in _ANTHROPIC for name in names):
        return ANTHROPIC.joined(listed)
    if all(isinstance(name, str) and name.startswith("response.") for name in names):
        return RESPONSES.joined(listed)
    if all(item.get("type") == "AIMessageChunk" and isinstance(item.get("content"), str) for item in listed):
        return _message(listed)
    return value


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    """A serialised chunk of LangChain as its fields."""
    path, fields = item.get("id"), item.get("kwargs")
    if isinstance(path, list) and path[-1:] == ["AIMessageChunk"] and isinstance(fields, dict):
        return {**fields, "type": "AIMessageChunk"}
    return item


def _is_chat_chunk(item: dict[str, Any]) -> bool:
    choices = item.get("choices")
    if not isinstance(choices, list):
        return False
    return item.get("object") == "chat.completion.chunk" or any(
        isinstance(choice, dict) and isinstance(choice.get("delta"), dict) for choice in choices
    )


def _message(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Chunks of LangChain as one message; what else they say is the last one's word."""
    deltas = []
    for chunk in chunks:
        pieces = chunk.get("tool_call_chunks")
        calls = [
            {
                "index": piece.get("index"),
                "id": piece.get("id"),
                "function": {"name": piece.get("name"), "arguments": piece.get("args")},
            }
            for piece in (pieces if isinstance(pieces, list) else ())
            if isinstance(piece, dict)
        ]
        deltas.append({"content": chunk["content"], **({"tool_calls": calls} if calls else {})})
    joined = CHAT.joined([{"choices": [{"index": 0, "delta": delta}]} for delta in deltas])
    about = {
        key: item
        for chunk in chunks
        for key, item in chunk.items()
        if item not in (None, "", [], {}) and key not in ("tool_call_chunks", "tool_calls", "invalid_tool_calls")
    }
    return {**about, "type": "ai", "role": "assistant", **joined["choices"][0]["message"]}
