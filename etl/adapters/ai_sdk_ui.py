"""UI messages of the Vercel AI SDK, as chats are stored: `{id, role, parts}`, before version 5 `toolInvocations`.

A record is a chat (`{id, messages}`), or a message: then a chat is those of one `chatId` (the message table of the chat
template), or all of the file. One stored message of the assistant holds a whole turn: `step-start` parts the model's
responses, and each tool part is a call together with what came back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import parsed
from etl.adapters._records import left
from etl.adapters._rollouts import count, items, obj, text
from etl.conversation import Conversation, Message, Outcome, Record, Tokens, ToolCall, Unusable
from etl.decode import encode
from etl.identity import digest
from etl.times import instant

_ROLES = ("system", "user", "assistant")
_CHAT_IDS = ("chatId", "chat_id")
_TIMES = ("createdAt", "created_at")
_LEGACY = "tool-invocation"
_ENDED = frozenset({"output-available", "output-error", "output-denied", "result"})
_CALL = frozenset({"type", "toolName", "toolCallId", "state", "input", "args", "output", "result", "errorText", "step"})
_LIKELY = 0.85
"""The claim on typed parts alone, which others could write too."""
_HELD = frozenset({"id", "role", "parts", "content", "toolInvocations", "reasoning", *_TIMES})


class AiSdkUi(Adapter):
    """Stored chats of the Vercel AI SDK."""

    name = "ai_sdk_ui"
    version = 2
    about = "UI messages of the Vercel AI SDK: {id, messages: [{id, role, parts}]}, a list of messages, or one a line"

    def score(self, sample: Sample) -> float:
        """Sure of typed parts beside a role, and of tool invocations in one."""
        if not sample.values:
            return 0.0
        claims = [_claim(value) for value in sample.values]
        return 0.92 if max(claims) > _LIKELY and all(map(_speaks, sample.values)) else sum(claims) / len(claims)

    def share(self, start: Sample) -> float:
        """What they claim; all of them, where each speaks."""
        return len(start.values) if all(map(_speaks, start.values)) else sum(map(_claim, start.values))

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation for each chat; messages that stand alone are put together by their chat."""
        chats: dict[str, list[Record]] = {}
        for record in records:
            value = record.value
            if not isinstance(value, dict):
                yield Unusable(record, "not_an_object", "a record is a chat or a message of one; this is none")
            elif isinstance(value.get("messages"), list):
                yield _chat(record, value)
            elif value.get("role") in _ROLES:
                key = next((found for found in (identifier(value.get(key)) for key in _CHAT_IDS) if found), "")
                chats.setdefault(key, []).append(record)
            else:
                yield Unusable(record, "unknown_role", "a message is said by the system, the user or the assistant")
        for key, found in chats.items():
            if all(_at(record.value) is not None for record in found):
                found.sort(key=lambda record: instant(_at(record.value)).micros or 0)
            yield _conversation([record.value for record in found], found, key or None, None)


def _speaks(value: Any) -> bool:
    return isinstance(value, dict) and value.get("role") in _ROLES


def _claim(value: Any) -> float:
    if not isinstance(value, dict):
        return 0.0
    listed = value.get("messages")
    said = [item for item in listed[:8] if isinstance(item, dict)] if isinstance(listed, list) else [value]
    looks = [_looks(item) for item in said]
    return max(looks) if looks and (all(looks) or max(looks) > _LIKELY) else 0.0


def _looks(value: dict[str, Any]) -> float:
    """How much one message is of the SDK."""
    if value.get("role") not in _ROLES:
        return 0.0
    parts = [*_parts(value), *items(value, "toolInvocations")]
    if any(isinstance(item, dict) and (_is_tool(item) or item.get("type") == "step-start") for item in parts):
        return 0.95
    told = [isinstance(item, dict) and item.get("type") in ("text", "reasoning") and "text" in item for item in parts]
    return _LIKELY if any(told) else 0.0


