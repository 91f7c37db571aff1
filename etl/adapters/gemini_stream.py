"""The output of `gemini --output-format stream-json`: init, message, tool_use, tool_result, error and result events.

A file is the capture of one run or of several appended; each `init` begins one. Text of the model comes in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._blocks import identifier, plain, read
from etl.adapters._session import SureAdapter, dict_of, noted, text_of, whole, without
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Tokens, ToolCall, Unusable
from etl.identity import digest

_UNKNOWN = "unknown_type"
_KNOWN = frozenset({"init", "message", "tool_use", "tool_result", "error", "result"})
_ROLES = {"user": "user", "assistant": "assistant", "model": "assistant", "system": "system"}


class GeminiStream(SureAdapter):
    """Event streams of Gemini CLI."""

    name = "gemini_stream"
    version = 1
    about = "gemini --output-format stream-json: JSON Lines of init, message, tool_use, tool_result and result events"
    ignores: ClassVar[dict[str, str]] = {f"{_UNKNOWN}:*": "a type of event not known here"}

    def looks(self, value: Any) -> float:
        """Whether it is an event; sure only where a run begins or a tool is used."""
        return _looks(value)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation for each run in the file."""
        run: list[Record] = []
        for record in records:
            kind = text_of(record.value, "type")
            if kind is None:
                yield Unusable(record, "no_type", "an event of the stream is an object with a type; this is none")
            elif kind not in _KNOWN:
                yield Ignored(f"{_UNKNOWN}:{kind[:40]}")
            elif kind == "message" and text_of(record.value, "role") not in _ROLES:
                yield Unusable(record, "unknown_role", "a message without a known role; see what wrote it")
            elif kind == "tool_use" and text_of(record.value, "tool_name") is None:
                yield Unusable(record, "no_tool", "a call without the name of its tool; the log is damaged here")
            else:
                if kind == "init" and run:
                    yield _Run(run).conversation()
                    run = []
                run.append(record)
        if run:
            yield _Run(run).conversation()


def _looks(value: Any) -> float:
    kind = text_of(value, "type")
    if kind == "init":
        return 0.93 if text_of(value, "session_id") and "model" in value else 0.0
    if kind in ("tool_use", "tool_result"):
        return 0.95 if "tool_id" in value and value.keys() & {"tool_name", "status"} else 0.0
    if kind == "message":
        return 0.6 if isinstance(value.get("content"), str) and text_of(value, "role") in _ROLES else 0.0
    if kind == "result":
        return 0.4 if "status" in value and "subtype" not in value else 0.0
    return 0.3 if kind == "error" and "severity" in value else 0.0


class _Run:
    """One run, event by event."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self._messages: list[Message] = []
        self._delta = False
        """True while further pieces of text belong to the last message."""
        self._early: list[Any] = []
        first = records[0]
        session = text_of(first.value, "session_id") if first.value["type"] == "init" else None
        made = Conversation(self._messages, records, native_id=session or f"h_{digest(first.raw)}")
        made.attempt, made.conversation_id = digest(first.raw), session
        made.agent, made.flags = "gemini-cli", set()
        self._made = made

    def conversation(self) -> Conversation:
        """The run as a conversation, named by its session and its first event: a session can be resumed in another
        run."""
        made = self._made
        for record in self._records:
            self._take(record.value)
        if made.status is None and made.error is None:
            made.status = "unknown"
            made.flags = {"incomplete"}
        for note in self._early if self._messages else ():
            noted(self._messages[0], "notes", note)
        if not self._messages:
            made.flags = {"incomplete"}
        return made

    def _take(self, event: dict[str, Any]) -> None:
        kind, at = event["type"], event.get("timestamp", event.get("ts"))
        if kind == "message":
            self._message(event, at)
            return
        self._delta = False
        if kind == "init":
            self._made.model = text_of(event, "model")
            self._made.started_at = at
            self._made.extra = without(event, "type", "model", "session_id", "timestamp", "ts") or None
        elif kind == "tool_use":
            self._call(event, at)
        elif kind == "tool_result":
            self._messages.append(_answer(event, at))
        elif kind == "result":
            self._result(event, at)
        else:
            note = without(event)
            if self._messages:
                noted(self._messages[-1], "notes", note)
            else:
                self._early.append(note)

    def _message(self, event: dict[str, Any], at: Any) -> None:
        role = _ROLES[str(event["role"])]
        found = read(event.get("content"))
        last = self._messages[-1] if self._messages else None
        if self._delta and last is not None and last.role == role == "assistant" and event.get("delta") is True:
            last.content += found.text
            return
        message = Message(role, found.text, at=at, parts=found.parts)
        if role == "assistant":
            message.model = self._made.model
        rest = without(event, "type", "role", "content", "delta", "timestamp", "ts")
        message.extra = rest or None
        self._messages.append(message)
        self._delta = role == "assistant" and event.get("delta") is True

    def _call(self, event: dict[str, Any], at: Any) -> None:
        last = self._messages[-1] if self._messages else None
        if last is None or last.role != "assistant":
            last = Message("assistant", at=at, model=self._made.model)
            self._messages.append(last)
        call = ToolCall(str(event["tool_name"]), event.get("parameters"), identifier(event.get("tool_id")), at=at)
        last.calls = [*(last.calls or []), call]
        rest = without(event, "type", "tool_name", "tool_id", "parameters", "timestamp", "ts")
        if rest:
            noted(last, "calls", {"id": call.id, **rest})

    def _result(self, event: dict[str, Any], at: Any) -> None:
        stats = dict_of(event, "stats")
        tokens = Tokens(whole(stats.get("input_tokens")), whole(stats.get("output_tokens")), whole(stats.get("cached")))
        self._made.usage = tokens if tokens != Tokens() else None
        self._made.ended_at = at
        self._made.finish_reason = text_of(event, "status")
        error = event.get("error")
        if self._made.finish_reason == "error" or error is not None:
            self._made.status = "error"
            self._made.error = text_of(error, "message") or plain(error) or None
        else:
            self._made.status = "completed"
        rest = without(
            event, "type", "status", "timestamp", "ts", "stats", *(("error",) if isinstance(error, str) else ())
        )
        more = without(stats, "input_tokens", "output_tokens", "cached")
        told = {**rest, **({"stats": more} if more else {})}
        if told:
            self._made.extra = {**(self._made.extra or {}), "result": told}


def _answer(event: dict[str, Any], at: Any) -> Message:
    """The result of a call: its output, or its error."""
    error = event.get("error")
    found = read(event.get("output"))
    text = found.text or text_of(error, "message") or plain(error)
    message = Message("tool", text, call_id=identifier(event.get("tool_id")), at=at, parts=found.parts)
    status = text_of(event, "status")
    message.failed = status == "error" if status in ("error", "success") else (True if error is not None else None)
    message.cancelled = status == "cancelled"
    rest = without(event, "type", "tool_id", "output", "status", "timestamp", "ts", "error")
    if isinstance(error, dict) and (more := {key: value for key, value in error.items() if value != text}):
        rest["error"] = more
    message.extra = rest or None
    return message
