"""Events of the OpenHands SDK as messages: `{kind, id, timestamp, source, …}`.

Calls that came with one response of the model (`llm_response_id`) are one message. What the agent's state says of
tokens and of the end is taken from its latest version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from etl.adapters._blocks import plain, read
from etl.adapters._claude_text import echoes, texts_in
from etl.adapters._session import canonical, dict_of, list_of, real, summed, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Message, Tokens, ToolCall

_ENVELOPE = ("id", "timestamp", "source", "kind")
_ENDS = {"finished": "completed", "error": "error", "stuck": "error"}
_STATE = frozenset({"ConversationStateUpdateEvent", "base_state"})
_NOTES = frozenset({"thinking_blocks", "thought", "reasoning_content", "responses_reasoning_item"})


def kind_of(value: Any) -> str | None:
    """The kind of an event; older ones do not name it, their keys do. `base_state` is the file beside the events.

    >>> kind_of({"source": "user", "llm_message": {}}), kind_of({"id": 1, "action": "run"})
    ('MessageEvent', None)
    """
    if not isinstance(value, dict):
        return None
    if is_state(value):
        return "base_state"
    named = text_of(value, "kind")
    if named is not None or not isinstance(value.get("source"), str):
        return named if "source" in value else None
    if "system_prompt" in value:
        return "SystemPromptEvent"
    if "llm_message" in value:
        return "MessageEvent"
    if "tool_call" in value and "action" in value:
        return "ActionEvent"
    return "ObservationEvent" if "observation" in value and "action_id" in value else None


def is_state(value: dict[str, Any]) -> bool:
    """Whether a record is the state of a conversation (`base_state.json`)."""
    return "kind" not in value and dict_of(value, "agent") != {} and bool(value.keys() & {"stats", "max_iterations"})


class Events:
    """The events of a conversation, one after the other."""

    def __init__(self, values: Sequence[dict[str, Any]]) -> None:
        self.talk = Talk()
        self.tools: list[Any] = []
        self.extra: dict[str, Any] = {}
        self.status: str | None = None
        self._response: str | None = None
        self._message: Message | None = None
        self._finished = False
        self._state = _latest(values)
        self._counts = _counts(self._state)
        model = dict_of(dict_of(self._state, "agent"), "llm").get("model")
        self.talk.model = model if isinstance(model, str) and model else _counted_model(self._state)
        for value in values:
            self._take(value, kind_of(value) or "")

    def tell(self, made: Conversation) -> Conversation:
        """Put what was read into a conversation."""
        uses = dict_of(dict_of(self._state, "stats"), "usage_to_metrics")
        totals = [_total(metrics) for metrics in uses.values() if isinstance(metrics, dict)]
        self.talk.tokens = [total for total in totals if total is not None]
        state = without(self._state, "stats", "agent", "activated_knowledge_skills")
        self.extra = {**without({"state": state}), **self.extra}
        if len(uses) > 1:
            self.extra["usage_by"] = {
                name: dict_of(metrics, "accumulated_token_usage") for name, metrics in uses.items()
            }
        agent = dict_of(self._state, "agent")
        if agent:
            self.extra["agent"] = {**without(agent, "llm"), "llm": without(dict_of(agent, "llm"), "api_key")}
        made.tools, made.agent, made.extra = self.tools or None, "openhands", self.extra or None
        made.usage = summed(self.talk.tokens)
        ended = text_of(self._state, "execution_status", "agent_status")
        made.status = _ENDS.get(ended or "") or ("completed" if self._finished else None)
        return self.talk.tell(made)

    def _take(self, value: dict[str, Any], kind: str) -> None:
        at = value.get("timestamp")
        if kind == "ActionEvent":
            self._act(value, at)
            return
        if kind not in _STATE and kind not in ("ObservationEvent", "AgentErrorEvent", "TokenEvent"):
            self._response = self._message = None
        if kind in ("SystemPromptEvent", "SystemPromptUpdateEvent"):
            self._system(value, at)
        elif kind == "MessageEvent":
            self._say(value, at)
        elif kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
            self._observed(value, kind, at)
        elif kind in ("Condensation", "CondensationSummaryEvent"):
            self._condensed(value, at)
        elif kind == "ConversationErrorEvent":
            self.talk.note(without(value, "id"))
            self.talk.ended = ("error", text_of(value, "detail", "code") or kind)
        elif kind not in _STATE:
            self.talk.note(without(value, "id"))

    def _system(self, value: dict[str, Any], at: Any) -> None:
        """A system prompt with the tools; a later one replaces both for what comes after it."""
        said = read(value.get("system_prompt"))
        extra = without(value, *_ENVELOPE, "system_prompt", "tools")
        later = read(extra.pop("dynamic_context", None))
        message = Message("system", said.text, id=text_of(value, "id"), at=at, parts=said.parts, extra=extra or None)
        self.talk.say(message)
        if later.text:
            self.talk.say(Message("system", later.text, at=at))
        for tool in list_of(value, "tools"):
            offered = _offered(tool)
            if offered not in self.tools:
                self.tools.append(offered)

    def _say(self, value: dict[str, Any], at: Any) -> None:
        message = dict_of(value, "llm_message")
        said = read(message.get("content"))
        role = text_of(message, "role") or ("user" if value.get("source") == "user" else "assistant")
        extra = without(value, *_ENVELOPE, "llm_message", "extended_content")
        extra.update(without(message, "role", "content", "thinking_blocks", "reasoning_content", "tool_calls"))
        if said.rest:
            extra["content"] = said.rest
        name = text_of(value, "id")
        if role == "assistant":
            thought = read(message.get("thinking_blocks"))
            said.reasoning = text_of(message, "reasoning_content") or thought.reasoning
            said.parts = [*(said.parts or []), *(thought.parts or [])] or None
            made = self.talk.answer(said, at, id=name, extra=extra)
            self._count(made, text_of(value, "llm_response_id"))
            return
        synthetic = value.get("source") not in ("user", None)
        self.talk.ask(said.text, at, id=name, parts=said.parts, extra=extra)
        if synthetic and self.talk.messages:
            self.talk.messages[-1].synthetic = True
        added = read(value.get("extended_content"))
        if added.text:
            self.talk.say(Message("user", added.text, at=at, synthetic=True))

    def _act(self, value: dict[str, Any], at: Any) -> None:
        """A call; of one response of the model all in one message."""
        response = text_of(value, "llm_response_id")
        message = self._message
        if message is None or response is None or response != self._response:
            thought = read(value.get("thought"))
            thinking = read(value.get("thinking_blocks"))
            message = self.talk.say(Message("assistant", thought.text, at=at, id=response, model=self.talk.model))
            message.reasoning = text_of(value, "reasoning_content") or thinking.reasoning
            item = value.get("responses_reasoning_item")
            message.parts = [*(thinking.parts or []), *([item] if item else [])] or None
            self._count(message, response)
            self._message, self._response = message, response
        call = _call(value)
        call.at = at
        message.calls = [*(message.calls or []), call]
        if call.id:
            self.talk.calls[call.id] = call
        self._finished = self._finished or call.name == "finish"
        more = without(value, *_ENVELOPE, *_NOTES, "tool_name", "tool_call_id", "tool_call", "llm_response_id")
        more["action"] = beyond(without(dict_of(value, "action"), "kind"), call.arguments)
        more.update(without(dict_of(value, "tool_call"), "id", "name", "arguments", "function", "type", "index"))
        told = {**without(more), "event": value.get("id")}
        message.extra = {**(message.extra or {}), "actions": [*(message.extra or {}).get("actions", []), told]}

    def _observed(self, value: dict[str, Any], kind: str, at: Any) -> None:
        call_id = text_of(value, "tool_call_id")
        observation = dict_of(value, "observation")
        if kind == "AgentErrorEvent" and call_id is None:
            self.talk.note(without(value, "id"))
            self.talk.ended = ("error", text_of(value, "error") or kind)
            return
        call = self.talk.calls.get(call_id or "")
        message = Message("tool", call_id=call_id, at=at, id=text_of(value, "id"))
        extra = without(value, *_ENVELOPE, "observation", "tool_call_id", "action_id", "error", "rejection_reason")
        if call is not None and extra.get("tool_name") == call.name:
            del extra["tool_name"]
        if kind == "UserRejectObservation":
            message.content = text_of(value, "rejection_reason") or "rejected"
            message.failed, message.condition = True, "permission_denied"
        elif kind == "AgentErrorEvent":
            message.content, message.failed = plain(value.get("error")), True
        else:
            _fill(message, observation, call)
        message.extra = {**extra, **(message.extra or {})} or None
        held = self._message
        self.talk.say(message)
        self._message = held

    def _condensed(self, value: dict[str, Any], at: Any) -> None:
        self.talk.flags.add("compacted")
        summary = text_of(value, "summary")
        rest = {key: item for key, item in without(value, "id", "summary").items() if key != "timestamp"}
        if summary is not None:
            self.talk.say(Message("user", summary, at=at, synthetic=True, extra=rest))
        else:
            self.talk.note(rest)

    def _count(self, message: Message, response: str | None) -> None:
        count = self._counts.get(response or "")
        if count is not None:
            message.input_tokens, message.output_tokens = count.input_tokens, count.output_tokens
            message.model = message.model or self.talk.model


def _fill(message: Message, observation: dict[str, Any], call: ToolCall | None) -> None:
    """Text and outcome of an observation: its content, or the older fields of its kind."""
    key = next((key for key in ("content", "output", "text", "message", "error") if observation.get(key)), "content")
    said = read(observation.get(key))
    message.content, message.parts = said.text, said.parts
    flag, code = observation.get("is_error"), whole(observation.get("exit_code"))
    if code is None:
        code = whole(dict_of(observation, "metadata").get("exit_code"))
    if flag is True or (isinstance(observation.get("error"), str) and observation["error"]) or (code or 0) > 0:
        message.failed = True
        message.error = f"exit {code}" if code else None
        message.condition = "timeout" if observation.get("timeout") is True else None
    elif code == 0:
        message.failed = False
    rest = without(observation, key, "is_error", "kind", *(("exit_code",) if code == 0 else ()))
    told = echoes(rest, message.content, texts_in(call.arguments) if call is not None else ())
    message.extra = {"observation": told} if told else None


def _call(value: dict[str, Any]) -> ToolCall:
    """The call of an action event: as the model wrote it, else what was made of it."""
    told = dict_of(value, "tool_call")
    function = dict_of(told, "function")
    name = text_of(value, "tool_name") or text_of(told, "name") or text_of(function, "name") or "tool"
    arguments = told.get("arguments", function.get("arguments"))
    if arguments is None:
        arguments = without(dict_of(value, "action"), "kind")
    return ToolCall(name, arguments, text_of(value, "tool_call_id") or text_of(told, "id"))


def beyond(told: dict[str, Any], arguments: Any) -> dict[str, Any] | None:
    """What a structured copy of a call's arguments says beyond them (objects, or JSON text of one).

    >>> beyond({"command": "ls", "blocking": True}, '{"command": "ls"}')
    {'blocking': True}
    """
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (ValueError, RecursionError):
            return told or None
    known = arguments if isinstance(arguments, dict) else {}
    left = {key: item for key, item in told.items() if item not in (None, False, "", [], {}) and known.get(key) != item}
    return {key: item for key, item in left.items() if item not in list(known.values())} or None


def _offered(tool: Any) -> Any:
    """A tool in function form where the log describes it by its classes."""
    if isinstance(tool, dict) and "action_type" in tool and "function" not in tool:
        name = text_of(tool, "name", "title") or text_of(dict_of(tool, "annotations"), "title") or "tool"
        rest = without(tool, "description", "name")
        return {"type": "function", "function": {"name": name, "description": tool.get("description"), **rest}}
    return tool


def _latest(values: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The state as it was last: of whole states the one that had used most, with the single values told after it."""
    found: dict[str, Any] = {}
    for value in values:
        kind = kind_of(value)
        told = value.get("value") if kind == "ConversationStateUpdateEvent" else value
        if kind == "ConversationStateUpdateEvent" and value.get("key") != "full_state":
            if isinstance(value.get("key"), str):
                found = {**found, value["key"]: told}
        elif kind in _STATE and isinstance(told, dict) and _spent(told) >= _spent(found):
            found = {**found, **told}
    return found


