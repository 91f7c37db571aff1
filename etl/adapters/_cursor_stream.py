"""`cursor-agent --output-format stream-json`: lines of system, user, assistant, thinking, tool_call and result.

A call is a line when it starts and one when it is completed, its name the key of what it holds (`readToolCall`). With
partial output the model's text comes in pieces, and then whole.
"""

from __future__ import annotations

import re
from typing import Any

from etl.adapters._blocks import plain, read
from etl.adapters._cursor_rows import ask
from etl.adapters._session import dict_of, real, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Message, Tokens, ToolCall

TYPES = frozenset({"system", "user", "assistant", "thinking", "tool_call", "result"})
_ENVELOPE = ("type", "subtype", "session_id", "timestamp_ms")
_OUTPUTS = ("content", "stdout", "output", "text", "message", "diffString")


def is_line(value: Any) -> bool:
    """Whether a value can be a line of such a stream."""
    return text_of(value, "type") in TYPES and text_of(value, "session_id") is not None and "uuid" not in value


def is_sure(value: Any) -> bool:
    """Whether no other stream has such a line."""
    kind = text_of(value, "type")
    if kind == "tool_call":
        return dict_of(value, "tool_call") != {} and text_of(value, "call_id") is not None
    return kind == "system" and "apiKeySource" in value and "model" in value and "tools" not in value


class Stream:
    """The lines of a session, one after the other."""

    def __init__(self, values: list[dict[str, Any]]) -> None:
        self.talk = Talk()
        self.extra: dict[str, Any] = {}
        self._pieces: list[Message] = []
        for value in values:
            self._take(value)

    def tell(self, made: Conversation) -> Conversation:
        """Put what was read into a conversation."""
        made.agent, made.extra = "cursor", self.extra or None
        return self.talk.tell(made)

    def _take(self, value: dict[str, Any]) -> None:
        kind, at = text_of(value, "type"), value.get("timestamp_ms")
        if kind != "assistant":
            self._pieces = []
        if kind == "system":
            self.talk.model = text_of(value, "model") or self.talk.model
            self.extra = {**self.extra, **without(value, *_ENVELOPE, "model")}
        elif kind == "user":
            said = read(dict_of(value, "message").get("content"))
            ask(self.talk, said.text, at, parts=said.parts, extra=without(value, *_ENVELOPE, "message"))
        elif kind == "assistant":
            self._spoken(value, at)
        elif kind == "thinking":
            if text := text_of(value, "text"):
                message = self.talk.piece(at)
                message.reasoning = (message.reasoning or "") + text
        elif kind == "tool_call":
            self._called(value, at)
        else:
            self._ended(value)

    def _spoken(self, value: dict[str, Any], at: Any) -> None:
        """Text of the model; the whole of it after its pieces takes their place."""
        said = read(dict_of(value, "message").get("content"))
        before = self._pieces
        if before and "".join(piece.content for piece in before) == said.text:
            self.talk.messages = [message for message in self.talk.messages if all(message is not p for p in before)]
            self.talk.close()
            whole_text = self.talk.speak(said.text, before[0].at if before[0].at is not None else at)
            whole_text.reasoning, self._pieces = before[0].reasoning, []
            return
        message = self.talk.speak(said.text, at)
        message.parts = said.parts
        message.extra = {**(message.extra or {}), **without(value, *_ENVELOPE, "message")} or None
        self._pieces.append(message)

    def _called(self, value: dict[str, Any], at: Any) -> None:
        name = text_of(value, "call_id")
        told = dict_of(value, "tool_call")
        key = next((key for key in told if isinstance(told[key], dict)), "tool")
        inner = dict_of(told, key)
        if name not in self.talk.calls:
            tool = text_of(inner, "name", "toolName") or re.sub(r"ToolCall$", "", key)
            self.talk.call(ToolCall(tool, inner.get("args", inner.get("arguments")), name), at)
        if value.get("subtype") != "completed":
            return
        result = inner.get("result")
        outcome = next(iter(result), "") if isinstance(result, dict) and len(result) == 1 else ""
        body = result[outcome] if outcome and isinstance(result, dict) else result
        message = self.talk.say(Message("tool", call_id=name, at=at))
        fields: dict[str, Any] = body if isinstance(body, dict) else {}
        shown = next((key for key in _OUTPUTS if isinstance(fields.get(key), str)), None)
        if shown is not None:
            message.content = fields[shown]
            if shown == "stdout" and text_of(fields, "stderr"):
                message.content = "\n".join(filter(None, (fields["stdout"], fields["stderr"])))
            message.extra = without(fields, shown, *(("stderr",) if shown == "stdout" else ())) or None
        else:
            message.content = plain(body)
        self._judge(message, outcome, whole(fields.get("exitCode")))

    def _judge(self, message: Message, outcome: str, code: int | None) -> None:
        if outcome in ("rejected", "permissionDenied"):
            message.failed, message.condition = True, "permission_denied"
        elif outcome in ("error", "failure", "timeout", "spawnError", "fileNotFound") or code:
            message.failed = True
            message.condition = "timeout" if outcome == "timeout" else None
            message.error = f"exit {code}" if code else None
        elif outcome == "success":
            message.failed = False

    def _ended(self, value: dict[str, Any]) -> None:
        """The end of a run: what it used, and whether it failed; its text repeats what was said."""
        usage = dict_of(value, "usage")
        fresh, out, again, written = (
            whole(usage.get(key)) for key in ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        )
        if fresh is not None or out is not None:
            total = None if fresh is None else fresh + (again or 0) + (written or 0)
            self.talk.tokens.append(Tokens(total, out, again, written))
        text = text_of(value, "result") or ""
        if text and not any(message.role == "assistant" and message.content for message in self.talk.messages):
            self.talk.speak(text)
        self.talk.close()
        duration = real(value.get("duration_ms"))
        self.talk.note({"type": "result", **without(value, *_ENVELOPE, "result", "usage", "duration_ms", "is_error")})
        if duration is not None:
            self.extra["duration_ms"] = duration
        self.talk.ended = ("error", text or "error") if value.get("is_error") is True else ("completed", None)
