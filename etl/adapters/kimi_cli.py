"""Kimi Code CLI wire logs: JSON Lines of dotted event types, each with its `time`; an agent's log is a file.

What a person types is told when it is typed (`turn.prompt`, `turn.steer`) and again when it enters the context
(`context.append_message`); it is read once. The steps of the model are loop events. The file does not name its
session: its first line does, by its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._kimi_rows import Wire
from etl.adapters._session import Naming, dict_of, sessions, stored, sure_share, text_of
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable

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


class KimiCli(Adapter):
    """Wire logs of Kimi Code CLI."""

    name = "kimi_cli"
    version = 1
    about = "Kimi Code CLI wire logs: JSON Lines of metadata, config.update, turn.prompt and context.append_* events"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        _REPEATS: "the counts of a step once more",
        f"{_UNKNOWN}:*": "a type of event not known here",
    }

    def score(self, sample: Sample) -> float:
        """The share of events; sure only where the log begins or something enters the context."""
        return sure_share([_looks(value) for value in sample.values])

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each event under its log; a further `metadata` line in a file begins another."""
        naming = Naming()
        begun = False
        for record in records:
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

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation]:
        """A row for each log in which somebody says something."""
        for key, events in sorted(sessions(family).items()):
            wire = Wire()
            for event in events:
                wire.take(stored(event))
            made = Conversation([], [event.record for event in events], native_id=key, conversation_id=key)
            if wire.finish(made):
                yield made


def _looks(value: Any) -> float:
    kind = text_of(value, "type")
    if kind == "metadata":
        return 0.95 if "protocol_version" in value and "created_at" in value else 0.0
    if kind is None or "time" not in value:
        return 0.0
    if kind in ("context.append_message", "context.append_loop_event", "turn.prompt"):
        return 0.95 if dict_of(value, "message") or dict_of(value, "event") or "input" in value else 0.0
    return 0.5 if kind.startswith(_FAMILIES) or kind == _REPEATS else 0.1
