"""The chat debug log of VS Code (`*.chatreplay.json`) as conversations: a row for each prompt.

`logs` has, in order, what was sent to a model and came back, and each call with its result. A request repeats all that
was said before; only the first one's messages are taken, earlier turns among them as inherited.
"""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import call, plain, read
from etl.adapters._session import dict_of, list_of, real, text_of, without
from etl.adapters._talk import Talk
from etl.adapters._usage import tokens
from etl.adapters._vscode_rows import bare, shown_text
from etl.conversation import Conversation, Message, ToolCall

_ROLES: dict[Any, str] = {0: "system", 1: "user", 2: "assistant", 3: "tool"}
_REQUEST = ("id", "kind", "requestMessages", "response", "metadata", "name", "type")


class Prompt:
    """One prompt with its logs."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.talk = Talk()
        self.tools: Any = None
        self._prompt = text_of(value, "prompt") or ""
        self._begun = False
        self._elements: list[Any] = []
        for log in list_of(value, "logs"):
            if isinstance(log, dict):
                self._take(log)
        self._begin([])
        self._rest = without(value, "prompt", "logs", "promptId", "logCount")

    def tell(self, made: Conversation) -> Conversation:
        """Put what was read into a conversation."""
        made.agent, made.tools, made.prompt = "vscode-copilot", self.tools, self._prompt or None
        made.extra = {**self._rest, **without({"elements": self._elements})} or None
        return self.talk.tell(made)

    def _begin(self, sent: list[Any]) -> None:
        """What stands before the answer: the first request's messages, then what the person typed."""
        if self._begun:
            return
        self._begun = True
        messages = [made for item in sent if isinstance(item, dict) for made in _sent(item)]
        typed = [n for n, m in enumerate(messages) if m.role == "user" and self._prompt and self._prompt in m.content]
        last_answer = max((n for n, m in enumerate(messages) if m.role in ("assistant", "tool")), default=-1)
        for number, message in enumerate(messages):
            message.inherited = number <= last_answer and message.role != "system"
            message.synthetic = message.role == "user" and not message.inherited
            if typed and number == typed[-1] and message.content.strip() == self._prompt.strip():
                message.synthetic = False
            self.talk.say(message)
        if self._prompt and not any(m.role == "user" and not m.synthetic and not m.inherited for m in messages):
            self.talk.say(Message("user", self._prompt))

    def _take(self, log: dict[str, Any]) -> None:
        kind = text_of(log, "kind")
        if kind == "request":
            self._requested(log)
        elif kind == "toolCall":
            self._called(log)
        elif kind == "error":
            self.talk.note(without(log, "id"))
            self.talk.ended = ("error", plain(log.get("error")) or "error")
        else:
            self._elements.append(log)

    def _requested(self, log: dict[str, Any]) -> None:
        metadata = dict_of(log, "metadata")
        sent = log.get("requestMessages")
        self._begin(list_of(sent, "messages") if isinstance(sent, dict) else sent if isinstance(sent, list) else [])
        self.tools = self.tools or list_of(metadata, "tools") or None
        response = dict_of(log, "response")
        told = response.get("message", response.get("value"))
        text = "".join(item for item in told if isinstance(item, str)) if isinstance(told, list) else plain(told)
        message = self.talk.say(Message("assistant", text, at=metadata.get("startTime"), id=text_of(log, "id")))
        message.model = self.talk.model = text_of(metadata, "model") or self.talk.model
        used = tokens(metadata.get("usage"))
        if used is not None:
            self.talk.tokens.append(used)
            message.input_tokens, message.output_tokens = used.input_tokens, used.output_tokens
        rest = {
            **without(log, *_REQUEST),
            **without(metadata, "tools", "usage", "model", "startTime", "endTime"),
            **without(response, "message", "value", "type"),
        }
        message.extra = {**rest, **without({"name": log.get("name")})} or None
        kind = text_of(response, "type")
        if kind not in (None, "success"):
            self.talk.ended = ("error", text_of(response, "reason") or kind)

    def _called(self, log: dict[str, Any]) -> None:
        """A call with its result: of the response before it."""
        self._begin([])
        name = bare(text_of(log, "id")) or None
        at = log.get("time")
        made = ToolCall(text_of(log, "tool", "name") or "tool", log.get("args"), name)
        answered = [m for m in self.talk.messages if m.role == "assistant"]
        if answered and not answered[-1].inherited:
            answered[-1].calls = [*(answered[-1].calls or []), made]
            made.at = at
        else:
            self.talk.call(made, at)
        thinking = log.get("thinking")
        told = text_of(thinking, "text") if isinstance(thinking, dict) else thinking
        speaker = next(m for m in reversed(self.talk.messages) if m.role == "assistant")
        if isinstance(told, str) and told and told not in (speaker.reasoning or ""):
            speaker.reasoning = told if speaker.reasoning is None else f"{speaker.reasoning}\n{told}"
        if "response" in log:
            message = Message("tool", shown_text(log["response"]), call_id=name, at=at)
            message.duration_ms = real(log.get("duration"))
            rest = without(log, "id", "kind", "tool", "args", "time", "response", "thinking", "name", "duration")
            message.extra = rest or None
            self.talk.say(message)


def _sent(item: dict[str, Any]) -> list[Message]:
    """A message of a request: roles as names or numbers, content as text or parts."""
    role = item.get("role")
    named = role if isinstance(role, str) else _ROLES.get(role if type(role) is int else None)
    said = read(item.get("content")) if not isinstance(item.get("content"), list) else None
    text = said.text if said is not None else shown_text(item.get("content"))
    calls = [
        found
        for block in [*list_of(item, "tool_calls"), *list_of(item, "toolCalls")]
        if isinstance(block, dict) and (found := call(block)) is not None
    ]
    if named == "tool":
        return [Message("tool", text, call_id=text_of(item, "tool_call_id", "toolCallId"))]
    if named not in ("system", "user", "assistant", "developer"):
        return []
    return [Message(named, text, calls=calls or None)] if text or calls else []
