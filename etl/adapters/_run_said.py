"""What a row says, and what of a value it does not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from etl.adapters._langchain import chat_form, opened_all
from etl.conversation import Conversation

_COUNTS = ("usage", "usage_metadata", "token_usage", "tokenUsage", "llm_output", "response_metadata")
_TERMS = frozenset(
    {"user", "assistant", "system", "developer", "tool", "function", "human", "ai", "model", "text", "tool_call"}
    | {"tool_calls", "constructor", "ChatGeneration", "LLMResult", "message", "chat.completion", "response", "list"}
    | {"chat.completion.chunk", "output_text", "input_text", "tool_use", "function_call", "function_call_output"}
    | {"AIMessage", "HumanMessage", "SystemMessage", "ToolMessage", "AIMessageChunk", "completed", "auto", "success"}
)
"""Words of the formats themselves: they say nothing that a row does not."""
LONG = 24
"""Texts of this length and more are looked for inside longer ones, too."""
MAX_DEPTH = 60


class Said:
    """Every text of a row, to look others up in."""

    def __init__(self, row: Conversation) -> None:
        self._texts: set[str] = set()
        for message in row.messages:
            self._add([message.content, message.reasoning, message.name, message.id, message.call_id, message.model])
            self._add([message.parts, *([call.name, call.id, call.arguments] for call in message.calls or ())])
            self._add(message.finish_reason)
        self._add([row.tools, row.model, row.agent, row.error, row.provider, row.finish_reason])
        self._all = "\n".join(sorted(text for text in self._texts if len(text) >= LONG))
        self.clear: set[bytes] = set()
        """JSON of messages of which the row says everything."""

    def beside(self, row: Conversation) -> Said:
        """These texts, and what is kept beside the messages of the row."""
        made = Said.__new__(Said)
        made._texts, made._all, made.clear = set(self._texts), self._all, set()
        for message in row.messages:
            made._add(message.extra)
        return made

    def _add(self, value: Any) -> None:
        self._texts.update(_leaves(value))

    def holds(self, text: str, least: int = 0) -> bool:
        """Whether the row says this text, of at least so many characters, alone or within another."""
        plain = " ".join(text.split())
        if len(plain) < least:
            return False
        if plain in self._texts or plain in _TERMS:
            return True
        if len(plain) >= LONG and plain in self._all:
            self._texts.add(plain)
            return True
        return not plain


def _leaves(value: Any, depth: int = MAX_DEPTH) -> Iterator[str]:
    """Every text in a value, white space evened out; JSON text is opened, and is a text of its own as well."""
    if isinstance(value, str):
        yield " ".join(value.split())
        inner = opened_all(value) if value.strip()[:1] in ("{", "[", '"') else None
        if inner is not None and inner is not value and not isinstance(inner, str) and depth > 0:
            yield from _leaves(inner, depth - 1)
        elif isinstance(inner, str) and inner != value:
            yield " ".join(inner.split())
    elif isinstance(value, dict) and depth > 0:
        for item in value.values():
            yield from _leaves(item, depth - 1)
    elif isinstance(value, (list, tuple)) and depth > 0:
        for item in value:
            yield from _leaves(item, depth - 1)


def unsaid(value: Any, said: Said, least: int = 0, depth: int = MAX_DEPTH) -> Any:
    """What of a value the row does not say; None for nothing. Numbers stay where their object says something else.

    `least`: shorter texts stay, whatever the row says.
    """
    if isinstance(value, str):
        if said.holds(value, least):
            return None
        inner = opened_all(value)
        if isinstance(inner, str) or depth <= 0:
            return value
        left = unsaid(inner, said, least, depth - 1)
        return value if left == inner else left
    if isinstance(value, dict) and depth > 0:
        value = chat_form(value, 1) if "kwargs" in value else value
        left = {
            key: found
            for key, item in value.items()
            if key not in _COUNTS and (found := unsaid(item, said, least, depth - 1)) is not None
        }
        spoken = "role" in value or ("content" in value and "type" in value)
        return left if any(not _is_number(item) for item in left.values()) or (left and not spoken) else None
    if isinstance(value, list) and depth > 0:
        found = [item for item in (_item_unsaid(item, said, least, depth - 1) for item in value) if item is not None]
        return found if any(not _is_number(item) for item in found) or (len(found) == len(value) and found) else None
    return value


def _item_unsaid(item: Any, said: Said, least: int, depth: int) -> Any:
    """The same for an item of a list: histories repeat their messages."""
    if not isinstance(item, dict) or least or "role" not in item:
        return unsaid(item, said, least, depth)
    name = msgspec.json.encode(item)
    if name in said.clear:
        return None
    left = unsaid(item, said, least, depth)
    if left is None:
        said.clear.add(name)
    return left


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))
