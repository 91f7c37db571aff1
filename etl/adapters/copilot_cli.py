"""Sessions of GitHub Copilot CLI: JSON Lines of `{type, data, id, timestamp, parentId}` events.

A call is announced in the assistant's message and told once more when it starts; its result comes when it ends.
Events that a message of a sub-agent caused name its call (`parentToolCallId`): they are a row of their own with
`parent_id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._copilot_rows import conversations
from etl.adapters._session import Naming, SureAdapter, dict_of, sessions, text_of
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable

_NOISE = {
    "assistant.turn_start": "a mark around the requests of a turn",
    "assistant.turn_end": "a mark around the requests of a turn",
    "assistant.message_delta": "a piece of a message that comes whole",
    "assistant.streaming_delta": "a piece of a message that comes whole",
    "assistant.reasoning_delta": "a piece of reasoning that comes whole",
    "tool.execution_partial_result": "output so far; the result repeats it",
    "tool.execution_progress": "how far a call is",
    "session.background_tasks_changed": "a mark of the interface",
    "pending_messages.modified": "a mark of the interface",
}
_FAMILIES = ("session.", "user.", "assistant.", "tool.", "system.", "subagent.", "hook.", "skill.", "permission.")
_UNKNOWN = "unknown_type"


class CopilotCli(SureAdapter):
    """Session files of GitHub Copilot CLI."""

    name = "copilot_cli"
    version = 2
    about = "GitHub Copilot CLI sessions: JSON Lines of session.*, user.message, assistant.message and tool.* events"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {**_NOISE, f"{_UNKNOWN}:*": "a type of event not known here"}

    def looks(self, value: Any) -> float:
        """Whether it is an event; sure only where a session starts or somebody speaks."""
        return _looks(value)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each event under its session."""
        naming = Naming()
        for record in records:
            kind = text_of(record.value, "type")
            if kind is None:
                yield Unusable(record, "no_type", "an event of a session is an object with a type; this is none")
            elif kind in _NOISE:
                yield Ignored(kind)
            elif not kind.startswith(_FAMILIES) and kind != "abort":
                yield Ignored(f"{_UNKNOWN}:{kind[:40]}")
            elif not isinstance(record.value.get("data"), dict):
                yield Unusable(record, "no_data", f"an event of type {kind[:40]} without data; the log is damaged here")
            else:
                started = kind in ("session.start", "session.resume")
                name = text_of(dict_of(record.value, "data"), "sessionId") if started else None
                if name is not None and name != naming.key:
                    yield from naming.begin(name)
                yield from naming.take(record, record.value.get("timestamp"))
        yield from naming.end()

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation]:
        """The rows of each session."""
        for key, events in sorted(sessions(family).items()):
            yield from conversations(key, events)


def _looks(value: Any) -> float:
    kind = text_of(value, "type")
    if kind is None or not isinstance(value.get("data"), dict) or "timestamp" not in value:
        return 0.0
    if kind == "session.start" and text_of(value["data"], "sessionId") is not None:
        return 0.95
    if kind in ("session.start", "user.message", "assistant.message", "tool.execution_complete"):
        return 0.95 if "parentId" in value or "id" in value else 0.6
    return 0.5 if kind.startswith(_FAMILIES) else 0.1
