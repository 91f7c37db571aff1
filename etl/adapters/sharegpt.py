"""ShareGPT training sets: `{conversations: [{from, value}, …]}` a line or an array element.

Turns are kept in the order they have, whoever begins and whoever speaks twice; an unknown speaker is a reject and no
guess. A `function_call` turn is a call (or several) as JSON text, `observation` its result; they have no ids, so
results answer in order. Calls written into the text as `<tool_call>` are taken out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._sharegpt import is_turn, turns
from etl.adapters._training import Pairs, row
from etl.conversation import Outcome, Record, Unusable

_LISTS = ("conversations", "conversation", "items")
_PREFERENCE = frozenset({"chosen", "rejected", "kto_tag", "label"})
"""Keys that make it a preference."""


class ShareGPT(Adapter):
    """Conversations as lists of `{from, value}`."""

    name = "sharegpt"
    version = 1
    about = "ShareGPT training sets: {conversations: [{from, value}]} a line or an array, function_call and observation"

    def score(self, sample: Sample) -> float:
        """Sure of turns with `from` and `value`, whoever speaks."""
        if not sample.values:
            return 0.0
        return sum(0.9 for value in sample.objects() if _is_conversation(value)) / len(sample.values)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a record."""
        for record in records:
            yield _outcome(record)


def _is_conversation(value: dict[str, Any]) -> bool:
    key = _key(value)
    return key is not None and bool(value[key]) and all(map(is_turn, value[key][:8])) and not _PREFERENCE & value.keys()


def _key(value: dict[str, Any]) -> str | None:
    return next((key for key in _LISTS if isinstance(value.get(key), list)), None)


def _outcome(record: Record) -> Outcome:
    value = record.value
    if not isinstance(value, dict):
        return Unusable(record, "not_an_object", "a record is a JSON object with `conversations`; this is none")
    key = _key(value)
    if key is None:
        return Unusable(record, "no_messages", "`conversations` is no list; is this a ShareGPT file?")
    pairs = Pairs()
    messages = turns(value[key], pairs)
    if isinstance(messages, str):
        return Unusable(record, "unknown_role", messages)
    if not messages:
        return Unusable(record, "no_messages", "the conversation has no turns")
    return row(record, {name: item for name, item in value.items() if name != key}, messages, pairs.unread)
