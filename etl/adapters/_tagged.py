"""Chats whose calls stand in the text, as the model wrote them: `<tool_call>{…}</tool_call>`, `<tool_response>`."""

from __future__ import annotations

from typing import Any

from etl.adapters._sharegpt import results
from etl.adapters._training import Pairs
from etl.conversation import Message

_ASKED, _GIVEN = "<tool_call>", "<tool_response>"


def untagged(messages: list[Message], tools: Any) -> tuple[list[Message], dict[str, Any]] | None:
    """The messages with such calls as calls, and what should have been one; None where nothing says that they are.

    Something does where tools are offered, or where results follow that no other call has asked for.
    """
    asks = any(message.role == "assistant" and _ASKED in message.content for message in messages)
    if not asks or any(message.calls for message in messages):
        return None
    if not tools and not any(message.role == "tool" or _is_given(message) for message in messages):
        return None
    pairs = Pairs()
    made: list[Message] = []
    for number, message in enumerate(messages):
        if message.role == "assistant":
            text, asked = pairs.said(message.content, f"messages.{number}")
            message.content, message.calls = text, pairs.asked(asked.calls) or None
            if asked.rest:
                message.extra = {**(message.extra or {}), "blocks": asked.rest}
        elif message.role == "tool" or _is_given(message):
            made += _given(message, pairs)
            continue
        made.append(message)
    return made, pairs.unread


def _is_given(message: Message) -> bool:
    """Whether a user's turn is results alone."""
    return message.role == "user" and message.content.lstrip().startswith(_GIVEN) and len(results(message.content)) > 0


def _given(message: Message, pairs: Pairs) -> list[Message]:
    """The results of one turn, each a message; the first keeps what else the turn says."""
    made = [
        Message(
            "tool", text, call_id=pairs.answered() if message.call_id is None else message.call_id, name=message.name
        )
        for text, _ in results(message.content)
    ]
    made[0].id, made[0].at, made[0].parts = message.id, message.at, message.parts
    made[0].failed, made[0].extra = message.failed, message.extra
    if message.role == "user":
        made[0].extra = {**(message.extra or {}), "role": "user"}
    return made
