"""Tool calls into steps: arguments as the text of an object, ids made unique, each result paired with its call.

A result answers the open call with its id: of the latest message that made one, the first; without an id, the first
open call of the same name; without a name either, the first open call of the latest message that made one. A result
whose id no call has looks like this among the open calls that were logged without one. A missing result stays missing,
an orphan stays where it is; nothing is invented.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from etl.conversation import Message, ToolCall
from etl.decode import JsonError, decode, encode

_plain = msgspec.json.Decoder()

ERROR_TEXT = 1_000
"""Characters of a result kept as `steps.error`; the whole text is in the message."""


class Arguments(NamedTuple):
    """`text` is a JSON object; `raw` the log's own text where that was none; `notes` become flags."""

    text: str
    raw: str | None = None
    notes: tuple[str, ...] = ()


def arguments(value: Any, free_form: bool = False) -> Arguments:
    """Arguments in any spelling: an object, its JSON text, that text encoded once more, or no object at all.

    >>> arguments({"n": 2}).text, arguments('"{\\\\"n\\\\": 2}"').text
    ('{"n":2}', '{"n": 2}')
    >>> arguments("oops")
    Arguments(text='{}', raw='oops', notes=('invalid_arguments',))
    """
    if type(value) is dict:
        return Arguments(encode(value))
    if value is None:
        return Arguments("{}")
    if type(value) is not str:
        return Arguments("{}", encode(value), ("invalid_arguments",))
    if free_form:
        return Arguments(encode({"input": value}))
    if _is_object(value):
        return Arguments(value)
    if not value.strip():
        return Arguments("{}", value)
    text = value
    for _ in range(3):
        try:
            decoded = decode(text.encode("utf-8", "surrogatepass"))
        except JsonError:
            break
        if isinstance(decoded.value, dict):
            if decoded.notes in ((), ("duplicate_keys",)) and _is_object(text):
                return Arguments(text, None, decoded.notes)
            return Arguments(encode(decoded.value), text, decoded.notes)
        if not isinstance(decoded.value, str):
            break
        text = decoded.value
    return Arguments("{}", value, ("invalid_arguments",))


def _is_object(text: str) -> bool:
    """Whether every JSON reader takes it for an object: raw control characters are not for all of them."""
    try:
        return type(_plain.decode(text)) is dict
    except (ValueError, RecursionError):
        return False


class StepRow(msgspec.Struct, gc=False, eq=False):
    """A step while its result is awaited; its fields stand as in `StepTuple`."""

    call_id: str
    tool: str
    actor: str
    arguments: str
    message_index: int
    result_index: int | None
    status: str
    condition: str | None
    error: str | None
    raw_arguments: str | None
    at: int | None
    duration_ms: float | None


class Pairing:
    """The calls of one conversation, in order, and which of them are still open."""

    def __init__(self) -> None:
        self.steps: list[StepRow] = []
        self.flags: set[str] = set()
        self._used: set[str] = set()
        self._open: dict[str | None, list[StepRow]] = {}

    def call(self, call: ToolCall, message_index: int, at: int | None) -> tuple[StepRow, str | None]:
        """A new step; also the id as logged, where it had to be changed to be unique."""
        parsed = arguments(call.arguments, call.free_form)
        if parsed.notes:
            self.flags.update(parsed.notes)
        logged = call.id
        if not logged:
            unique = f"call_{len(self.steps) + 1}"
            while unique in self._used:
                unique += "_"
        elif logged in self._used:
            self.flags.add("reused_call_id")
            number = 2
            while (unique := f"{logged}#{number}") in self._used:
                number += 1
        else:
            unique = logged
        self._used.add(unique)
        status = "ok" if call.actor == "server" else "missing"
        step = StepRow(
            unique, call.name, call.actor, parsed.text, message_index, None, status, None, None, parsed.raw, at,
            call.duration_ms,
        )  # fmt: skip
        self.steps.append(step)
        self._open.setdefault(logged or None, []).append(step)
        return step, logged if logged and unique != logged else None

    def result(self, message: Message, message_index: int) -> StepRow | None:
        """The step that a tool message answers; None for an orphan."""
        step = self._answered(message)
        if step is None:
            self.flags.add("orphan_result")
            return None
        step.result_index = message_index
        if message.cancelled:
            step.status, step.error = "cancelled", message.content[:ERROR_TEXT] or None
        elif message.failed:
            step.status, step.error = "error", (message.error or message.content)[:ERROR_TEXT] or None
            step.condition = message.condition or "error"
        else:
            step.status = "ok"
            step.condition = message.condition or ("success" if message.failed is False else None)
        if message.duration_ms is not None:
            step.duration_ms = message.duration_ms
        return step

    def _answered(self, message: Message) -> StepRow | None:
        if message.call_id:
            waiting = self._open.get(message.call_id)
            if waiting:
                if len(waiting) == 1:
                    return waiting.pop()
                latest = waiting[-1].message_index
                return waiting.pop(next(n for n, step in enumerate(waiting) if step.message_index == latest))
            if waiting is not None or not self._open.get(None):
                return None
            candidates = [*self._open[None]]
        else:
            candidates = [step for waiting in self._open.values() for step in waiting]
        if message.name:
            candidates = [step for step in candidates if step.tool == message.name]
        else:
            latest = max((step.message_index for step in candidates), default=0)
            candidates = [step for step in candidates if step.message_index == latest]
        if not candidates:
            return None
        chosen = min(candidates, key=self.steps.index)
        for waiting in self._open.values():
            if chosen in waiting:
                waiting.remove(chosen)
        return chosen

    def close(self) -> bool:
        """Flag what was never answered; True where a call of the last step's message is still open."""
        missing = [step for step in self.steps if step.status == "missing"]
        if missing:
            self.flags.add("missing_result")
        return bool(missing)
