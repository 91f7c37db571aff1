"""The history of a Continue session as messages.

An item is a message with what stood around it: attached context, states of its calls (with what came back), reasoning
and logs of the requests. Those repeat the whole history each time: the model and, of the first, the system prompt are
taken from them. The state of the editor repeats what was typed.
"""

from __future__ import annotations

import re
from typing import Any

from etl.adapters._blocks import identifier, plain, read
from etl.adapters._records import left
from etl.adapters._rollouts import items, obj, text
from etl.adapters._run_usage import usage_of
from etl.adapters._session import summed, without
from etl.adapters._usage import whole_input
from etl.conversation import Message, Tokens, ToolCall

_ITEM = ("message", "contextItems", "editorState", "promptLogs", "toolCallState", "toolCallStates", "reasoning",
         "isGatheringContext", "timestamp")  # fmt: skip
_MESSAGE = ("role", "content", "toolCalls", "toolCallId", "id", "usage", "signature", "redactedThinking")
_STATE = frozenset({"toolCallId", "toolCall", "status", "parsedArgs", "output", "tool"})
_SYSTEM = re.compile(r"<system>\n(.*?)\n\n<(?:user|assistant)>\n", re.DOTALL)
"""How the log of a request begins."""
ROLES = frozenset({"user", "assistant", "system", "tool", "thinking"})


class History:
    """A session, being told."""

    def __init__(self, listed: list[Any]) -> None:
        self.messages: list[Message] = []
        self.tools: dict[str, Any] = {}
        """Definitions of tools that were called, by name."""
        self.counted: list[Tokens] = []
        self.compacted = False
        self._thought: Message | None = None
        self._answered = {
            identifier(told.get("toolCallId"))
            for item in listed
            if (told := obj(item, "message")).get("role") == "tool"
        }
        self._failed: dict[str | None, Any] = {}
        for item in listed:
            self._take(item)
        self._end_thought()
        self._prompt(listed)

    @property
    def usage(self) -> Tokens | None:
        """The sum over the answers that tell theirs."""
        return summed(self.counted)

    def _prompt(self, listed: list[Any]) -> None:
        """The system prompt of the first request that was logged, where the history does not have it."""
        logs = (log for item in listed for log in items(item, "promptLogs") if isinstance(log, dict))
        found = _SYSTEM.match(text(next(logs, {}).get("prompt")) or "")
        if found is not None and not any(message.role == "system" for message in self.messages):
            self.messages.insert(0, Message("system", found.group(1)))

    def _take(self, item: dict[str, Any]) -> None:
        told = item["message"]
        role = told["role"]
        if role == "tool":
            self.messages.append(self._result(told))
            return
        content = read(_spelt(told.get("content")))
        message = Message("assistant" if role == "thinking" else role, content.text, content.reasoning)
        message.parts, message.id = content.parts, identifier(told.get("id"))
        message.extra = self._rest(item, content.rest)
        message.at = item.get("timestamp") or obj(item, "reasoning").get("startAt")
        if role == "thinking":
            self._think(told, message)
            return
        if role == "assistant":
            self._answer(item, told, message)
        else:
            self._end_thought()
        states = [*items(item, "toolCallStates"), *([obj(item, "toolCallState")] if obj(item, "toolCallState") else [])]
        results = self._calls(told, [state for state in states if isinstance(state, dict)], message)
        said = message.content or message.reasoning or message.calls or message.parts or message.extra
        if said or role != "assistant":
            self.messages += [message, *results]

    def _rest(self, item: dict[str, Any], blocks: list[Any] | None) -> dict[str, Any] | None:
        rest = {**without(obj(item, "message"), *_MESSAGE), **without(item, *_ITEM)}
        if context := items(item, "contextItems"):
            rest["contextItems"] = context
        if blocks:
            rest["blocks"] = blocks
        self.compacted = self.compacted or bool(text(item.get("conversationSummary")))
        return {key: value for key, value in rest.items() if value is not False} or None

    def _think(self, told: dict[str, Any], message: Message) -> None:
        """Reasoning stands before its answer; what a provider signed or hid stays a part."""
        message.reasoning, message.content = message.content or None, ""
        signed = without(told, "role", "content", "id", "toolCalls")
        message.parts = [{"type": "thinking", **signed}] if signed else message.parts
        message.extra = None
        self._end_thought()
        self._thought = message

    def _end_thought(self) -> None:
        """Reasoning without an answer is a message of its own."""
        if self._thought is not None:
            self.messages.append(self._thought)
            self._thought = None

    def _answer(self, item: dict[str, Any], told: dict[str, Any], message: Message) -> None:
        thought, self._thought = self._thought, None
        beside = text(obj(item, "reasoning").get("text"))
        if thought is not None:
            message.reasoning = thought.reasoning
            message.parts = [*(thought.parts or ()), *(message.parts or ())] or None
            message.at = message.at or thought.at
        if beside is not None and beside != message.reasoning:
            message.reasoning = "\n".join(filter(None, (message.reasoning, beside)))
        logs = [log for log in items(item, "promptLogs") if isinstance(log, dict)]
        if logs:
            options = obj(logs[-1], "completionOptions")
            message.model = text(options.get("model")) or text(logs[-1].get("modelTitle"))
        usage = usage_in(told.get("usage"))
        if usage is not None:
            message.input_tokens, message.output_tokens = usage.input_tokens, usage.output_tokens
            self.counted.append(usage)
        message.model = message.model or text(obj(told, "usage").get("model"))

    def _calls(self, told: dict[str, Any], states: list[dict[str, Any]], message: Message) -> list[Message]:
        """The calls of a message, and what came back where no message of its own says it."""
        by_id = {
            identifier(state.get("toolCallId")) or identifier(obj(state, "toolCall").get("id")): state
            for state in states
        }
        calls = [call for call in items(told, "toolCalls") if isinstance(call, dict)]
        known = {identifier(call.get("id")) for call in calls}
        calls += [obj(state, "toolCall") for name, state in by_id.items() if name not in known]
        results: list[Message] = []
        for number, call in enumerate(calls):
            call_id, function = identifier(call.get("id")), obj(call, "function")
            state = by_id.get(call_id) or (states[number] if number < len(states) and call_id is None else {})
            call_id = call_id or identifier(state.get("toolCallId"))
            tool = obj(state, "tool")
            name = text(function.get("name")) or text(obj(tool, "function").get("name")) or ""
            given = function.get("arguments")
            given = state.get("parsedArgs") if given in (None, "") else given
            message.calls = [*(message.calls or ()), ToolCall(name, given, call_id)]
            if name and obj(tool, "function"):
                self.tools.setdefault(name, tool)
            if rest := left(state, _STATE):
                message.extra = {**(message.extra or {}), f"call:{call_id or name}": rest}
            self._failed[call_id] = state.get("status")
            if call_id is None or call_id not in self._answered:
                results += _outcome(state, call_id)
        return results

    def _result(self, told: dict[str, Any]) -> Message:
        content = read(_spelt(told.get("content")))
        call_id = identifier(told.get("toolCallId"))
        message = Message("tool", content.text, call_id=call_id, parts=content.parts, id=identifier(told.get("id")))
        _judge(message, self._failed.get(call_id))
        message.extra = without(told, *_MESSAGE) or None
        return message


