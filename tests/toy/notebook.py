"""A toy adapter whose conversations span files: one JSON line an utterance, `{thread, n, at, who, says}`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.conversation import Conversation, Fragment, Ignored, Message, Outcome, Record, StoredEvent, Unusable

_KEYS = {"thread", "n", "at", "who", "says"}


class Notebook(Adapter):
    """Utterances of many threads, in any order, over any number of files."""

    name = "notebook"
    about = "toy: one utterance a line, {thread, n, at, who, says}"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {"heartbeat": "a line that only says that the writer is alive"}

    def score(self, sample: Sample) -> float:
        """The share of values that have exactly the five keys."""
        own = [value for value in sample.objects() if value.keys() == _KEYS or "heartbeat" in value]
        return len(own) / len(sample.values) if own else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each utterance."""
        for record in records:
            value = record.value
            if isinstance(value, dict) and "heartbeat" in value:
                yield Ignored("heartbeat")
            elif isinstance(value, dict) and isinstance(value.get("thread"), str) and isinstance(value.get("n"), int):
                yield Fragment(record, value["thread"], link=f"{value['thread']}/{value['n']}", at=value.get("at"))
            else:
                yield Unusable(record, "no_utterance", "an utterance has a thread and a number; see what wrote it")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """One conversation a thread, its utterances by number."""
        ordered = sorted(family, key=lambda event: (event.key, event.record.value["n"]))
        for key, events in groupby(ordered, key=lambda event: event.key):
            said = list(events)
            messages = [
                Message(
                    "user" if event.record.value.get("who") == "guest" else "assistant",
                    str(event.record.value.get("says")),
                    id=event.link,
                    at=event.record.value.get("at"),
                )
                for event in said
            ]
            yield Conversation(messages, [event.record for event in said], native_id=key)