def _spent(state: dict[str, Any]) -> tuple[int, int]:
    uses = dict_of(dict_of(state, "stats"), "usage_to_metrics")
    totals = [_total(metrics) for metrics in uses.values() if isinstance(metrics, dict)]
    return sum((total.input_tokens or 0) for total in totals if total), len(canonical(state))


def _counted_model(state: dict[str, Any]) -> str | None:
    """The model whose tokens are those of the agent, or the only one that was counted."""
    uses = dict_of(dict_of(state, "stats"), "usage_to_metrics")
    names = {name for metrics in uses.values() if (name := text_of(metrics, "model_name"))}
    named = text_of(dict_of(uses, "agent"), "model_name")
    return named or (names.pop() if len(names) == 1 else None)


def _counts(state: dict[str, Any]) -> dict[str, Tokens]:
    """What each response of the model used, where the state tells it."""
    found: dict[str, Tokens] = {}
    for metrics in dict_of(dict_of(state, "stats"), "usage_to_metrics").values():
        for usage in list_of(metrics, "token_usages"):
            name, tokens = text_of(usage, "response_id"), usage_of(usage)
            if name is not None and tokens is not None:
                found[name] = tokens
    return found


def _total(metrics: dict[str, Any]) -> Tokens | None:
    found = usage_of(dict_of(metrics, "accumulated_token_usage"))
    cost = real(metrics.get("accumulated_cost"))
    if found is None:
        return Tokens(cost_usd=cost) if cost else None
    found.cost_usd = cost
    return found


def usage_of(usage: Any) -> Tokens | None:
    """`{prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens}`: all inside."""
    if not isinstance(usage, dict):
        return None
    counts = [
        whole(usage.get(key))
        for key in ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    ]
    return Tokens(*counts) if any(count is not None for count in counts) else None
