"""The messages of one conversation on their way into columns: roles checked, calls paired, times fitted, escapes
kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from etl.calls import Pairing
from etl.coerce import Fitting
from etl.conversation import Message
from etl.decode import encode
from etl.row import SAYS_NOTHING, CallTuple, InfoTuple, MessageTuple

_PARTS = 1_000
"""Mended strings that are looked for inside of longer texts."""
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


class Refused(ValueError):
    """The conversation cannot be a row; `reason` is the code of the reject."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Transcript:
    """Messages, their info and their calls, while they are put together."""

    __slots__ = ("ats", "canonical", "fitting", "info", "messages", "pairing")

    def __init__(self, fitting: Fitting) -> None:
        self.fitting = fitting
        self.pairing = Pairing()
        self.messages: list[MessageTuple] = []
        self.info: list[InfoTuple] = []
        self.canonical: list[Any] = []
        self.ats: list[int] = []

    def add(self, message: Message) -> None:
        index, fitting = len(self.messages), self.fitting
        role, content, reasoning, extra = message.role, message.content, message.reasoning, message.extra
        calls, tool_call_id, at = None, None, None
        if message.at is not None:
            at = fitting.at(f"messages.{index}.at", message.at)
            if at is not None:
                self.ats.append(at)
        if message.calls:
            calls, extra = self._call(message, index, at)
        elif role == "tool":
            tool_call_id, extra = self._answer(message, index)
        else:
            if role not in ROLES:
                raise Refused("unknown_role", f"message {index} has the unknown role {role!r}")
            self.canonical.append((role, content, reasoning))
        self.messages.append(MessageTuple(role, content, reasoning, calls, tool_call_id, message.name))
        self.info.append(self._info(message, index, at, extra))

    def _call(self, message: Message, index: int, at: int | None) -> tuple[list[CallTuple], dict[str, Any] | None]:
        """The calls of a message, and its extra, with the ids that had to be changed."""
        if message.role not in ROLES:
            raise Refused("unknown_role", f"message {index} has the unknown role {message.role!r}")
        calls, renamed, spoken = [], {}, []
        for call in message.calls or ():
            step, logged = self.pairing.call(
                call, index, at if call.at is None else self.fitting.at("calls.at", call.at)
            )
            calls.append((step.call_id, step.tool, step.arguments))
            spoken.append((step.tool, step.arguments))
            if logged:
                renamed[step.call_id] = logged
        self.canonical.append((message.role, message.content, message.reasoning, spoken))
        return calls, {**(message.extra or {}), "logged_call_ids": renamed} if renamed else message.extra

    def _answer(self, message: Message, index: int) -> tuple[str | None, dict[str, Any] | None]:
        """The id of the call that a tool message answers, and its extra, with the id as logged where it differs."""
        answered = self.pairing.result(message, index)
        self.canonical.append((message.role, message.content, -1 if answered is None else answered.message_index))
        logged = message.call_id
        if answered is None:
            return None, {**(message.extra or {}), "tool_call_id": logged} if logged else message.extra
        if logged and logged != answered.call_id:
            return answered.call_id, {**(message.extra or {}), "logged_tool_call_id": logged}
        return answered.call_id, message.extra

    def _info(self, message: Message, index: int, at: int | None, extra: dict[str, Any] | None) -> InfoTuple:
        read, written = message.input_tokens, message.output_tokens
        if read is not None:
            read = self.fitting.whole(f"messages.{index}.input_tokens", read)
        if written is not None:
            written = self.fitting.whole(f"messages.{index}.output_tokens", written)
        parts = message.parts
        timed = at is not None or read is not None or written is not None
        named = message.id is not None or message.model is not None or message.finish_reason is not None
        if not (timed or named or parts or extra or message.inherited or message.synthetic):
            return SAYS_NOTHING
        return InfoTuple(
            message.id, at, message.model, message.finish_reason, read, written, message.inherited, message.synthetic,
            encode(parts) if parts else None, encode(extra) if extra else None,
        )  # fmt: skip

    def mend(self, mended: Sequence[tuple[str, str]]) -> None:
        """Keep the escapes of mended strings with the messages that hold them."""
        escapes: dict[str, list[str]] = {}
        for text, escape in mended:
            escapes.setdefault(text, []).append(escape)
        order = {text: number for number, text in enumerate(escapes)}
        # A mended string that is long enough to tell may also be a part of a text. What a log can make of many is not
        # more than many times as slow: only so many of them are looked for like that.
        parts = list(islice((text for text in escapes if len(text) >= 8), _PARTS))
        for index, message in enumerate(self.messages):
            texts = [message.content, message.reasoning_content or ""]
            for call in message.tool_calls or ():
                texts += [call[1], *_strings(call[2])]
            texts = [text for text in texts if "\ufffd" in text]
            held = {text for text in texts if text in escapes}
            held.update(part for part in parts if any(part in text for text in texts))
            found = [escape for text in sorted(held, key=order.__getitem__) for escape in escapes[text]]
            if found:
                info = self.info[index]
                extra = msgspec.json.decode(info.extra) if info.extra else {}
                extra["lone_surrogates"] = list(dict.fromkeys(found))
                self.info[index] = info._replace(extra=encode(extra))


def _strings(arguments: str) -> list[str]:
    """Every string in call arguments, unescaped."""
    found: list[str] = []
    level = [msgspec.json.decode(arguments)]
    while level:
        item = level.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            level += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            level += item
    return found
