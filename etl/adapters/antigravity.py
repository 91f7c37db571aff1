"""Antigravity transcripts: JSON Lines of numbered steps, `{step_index, source, type, status, created_at, content, …}`.

A `PLANNER_RESPONSE` is what the model says; its calls have no ids, and the steps of the model after it are their
results, in order. The file does not name its session: its first step does, by its time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import plain
from etl.adapters._session import Naming, list_of, sessions, stored, text_of, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, StoredEvent, ToolCall, Unusable

_HISTORY = "CONVERSATION_HISTORY"
_ASKED = re.compile(r"<USER_REQUEST>\s*(.*?)\s*</USER_REQUEST>", re.DOTALL)
_FAILED = frozenset({"ERROR", "FAILED"})
_CANCELLED = frozenset({"CANCELED", "CANCELLED"})
_OPEN = frozenset({"RUNNING", "PENDING", "GENERATING", "WAITING"})
_HELD = ("step_index", "source", "type", "status", "created_at", "content", "thinking", "tool_calls")

_EXIT = re.compile(r"\s*The command (?:failed|exited) with (?:exit )?code:? (-?\d{1,10})\b")


class Antigravity(Adapter):
    """Transcripts of Antigravity."""

    name = "antigravity"
    version = 2
    about = "Antigravity transcripts: JSON Lines of steps {step_index, source, type, status, created_at, content}"
    scores_share = True
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {_HISTORY: "a mark that an earlier conversation was loaded, without content"}

    def score(self, sample: Sample) -> float:
        """The share of values that are steps."""
        hits = sum(1 for value in sample.values if _is_step(value))
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each step; a first step in the middle of a file begins another conversation."""
        naming = Naming()
        begun = False
        for record in records:
            value = record.value
            if not isinstance(value, dict) or text_of(value, "type") is None:
                yield Unusable(record, "no_type", "a step of a transcript is an object with a type; this is none")
            elif value["type"] == _HISTORY and not value.get("content"):
                yield Ignored(_HISTORY)
            else:
                if value.get("step_index") == 0 and begun:
                    yield from naming.end()
                    naming = Naming()
                begun = True
                yield from naming.take(record, value.get("created_at"))
        yield from naming.end()

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation]:
        """A row for each transcript in which somebody says something."""
        for key, events in sorted(sessions(family).items()):
            reading = _Reading()
            for value in _in_order([stored(event) for event in events]):
                reading.take(value)
            made = Conversation([], [event.record for event in events], native_id=key, conversation_id=key)
            made.agent = "antigravity"
            if reading.talk.messages:
                yield reading.talk.tell(made)


def _is_step(value: Any) -> bool:
    named = isinstance(value, dict) and type(value.get("step_index")) is int and text_of(value, "type") is not None
    return named and "source" in value and "status" in value


def _in_order(values: Sequence[Any]) -> list[Any]:
    """The steps by their index, whatever the order of the lines; a step that is written again is as it was last."""
    last: dict[tuple[int, str | None], Any] = {}
    for value in values:
        if _is_step(value):
            last[value["step_index"], text_of(value, "type")] = value
    return sorted(last.values(), key=lambda value: value["step_index"])


class _Reading:
    """The steps of one transcript, one after the other."""

    def __init__(self) -> None:
        self.talk = Talk()
        self._waiting: list[ToolCall] = []

    def take(self, value: Any) -> None:
        """Read a step."""
        kind, source = text_of(value, "type"), text_of(value, "source")
        if kind == "PLANNER_RESPONSE":
            self._answer(value)
        elif kind == "USER_INPUT":
            self._asked(value)
        elif source in (None, "MODEL") and kind not in ("CHECKPOINT", "SYSTEM_MESSAGE", "ERROR_MESSAGE"):
            self._result(value)
        else:
            self._program(value, kind)

    def _answer(self, value: dict[str, Any]) -> None:
        self.talk.close()
        at, text = value.get("created_at"), plain(value.get("content"))
        message = self.talk.piece(at)
        message.content, message.reasoning = text, text_of(value, "thinking")
        index = value.get("step_index")
        for number, item in enumerate(list_of(value, "tool_calls")):
            tool = text_of(item, "name")
            if tool is None:
                message.parts = [*(message.parts or []), item]
                continue
            call = ToolCall(tool, item.get("args", item.get("arguments")), f"step{index}.{number}")
            self.talk.call(call, at)
            self._waiting.append(call)
        message.extra = self._rest(value)
        self.talk.close()

    def _asked(self, value: dict[str, Any]) -> None:
        """What a person typed stands between tags; what is around them is the program's."""
        text, at = plain(value.get("content")), value.get("created_at")
        found = _ASKED.search(text)
        extra = self._rest(value)
        if found is None:
            self.talk.ask(text, at, extra=extra)
            return
        around = [text[: found.start()].strip(), text[found.end() :].strip()]
        if around[0]:
            self.talk.say(Message("user", around[0], at=at, synthetic=True))
        self.talk.say(Message("user", found.group(1), at=at, extra=extra))
        if around[1]:
            self.talk.say(Message("user", around[1], at=at, synthetic=True))

    def _result(self, value: dict[str, Any]) -> None:
        """A step that ran a tool: the result of the first call that waits, else one that no call is logged for."""
        status = text_of(value, "status")
        if status in _OPEN:
            self.talk.note(without(value))
            return
        call = self._waiting.pop(0) if self._waiting else None
        message = Message("tool", plain(value.get("content")), at=value.get("created_at"))
        message.call_id = call.id if call is not None else f"step{value.get('step_index')}"
        message.failed = True if status in _FAILED else None
        ended = _EXIT.match(message.content)
        if ended is not None and ended[1] != "0":
            message.failed, message.error = True, f"exit {ended[1]}"
        message.cancelled = status in _CANCELLED
        message.extra = {"type": value.get("type"), **(self._rest(value) or {})}
        self.talk.say(message)

    def _program(self, value: dict[str, Any], kind: str | None) -> None:
        text = plain(value.get("content"))
        if kind == "CHECKPOINT":
            self.talk.flags.add("compacted")
        if kind == "ERROR_MESSAGE":
            self.talk.note(without(value))
            self.talk.ended = ("error", text or kind)
        elif text:
            extra = {"type": kind, **(self._rest(value) or {})}
            self.talk.say(Message("user", text, at=value.get("created_at"), synthetic=True, extra=extra))
        else:
            self.talk.note(without(value))

    def _rest(self, value: dict[str, Any]) -> dict[str, Any] | None:
        if value.get("truncated_fields"):
            self.talk.flags.add("truncated_source")
        rest = without(value, *_HELD)
        if text_of(value, "status") not in (None, "DONE"):
            rest["status"] = value["status"]
        return rest or None
