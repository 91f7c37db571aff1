"""Hook payloads of Claude Code: one JSON object an event, a file each or many in a file, as a hook was given them.

They tell what was typed, each call before and after it ran, and what was said last: less than a session file does. The
payloads of a session in one file are a conversation; a sub-agent's (`agent_id`) are a row of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain, result
from etl.adapters._session import canonical, real, text_of, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Identity, Ignored, Message, Outcome, Record, ToolCall, Unusable
from etl.identity import digest

_SILENT = "silent_session"
_ENVELOPE = ("session_id", "transcript_path", "cwd", "hook_event_name", "permission_mode", "agent_id", "agent_type")
_FAILED = frozenset({"PostToolUseFailure", "PermissionDenied"})
_EVENTS = frozenset({"tool_name", "tool_input", "prompt", "source", "reason", "message", "transcript_path", "cwd"})


class ClaudeHooks(Adapter):
    """Payloads that Claude Code gives its hooks."""

    name = "claude_hooks"
    version = 1
    about = "Claude Code hook payloads: {hook_event_name, session_id, transcript_path, tool_name, tool_input, …}"
    scores_share = True
    ignores: ClassVar[dict[str, str]] = {_SILENT: "payloads of a session in which nothing is said and nothing called"}

    def score(self, sample: Sample) -> float:
        """The share of values that are payloads."""
        hits = sum(1 for value in sample.objects() if text_of(value, "hook_event_name") and _EVENTS & value.keys())
        return 0.96 * hits / len(sample.values) if hits else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The rows of each session in the file."""
        found: dict[str, list[Record]] = {}
        for record in records:
            if text_of(record.value, "hook_event_name") is None:
                yield Unusable(record, "no_event", "a payload names its event; this does not")
            else:
                found.setdefault(text_of(record.value, "session_id") or "", []).append(record)
        for session, payloads in found.items():
            yield from _rows(session or None, payloads)


def _rows(session: str | None, records: list[Record]) -> Iterator[Conversation | Ignored]:
    threads: dict[str, list[Record]] = {"": []}
    for record in records:
        threads.setdefault(text_of(record.value, "agent_id") or "", []).append(record)
    attempt = digest(records[0].raw)
    for thread, payloads in threads.items():
        reading = _Reading()
        for record in payloads:
            reading.take(record.value)
        if not reading.talk.messages:
            if payloads:
                yield Ignored(_SILENT, len(payloads))
            continue
        made = Conversation([], payloads, native_id=session or f"h_{attempt}", branch=thread, attempt=attempt)
        made.conversation_id, made.extra = session, reading.extra or None
        made.agent = text_of(payloads[0].value, "agent_type") if thread else "claude-code"
        if thread:
            made.parent = Identity(session or f"h_{attempt}", attempt=attempt)
        yield reading.tell(made)


class _Reading:
    """The payloads of one thread, one after the other."""

    def __init__(self) -> None:
        self.talk = Talk()
        self.extra: dict[str, Any] = {}
        self._ended = False
        self._open: list[ToolCall] = []

    def tell(self, made: Conversation) -> Conversation:
        """Put what was read into a conversation."""
        if not any(message.role == "assistant" and message.content for message in self.talk.messages):
            self.talk.flags.add("content_not_captured")
        made.status = "completed" if self._ended else "unknown"
        if not self._ended:
            self.talk.flags.add("incomplete")
        return self.talk.tell(made)

    def take(self, value: dict[str, Any]) -> None:
        """Read a payload."""
        event = str(value["hook_event_name"])
        for key in ("cwd", "transcript_path", "permission_mode"):
            if value.get(key) is not None:
                self.extra.setdefault(key, value[key])
        rest = without(value, *_ENVELOPE)
        if event == "UserPromptSubmit":
            self.talk.ask(plain(rest.pop("prompt", "")), extra=rest)
            self._ended = False
        elif event in ("PreToolUse", "PermissionRequest"):
            self._called(value, rest)
        elif event == "PostToolUse" or event in _FAILED:
            self._answered(event, value, rest)
        elif event in ("Stop", "SubagentStop", "StopFailure"):
            self._stopped(event, rest)
        else:
            self.talk.model = text_of(value, "model") or self.talk.model
            self._ended = self._ended or event == "SessionEnd"
            self.talk.note({"hook_event_name": event, **rest})

    def _called(self, value: dict[str, Any], rest: dict[str, Any]) -> ToolCall:
        """A call; that the person is asked about it tells it once more."""
        known = self._find(value)
        if known is not None:
            return known
        call = ToolCall(text_of(value, "tool_name") or "tool", value.get("tool_input"))
        call.id = identifier(value.get("tool_use_id")) or f"call_{len(self.talk.calls) + 1}"
        self.talk.call(call)
        self._open.append(call)
        more = without(rest, "tool_name", "tool_input", "tool_use_id")
        if more:
            self.talk.note({"call": call.id, **more})
        return call

    def _find(self, value: dict[str, Any]) -> ToolCall | None:
        name, tool = identifier(value.get("tool_use_id")), text_of(value, "tool_name")
        if name is not None:
            return next((call for call in self._open if call.id == name), None)
        given = canonical(value.get("tool_input"))
        return next((call for call in self._open if call.name == tool and canonical(call.arguments) == given), None)

    def _answered(self, event: str, value: dict[str, Any], rest: dict[str, Any]) -> None:
        call = self._find(value) or self._called(value, {})
        self._open = [each for each in self._open if each is not call]
        told = value.get("tool_response")
        if told is None and event not in _FAILED:
            # The tool ran, as the event says; what came back was not given to the hook.
            self.talk.flags.add("content_not_captured")
        text, parts, more = _output(told if told is not None else value.get("error", value.get("reason")))
        failed = True if event in _FAILED else None
        message = Message("tool", text, call_id=call.id, parts=parts, failed=failed)
        message.duration_ms = real(value.get("duration_ms"))
        if event == "PermissionDenied":
            message.condition = "permission_denied"
        held = ("tool_name", "tool_input", "tool_use_id", "tool_response", "duration_ms", "error", "reason")
        extra = {**without(rest, *held), **({"tool_response": more} if more else {})}
        message.extra = extra or None
        self.talk.say(message)

    def _stopped(self, event: str, rest: dict[str, Any]) -> None:
        text = text_of(rest, "last_assistant_message")
        if text is not None:
            self.talk.speak(text)
        self.talk.close()
        self._ended = True
        more = without(
            rest, "last_assistant_message", *(("stop_hook_active",) if not rest.get("stop_hook_active") else ())
        )
        if more and self.talk.messages:
            self.talk.note({"hook_event_name": event, **more})


def _output(told: Any) -> tuple[str, list[Any] | None, dict[str, Any] | None]:
    """Text, other parts and the rest of what a tool gave back."""
    if isinstance(told, dict) and ("stdout" in told or "stderr" in told):
        text = "\n".join(plain(told[key]) for key in ("stdout", "stderr") if told.get(key))
        return text, None, {k: v for k, v in without(told, "stdout", "stderr").items() if v is not False} or None
    if isinstance(told, dict) and "content" not in told:
        return plain(told), None, None
    found = result(told) if isinstance(told, dict) else result({"content": told})
    return found.text, found.parts, found.rest
