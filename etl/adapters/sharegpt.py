"""ShareGPT training sets: `{conversations: [{from, value}, …]}` a line or an array element.

Turns are kept in the order they have, whoever begins and whoever speaks twice; an unknown speaker is a reject and no
guess. A `function_call` turn is a call (or several) as JSON text, `observation` its result; they have no ids, so
results answer in order. Calls written into the text as `<tool_call>` are taken out of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from etl.adapters._records import RecordAdapter
from etl.adapters._sharegpt import is_turn, turns
from etl.adapters._training import Pairs, row
from etl.conversation import Message, Outcome, Record, Unusable

_LISTS = ("conversations", "conversation", "items")
_PREFERENCE = frozenset({"chosen", "rejected", "kto_tag", "label"})
"""Keys that make it a preference."""


class ShareGPT(RecordAdapter):
    """Conversations as lists of `{from, value}`."""

    name = "sharegpt"
    version = 2
    about = "ShareGPT training sets: {conversations: [{from, value}]} a line or an array, function_call and observation"
    expects = "a record is a JSON object with `conversations`"

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of turns with `from` and `value`, whoever speaks."""
        return 0.9 if _is_conversation(value) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One conversation."""
        yield _outcome(record, value)


def _is_conversation(value: dict[str, Any]) -> bool:
    key = _key(value)
    return key is not None and bool(value[key]) and all(map(is_turn, value[key][:8])) and not _PREFERENCE & value.keys()


def _key(value: dict[str, Any]) -> str | None:
    return next((key for key in _LISTS if isinstance(value.get(key), list)), None)


def _outcome(record: Record, value: dict[str, Any]) -> Outcome:
    key = _key(value)
    if key is None:
        return Unusable(record, "no_messages", "`conversations` is no list; is this a ShareGPT file?")
    pairs = Pairs()
    messages = turns(value[key], pairs)
    if isinstance(messages, str):
        return Unusable(record, "unknown_role", messages)
    if not messages:
        return Unusable(record, "no_messages", "the conversation has no turns")
    made = row(record, {name: item for name, item in value.items() if name != key}, messages, pairs.unread)
    if _is_odd(messages):
        made.flags = {*(made.flags or ()), "odd_order"}
    return made


def _is_odd(messages: list[Message]) -> bool:
    """Whether turns do not alternate, the user first, or the model says nothing in one."""
    turns = [message for message in messages if message.role in ("user", "assistant")]
    said = [message.role for message in turns]
    twice = any(one == other == "user" for one, other in itertools.pairwise(said))
    empty = any(m.role == "assistant" and not (m.content.strip() or m.calls or m.parts or m.reasoning) for m in turns)
    return said[:1] == ["assistant"] or twice or empty
