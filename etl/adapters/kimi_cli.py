"""Kimi CLI: wire logs of Kimi Code (JSON Lines of dotted event types, each with its `time`; an agent's log is a file),
wire logs of the CLI before it (`{timestamp, message: {type, payload}}`), and that one's context files.

What a person types is told when it is typed (`turn.prompt`, `turn.steer`) and again when it enters the context
(`context.append_message`); it is read once. The steps of the model are loop events. The file does not name its
session: its first line does, by its time. A context file has neither ids nor times: it is known by all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._kimi_rows import Wire
from etl.adapters._kimi_turns import Turns, context, events_of, is_context, is_event
from etl.adapters._session import Naming, SureAdapter, canonical, dict_of, sessions, stored, text_of
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.identity import digest

_FAMILIES = (
    "config.",
    "context.",
    "turn.",
    "llm.",
    "tools.",
    "permission.",
    "profile.",
    "plan_mode.",
    "goal.",
    "skill.",
)
_REPEATS = "usage.record"
_UNKNOWN = "unknown_type"


class KimiCli(SureAdapter):
    """Wire logs of Kimi Code CLI."""

    name = "kimi_cli"
    version = 2
    about = (
        "Kimi CLI: wire.jsonl of Kimi Code (config.update, context.append_*) and before (TurnBegin, …), context.jsonl"
    )
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        _REPEATS: "the counts of a step once more",
        f"{_UNKNOWN}:*": "a type of event not known here",
    }

    def looks(self, value: Any) -> float:
        """Whether it is an event; sure only where the log begins or something enters the context."""
        return _looks(value)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each event under its log; a further `metadata` line in a file begins another."""
        naming = Naming()
        begun = False
        said: list[Record] = []
        for record in records:
            if isinstance(record.value, dict) and "role" in record.value and "type" not in record.value:
                said.append(record)
                continue
            if is_event(record.value):
                if naming.key is None:
                    yield from naming.begin("h_" + digest(canonical(record.value).encode()))
                yield from naming.take(record, record.value["timestamp"])
                continue
            kind = text_of(record.value, "type")
            if kind is None:
                yield Unusable(record, "no_type", "an event of the log is an object with a type; this is none")
            elif kind == _REPEATS:
                yield Ignored(_REPEATS)
            elif kind != "metadata" and not kind.startswith(_FAMILIES):
                yield Ignored(f"{_UNKNOWN}:{kind[:40]}")
            else:
                if kind == "metadata" and begun:
                    yield from naming.end()
                    naming = Naming()
                begun = begun or kind == "metadata"
                yield from naming.take(record, record.value.get("time", record.value.get("created_at")))
        yield from naming.end()
        if said:
            found = context(said)
            if isinstance(found, str):
                yield from (
                    Unusable(record, found, "a line of a context file is a message with a role") for record in said
                )
            else:
                yield found

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation]:
        """A row for each log in which somebody says something."""
        for key, events in sorted(sessions(family).items()):
            values = [stored(event) for event in events]
            made = Conversation([], [event.record for event in events], native_id=key, conversation_id=key)
            if any(is_event(value) for value in values):
                yield from events_of(values, Turns()).finish(made)
                continue
            wire = Wire()
            for value in values:
                wire.take(value)
            if wire.finish(made):
                yield made


def _looks(value: Any) -> float:
    kind = text_of(value, "type")
    if not isinstance(value, dict):
        return 0.0
    if is_event(value) or is_context(value):
        return 0.95
    if kind == "metadata":
        return 0.95 if "protocol_version" in value else 0.0
    if kind is None and value.get("role") in ("user", "assistant", "tool") and "timestamp" not in value:
        return 0.5
    if kind is None or "time" not in value:
        return 0.0
    if kind in ("context.append_message", "context.append_loop_event", "turn.prompt"):
        return 0.95 if dict_of(value, "message") or dict_of(value, "event") or "input" in value else 0.0
    return 0.5 if kind.startswith(_FAMILIES) or kind == _REPEATS else 0.1
