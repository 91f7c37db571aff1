"""Sides of a preference: what was asked, and one answer to it, in every spelling that training sets have."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from etl.adapters._blocks import plain
from etl.adapters._chat import chat_messages, parsed
from etl.adapters._sharegpt import is_turn, turns
from etl.adapters._training import Pairs
from etl.conversation import Message

_CONTEXT = ("prompt", "conversations", "conversation", "messages", "instruction", "question", "query")
_TRANSCRIPT = re.compile(r"\n\n(Human|Assistant):")
_SPEAKERS = {"Human": "user", "Assistant": "assistant"}


class Unreadable(Exception):
    """A side that cannot be read; says why in one line."""


class Side(msgspec.Struct):
    """One answer with what came before it; `messages[:shared]` is what the answer is to."""

    messages: list[Message]
    shared: int
    held: set[str]
    """The keys that the messages hold."""
    unread: dict[str, Any]


def side(value: dict[str, Any], answer: str) -> Side:
    """What the record says under the key `answer`, after what it says beside it; Unreadable where it is no answer."""
    pairs = Pairs()
    context, held = _context(value, pairs)
    before = list(context)
    said = _said(value[answer], answer, pairs)
    if not said:
        raise Unreadable(f"`{answer}` says nothing")
    if alike(context, said) == len(context) or said[0].role != "assistant":
        # The answer tells its context once more: it is the whole, and what it does not tell stays beside it.
        held = held if alike(context, said) == len(context) else set()
        before = said[:-1] if said[-1].role == "assistant" else said
        return Side(said, len(before), held | {answer}, pairs.unread)
    return Side(context + said, len(before), held | {answer}, pairs.unread)


def alike(one: list[Message], other: list[Message]) -> int:
    """How many messages two sides begin with alike."""
    number = 0
    for a, b in zip(one, other, strict=False):
        if (a.role, a.content, a.reasoning, a.parts) != (b.role, b.content, b.reasoning, b.parts):
            break
        if [(c.name, c.arguments) for c in a.calls or ()] != [(c.name, c.arguments) for c in b.calls or ()]:
            break
        number += 1
    return number


def _context(value: dict[str, Any], pairs: Pairs) -> tuple[list[Message], set[str]]:
    """What was said before the answers, and the keys that hold it."""
    key = next((key for key in _CONTEXT if value.get(key)), None)
    if key is None:
        return [], set()
    found, held = value[key], {key}
    if isinstance(found, str) and found.lstrip()[:1] == "[" and isinstance(parsed(found), list):
        found = parsed(found)
    if isinstance(found, str):
        messages = transcript(found) or [Message("user", found)]
        more = value.get("input")
        if key == "instruction" and isinstance(more, str):
            held.add("input")
            if more:
                messages[-1].content = f"{found}\n{more}"
                messages[-1].extra = {"input_at": len(found) + 1}
        if messages[-1].role == "assistant" and not messages[-1].content.strip():
            messages.pop()  # the transcript ends where the answer begins
        return messages, held
    return _said(found, key, pairs), held


def _said(value: Any, key: str, pairs: Pairs) -> list[Message]:
    """Messages of a text, a transcript in one text, one turn, or a list of turns in either form."""
    if isinstance(value, str):
        told = transcript(value)
        if told is not None:
            return told
        text, asked = pairs.said(value, key)
        extra = {"blocks": asked.rest} if asked.rest else None
        return [Message("assistant", text, calls=pairs.asked(asked.calls) or None, extra=extra)]
    listed = value if isinstance(value, list) else [value]
    if listed and all(map(is_turn, listed)):
        read_as = turns(listed, pairs)
        if isinstance(read_as, str):
            raise Unreadable(f"`{key}`: {read_as}")
        return read_as
    messages: list[Message] = []
    for index, item in enumerate(listed):
        found = chat_messages(item)
        if isinstance(found, str):
            raise Unreadable(f"`{key}`[{index}] is no message with a known role ({plain(item)[:40]})")
        messages += found
    return messages


def transcript(text: str) -> list[Message] | None:
    """The turns of a transcript in one text, each after a blank line and its speaker; None where it is none.

    >>> [(m.role, m.content) for m in transcript("\\n\\nHuman: Hi\\n\\nAssistant: Yes?")]
    [('user', 'Hi'), ('assistant', 'Yes?')]
    """
    if not text.startswith("\n\nHuman:"):
        return None
    _, *pieces = _TRANSCRIPT.split(text)
    speakers, said = pieces[::2], pieces[1::2]
    return [Message(_SPEAKERS[who], what.removeprefix(" ")) for who, what in zip(speakers, said, strict=True)]
