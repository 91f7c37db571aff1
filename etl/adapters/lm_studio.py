"""LM Studio conversations (`*.conversation.json`): messages with versions, of which one is selected.

An answer is a list of steps: blocks of thoughts and text, requests of tools, how each went, and what came back. The
selected versions are the row of a conversation; every other version is a row that inherits what stands before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._blocks import identifier, plain
from etl.adapters._branches import Tree
from etl.adapters._records import ClaimAdapter, left
from etl.adapters._rollouts import count, items, obj, text
from etl.adapters._session import summed
from etl.adapters._tree_rows import Said, Talk, rows
from etl.adapters._turns import Turn
from etl.conversation import Ignored, Message, Outcome, Record, Tokens, ToolCall, Unusable
from etl.decode import encode
from etl.identity import digest

_ROLES = frozenset({"user", "assistant", "system"})
_SILENT = "silent_conversation"
_PROMPT = "llm.prediction.systemPrompt"
_HELD = ("messages", "systemPrompt", "createdAt", "clientInput", "userLastMessagedAt", "assistantLastMessagedAt")
_VERSION = frozenset({"type", "role", "content", "steps", "senderInfo"})
_BLOCK = frozenset({"type", "content", "style", "genInfo", "stepIdentifier", "prefix", "suffix", "role",
                    "defaultShouldIncludeInContext", "shouldIncludeInContext"})  # fmt: skip
_INFO = ("indexedModelIdentifier", "identifier", "stats")
_STATS = ("stopReason", "promptTokensCount", "predictedTokensCount", "totalTokensCount")
_STOPPED = "userStopped"


class LMStudio(ClaimAdapter):
    """Conversations of LM Studio."""

    name = "lm_studio"
    about = "LM Studio conversations: {messages: [{versions, currentlySelected}], createdAt}; other versions are rows"
    splits = True
    ignores: ClassVar[dict[str, str]] = {_SILENT: "a conversation in which nobody says anything"}

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of messages with versions."""
        listed = value.get("messages")
        if not isinstance(listed, list):
            return 0.0
        if not listed:
            return 0.9 if "perChatPredictionConfig" in value else 0.0
        return 0.95 if all(map(_is_message, listed[:8])) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The rows of each conversation."""
        for record in records:
            value = record.value
            if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
                yield Unusable(record, "no_messages", "a conversation is an object with a list of messages")
            elif not value["messages"]:
                yield Ignored(_SILENT)
            elif not all(map(_is_message, value["messages"])):
                yield Unusable(
                    record, "bad_message", "a message of the conversation has no versions; see what wrote it"
                )
            else:
                yield from _rows(record, value)


def _is_message(item: Any) -> bool:
    listed = item.get("versions") if isinstance(item, dict) else None
    return isinstance(listed, list) and bool(listed) and all(isinstance(each, dict) for each in listed)


def _rows(record: Record, value: dict[str, Any]) -> Iterator[Outcome]:
    versions: dict[str, dict[str, Any]] = {}
    above: dict[str, str | None] = {}
    before: str | None = None
    for index, item in enumerate(value["messages"]):
        for number, version in enumerate(item["versions"]):
            versions[f"{index}.{number}"], above[f"{index}.{number}"] = version, before
        selected = count(item.get("currentlySelected"))
        before = f"{index}.{selected if selected is not None and selected < len(item['versions']) else 0}"
    first = versions["0.0"]
    key = digest(encode([value.get("createdAt"), first]).encode("utf-8", "surrogatepass"))
    talk = Talk(
        f"lm_studio:{key}",
        Tree.of(above),
        before or "0.0",
        lambda name: _said(versions[name]),
        lambda name: versions[name].get("role") == "assistant",
    )
    made = rows(talk, [record])
    if isinstance(made, str):
        yield Unusable(record, "bad_message", made)
        return
    system, model = _system(value), obj(value, "lastUsedModel")
    for row in made:
        row.agent, row.conversation_id = "lm-studio", key
        if system is not None:
            row.messages.insert(0, Message("system", system, inherited=row is not made[0]))
        if not any(message.model for message in row.messages):
            row.model = text(model.get("indexedModelIdentifier")) or text(model.get("identifier"))
    times = [value.get(name) for name in ("userLastMessagedAt", "assistantLastMessagedAt")]
    made[0].started_at = value.get("createdAt")
    made[0].ended_at = max((at for at in times if isinstance(at, (int, float))), default=None)
    rest = {name: item for name, item in (left(value, _HELD) or {}).items() if item not in ("", [], {}, False)}
    made[0].extra = rest or None
    yield from made


def _system(value: dict[str, Any]) -> str | None:
    """The system prompt, which newer versions keep among the settings."""
    fields = items(obj(value, "perChatPredictionConfig"), "fields")
    kept = (each.get("value") for each in fields if isinstance(each, dict) and each.get("key") == _PROMPT)
    return text(value.get("systemPrompt")) or text(next(kept, None))


def _said(version: dict[str, Any]) -> Said | str:
    role = version.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        return f"its role {plain(role)[:60]!r} is not known"
    steps = [step for step in items(version, "steps") if isinstance(step, dict)]
    blocks = steps if version.get("type") == "multiStep" or steps else [{"content": items(version, "content")}]
    answer = _Answer({identifier(step.get("callId")): step for step in steps if step.get("type") == "toolStatus"})
    for block in blocks:
        if block.get("type") in (None, "contentBlock"):
            answer.take(block)
        elif block.get("type") != "toolStatus":
            answer.others.append(block)
    messages = answer.done()
    for message in messages:
        if message.role == "assistant":
            message.role, message.model = role, answer.model if role == "assistant" else None
    last = next((message for message in reversed(messages) if message.role == role), messages[-1])
    used = summed(answer.counted.values())
    last.finish_reason = answer.finish_reason
    if used is not None:
        last.input_tokens, last.output_tokens = used.input_tokens, used.output_tokens
    rest = {**(left(version, _VERSION) or {}), **({"steps": answer.others} if answer.others else {})}
    if rest := {name: item for name, item in rest.items() if item not in ("", [], {}, False)}:
        messages[0].extra = {**(messages[0].extra or {}), **rest}
    return Said(messages, used, status="aborted" if answer.finish_reason == _STOPPED else None)


class _Answer:
    """The steps of a version, being told."""

    def __init__(self, states: dict[str | None, dict[str, Any]]) -> None:
        self.counted: dict[str, Tokens] = {}
        """What each prediction used: blocks of one repeat it."""
        self.model: str | None = None
        self.finish_reason: str | None = None
        self.others: list[Any] = []
        self._turn = Turn()
        self._states = states

    def done(self) -> list[Message]:
        """The messages."""
        return self._turn.done()

    def take(self, block: dict[str, Any]) -> None:
        """A block of content."""
        thinks = obj(block, "style").get("type") == "thinking"
        for piece in items(block, "content"):
            self._piece(piece, thinks)
        info = obj(block, "genInfo")
        stats = obj(info, "stats")
        self.model = text(info.get("indexedModelIdentifier")) or text(info.get("identifier")) or self.model
        self.finish_reason = text(stats.get("stopReason")) or self.finish_reason
        used = Tokens(count(stats.get("promptTokensCount")), count(stats.get("predictedTokensCount")))
        if used != Tokens():
            self.counted[encode(stats)] = used
        told = {**(left(info, _INFO) or {}), **({"stats": more} if (more := left(stats, _STATS)) else {})}
        if told and told not in self.others:
            self.others.append(told)
        if rest := left(block, _BLOCK):
            self.others.append(rest)

    def _piece(self, piece: Any, thinks: bool) -> None:
        kind = piece.get("type") if isinstance(piece, dict) else None
        if kind == "text" and isinstance(piece.get("text"), str):
            if piece["text"] and thinks:
                self._turn.reasoning(piece["text"])
            elif piece["text"]:
                self._turn.text(piece["text"])
        elif kind == "toolCallRequest":
            call_id = identifier(piece.get("callId")) or identifier(piece.get("toolCallRequestId"))
            self._turn.call(ToolCall(plain(piece.get("name")), piece.get("parameters"), call_id))
        elif kind == "toolCallResult":
            call_id = identifier(piece.get("toolCallId"))
            self._turn.result(self._result(piece, call_id if call_id is not None else identifier(piece.get("callId"))))
        else:
            self._turn.part(piece)

    def _result(self, piece: dict[str, Any], call_id: str | None) -> Message:
        """What came back, and how the call went where a step says so."""
        message = Message("tool", plain(piece.get("content")), call_id=call_id)
        status = obj(obj(self._states.get(call_id), "statusState"), "status")
        kind = text(status.get("type")) or ""
        if kind in ("toolCallSucceeded", "toolCallFailed"):
            message.failed = kind == "toolCallFailed"
        message.cancelled = kind == "toolCallDenied"
        failed = status.get("error")
        message.error = plain(failed) if failed is not None and message.failed else None
        if isinstance(status.get("timeMs"), (int, float)):
            message.duration_ms = float(status["timeMs"])
        return message
