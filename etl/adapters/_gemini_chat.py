"""A chat of Gemini CLI as a change log: messages that are written again, patched, and rewound.

A message is known by its id; written again it replaces what it was. `$set` changes the header, and with `messages` puts
other messages in the place of all; `$rewindTo` takes a message and all after it away. What was taken away is kept as a
branch that was left. Where a chat is compressed the model's memory is replaced, under new ids: what was said stays, the
summary comes after it. A request that is taken back before anything was answered leaves no memory at all: it stays too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from etl.adapters._gemini_parts import read_parts
from etl.adapters._session import canonical, list_of, stored, text_of
from etl.conversation import Record, StoredEvent
from etl.identity import digest

SUMMARY = "<state_snapshot>"


class Said(msgspec.Struct, gc=False, eq=False):
    """A message as it was written last, and the records that wrote it."""

    value: dict[str, Any]
    records: list[Record]
    told: bool = False
    """True where the program put it in the model's place: the thanks for a summary."""


class Left(msgspec.Struct, gc=False):
    """Messages that were taken away, after those that they followed."""

    before: list[Said]
    own: list[Said]


class Chat:
    """The state of a chat after all its records."""

    def __init__(self, events: Iterable[StoredEvent]) -> None:
        self.header: dict[str, Any] = {}
        self.messages: dict[str, Said] = {}
        self.left: list[Left] = []
        self.records: list[Record] = []
        self._copies: dict[str, str] = {}
        for event in events:
            self.records.append(event.record)
            self._apply(stored(event), event.record)

    def _apply(self, value: Any, record: Record) -> None:
        if not isinstance(value, dict):
            return
        change = value.get("$set")
        target = value.get("$rewindTo")
        if isinstance(target, str):
            self._rewind(target)
        elif isinstance(change, dict):
            self._head(change)
            if isinstance(change.get("messages"), list):
                self._replace(change["messages"], record)
        elif "messages" in value or is_header(value):
            self._head(value)
            if isinstance(value.get("messages"), list):
                self._replace(value["messages"], record)
        else:
            self._put(value, record)

    def _head(self, value: dict[str, Any]) -> None:
        self.header |= {key: item for key, item in value.items() if key != "messages" and item is not None}

    def _put(self, value: dict[str, Any], record: Record) -> None:
        name = text_of(value, "id") or digest(canonical(value).encode())
        known = self.messages.get(name)
        if known is None:
            self.messages[name] = Said(value, [record])
        else:
            known.value = value
            known.records.append(record)

    def _rewind(self, target: str) -> None:
        names = list(self.messages)
        target = self._copies.get(target, target)
        place = names.index(target) if target in self.messages else 0
        self._leave(names[:place], names[place:])

    def _replace(self, messages: list[Any], record: Record) -> None:
        """Other messages in the place of all: those that are not among them were left."""
        given = [message for message in messages if isinstance(message, dict)]
        if not given and not any(text_of(said.value, "type") in ("gemini", "model") for said in self.messages.values()):
            return
        if any(is_summary(message) and text_of(message, "id") not in self.messages for message in given):
            self._compress(given, record)
            return
        named = {text_of(message, "id") or digest(canonical(message).encode()) for message in given}
        gone = [name for name in self.messages if name not in named]
        if gone:
            place = list(self.messages).index(gone[0])
            self._leave(list(self.messages)[:place], gone)
        before, self.messages = self.messages, {}
        for message in given:
            name = text_of(message, "id") or digest(canonical(message).encode())
            known = before.get(name)
            if known is not None:
                self.messages[name] = known
            self._put(message, record)

    def _compress(self, given: list[dict[str, Any]], record: Record) -> None:
        """A summary in the place of earlier messages, and copies of later ones under new ids: only the summary, and
        what was not said before, is new."""
        known: dict[str, list[str]] = {}
        for name, said in self.messages.items():
            known.setdefault(_sense(said.value), []).append(name)
        thanks = copied = False
        for message in given:
            name = text_of(message, "id") or digest(canonical(message).encode())
            same = known.get(_sense(message))
            if name in self.messages or is_summary(message):
                self._put(message, record)
            elif same:
                self._copies[name] = same.pop(0)
            elif not (copied and read_parts(message.get("content")).answers):
                self._put(message, record)
                self.messages[name].told = thanks and text_of(message, "type") != "user"
            thanks, copied = is_summary(message), name in self._copies or copied

    def _leave(self, before: list[str], own: list[str]) -> None:
        taken = [self.messages.pop(name) for name in own]
        if taken:
            self.left.append(Left([self.messages[name] for name in before], taken))


def is_summary(value: dict[str, Any]) -> bool:
    """Whether a message is the summary that stands for what was compressed."""
    return text_of(value, "type") == "user" and read_parts(value.get("content")).text.lstrip().startswith(SUMMARY)


def _sense(value: dict[str, Any]) -> str:
    """What a message says, whatever its id: a copy has its calls among its parts."""
    found = read_parts(value["parts"] if "parts" in value else value.get("content"))
    calls: list[str | None] = [call.name for call in found.calls or ()]
    calls = calls or [text_of(item, "name") for item in list_of(value, "toolCalls")]
    return canonical(
        [text_of(value, "type") == "user", found.text, calls, [one.content for one in found.answers or ()]]
    )


def is_header(value: dict[str, Any]) -> bool:
    """Whether a record opens a chat, or is the whole chat of a file that is one object."""
    if text_of(value, "sessionId") is None or "type" in value:
        return False
    return "projectHash" in value or "startTime" in value or isinstance(value.get("messages"), list)


def agents_in(value: dict[str, Any]) -> list[str]:
    """Sessions of sub-agents that calls of a record name."""
    messages = [value, *(item for item in list_of(value, "messages") if isinstance(item, dict))]
    calls = [call for message in messages for call in list_of(message, "toolCalls")]
    return [name for call in calls if (name := text_of(call, "agentId"))]
