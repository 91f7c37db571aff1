"""Hermes sessions: one JSON object a file, `{session_id, session_start, messages, …}`, written anew as it grows.

The session is known by its id with the time at which it began: the id alone is made of the day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._chat import chat_messages
from etl.adapters._session import text_of, without
from etl.conversation import Conversation, Message, Outcome, Record, Unusable

_KEYS = frozenset({"session_id", "session_start", "last_updated", "messages"})
_HELD = ("session_id", "session_start", "last_updated", "messages", "model", "system_prompt", "tools")
_TEXTS = frozenset({"session_id", "model", "system_prompt"})


class Hermes(Adapter):
    """Session files of Hermes."""

    name = "hermes"
    version = 1
    about = "Hermes sessions: {session_id, session_start, last_updated, model, system_prompt, tools, messages} a file"
    ignores: ClassVar[dict[str, str]] = {}

    def score(self, sample: Sample) -> float:
        """The share of values that are sessions."""
        hits = sum(1 for value in sample.objects() if value.keys() >= _KEYS and isinstance(value["messages"], list))
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation a record."""
        for record in records:
            value = record.value
            if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
                yield Unusable(record, "no_messages", "a session is an object with a list of messages; this is none")
            else:
                yield _conversation(record, value)


def _conversation(record: Record, value: dict[str, Any]) -> Outcome:
    messages: list[Message] = []
    for index, item in enumerate(value["messages"]):
        read_as = chat_messages(item)
        if isinstance(read_as, str):
            return Unusable(record, read_as, f"messages[{index}] is no message with a known role; see what wrote it")
        messages += read_as
    system = text_of(value, "system_prompt")
    if system is not None and not any(message.role == "system" and message.content == system for message in messages):
        messages.insert(0, Message("system", system))
    name, began = text_of(value, "session_id"), text_of(value, "session_start")
    made = Conversation(messages, [record], local_id=name, conversation_id=name)
    if name is not None and began is not None:
        made.native_id = f"{name}@{began}"
    made.model, made.agent, made.tools = text_of(value, "model"), "hermes", value.get("tools")
    made.started_at, made.ended_at = value.get("session_start"), value.get("last_updated")
    held = [key for key in _HELD if key not in _TEXTS or text_of(value, key) is not None]
    if value.get("message_count") == len(value["messages"]):
        held.append("message_count")
    made.extra = without(value, *held) or None
    return made
