"""Alpaca training sets: `{instruction, input, output}`, one answer to one instruction; also prompt and completion.

An `input` is put under the instruction on a line of its own; where it begins is in `message_info.extra`. Earlier turns
stand in `history` as pairs of question and answer, which are the context of the answer and no attempt of their own.
A row whose one text is a whole conversation between the marks of a chat template is taken apart at them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._preference import Unreadable, side
from etl.adapters._records import RecordAdapter
from etl.adapters._rendered import Rendered, conversation_in
from etl.adapters._training import row
from etl.conversation import Message, Outcome, Record, Unusable

_PAIRS = (("instruction", "output"), ("instruction", "response"), ("prompt", "completion"), ("prompt", "response"))
_RICHER = frozenset(
    {"reward", "label", "chosen", "rejected", "kto_tag", "messages", "task", "info", "usage", "prompt_json"}
)
"""Keys of scored or labelled rows and of logged calls, whose own adapters read them."""


class Alpaca(RecordAdapter):
    """One instruction, one answer."""

    name = "alpaca"
    version = 3
    about = (
        "Alpaca training sets: {instruction, input, output} a line or an array; also prompt and completion texts,"
        " and texts that a chat template made"
    )
    expects = "a record is a JSON object with an instruction and an output"

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of instruction and output; unsure of prompt and completion, which other logs have too."""
        keys = _keys(value)
        if _RICHER & value.keys():
            return 0.0
        if keys is None:
            return 0.7 if _written(value) is not None else 0.0
        return 0.9 if keys[0] == "instruction" else 0.5

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One instruction with its answer."""
        yield _outcome(record, value)


def _keys(value: dict[str, Any]) -> tuple[str, str] | None:
    """The keys of the instruction and of its answer."""
    return next((pair for pair in _PAIRS if all(isinstance(value.get(key), str) for key in pair)), None)


def _written(value: dict[str, Any]) -> Rendered | None:
    """The conversation that stands in the row's one text, between the marks of a chat template."""
    text = value.get("text")
    return conversation_in(text) if isinstance(text, str) else None


def _outcome(record: Record, value: dict[str, Any]) -> Outcome:
    keys = _keys(value)
    written = _written(value) if keys is None else None
    if written is not None and written.messages:
        rest = {key: item for key, item in value.items() if key != "text" and item is not None}
        return row(record, rest, written.messages, written.unread)
    if keys is None:
        return Unusable(record, "no_messages", "no instruction with an answer: both must be texts")
    asked = {key: item for key, item in value.items() if key in (*keys, "input")}
    try:
        found = side(asked, keys[1])
    except Unreadable as reason:
        return Unusable(record, "bad_message", str(reason))
    held = found.held
    earlier = _history(value.get("history"))
    if earlier is not None:
        held = held | {"history"}
    rest = {key: item for key, item in value.items() if key not in held and item is not None}
    return row(record, rest, [*(earlier or ()), *found.messages], found.unread)


def _history(value: Any) -> list[Message] | None:
    """Earlier questions and answers; None where there are none, or where they are no pairs of texts."""
    if not isinstance(value, list):
        return None
    messages: list[Message] = []
    for pair in value:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)):
            return None
        messages += [Message("user", pair[0]), Message("assistant", pair[1], inherited=True)]
    return messages
