"""Sessions of Cline 4 and its command line: `<session>.messages.json`, and beside it the manifest `<session>.json`.

A file of messages is written anew at each turn and names its session; that of a sub-agent or a teammate names the
session that started it, and is known by its first message. The input tokens of a message include what was cached. A
fork begins with copies of the messages that were said before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from etl.adapter import FileContext
from etl.adapters._blocks import Blocks, Result, plain, read
from etl.adapters._session import SureAdapter, dict_of, list_of, real, sessions, stored, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import (
    Conversation,
    Fragment,
    Identity,
    Ignored,
    Message,
    Outcome,
    Record,
    StoredEvent,
    Tokens,
    ToolCall,
    Unusable,
)
from etl.times import instant

_ALONE, _COPY = "manifest_without_session", "compacted_copy"
_STATUS = {"failed": "error", "cancelled": "aborted", "completed": "completed"}
_INPUT = re.compile(r"\s*<user_input\b[^>]*>(.*)</user_input>\s*", re.DOTALL)
_HELD = ("id", "role", "content", "ts", "modelInfo", "metrics")
_ACTIVITIES = "modelToolActivities"
"""What a provider ran of its own while it answered, in the metadata of the answer."""
_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


class ClineSessions(SureAdapter):
    """Sessions as Cline keeps them since its version 4."""

    name = "cline_sessions"
    about = "Cline 4 and Cline CLI sessions: {version, sessionId, agent, messages}, their manifest beside them"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        _ALONE: "a manifest whose session is not there, or a session in which nobody says anything",
        _COPY: "the messages of a session as they were shortened for the model: a copy",
    }

    def looks(self, value: Any) -> float:
        """Sure of each of the three files."""
        return 0.97 if _is_session(value) or _is_manifest(value) or _is_copy(value) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each session and each manifest."""
        for record in records:
            value = record.value
            if _is_copy(value):
                yield Ignored(_COPY, 1, record)
            elif _is_manifest(value):
                yield Fragment(record, value["session_id"], None, value.get("started_at"))
            elif _is_session(value):
                yield Fragment(record, _key(value), _opening(value), value["updated_at"])
            else:
                yield Unusable(record, "no_session", "a session has an id and messages, a manifest an id and its start")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Ignored]:
        """A row for each session, read from its longest and latest file; forks after what they may be forks of."""
        read_of: list[tuple[bool, str, dict[str, Any], dict[str, Any], list[StoredEvent]]] = []
        for key, events in sessions(family).items():
            values = [stored(event) for event in events]
            told = [value for value in values if _is_session(value)]
            manifest: dict[str, Any] = max((value for value in values if _is_manifest(value)), key=len, default={})
            longest: dict[str, Any] = max(
                told, key=lambda value: (len(value["messages"]), value["updated_at"]), default={}
            )
            read_of.append((bool(_fork(manifest)), key, longest, manifest, events))
        owners: dict[str, str] = {}
        for _, key, value, manifest, events in sorted(read_of, key=lambda each: each[:2]):
            made = Conversation([], [event.record for event in events], native_id=key, conversation_id=key)
            if value and _tell(made, value, manifest, owners):
                yield made
            else:
                yield from (Ignored(_ALONE, 1, event.record) for event in events)


def _is_session(value: Any) -> bool:
    named = text_of(value, "sessionId") is not None and text_of(value, "updated_at") is not None
    return named and isinstance(value.get("messages"), list) and "version" in value


def _is_manifest(value: Any) -> bool:
    named = text_of(value, "session_id") is not None and text_of(value, "started_at") is not None
    return named and "workspace_root" in value and "enable_tools" in value


def _is_copy(value: Any) -> bool:
    return isinstance(value, dict) and "source_message_count" in value and isinstance(value.get("messages"), list)


def _key(value: dict[str, Any]) -> str:
    """The session; for one that another started that and its first message."""
    key: str = value["sessionId"]
    if value.get("agent") in (None, "lead"):
        return key
    first = next((message for message in value["messages"] if isinstance(message, dict)), {})
    return f"{key}/{text_of(first, 'id') or first.get('ts') or value['agent']}"


def _opening(value: dict[str, Any]) -> str | None:
    """The first message, which a fork and what it is a fork of share."""
    name = text_of(next(iter(value["messages"]), None), "id")
    return None if name is None else f"message {name}"


def _fork(manifest: dict[str, Any]) -> dict[str, Any]:
    return dict_of(dict_of(manifest, "metadata"), "fork")