def _is_tool(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    if kind == _LEGACY:
        return bool(obj(item, "toolInvocation"))
    named = isinstance(kind, str) and (kind.startswith("tool-") or kind == "dynamic-tool")
    return isinstance(item.get("toolCallId"), str) and isinstance(item.get("state"), str) and (named or kind is None)


def _parts(value: dict[str, Any]) -> list[Any]:
    """The parts; text of a column that holds their JSON counts."""
    found = value.get("parts", obj(value, "content").get("parts"))
    found = parsed(found) if isinstance(found, str) else found
    return found if isinstance(found, list) else []


def _at(value: dict[str, Any]) -> Any:
    return next((value[key] for key in _TIMES if isinstance(value.get(key), (str, int, float))), None)


def _chat(record: Record, value: dict[str, Any]) -> Outcome:
    listed = value["messages"]
    for index, item in enumerate(listed):
        if not isinstance(item, dict) or item.get("role") not in _ROLES:
            return Unusable(record, "unknown_role", f"messages[{index}] is no message with a known role")
    chat = next((found for found in (identifier(value.get(key)) for key in ("id", *_CHAT_IDS)) if found), None)
    made = _conversation(listed, [record], chat, _at(value))
    held = {"messages", *(key for key in ("id", *_CHAT_IDS) if chat and identifier(value.get(key)) == chat)}
    held |= {key for key in _TIMES if made.started_at is not None and value.get(key) == made.started_at}
    made.extra = left(value, held)
    return made


def _conversation(listed: list[dict[str, Any]], records: list[Record], chat: str | None, started: Any) -> Conversation:
    messages = [message for item in listed for message in _messages(item)]
    first = listed[0] if listed else {}
    told = [obj(item, "metadata") for item in listed]
    counted = [found for found in map(_usage, told) if found is not None]
    begun = encode([chat, first.get("id"), _at(first)]).encode("utf-8", "surrogatepass")
    return Conversation(
        messages,
        records,
        native_id=f"ai_sdk:{digest(begun)}" if identifier(first.get("id")) else None,
        local_id=chat,
        conversation_id=chat,
        task_from_prompt=True,
        model=next((name for name in (text(found.get("model")) for found in told) if name), None),
        started_at=started,
        usage=_sum(counted) if counted else None,
    )


def _usage(metadata: dict[str, Any]) -> Tokens | None:
    """Usage of a whole turn, where the application keeps it in the metadata."""
    usage = obj(metadata, "totalUsage") or obj(metadata, "usage")
    found = Tokens(
        count(usage.get("inputTokens")),
        count(usage.get("outputTokens")),
        count(usage.get("cachedInputTokens")),
        None,
        count(usage.get("reasoningTokens")),
    )
    return found if found != Tokens() else None


def _sum(counted: list[Tokens]) -> Tokens:
    def of(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    return Tokens(
        of([each.input_tokens for each in counted]),
        of([each.output_tokens for each in counted]),
        of([each.cached_tokens for each in counted]),
        None,
        of([each.reasoning_tokens for each in counted]),
    )


def _messages(value: dict[str, Any]) -> list[Message]:
    """A stored message as the messages of the model: one for each step, and the results of its calls after it."""
    parts = _parts(value)
    invoked = items(value, "toolInvocations")
    said = value.get("content")
    if isinstance(said, dict):  # Mastra's, with the parts in it
        said = left(said, ("parts", "format", "content"))
    if not parts:
        parts = [{"type": "reasoning", "text": value["reasoning"]}] if text(value.get("reasoning")) else []
        parts += [{"type": _LEGACY, "toolInvocation": item} for item in invoked]
        parts += [{"type": "text", "text": said}] if text(said) else []
    turn = _Turn(value)
    for part in parts:
        turn.take(part)
    made = turn.done()
    rest = left(value, _HELD) or {}
    texts = "".join(item["text"] for item in parts if isinstance(item, dict) and _is_text(item))
    if said not in (None, "", texts) and not (isinstance(said, str) and said and texts.endswith(said)):
        rest["content"] = said
    known = {call.id for message in made for call in message.calls or ()}
    strangers = [
        item for item in invoked if not isinstance(item, dict) or identifier(item.get("toolCallId")) not in known
    ]
    if strangers:
        rest["toolInvocations"] = strangers
    if rest:
        made[0].extra = {**(made[0].extra or {}), **rest}
    return made


def _is_text(part: dict[str, Any]) -> bool:
    return part.get("type") == "text" and isinstance(part.get("text"), str)


class _Turn:
    """The messages of one stored message, being told apart."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value
        self._made: list[Message] = []
        self._results: list[Message] = []
        self._step = self._message()
        self._number: Any = None
        self._marked = any(isinstance(item, dict) and item.get("type") == "step-start" for item in _parts(value))

    def _message(self) -> Message:
        return Message(self._value["role"], id=identifier(self._value.get("id")), at=_at(self._value))

    def take(self, part: Any) -> None:
        """Sort one part in. Without marks between steps, what follows a result is the next one."""
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "step-start":
            self._end_step()
            return
        if isinstance(part, dict) and _is_tool(part):
            self._tool(part)
            return
        if self._results and not self._marked and kind in ("text", "reasoning"):
            self._end_step()
        step = self._step
        if isinstance(part, dict) and kind in ("text", "reasoning") and isinstance(part.get("text"), str):
            if kind == "text":
                step.content += part["text"]
            else:
                step.reasoning = "\n".join(filter(None, (step.reasoning, part["text"]))) or None
            part = {key: item for key, item in part.items() if key not in ("text", "state") and item is not None}
            if len(part) == 1:
                return
        step.parts = [*(step.parts or ()), part]

    def _tool(self, part: dict[str, Any]) -> None:
        told = obj(part, "toolInvocation") if part.get("type") == _LEGACY else part
        name = told.get("toolName")
        if not isinstance(name, str):
            name = part["type"].removeprefix("tool-") if isinstance(part.get("type"), str) else ""
        given = next((told[key] for key in ("input", "args", "rawInput") if told.get(key) is not None), None)
        if self._results and not self._marked and told.get("step") != self._number:
            self._end_step()
        self._number = told.get("step")
        call_id = identifier(told.get("toolCallId"))
        actor = "server" if told.get("providerExecuted") is True else "agent"
        self._step.calls = [*(self._step.calls or ()), ToolCall(name, given, call_id, actor)]
        state, rest = told.get("state"), left(told, _CALL) or {}
        if "rawInput" in rest and rest["rawInput"] == given:
            del rest["rawInput"]
        if isinstance(state, str) and state in _ENDED and told.get("preliminary") is not True:
            self._results.append(_result(told, call_id, name, rest))
            return
        rest |= {key: told[key] for key in ("state", "output") if told.get(key) is not None}
        self._step.extra = {**(self._step.extra or {}), f"call:{call_id or name}": rest}

    def _end_step(self) -> None:
        step = self._step
        if step.content or step.reasoning or step.calls or step.parts:
            self._made += [step, *self._results]
            self._results, self._step = [], self._message()

    def done(self) -> list[Message]:
        """The messages; one without content where the stored one was empty."""
        self._end_step()
        return self._made or [self._step]


def _result(told: dict[str, Any], call_id: str | None, name: str, rest: dict[str, Any]) -> Message:
    state = told.get("state")
    message = Message("tool", call_id=call_id, name=name or None, extra=rest or None)
    if state == "output-error":
        message.failed, message.content = True, plain(told.get("errorText"))
    elif state == "output-denied":
        message.cancelled, message.content = True, plain(obj(told, "approval").get("reason"))
    else:
        output = next((told[key] for key in ("output", "result") if told.get(key) is not None), None)
        message.failed, message.content = False, plain(output)
    return message
