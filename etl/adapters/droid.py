"""Factory Droid: session files (`session_start`, then `message` lines) and event streams (`droid exec -o stream-json`).

A session file has messages with Anthropic blocks; a stream has flat `message`, `tool_call`, `tool_result` and
`completion` events. Both name their session and end in rows of the same shape. `<session>.settings.json` beside a file
has the model and all that the session used, and names the session by its own name alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._blocks import identifier, plain, read, result
from etl.adapters._session import Naming, SureAdapter, dict_of, sessions, stored, text_of, whole, without
from etl.adapters._talk import Talk
from etl.adapters._usage import tokens
from etl.conversation import (
    Conversation,
    Fragment,
    Ignored,
    Message,
    Outcome,
    Record,
    StoredEvent,
    Tokens,
    ToolCall,
    Unusable,
)

_KNOWN = frozenset(
    {
        "session_start", "session_end", "message", "todo_state", "compaction_state", "system", "tool_call",
        "tool_result", "completion", "error", "reasoning",
    }
)  # fmt: skip
_UNKNOWN = "unknown_type"
_ALONE = "settings_without_session"
_ENVELOPE = ("type", "id", "timestamp", "message", "session_id", "sessionId", "role", "text", "parentId")
_CALL_IDS = ("toolCallId", "tool_call_id", "id")

_COUNTS = ("cacheReadTokens", "cacheCreationTokens", "inputTokens", "outputTokens", "thinkingTokens")
_EXIT = re.compile(r"\[Process exited with code (-?\d{1,10})\]\s*\Z")
"""How the output of a command ends."""
_CANCELLED = "cancelled by user"


class Droid(SureAdapter):
    """Sessions and streams of Factory Droid."""

    name = "droid"
    version = 3
    about = "Factory Droid: session files of session_start and message lines, and droid exec's stream-json events"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        f"{_UNKNOWN}:*": "a type of line not known here",
        _ALONE: "the settings and the usage of a session that is not there",
    }

    def looks(self, value: Any) -> float:
        """Whether it is a line; sure only where a header, a call or an end has what no other log has."""
        return _looks(value)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each line under its session."""
        naming = Naming()
        for record in records:
            value = record.value
            kind = text_of(value, "type")
            if _is_settings(value):
                yield Fragment(record, re.split(r"[/!]", file.uri)[-1].split(".")[0])
            elif kind is None:
                yield Unusable(record, "no_type", "a line of a session is an object with a type; this is none")
            elif kind not in _KNOWN:
                yield Ignored(f"{_UNKNOWN}:{kind[:40]}")
            elif kind == "message" and not dict_of(value, "message") and text_of(value, "role") is None:
                yield Unusable(record, "no_message", "a message without a role; the log is damaged here")
            else:
                name = text_of(value, "id") if kind == "session_start" else text_of(value, "session_id", "sessionId")
                if name is not None and name != naming.key:
                    yield from naming.begin(name)
                yield from naming.take(record, value.get("timestamp"))
        yield from naming.end()

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Ignored]:
        """A row for each session in which somebody says something."""
        for key, events in sorted(sessions(family).items()):
            reading = _Reading()
            values = [stored(event) for event in events]
            settings: dict[str, Any] = next((value for value in reversed(values) if _is_settings(value)), {})
            for value in values:
                if not _is_settings(value):
                    reading.take(value)
            made = Conversation([], [event.record for event in events], native_id=key, conversation_id=key)
            made.agent = "droid"
            reading.settle(settings, made)
            if reading.talk.messages:
                yield reading.talk.tell(made)
            elif settings:
                yield from (Ignored(_ALONE, 1, event.record) for event in events if _is_settings(stored(event)))


def _is_settings(value: Any) -> bool:
    """Whether it is what a session was set to and used, as its settings file has it."""
    used = dict_of(value, "tokenUsage")
    return "inputTokens" in used and "assistantActiveTimeMs" in value and text_of(value, "type") is None


def _looks(value: Any) -> float:
    kind = text_of(value, "type")
    if _is_settings(value):
        return 0.93
    if kind is None or "uuid" in value:
        return 0.0
    timed = "timestamp" in value
    if kind == "session_start":
        return 0.93 if text_of(value, "id") and value.keys() & {"title", "owner", "sessionTitle"} else 0.0
    if kind == "system":
        return 0.5 if timed and text_of(value, "session_id", "sessionId") and "cwd" in value else 0.0
    if kind == "message":
        flat = timed and text_of(value, "role") is not None and isinstance(value.get("text"), str)
        if flat:
            return 0.93 if "id" in value and text_of(value, "session_id", "sessionId") else 0.6
        return 0.4 if dict_of(value, "message") else 0.0
    if kind == "tool_call":
        return 0.95 if timed and "toolName" in value and "parameters" in value else 0.0
    if kind == "tool_result":
        return 0.93 if timed and "value" in value else 0.0
    if kind == "completion":
        return 0.95 if "finalText" in value else 0.0
    return 0.3 if kind in _KNOWN and timed else 0.0


