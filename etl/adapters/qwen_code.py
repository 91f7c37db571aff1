"""Qwen Code sessions: JSON Lines of records linked by `parentUuid`, their messages in parts of Google's GenAI form.

The live conversation is the chain that ends in the last record; where a rewind or a fork left another chain, that is
a row of its own with `parent_id`, flag `abandoned`. A record that was written again (same `uuid`) is one message. A
session that was forked from another copies its records under new ids, each with `forkedFrom`; they are inherited.

Of records that hold the program's own state (backups for undo, measurements of calls that went well, the interface)
only the place in the chain is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._qwen_rows import conversations
from etl.adapters._session import Naming, SureAdapter, dict_of, sessions, text_of
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable

_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
_UNKNOWN = "unknown_type"
_STATE = frozenset(
    {
        "attribution_snapshot",
        "file_history_snapshot",
        "session_artifact_snapshot",
        "session_artifact_event",
        "session_sources_snapshot",
        "user_text_elements",
    }
)


class QwenCode(SureAdapter):
    """Session files of Qwen Code."""

    name = "qwen_code"
    version = 3
    about = "Qwen Code sessions: JSON Lines with uuid and parentUuid, messages as {role, parts}"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        f"{_UNKNOWN}:*": "a type not known here, on a record without a message and without a place in the chain",
    }

    def looks(self, value: Any) -> float:
        """Whether it is a record; sure only where a message has parts."""
        return _looks(value)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each record under its session; state of the program keeps its place in the chain alone."""
        naming = Naming(linked=True)
        for record in records:
            value = record.value
            if not isinstance(value, dict):
                yield Unusable(record, "not_an_object", "a record of a session is a JSON object; this is none")
                continue
            kind = text_of(value, "type")
            if kind is None and not dict_of(value, "message"):
                yield Unusable(record, "no_type", "a record of a session has a type or a message; this has neither")
                continue
            chained = text_of(value, "uuid") is not None
            if kind not in _TYPES and not chained and not dict_of(value, "message"):
                yield Ignored(f"{_UNKNOWN}:{(kind or '')[:40]}")
                continue
            session = text_of(value, "sessionId")
            if session is not None and session != naming.key:
                yield from naming.begin(session)
            link = text_of(dict_of(value, "forkedFrom"), "sessionId")
            for fragment in naming.take(record, value.get("timestamp"), link):
                if fragment.payload is None and _is_state(fragment.record.value):
                    fragment.payload = {key: fragment.record.value.get(key) for key in _PLACE}
                yield fragment
        yield from naming.end()

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation]:
        """The rows of the sessions of a family."""
        found = sessions(family)
        for key in sorted(found):
            yield from conversations(key, found[key], set(found))


_PLACE = ("uuid", "parentUuid", "sessionId", "timestamp", "type", "subtype")


def _is_state(value: dict[str, Any]) -> bool:
    """Whether a record says nothing of the conversation."""
    if text_of(value, "type") != "system":
        return False
    event = dict_of(dict_of(value, "systemPayload"), "uiEvent")
    measured = text_of(value, "subtype") == "ui_telemetry" and not (event.keys() & {"error", "error_message"})
    return measured or text_of(value, "subtype") in _STATE


def _looks(value: Any) -> float:
    if not isinstance(value, dict) or text_of(value, "sessionId") is None:
        return 0.0
    chained = text_of(value, "uuid") is not None and "parentUuid" in value
    message = dict_of(value, "message")
    if isinstance(message.get("parts"), list) and text_of(message, "role"):
        return 0.97 if chained else 0.6
    if message:
        return 0.0
    kind = text_of(value, "type")
    return 0.5 if chained and kind in _TYPES and ("systemPayload" in value or kind == "tool_result") else 0.0
