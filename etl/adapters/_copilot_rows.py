"""Events of a GitHub Copilot CLI session as conversations: the main thread, and each sub-agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from etl.adapters._blocks import identifier, plain, result
from etl.adapters._claude_text import echoes, texts_in
from etl.adapters._session import dict_of, list_of, noted, stored, summed, text_of, whole, without
from etl.conversation import Conversation, Identity, Message, Record, StoredEvent, Tokens, ToolCall

HARNESS = "copilot-cli"
_ENVELOPE = ("type", "data", "id", "timestamp", "parentId")
_PARENT_CALL = "parentToolCallId"
_EXIT = re.compile(r"<(?:exited|command with shellId: \S{1,80} (?:completed|exited)) with exit code (-?\d{1,10})>\s*\Z")
"""How the text of a shell command ends, which is a success for the program whatever the command said."""


def conversations(key: str, events: Sequence[StoredEvent]) -> Iterator[Conversation]:
    """The rows of a session; the main thread first."""
    threads: dict[str, list[StoredEvent]] = {"": []}
    for event in events:
        value = stored(event)
        data = dict_of(value, "data")
        named = text_of(data, _PARENT_CALL) or text_of(value, "agentId") or ""
        threads.setdefault(named, []).append(event)
    main = _Reading(threads.pop(""), None)
    others = {thread: _Reading(part, main.model) for thread, part in threads.items()}
    if main.messages:
        made = main.conversation(key, "")
        made.usage = _less(made.usage, [used for other in others.values() if (used := other.used()) is not None])
        yield made
    for thread, other in others.items():
        if other.messages:
            made = other.conversation(key, thread)
            made.parent, made.agent = Identity(key), main.agents.get(thread) or HARNESS
            made.extra = {"tool_call_id": thread, **(made.extra or {})}
            yield made


def _less(total: Tokens | None, others: list[Tokens]) -> Tokens | None:
    """The totals of a session without what its sub-agents' rows have of them."""
    if total is None or not others:
        return total
    part = summed(others) or Tokens()
    left = Tokens()
    for name in Tokens.__struct_fields__:
        whole_of, part_of = getattr(total, name), getattr(part, name)
        setattr(left, name, whole_of if part_of is None or whole_of is None else max(0, whole_of - part_of))
    return left