def _tell(made: Conversation, value: dict[str, Any], manifest: dict[str, Any], owners: dict[str, str]) -> bool:
    """Fill a conversation from a session; False where nobody says anything. `owners`: whose each message is."""
    fork, key = _fork(manifest), made.native_id or ""
    reading = _Reading(text_of(manifest, "model"), instant(fork.get("forkedAt")).micros, frozenset(owners))
    reading.provider = text_of(manifest, "provider")
    for message in value["messages"]:
        reading.take(message)
    if not reading.talk.messages:
        return False
    if told := text_of(value, "system_prompt"):
        reading.talk.messages.insert(0, Message("system", told))
    names = [name for message in value["messages"] if (name := text_of(message, "id"))]
    parent = text_of(fork, "forkedFromSessionId") if key == value["sessionId"] else value["sessionId"]
    parent = parent or next((owners[name] for name in names if name in owners), None)
    owners.update((name, key) for name in names if name not in owners)
    made.parent = None if parent is None else Identity(parent)
    reading.talk.tell(made)
    made.agent, made.provider = "cline", reading.provider
    made.status = _STATUS.get(text_of(manifest, "status") or "")
    code = manifest.get("exit_code")
    if made.status == "error":
        made.error = f"exit {code}" if code else "failed"
    made.started_at = manifest.get("started_at") or next(iter(reading.times), None)
    made.ended_at = manifest.get("ended_at") or value["updated_at"]
    rest = without(value, "version", "updated_at", "sessionId", "messages", "system_prompt")
    known = without(
        manifest,
        "version",
        "session_id",
        "started_at",
        "ended_at",
        "status",
        "model",
        "provider",
        "messages_path",
        "prompt",
    )
    made.extra = {**without(rest, *(("agent",) if rest.get("agent") == "lead" else ())), **known} or None
    return True


class _Reading:
    """The messages of one session, one after the other."""

    def __init__(self, model: str | None, forked: int | None, known: frozenset[str]) -> None:
        self.talk = Talk(model)
        self.provider: str | None = None
        self.times: list[Any] = []
        self._forked, self._known = forked, known

    def take(self, value: Any) -> None:
        """Read a message."""
        if not isinstance(value, dict) or value.get("role") not in ("user", "assistant"):
            self.talk.note({"message": value})
            return
        at = value.get("ts")
        if at is not None:
            self.times.append(at)
        before, said = len(self.talk.messages), read(value.get("content"))
        when = instant(at).micros
        copied = when is not None and self._forked is not None and when < self._forked
        copied = copied or text_of(value, "id") in self._known
        metadata = dict_of(value, "metadata")
        extra = {**without(value, *_HELD, "metadata"), "metadata": without(metadata, _ACTIVITIES)}
        if not extra["metadata"]:
            del extra["metadata"]
        if said.rest:
            extra["content"] = said.rest
        for activity in list_of(metadata, _ACTIVITIES):
            self._did(activity, at)
        if value["role"] == "assistant":
            self._answered(value, said, extra, copied)
        else:
            self._asked(value, said, extra)
        for message in self.talk.messages[before:] if copied else ():
            message.inherited = True

    def _answered(self, value: dict[str, Any], said: Blocks, extra: dict[str, Any], copied: bool) -> None:
        model, metrics = dict_of(value, "modelInfo"), dict_of(value, "metrics")
        self.talk.model = text_of(model, "id") or self.talk.model
        self.provider = text_of(model, "provider") or self.provider
        message = self.talk.answer(said, value.get("ts"), id=text_of(value, "id"), extra=extra)
        total, out, again, written = (whole(metrics.get(name)) for name in _COUNTS)
        if total or out:
            used = Tokens(total, out, again, written, None, real(metrics.get("cost")))
            message.input_tokens, message.output_tokens = used.input_tokens, used.output_tokens
            if not copied:
                self.talk.tokens.append(used)

    def _did(self, activity: Any, at: Any) -> None:
        call, name = text_of(activity, "toolCallId"), text_of(activity, "toolName")
        if call is None or name is None:
            self.talk.note({_ACTIVITIES: activity})
            return
        made = [ToolCall(name, activity.get("input"), call)]
        self.talk.say(Message("assistant", calls=made, at=at, model=self.talk.model))
        if "output" in activity or "isError" in activity:
            output = activity.get("output")
            back = Message("tool", output if isinstance(output, str) else plain(output), call_id=call, at=at)
            back.failed = activity.get("isError") is True
            self.talk.say(back)

    def _asked(self, value: dict[str, Any], said: Blocks, extra: dict[str, Any]) -> None:
        """Results first, as they answer what was said before; then what a person says."""
        at, name = value.get("ts"), text_of(value, "id")
        for found in said.results or ():
            self.talk.say(_given_back(found, at, name))
            name = None
        wrapped = _INPUT.fullmatch(said.text)
        text = said.text if wrapped is None else wrapped[1].strip("\n")
        if wrapped is None and said.text and dict_of(value, "metadata").get("userRunSpan") == 0:
            self.talk.say(Message("user", text, at=at, id=name, parts=said.parts, extra=extra or None, synthetic=True))
        elif text or said.parts or not said.results:
            self.talk.ask(text, at, id=name, parts=said.parts, extra=extra)
        elif extra:
            self.talk.note(extra)


def _given_back(found: Result, at: Any, name: str | None) -> Message:
    message = Message("tool", found.text, call_id=found.call_id, at=at, parts=found.parts)
    message.id, message.failed = name, found.failed
    message.extra = {"content": found.rest} if found.rest else None
    errors = _errors(found.text)
    if errors is not None and message.failed is not True:
        message.failed, message.error = True, errors or None
    return message


def _errors(text: str) -> str | None:
    """What a result's operations say of their failure, where each of them failed: `{query, result, success, error}`."""
    if '"success"' not in text:
        return None
    try:
        held = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    done = held if isinstance(held, list) else [held]
    if not done or any(dict_of({"one": one}, "one").get("success") is not False for one in done):
        return None
    return "; ".join(error for one in done if (error := text_of(one, "error")))
