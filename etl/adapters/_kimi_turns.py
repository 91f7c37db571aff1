"""A wire log of Kimi CLI (`{timestamp, message: {type, payload}}`), and its context file, as conversations.

A response comes in pieces: content parts, calls and further parts of their arguments, with its tokens in a status
update; a result ends it. What a sub-agent does is told among the events of the agent that called it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapters._blocks import identifier, read, result
from etl.adapters._chat import chat_messages
from etl.adapters._session import dict_of, summed, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Identity, Message, Record, Tokens, ToolCall

AGENT = "kimi-cli"
_QUIET = frozenset({"StepBegin", "TurnEnd"})
_SYSTEM, _SAID_NOTHING = "_system_prompt", frozenset({"_checkpoint", "_usage"})


class Turns:
    """The events of a log, one after the other, and those of the sub-agents among them."""

    def __init__(self) -> None:
        self.talk = Talk()
        self.agents: dict[str, Turns] = {}
        """By the call that started each."""
        self.kind: str | None = None
        self._asked: dict[str, str] = {}
        self._denied: set[str] = set()
        self._tokens: dict[str, Tokens] = {}
        self._last: ToolCall | None = None

    def take(self, kind: str, payload: dict[str, Any], at: Any) -> None:
        """Read an event."""
        if kind in ("TurnBegin", "SteerInput"):
            said = read(payload.get("user_input"))
            self.talk.ask(said.text, at, parts=said.parts)
        elif kind == "ContentPart":
            self._part(payload, at)
        elif kind in ("ToolCall", "ToolCallPart"):
            self._call(kind, payload, at)
        elif kind == "ToolResult":
            self._result(payload, at)
        elif kind == "StatusUpdate":
            self._counted(payload)
        elif kind == "SubagentEvent":
            self._agent(payload, at)
        else:
            self._other(kind, payload, at)

    def finish(self, made: Conversation) -> Iterator[Conversation]:
        """The conversation, and those of its sub-agents."""
        if self.talk.messages:
            made.agent = self.kind or AGENT
            made.usage = summed(self._tokens.values())
            yield self.talk.tell(made)
        for name, agent in self.agents.items():
            child = Conversation([], made.records, native_id=made.native_id, branch=f"{made.branch}/{name}")
            child.conversation_id = made.conversation_id
            child.parent = Identity(made.native_id or "", branch=made.branch)
            yield from agent.finish(child)

    def _part(self, payload: dict[str, Any], at: Any) -> None:
        """A piece of a response: text and reasoning go on where they were."""
        said = read([payload])
        message = self.talk.piece(at)
        message.content += said.text
        if said.reasoning:
            message.reasoning = (message.reasoning or "") + said.reasoning
        parts = [part for part in said.parts or () if without(part, "type")]
        message.parts = [*(message.parts or []), *parts] or None

    def _call(self, kind: str, payload: dict[str, Any], at: Any) -> None:
        if kind == "ToolCallPart":
            if self._last is not None and isinstance(piece := payload.get("arguments_part"), str):
                self._last.arguments = f"{self._last.arguments or ''}{piece}"
            return
        function = dict_of(payload, "function")
        self._last = ToolCall(
            text_of(function, "name") or "tool", function.get("arguments"), identifier(payload.get("id"))
        )
        self.talk.call(self._last, at)

    def _result(self, payload: dict[str, Any], at: Any) -> None:
        name = identifier(payload.get("tool_call_id"))
        told = dict_of(payload, "return_value") or dict_of(payload, "result")
        found = result({"content": told.get("output"), "is_error": told.get("is_error")})
        message = Message("tool", found.text, call_id=name, at=at, parts=found.parts, failed=found.failed)
        rest = without(told, "is_error", "output")
        if (said := text_of(told, "message")) is not None:
            message.error = said
            if not message.content:
                message.content = rest.pop("message")
        if name in self._denied:
            message.failed, message.condition = True, "permission_denied"
        message.extra = rest or None
        self.talk.say(message)

    def _counted(self, payload: dict[str, Any]) -> None:
        """The tokens of a response; the same response may be counted again."""
        used = _usage(payload.get("token_usage"))
        answer = next((message for message in reversed(self.talk.messages) if message.role == "assistant"), None)
        if used is not None:
            self._tokens[text_of(payload, "message_id") or f"#{len(self._tokens)}"] = used
        if answer is None:
            return
        answer.id = text_of(payload, "message_id") or answer.id
        if used is not None:
            answer.input_tokens, answer.output_tokens = used.input_tokens, used.output_tokens
        if rest := without(payload, "token_usage", "message_id", "mcp_status"):
            answer.extra = {**(answer.extra or {}), "status": rest}

    def _agent(self, payload: dict[str, Any], at: Any) -> None:
        keys = ("parent_tool_call_id", "task_tool_call_id", "agent_id")
        name = next((found for key in keys if (found := text_of(payload, key))), "agent")
        agent = self.agents.setdefault(name, Turns())
        agent.kind = text_of(payload, "subagent_type") or agent.kind
        event = dict_of(payload, "event")
        inner = dict_of(event, "payload")
        agent.take(text_of(event, "type") or "", inner, at)

    def _other(self, kind: str, payload: dict[str, Any], at: Any) -> None:
        if kind == "ApprovalRequest":
            self._asked[text_of(payload, "id") or ""] = text_of(payload, "tool_call_id") or ""
        elif kind in ("ApprovalResponse", "ApprovalRequestResolved") and payload.get("response") == "reject":
            self._denied.add(self._asked.get(text_of(payload, "request_id") or "", ""))
        elif kind == "StepInterrupted":
            self.talk.ended = ("aborted", None)
            self.talk.flags.add("interrupted")
        elif kind == "CompactionEnd":
            self.talk.flags.add("compacted")
        if kind == "StepBegin":
            self.talk.close()
        if kind not in _QUIET:
            self.talk.note({"type": kind, "at": at, **without(payload)})


def _usage(usage: Any) -> Tokens | None:
    """`{input_other, output, input_cache_read, input_cache_creation}`: three parts of the input."""
    if not isinstance(usage, dict):
        return None
    parts = [whole(usage.get(key)) for key in ("input_other", "input_cache_read", "input_cache_creation")]
    known = [part for part in parts if part is not None]
    found = Tokens(sum(known) if known else None, whole(usage.get("output")), parts[1], parts[2])
    return found if found != Tokens() else None


def is_event(value: Any) -> bool:
    """Whether a record is an event of such a log."""
    message = dict_of(value, "message")
    return isinstance(message.get("payload"), dict) and text_of(message, "type") is not None and "timestamp" in value


def is_context(value: Any) -> bool:
    """Whether a record is one of a context file that no other format has."""
    role = text_of(value, "role")
    return role == _SYSTEM or (role == "_checkpoint" and "id" in value) or (role == "_usage" and "token_count" in value)


def context(records: Iterable[Record]) -> Conversation | str:
    """A context file: what the model was sent, between the program's own lines; the reason where one is none."""
    lines = list(records)
    messages: list[Message] = []
    marks: list[Any] = []
    for record in lines:
        role = text_of(record.value, "role")
        if role in _SAID_NOTHING:
            marks.append(record.value)
            continue
        found = chat_messages({**record.value, "role": "system"} if role == _SYSTEM else record.value)
        if isinstance(found, str):
            return found
        for message in found:
            if message.role == "tool" and message.content.startswith("<system>ERROR"):
                message.failed = True
            message.synthetic = message.role == "user" and message.content.startswith("<system>")
        messages += found
    return Conversation(messages, lines, agent=AGENT, extra={"marks": marks} if marks else None)


def events_of(values: Iterable[Any], turns: Turns) -> Turns:
    """Read the events of a log."""
    for value in values:
        if is_event(value):
            message = value["message"]
            turns.take(message["type"], message["payload"], value["timestamp"])
    return turns