class _Reading:
    """The events of one thread, one after the other."""

    def __init__(self, events: Sequence[StoredEvent], model: str | None) -> None:
        self.model = model
        self.messages: list[Message] = []
        self.agents: dict[str, str] = {}
        self._records: list[Record] = [event.record for event in events]
        self._flags: set[str] = set()
        self._calls: dict[str, ToolCall] = {}
        self._answers: dict[str, Message] = {}
        self._spoken: dict[str, Message] = {}
        self._tokens: list[Tokens] = []
        self._total: Tokens | None = None
        self._extra: dict[str, Any] = {}
        self._early: list[Any] = []
        self._end: tuple[str, str | None] | None = None
        self._reasoning: list[str] = []
        self._started_at: Any = None
        announced = {
            name
            for event in events
            for request in list_of(dict_of(stored(event), "data"), "toolRequests")
            if (name := identifier(request.get("toolCallId")) if isinstance(request, dict) else None)
        }
        self._announced = announced
        for event in events:
            value = stored(event)
            if isinstance(value, dict):
                self._take(value, text_of(value, "type") or "", dict_of(value, "data"))
        for note in self._early if self.messages else ():
            noted(self.messages[0], "notes", note)

    def conversation(self, key: str, thread: str) -> Conversation:
        """What was read as a conversation."""
        made = Conversation(self.messages, self._records, native_id=key, branch=thread, conversation_id=key)
        made.agent, made.flags, made.extra = HARNESS, self._flags, self._extra or None
        made.model = next((m.model for m in reversed(self.messages) if m.role == "assistant" and m.model), self.model)
        made.usage, made.started_at = self.used(), self._started_at
        if self._end is not None:
            made.status, made.error = self._end
        return made

    def used(self) -> Tokens | None:
        """What the requests of this thread used: the totals of its runs, and what came after the last of them."""
        if self._total is None:
            return summed(self._tokens)
        if any(tokens.input_tokens is None for tokens in self._tokens):
            self._flags.add("usage_partial")
        return summed([self._total, *self._tokens])

    def _take(self, value: dict[str, Any], kind: str, data: dict[str, Any]) -> None:
        if kind == "user.message":
            self._asked(value, data)
        elif kind == "system.message":
            said = Message("system", plain(data.get("content")))
            self._say(value, said, without(data, "content", *(("role",) if data.get("role") == "system" else ())))
        elif kind in ("assistant.message", "assistant.reasoning"):
            self._answered(value, kind, data)
        elif kind == "tool.user_requested" and text_of(data, "toolName") is not None:
            self._typed(value, data)
        elif kind == "tool.execution_start":
            self._started(value, data)
        elif kind == "tool.execution_complete":
            self._completed(value, data)
        elif kind == "assistant.usage":
            self._used(value, data)
        elif kind.startswith("session.") or kind == "abort":
            self._session(value, kind, data)
        elif kind == "subagent.started" and (name := text_of(data, "toolCallId")):
            self.agents[name] = text_of(data, "agentName") or HARNESS
            self._note(value, kind, data)
        else:
            self._note(value, kind, data)

    def _say(self, value: dict[str, Any], message: Message, extra: dict[str, Any]) -> Message:
        message.id, message.at = message.id or text_of(value, "id"), value.get("timestamp")
        rest = without(value, *_ENVELOPE)
        extra = {**extra, **rest}
        extra.pop(_PARENT_CALL, None)
        message.extra = {**extra, **(message.extra or {})} or None
        self.messages.append(message)
        self._end = None
        return message

    def _note(self, value: dict[str, Any], kind: str, data: dict[str, Any]) -> None:
        note = {"type": kind, "timestamp": value.get("timestamp"), **without(data), **without(value, *_ENVELOPE)}
        if self.messages:
            noted(self.messages[-1], "notes", note)
        else:
            self._early.append(note)

    def _asked(self, value: dict[str, Any], data: dict[str, Any]) -> None:
        """What a person typed; what the program made of it for the model is kept where it says more."""
        text = plain(data.get("content"))
        said = Message("user", text, parts=list_of(data, "attachments") or None)
        source = text_of(data, "source")
        said.synthetic = source is not None and source not in ("user", "cli", "prompt")
        sent = text_of(data, "transformedContent")
        extra = without(data, "content", "attachments", "transformedContent")
        if sent and sent.strip() != text.strip():
            extra["transformedContent"] = sent
        self._say(value, said, extra)

    def _answered(self, value: dict[str, Any], kind: str, data: dict[str, Any]) -> None:
        name = text_of(data, "messageId")
        if kind == "assistant.reasoning":
            self._reasoning.append(plain(data.get("content")))
            return
        said = self._spoken.get(name) if name is not None else None
        if said is None:
            said = self._say(value, Message("assistant", id=name), {})
            said.model = text_of(data, "model") or self.model
        said.content = plain(data.get("content")) or said.content
        reasoning = text_of(data, "reasoningText") or "\n".join(text for text in self._reasoning if text)
        said.reasoning = reasoning or said.reasoning
        self._reasoning = []
        if name is not None:
            self._spoken[name] = said
        for request in list_of(data, "toolRequests"):
            self._request(said, request, value)
        opaque = without({key: data.get(key) for key in ("reasoningOpaque", "encryptedContent")})
        if opaque:
            said.parts = [*(said.parts or []), {"type": "reasoning", **opaque}]
        written = whole(data.get("outputTokens"))
        if written is not None:
            said.output_tokens = written
            self._tokens.append(Tokens(None, written))
        held = ("content", "messageId", "toolRequests", "reasoningText", "reasoningOpaque", "encryptedContent", "model")
        rest = without(data, *held, "outputTokens", _PARENT_CALL)
        if rest:
            said.extra = {**(said.extra or {}), **rest}

    def _request(self, said: Message, request: Any, value: dict[str, Any]) -> None:
        tool = text_of(request, "name")
        if tool is None:
            said.parts = [*(said.parts or []), request]
            return
        call = ToolCall(tool, request.get("arguments"), identifier(request.get("toolCallId")))
        call.at = value.get("timestamp")
        if call.id is not None and call.id in self._calls:
            return
        said.calls = [*(said.calls or []), call]
        if call.id is not None:
            self._calls[call.id] = call
        rest = without(
            request, "name", "arguments", "toolCallId", *(("type",) if request.get("type") == "function" else ())
        )
        if rest:
            noted(said, "calls", {"id": call.id, **rest})

    def _started(self, value: dict[str, Any], data: dict[str, Any]) -> None:
        """The start of a call: it only repeats one that a message announces, else it is the call."""
        name, tool = identifier(data.get("toolCallId")), text_of(data, "toolName")
        call = self._calls.get(name or "")
        if call is None and name not in self._announced and tool is not None:
            call = ToolCall(tool, data.get("arguments"), name, at=value.get("timestamp"))
            last = self.messages[-1] if self.messages and self.messages[-1].role == "assistant" else None
            last = last or self._say(value, Message("assistant", model=self.model), {})
            last.calls = [*(last.calls or []), call]
            if name is not None:
                self._calls[name] = call
        rest = without(data, "toolCallId", "toolName", "arguments", _PARENT_CALL)
        if rest:
            self._note(value, "tool.execution_start", {"toolCallId": name, **rest})

    def _typed(self, value: dict[str, Any], data: dict[str, Any]) -> None:
        """A command that the person ran themselves."""
        call = ToolCall(text_of(data, "toolName") or "", data.get("arguments"), identifier(data.get("toolCallId")))
        call.actor, call.at = "user", value.get("timestamp")
        self._say(
            value,
            Message("user", "", calls=[call], synthetic=True),
            without(data, "toolCallId", "toolName", "arguments"),
        )
        if call.id is not None:
            self._calls[call.id] = call

    def _completed(self, value: dict[str, Any], data: dict[str, Any]) -> None:
        name = identifier(data.get("toolCallId"))
        call = self._calls.get(name or "")
        told, error = data.get("result"), data.get("error")
        found = result(told) if isinstance(told, dict) else result({"content": told})
        text = found.text or text_of(error, "message") or plain(error)
        said = Message("tool", text, call_id=name, parts=found.parts)
        success = data.get("success")
        said.failed = not success if isinstance(success, bool) else None
        ended = _EXIT.search(text)
        if ended is not None and ended[1] != "0":
            said.failed, said.error = True, f"exit {ended[1]}"
        code = text_of(error, "code")
        if code in ("rejected", "denied"):
            said.condition = "permission_denied"
        arguments = texts_in(call.arguments) if call is not None else ()
        more = echoes({"result": found.rest, "error": error}, text, arguments)
        rest = without(data, "toolCallId", "success", "result", "error")
        if rest.get("model") == self.model:
            rest.pop("model", None)
        self._say(value, said, {**rest, **(more if isinstance(more, dict) else {})})

    def _used(self, value: dict[str, Any], data: dict[str, Any]) -> None:
        """Counts of one request: they count where messages have none of their own."""
        fresh, again, written = (whole(data.get(key)) for key in ("inputTokens", "cacheReadTokens", "cacheWriteTokens"))
        tokens = Tokens(fresh, whole(data.get("outputTokens")), again, written, whole(data.get("reasoningTokens")))
        if tokens != Tokens():
            self._tokens = [count for count in self._tokens if count.input_tokens is not None]
            self._tokens.append(tokens)
            answer = next((said for said in reversed(self.messages) if said.role == "assistant"), None)
            self.model = text_of(data, "model") or self.model
            if answer is not None and answer.input_tokens is None:
                answer.model = answer.model or self.model
                answer.input_tokens, answer.output_tokens = tokens.input_tokens, tokens.output_tokens
        held = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
        rest = without(data, *held, *(("model",) if data.get("model") == self.model else ()))
        if rest:
            self._note(value, "assistant.usage", rest)

    def _session(self, value: dict[str, Any], kind: str, data: dict[str, Any]) -> None:
        if kind == "session.start" and not self._extra:
            self.model = text_of(data, "selectedModel") or self.model
            self._started_at = value.get("timestamp") or data.get("startTime")
            self._extra = without(data, "sessionId", "startTime")
        elif kind == "session.model_change":
            self.model = text_of(data, "newModel") or self.model
            self._note(value, kind, data)
        elif kind == "session.compaction_complete":
            self._compacted(value, kind, data)
        elif kind in ("session.error", "abort"):
            self._note(value, kind, data)
            if kind == "abort":
                self._flags.add("interrupted")
                self._end = ("aborted", None)
            else:
                self._flags.add("api_error")
                self._end = ("error", text_of(data, "message") or kind)
        elif kind == "session.shutdown":
            self._shut_down(data)
        else:
            self._note(value, kind, data)

    def _compacted(self, value: dict[str, Any], kind: str, data: dict[str, Any]) -> None:
        summary = text_of(data, "summaryContent", "summary")
        self._flags.add("compacted")
        if summary is None:
            self._note(value, kind, data)
            return
        said = Message("user", summary, synthetic=True)
        self._say(value, said, {kind: without(data, "summaryContent", "summary")})

    def _shut_down(self, data: dict[str, Any]) -> None:
        """The totals of the session, by model; cached reads are part of the input."""
        metrics = dict_of(data, "modelMetrics")
        counts = []
        for name in metrics:
            usage = dict_of(dict_of(metrics, name), "usage")
            tokens = Tokens(
                whole(usage.get("inputTokens")),
                whole(usage.get("outputTokens")),
                whole(usage.get("cacheReadTokens")),
                whole(usage.get("cacheWriteTokens")),
                whole(usage.get("reasoningTokens")),
            )
            counts.append(tokens)
        total = summed(counts)
        if total is not None:
            self._total = summed([*([self._total] if self._total else []), total])
            self._tokens = []
        self._extra["shutdown"] = without(data)
