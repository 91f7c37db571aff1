"""One wire log of Kimi Code CLI as a conversation."""

from __future__ import annotations

from collections import Counter
from typing import Any

from etl.adapters._blocks import identifier, plain, read, result
from etl.adapters._session import dict_of, list_of, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Message, Tokens, ToolCall

_TYPED = frozenset({"turn.prompt", "turn.steer"})
_PLACE = ("type", "uuid", "turnId", "step", "stepUuid", "parentUuid")


class Wire:
    """The events of a log, one after the other."""

    def __init__(self) -> None:
        self._talk = Talk()
        self._extra: dict[str, Any] = {}
        self._tools: list[Any] | None = None
        self._provider: str | None = None
        self._system: str | None = None
        self._denied: set[str] = set()
        self._typed: list[tuple[str, Any]] = []
        """What was typed and has not entered the context yet."""
        self._heard: Counter[str] = Counter()

    def take(self, value: Any) -> None:
        """Read an event."""
        kind, at = text_of(value, "type") or "", value.get("time", value.get("created_at"))
        if kind == "context.append_message":
            self._message(dict_of(value, "message"), at)
        elif kind == "context.append_loop_event":
            self._step(dict_of(value, "event"), at)
        elif kind in _TYPED:
            self._typed.append((read(value.get("input")).text, at))
            rest = without(value, "type", "time", "input", "origin")
            if rest:
                self._talk.note({"type": kind, **rest})
        elif kind in ("config.update", "profile.bind", "metadata"):
            self._configure(value, at)
        elif kind == "llm.tools_snapshot":
            tools = value.get("tools")
            self._tools = tools if isinstance(tools, list) and tools else self._tools
        elif kind == "tools.set_active_tools":
            self._extra["active_tools"] = value.get("names")
        elif kind == "llm.request":
            self._provider = text_of(value, "provider") or self._provider
            self._talk.model = text_of(value, "model") or self._talk.model
            self._extra["llm_request"] = without(value, "type", "time", "provider", "model")
        elif kind == "turn.cancel":
            self._note(value, at)
            self._talk.ended = ("aborted", None)
            self._talk.flags.add("interrupted")
        elif kind.startswith("context.") and "compact" in kind:
            self._compacted(kind, value, at)
        else:
            if kind == "permission.record_approval_result" and (name := text_of(value, "toolCallId")):
                decision = text_of(dict_of(value, "result"), "decision")
                self._denied |= {name} if decision in ("rejected", "denied", "deny", "reject") else set()
            self._note(value, at)

    def finish(self, made: Conversation) -> bool:
        """Put what was read into a conversation; False where nobody says anything."""
        ended = self._talk.ended
        for text, at in self._typed:
            if text and self._heard[text] == 0:
                self._talk.ask(text, at)
            self._heard[text] -= 1
        self._talk.ended = ended
        if not self._talk.messages:
            return False
        made.agent, made.provider, made.extra, made.tools = "kimi-cli", self._provider, self._extra or None, self._tools
        self._talk.tell(made)
        return True

    def _note(self, value: dict[str, Any], at: Any) -> None:
        self._talk.note({"at": at, **without(value, "time")})

    def _configure(self, value: dict[str, Any], at: Any) -> None:
        system = text_of(value, "systemPrompt")
        if system is not None and system != self._system:
            self._system = system
            self._talk.say(Message("system", system, at=at))
        self._talk.model = text_of(value, "modelAlias") or self._talk.model
        self._extra |= without(value, "type", "time", "created_at", "systemPrompt")

    def _message(self, message: dict[str, Any], at: Any) -> None:
        role, said = text_of(message, "role"), read(message.get("content"))
        origin = dict_of(message, "origin")
        kind = text_of(origin, "kind")
        extra = without(message, "role", "content", "toolCalls", "toolCallId", *(("origin",) if kind == "user" else ()))
        if said.rest:
            extra["content"] = said.rest
        if role == "assistant":
            made = self._talk.answer(said, at, extra=extra)
            for item in list_of(message, "toolCalls"):
                tool = text_of(item, "name")
                if tool is not None:
                    call = ToolCall(tool, item.get("arguments", item.get("args")), identifier(item.get("id")))
                    made.calls = [*(made.calls or []), call]
                else:
                    made.parts = [*(made.parts or []), item]
        elif role == "tool":
            name = identifier(message.get("toolCallId"))
            self._talk.say(Message("tool", said.text, call_id=name, parts=said.parts, at=at, extra=extra or None))
        elif role == "user" and kind in (None, "user"):
            self._heard[said.text] += 1
            self._talk.ask(said.text, at, parts=said.parts, extra=extra)
        else:
            given = role if role in ("system", "developer") else "user"
            made = Message(given, said.text, parts=said.parts, at=at, synthetic=given == "user", extra=extra or None)
            self._talk.say(made)

    def _step(self, event: dict[str, Any], at: Any) -> None:
        kind = text_of(event, "type")
        if kind == "step.begin":
            self._talk.close()
        elif kind == "content.part":
            self._part(event, at)
        elif kind == "tool.call":
            name = identifier(event.get("toolCallId")) or identifier(event.get("uuid"))
            self._talk.call(ToolCall(text_of(event, "name") or "tool", event.get("args"), name), at)
            rest = without(event, *_PLACE, "toolCallId", "name", "args")
            if rest:
                self._talk.note({"call": name, **rest})
        elif kind == "tool.result":
            self._result(event, at)
        elif kind == "step.end":
            self._ended(event)
        else:
            self._talk.note({"at": at, **without(event)})

    def _part(self, event: dict[str, Any], at: Any) -> None:
        said = read([event.get("part")])
        if said.reasoning is not None:
            self._talk.think(said.reasoning, at)
        message = self._talk.piece(at)
        message.content += said.text
        message.parts = [*(message.parts or []), *(said.parts or [])] or None

    def _result(self, event: dict[str, Any], at: Any) -> None:
        name = identifier(event.get("toolCallId")) or identifier(event.get("parentUuid"))
        told = event.get("result")
        found = result(told) if isinstance(told, dict) else result({"content": told})
        message = Message("tool", found.text, call_id=name, at=at, parts=found.parts, failed=found.failed)
        if name in self._denied:
            message.failed, message.condition = True, "permission_denied"
        rest = {**without(event, *_PLACE, "toolCallId", "result"), **(found.rest or {})}
        message.extra = rest or None
        self._talk.say(message)

    def _ended(self, event: dict[str, Any]) -> None:
        """The counts and the reason of a step, for the model's last message."""
        answer = next((message for message in reversed(self._talk.messages) if message.role == "assistant"), None)
        used = _usage(event.get("usage"))
        if used is not None:
            self._talk.tokens.append(used)
        if answer is None:
            return
        answer.finish_reason = text_of(event, "finishReason")
        answer.id = text_of(event, "messageId") or answer.id
        if used is not None:
            answer.input_tokens, answer.output_tokens = used.input_tokens, used.output_tokens
        rest = without(event, *_PLACE, "usage", "finishReason", "messageId")
        if rest:
            answer.extra = {**(answer.extra or {}), "step": rest}

    def _compacted(self, kind: str, value: dict[str, Any], at: Any) -> None:
        self._talk.flags.add("compacted")
        summary = value.get("summary")
        if summary is None:
            self._note(value, at)
            return
        extra = {kind: rest} if (rest := without(value, "type", "time", "summary")) else None
        self._talk.say(Message("user", plain(summary), at=at, synthetic=True, extra=extra))


def _usage(usage: Any) -> Tokens | None:
    """`{inputOther, output, inputCacheRead, inputCacheCreation}`: three parts of the input."""
    if not isinstance(usage, dict):
        return None
    parts = [whole(usage.get(key)) for key in ("inputOther", "inputCacheRead", "inputCacheCreation")]
    known = [part for part in parts if part is not None]
    found = Tokens(sum(known) if known else None, whole(usage.get("output")), parts[1], parts[2])
    return found if found != Tokens() else None
