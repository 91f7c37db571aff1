"""The older event stream of OpenHands as messages: `{id, timestamp, source, message, action | observation, …}`.

An action that the model called carries the whole response of the model (`tool_call_metadata`), and so does its
observation; each response counts once. Without function calling an action is the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etl.adapters._blocks import call, plain
from etl.adapters._claude_text import echoes, texts_in
from etl.adapters._openhands_sdk import beyond, usage_of
from etl.adapters._session import dict_of, list_of, real, summed, text_of, whole, without
from etl.adapters._talk import Talk
from etl.adapters._usage import tokens
from etl.conversation import Conversation, Message, Tokens, ToolCall

_ENVELOPE = (
    "id", "timestamp", "source", "message", "action", "observation", "args", "extras", "content", "cause",
    "tool_call_metadata", "llm_metrics", "success",
)  # fmt: skip
_PROGRAM = frozenset({"recall", "null", "change_agent_state", "agent_state_changed", "condensation_request"})
_ENDS = {"finished": "completed", "error": "error", "rejected": "error", "stopped": "aborted"}
_HELD_ARGS = ("thought", "content", "image_urls", "file_urls", "wait_for_response")


def is_stream_event(value: Any) -> bool:
    """Whether a record is an event of the older stream."""
    return (
        isinstance(value, dict) and type(value.get("id")) is int and text_of(value, "action", "observation") is not None
    )


class Stream:
    """The events of a stream, by their number."""

    def __init__(self, values: Sequence[dict[str, Any]]) -> None:
        self.talk = Talk()
        self.tools: list[Any] = []
        self.extra: dict[str, Any] = {}
        self._responses: dict[str, Message] = {}
        self._by_event: dict[int, ToolCall] = {}
        self._cost: float | None = None
        self._accumulated: Tokens | None = None
        self._status: str | None = None
        for value in sorted(values, key=lambda value: value["id"] if type(value.get("id")) is int else 0):
            self._take(value)

    def tell(self, made: Conversation) -> Conversation:
        """Put what was read into a conversation."""
        made.tools, made.agent = self.tools or None, "openhands"
        made.usage = summed(self.talk.tokens) or self._accumulated
        if made.usage is not None:
            made.usage.cost_usd = self._cost if self._cost is not None else made.usage.cost_usd
        made.extra = {**(made.extra or {}), **self.extra} or None
        self.talk.tell(made)
        made.status = made.status or self._status
        return made

    def _take(self, value: dict[str, Any]) -> None:
        metrics = dict_of(value, "llm_metrics")
        cost = real(metrics.get("accumulated_cost"))
        self._cost = cost if cost is not None else self._cost
        self._accumulated = usage_of(dict_of(metrics, "accumulated_token_usage")) or self._accumulated
        action, observation = text_of(value, "action"), text_of(value, "observation")
        if action == "system":
            self._system(value)
        elif action == "message" or (action == "finish" and not dict_of(value, "tool_call_metadata")):
            self._say(value, action)
        elif (action or observation) in _PROGRAM:
            self._program(value)
        elif action in ("condensation", "summarize"):
            self._condensed(value)
        elif action is not None:
            self._act(value, action)
        else:
            self._observed(value, observation or "")

    def _system(self, value: dict[str, Any]) -> None:
        args = dict_of(value, "args")
        text = text_of(args, "content") or text_of(value, "message") or ""
        self.talk.say(Message("system", text, at=value.get("timestamp")))
        self.tools = list_of(args, "tools")
        self.extra.update(without(args, "content", "tools"))

    def _say(self, value: dict[str, Any], action: str) -> None:
        args, at = dict_of(value, "args"), value.get("timestamp")
        text = next((t for t in (args.get("content"), args.get("final_thought"), value.get("message")) if t), "")
        images = [*list_of(args, "image_urls"), *list_of(args, "file_urls")]
        extra = {**without(value, *_ENVELOPE), **without(args, *_HELD_ARGS, "final_thought")}
        if value.get("source") == "user":
            self.talk.ask(plain(text), at, parts=images or None, extra=extra)
            return
        message = Message("assistant", plain(text), at=at, model=self.talk.model, parts=images or None)
        message.extra = extra or None
        if args.get("thought") and args["thought"] != text:
            message.reasoning = plain(args["thought"])
        response = dict_of(dict_of(value, "tool_call_metadata"), "model_response")
        if response:
            self._count(message, response)
        self._responses = {}
        self.talk.say(message)
        self._status = "completed" if action == "finish" else None

    def _program(self, value: dict[str, Any]) -> None:
        """What the program notes; the end of the run where a state tells it."""
        state = text_of(dict_of(value, "extras"), "agent_state") or text_of(dict_of(value, "args"), "agent_state")
        reason = text_of(dict_of(value, "extras"), "reason")
        if state in _ENDS:
            self.talk.ended = (_ENDS[state], reason if _ENDS[state] == "error" else None)
        note = without(value, "id", "source")
        if note.get("message") == note.get("content"):
            note.pop("message", None)
        self.talk.note(note)

    def _condensed(self, value: dict[str, Any]) -> None:
        self.talk.flags.add("compacted")
        args = dict_of(value, "args")
        summary = text_of(args, "summary")
        if summary is None:
            self.talk.note(without(value, "id", "source"))
            return
        extra = without(args, "summary")
        self.talk.say(Message("user", summary, at=value.get("timestamp"), synthetic=True, extra=extra or None))

    def _act(self, value: dict[str, Any], action: str) -> None:
        args, at = dict_of(value, "args"), value.get("timestamp")
        metadata = dict_of(value, "tool_call_metadata")
        response = dict_of(metadata, "model_response")
        made = self._called(value, action, args, metadata)
        made.at = at
        if value.get("source") == "user":
            made.actor = "user"
            self.talk.say(Message("user", "", calls=[made], at=at, synthetic=True))
        else:
            message = self._response(response, args, at)
            message.calls = [*(message.calls or []), made]
            told = {**without(value, *_ENVELOPE), **without({"args": beyond(without(args, "thought"), made.arguments)})}
            said = text_of(value, "message")
            if said and not _echoed(said, made, message):
                told["message"] = said
            if told:
                message.extra = {**(message.extra or {}), "actions": [*(message.extra or {}).get("actions", []), told]}
        if made.id:
            self.talk.calls[made.id] = made
        if type(value.get("id")) is int:
            self._by_event[value["id"]] = made
        if action == "finish":
            self._status = "completed"

    def _called(self, value: dict[str, Any], action: str, args: dict[str, Any], metadata: dict[str, Any]) -> ToolCall:
        """The call as the model wrote it, else the action itself."""
        name = text_of(metadata, "tool_call_id")
        for choice in list_of(dict_of(metadata, "model_response"), "choices"):
            for block in list_of(dict_of(choice, "message"), "tool_calls"):
                found = call(block) if isinstance(block, dict) else None
                if found is not None and found.id == name:
                    return found
        named = text_of(metadata, "function_name") or action
        return ToolCall(named, without(args, "thought", "final_thought"), name or f"event_{value.get('id')}")

    def _response(self, response: dict[str, Any], args: dict[str, Any], at: Any) -> Message:
        """The message of a response: made once, whichever of its calls comes first."""
        name = text_of(response, "id")
        known = self._responses.get(name or "")
        if known is not None:
            return known
        choice: dict[str, Any] = next((c for c in list_of(response, "choices") if isinstance(c, dict)), {})
        said = dict_of(choice, "message")
        text = said.get("content") if isinstance(said.get("content"), str) else None
        message = Message("assistant", text or plain(args.get("thought")), at=at, id=name, model=self.talk.model)
        message.reasoning = text_of(said, "reasoning_content")
        message.finish_reason = text_of(choice, "finish_reason")
        if response:
            self._count(message, response)
            rest = without(response, "id", "choices", "usage", "model", "object", "created")
            more = without(said, "role", "content", "tool_calls", "reasoning_content")
            message.extra = {**rest, **without({"message": more})} or None
        self.talk.say(message)
        if name is not None:
            self._responses[name] = message
        return message

    def _count(self, message: Message, response: dict[str, Any]) -> None:
        self.talk.model = text_of(response, "model") or self.talk.model
        message.model = self.talk.model
        used = tokens(response.get("usage"))
        if used is not None and message.input_tokens is None:
            self.talk.tokens.append(used)
            message.input_tokens, message.output_tokens = used.input_tokens, used.output_tokens

    def _observed(self, value: dict[str, Any], kind: str) -> None:
        metadata, extras = dict_of(value, "tool_call_metadata"), dict_of(value, "extras")
        cause = value.get("cause")
        made = self._by_event.get(cause) if type(cause) is int else None
        name = made.id if made is not None else text_of(metadata, "tool_call_id")
        text = value.get("content") if value.get("content") not in (None, "") else value.get("message")
        message = Message("tool", plain(text), call_id=name, at=value.get("timestamp"))
        code = whole(dict_of(extras, "metadata").get("exit_code"))
        code = whole(extras.get("exit_code")) if code is None else code
        if kind == "user_rejected":
            message.failed, message.condition = True, "permission_denied"
        elif kind == "error" or value.get("success") is False or (code or 0) > 0:
            message.failed = True
            message.error = f"exit {code}" if code else None
        elif code == 0:
            message.failed = False
        known = made.arguments if made is not None else None
        told = echoes(beyond(extras, known), message.content, texts_in(known)) or {}
        rest = without(value, *_ENVELOPE)
        message.extra = {**rest, **without({"extras": told, "observation": kind if made is None else None})} or None
        if made is None and name is None:
            message.call_id = f"event_{cause}"
        self.talk.say(message)


def _echoed(text: str, made: ToolCall, message: Message) -> bool:
    """Whether the line that a person is shown of an action says no more than the call."""
    arguments = made.arguments if isinstance(made.arguments, str) else plain(made.arguments)
    words = text.split(": ", 1)[-1].strip()
    return words in message.content or words in arguments or words in arguments.replace("\\n", "\n").replace('\\"', '"')