def usage_in(told: Any) -> Tokens | None:
    """Counts of one answer or of a session; noughts all over are what a session begins with."""
    if not isinstance(told, dict):
        return None
    found = usage_of(told) or Tokens()
    read_, written = (obj(told, "promptTokensDetails").get(key) for key in ("cachedTokens", "cacheWriteTokens"))
    found.cached_tokens = read_ if type(read_) is int and read_ > 0 else None
    found.cache_write_tokens = written if type(written) is int and written > 0 else None
    thought = obj(told, "completionTokensDetails").get("reasoningTokens")
    found.reasoning_tokens = thought if type(thought) is int and thought >= 0 else None
    cost = told.get("totalCost")
    found.cost_usd = float(cost) if isinstance(cost, (int, float)) and cost > 0 else None
    return whole_input(found) if found.input_tokens or found.output_tokens or found.cost_usd else None


def _spelt(content: Any) -> Any:
    """Parts by the names that blocks have elsewhere."""
    if not isinstance(content, list):
        return content
    return [
        {"type": "image_url", "image_url": part.get("imageUrl")}
        if isinstance(part, dict) and part.get("type") == "imageUrl"
        else part
        for part in content
    ]


def _outcome(state: dict[str, Any], call_id: str | None) -> list[Message]:
    """What came back from a call, by its state; none where it has not ended."""
    output, status = state.get("output"), state.get("status")
    given = output if isinstance(output, list) else [output] if output not in (None, "") else []
    if not given and status not in ("canceled", "errored"):
        return []
    texts = [plain(item.get("content")) if isinstance(item, dict) else plain(item) for item in given]
    message = Message("tool", "\n\n".join(texts), call_id=call_id)
    about = [left(item, ("content",)) for item in given if isinstance(item, dict)]
    message.extra = {"output": about} if any(about) else None
    _judge(message, status)
    return [message]


def _judge(message: Message, status: Any) -> None:
    if status == "canceled":
        message.cancelled = True
    elif status in ("errored", "done"):
        message.failed = status == "errored"
