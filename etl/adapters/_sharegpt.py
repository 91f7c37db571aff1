"""Turns in ShareGPT form, `{from, value}`: roles by name, calls and results by order."""

from __future__ import annotations

import re
from typing import Any

from etl.adapters._blocks import plain, read
from etl.adapters._training import Pairs, calls_of
from etl.conversation import Message

ROLES = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
    "model": "assistant", "system": "system", "function_call": "call", "function-call": "call", "tool_call": "call",
    "observation": "tool", "tool": "tool", "tool_response": "tool", "function_response": "tool",
    "function-response": "tool", "function": "tool",
}  # fmt: skip
_RESULT = re.compile(r"\s*<tool_response>\s*(.*?)\s*</tool_response>\s*", re.DOTALL)


def is_turn(value: Any) -> bool:
    """Whether a value is a turn in this form, whoever speaks."""
    return isinstance(value, dict) and isinstance(value.get("from"), str) and "value" in value


def turns(listed: list[Any], pairs: Pairs) -> list[Message] | str:
    """The messages of turns, none relabelled and none left out; or what is wrong with the first that cannot be read."""
    messages: list[Message] = []
    before = None
    for index, turn in enumerate(listed):
        speaker = turn.get("from") if isinstance(turn, dict) else None
        role = ROLES.get(speaker) if isinstance(speaker, str) else None
        if role is None:
            return f"turn {index} is from {plain(speaker)[:60]!r}, which is no known role; see what wrote it"
        more = {key: item for key, item in turn.items() if key not in ("from", "value") and item is not None}
        if role == "call" and before == "call" and not more and _asked_too(messages[-1], turn.get("value"), pairs):
            continue
        messages += _messages(role, turn.get("value"), more, pairs, f"turns.{index}")
        before = role if role != "call" or messages[-1].calls else None
    return messages


def _asked_too(message: Message, value: Any, pairs: Pairs) -> bool:
    """Put the calls of a further turn of calls to the message before it, which asked for them at once."""
    found = calls_of(value)
    if found is None or found.rest:
        return False
    message.calls = [*(message.calls or ()), *pairs.asked(found.calls, more=True)]
    return True


def _messages(role: str, value: Any, more: dict[str, Any], pairs: Pairs, place: str) -> list[Message]:
    extra = more or None
    if role == "tool":
        found = results(value)
        return [
            Message("tool", text, call_id=pairs.answered(), parts=parts, extra=more or None) for text, parts in found
        ]
    asked = calls_of(value) if role == "call" else None
    if asked is not None:
        return [Message("assistant", calls=pairs.asked(asked.calls), extra=_with(more, asked.rest))]
    content = read(value)
    if role in ("user", "system"):
        if role == "user":
            pairs.asked(())
        return [Message(role, content.text, content.reasoning, parts=content.parts, extra=_with(more, content.rest))]
    text, asked = pairs.said(content.text, place)
    if role == "call" and not asked.calls:
        pairs.unread[place] = value
    named = pairs.asked([*(content.calls or ()), *asked.calls])
    extra = _with(more, [*(content.rest or ()), *asked.rest])
    return [Message("assistant", text, content.reasoning, calls=named or None, parts=content.parts, extra=extra)]


def _with(more: dict[str, Any], rest: list[Any] | None) -> dict[str, Any] | None:
    """Further keys of a turn, and of the blocks and calls in it."""
    return {**more, "blocks": rest} if rest else more or None


def results(value: Any) -> list[tuple[str, list[Any] | None]]:
    """The results of one turn: several where each stands in its own tags and nothing stands outside of them."""
    if isinstance(value, str) and "<tool_response>" in value and not _RESULT.sub("", value):
        return [(text, None) for text in _RESULT.findall(value)]
    if isinstance(value, str) or value is None:
        return [(value or "", None)]
    content = read(value)
    parts = [*(content.parts or ()), *([value] if content.calls or content.results else ())]
    return [(content.text if content.text or parts else plain(value), parts or None)]