class _Reading:
    """The lines of one session, one after the other."""

    def __init__(self) -> None:
        self.talk = Talk()
        self.extra: dict[str, Any] = {}

    def settle(self, settings: dict[str, Any], made: Conversation) -> None:
        """What the settings say: the model, and what the session used where its lines do not."""
        self.talk.model = self.talk.model or text_of(settings, "model")
        made.provider = text_of(settings, "providerLock")
        held = ["model", "providerLock"]
        if not self.talk.tokens and (used := dict_of(settings, "tokenUsage")):
            read_again, written, fresh, out, thought = (whole(used.get(name)) for name in _COUNTS)
            total = None if fresh is None else fresh + (read_again or 0) + (written or 0)
            self.talk.tokens.append(Tokens(total, out, read_again, written, thought))
            held.append("tokenUsage")
        rest = without(settings, *held)
        self.extra = {**self.extra, **({"settings": rest} if rest else {})}
        made.extra = self.extra or None

    def take(self, value: Any) -> None:
        """Read a line."""
        kind, at = text_of(value, "type"), value.get("timestamp")
        if kind == "message":
            self._message(value, at)
        elif kind in ("session_start", "system"):
            self.talk.model = text_of(value, "model") or self.talk.model
            self.extra = {**self.extra, **without(value, *_ENVELOPE, "model")}
        elif kind == "tool_call":
            self._call(value, at)
        elif kind == "tool_result":
            self._result(value, at)
        elif kind == "completion":
            self._completion(value, at)
        elif kind == "reasoning":
            self.talk.think(plain(value.get("text")), at)
        elif kind == "compaction_state":
            self._compacted(value, at)
        elif kind == "error":
            self.talk.note(without(value, "id", "session_id", "sessionId"))
            self.talk.ended = ("error", text_of(value, "message") or plain(value.get("error")) or kind)
        else:
            self.talk.note(without(value, "id", "session_id", "sessionId"))

    def _message(self, value: dict[str, Any], at: Any) -> None:
        message = dict_of(value, "message")
        role = text_of(message, "role") or text_of(value, "role")
        said = read(message["content"] if "content" in message else value.get("text"))
        extra = {**without(value, *_ENVELOPE), **without(message, "role", "content")}
        if said.rest:
            extra["content"] = said.rest
        name = text_of(value, "id")
        if role == "assistant":
            made = self.talk.answer(said, at, id=name, extra=extra)
            made.model = text_of(message, "model") or made.model
            used = tokens(message.get("usage"))
            if used is not None:
                self.talk.tokens.append(used)
                made.input_tokens, made.output_tokens = used.input_tokens, used.output_tokens
        for found in said.results or ():
            answer = Message("tool", found.text, call_id=found.call_id, parts=found.parts, failed=found.failed, at=at)
            answer.extra = {"content": found.rest} if found.rest else None
            ended = _EXIT.search(found.text)
            if ended is not None and ended[1] != "0":
                answer.failed, answer.error = True, f"exit {ended[1]}"
            answer.cancelled = answer.failed is True and _CANCELLED in found.text[:200]
            self.talk.say(answer)
        if role == "system":
            self.talk.say(Message("system", said.text, parts=said.parts, at=at, extra=extra or None))
        elif role != "assistant" and (said.text or said.parts or not said.results):
            self.talk.ask(said.text, at, id=name, parts=said.parts, extra=extra)

    def _call(self, value: dict[str, Any], at: Any) -> None:
        name = next((found for key in _CALL_IDS if (found := identifier(value.get(key)))), None)
        tool = text_of(value, "toolName", "toolId") or "tool"
        self.talk.call(ToolCall(tool, value.get("parameters"), name), at)
        rest = without(value, *_ENVELOPE, *_CALL_IDS, "toolName", "parameters", "messageId")
        if rest.get("toolId") == tool:
            del rest["toolId"]
        if rest:
            self.talk.note({"call": name, **rest})

    def _result(self, value: dict[str, Any], at: Any) -> None:
        name = next((found for key in _CALL_IDS if (found := identifier(value.get(key)))), None)
        told = value.get("value")
        rest = without(value, *_ENVELOPE, *_CALL_IDS, "value", "isError", "messageId", "toolId", "toolName")
        failed = value.get("isError") if isinstance(value.get("isError"), bool) else None
        code: int | None = None
        if isinstance(told, dict) and ("stdout" in told or "stderr" in told):
            text = "\n".join(plain(told[key]) for key in ("stdout", "stderr") if told.get(key))
            code, parts = whole(told.get("exitCode")), None
            more = without(told, "stdout", "stderr", *(("exitCode",) if code == 0 else ()))
        else:
            told_result = result({"content": told})
            text, parts, more = told_result.text, told_result.parts, told_result.rest or {}
        if failed is None and code is not None:
            failed = code != 0
        message = Message("tool", text, call_id=name, at=at, failed=failed, parts=parts)
        message.extra = {**rest, **({"value": more} if more else {})} or None
        self.talk.say(message)

    def _completion(self, value: dict[str, Any], at: Any) -> None:
        """The end of a run: its last text where no message says it, and what it used."""
        text = text_of(value, "finalText")
        if text and not any(message.content.strip() == text.strip() for message in self.talk.messages[-6:]):
            self.talk.speak(text, at)
        used = tokens(value.get("usage"))
        if used is not None:
            self.talk.tokens.append(used)
        rest = without(value, *_ENVELOPE, "finalText", "usage")
        if rest:
            self.talk.note({"type": "completion", **rest})
        self.talk.close()

    def _compacted(self, value: dict[str, Any], at: Any) -> None:
        self.talk.flags.add("compacted")
        summary = text_of(value, "summaryText", "summary")
        rest = without(value, *_ENVELOPE, "summaryText", "summary")
        if summary is None:
            self.talk.note({"type": "compaction_state", **rest})
        else:
            self.talk.say(
                Message("user", summary, at=at, synthetic=True, extra={"compaction_state": rest} if rest else None)
            )
