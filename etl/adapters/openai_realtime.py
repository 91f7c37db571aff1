"""Sessions of the OpenAI Realtime API: the events that a server sent (and a client), one a line, in order.

What was said aloud is told by its transcripts, which come in events of their own; an item is told once, however many
events carry it. A session begins with `session.created`; events may lie under a key of the program that logged them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_form import PIECE, Body, arr, error_text, obj, text, without
from etl.adapters._api_responses import RESPONSES
from etl.adapters._blocks import plain
from etl.adapters._chat import parsed
from etl.adapters._otlp_messages import joined
from etl.adapters._usage import tokens
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Tokens, Unusable

_FAMILIES = (
    "session.created", "session.updated", "conversation.item.", "conversation.created", "response.",
    "input_audio_buffer.", "output_audio_buffer.", "rate_limits.",
)  # fmt: skip
_ALONE = frozenset({"error", "transcription_session.created", "transcription_session.updated"})
_WRAPPERS = ("event", "data", "payload", "message")
_TIMES = ("timestamp", "time", "ts", "at", "created_at")
_ADDED = frozenset({"conversation.item.created", "conversation.item.added", "conversation.item.done"})
_SPOKEN = {"input_audio": "input_text", "audio": "output_text", "output_audio": "output_text"}
"""Kind of a part that was heard → that of its transcript."""


class OpenAIRealtime(Adapter):
    """Events of realtime sessions."""

    name = "openai_realtime"
    about = "OpenAI Realtime API: the events of a session, one a line ({type, event_id, …}), also of several sessions"
    ignores: ClassVar[dict[str, str]] = {"silent_session": "a session in which nothing was said"}

    def score(self, sample: Sample) -> float:
        """The share of events, where one of them is of a realtime session and no stream of Responses."""
        events = [_event(value) for value in sample.values]
        if not any(_is_sessions(event) for event in events):
            return 0.0
        return 0.97 * sum(_is_event(event) for event in events) / len(events)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation a session."""
        session = _Session()
        for record in records:
            event = _event(record.value)
            if not _is_event(event):
                yield Unusable(record, "no_event", "an event has a type of the Realtime API; see what wrote it")
                continue
            if event["type"] == "session.created" and session.records:
                yield session.outcome()
                session = _Session()
            session.take(record, event)
        if session.records:
            yield session.outcome()


def _event(value: Any) -> Body:
    """The event itself, or the one under a key of whoever logged it, with the time of the log."""
    found = obj(value)
    if type(found.get("type")) is str and found["type"].startswith(_FAMILIES):
        return found
    for key in _WRAPPERS:
        held = found.get(key)
        inner = obj(parsed(held) if type(held) is str and held[:1] == "{" else held)
        if type(inner.get("type")) is str and (inner["type"].startswith(_FAMILIES) or inner["type"] in _ALONE):
            return {**{name: found[name] for name in _TIMES if name in found}, **inner}
    return found


def _is_event(event: Body) -> bool:
    kind = event.get("type")
    return type(kind) is str and (kind.startswith(_FAMILIES) or kind in _ALONE)


def _is_sessions(event: Body) -> bool:
    kind = event.get("type")
    if type(kind) is not str:
        return False
    if kind.startswith(("session.", "response.")):
        return "event_id" in event or (type(event.get("session")) is dict and "model" in event["session"])
    return kind.startswith(("conversation.item.", "input_audio_buffer."))


class _Item(msgspec.Struct):
    """One item of a conversation as far as its events tell."""

    body: Body
    at: Any = None
    response: str | None = None
    heard: dict[int, str] = {}
    """Place of a part → its transcript, from events of their own."""
    echoed: bool = True
    """False for what a client sent, until the server says that it took it in."""


class _Session:
    """One session as far as it was read."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._config: Body = {}
        self._items: dict[str, _Item] = {}
        self._usage: dict[str, Tokens] = {}
        self._ends: dict[str, Body] = {}
        self._first: Any = None
        self._last: Any = None
        self._errors: list[str] = []
        self._sent = 0

    def take(self, record: Record, event: Body) -> None:
        """One more event."""
        self.records.append(record)
        kind = event["type"]
        at = next((event[key] for key in _TIMES if event.get(key) is not None), None)
        self._first, self._last = self._first if self._first is not None else at, at if at is not None else self._last
        if kind.startswith("session.") and type(event.get("session")) is dict:
            self._config.update({key: value for key, value in event["session"].items() if value is not None})
        elif kind in _ADDED:
            self._add(obj(event.get("item")), at, text(event.get("previous_item_id")))
        elif kind == "conversation.item.create":
            self._send(obj(event.get("item")), at)
        elif kind == "conversation.item.deleted":
            self._items.pop(str(event.get("item_id")), None)
        elif kind == "conversation.item.truncated" and (cut := self._items.get(str(event.get("item_id")))) is not None:
            cut.body = {**cut.body, "heard_ms": event.get("audio_end_ms")}
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._add(obj(event.get("item")), at, None, text(event.get("response_id")))
        elif kind == "response.done":
            self._done(obj(event.get("response")), at)
        elif kind == "error" and (said := error_text(event.get("error"))):
            self._errors.append(said)
        elif kind.endswith(("transcription.completed", "transcript.done")) and type(event.get("transcript")) is str:
            self._hear(event, event["transcript"])

    def _add(self, item: Body, at: Any, before: str | None, response: str | None = None) -> None:
        """An item that the server knows: later events of it have more."""
        name = text(item.get("id"))
        if name is None:
            return
        self._taken(item)
        known = self._items.get(name)
        if known is None:
            self._items[name] = _Item(item, at, response)
            if before is not None and before in self._items:
                self._move(name, before)
        else:
            known.body = {**known.body, **{key: value for key, value in item.items() if value not in (None, "", [])}}
            known.response = known.response or response

    def _move(self, name: str, before: str) -> None:
        """To its place after the item that it follows."""
        moved = self._items.pop(name)
        ordered: dict[str, _Item] = {}
        for other, item in self._items.items():
            ordered[other] = item
            if other == before:
                ordered[name] = moved
        self._items = ordered

    def _send(self, item: Body, at: Any) -> None:
        """An item that a client sent; the server's word that it took it in comes in its place."""
        self._sent += 1
        name = text(item.get("id")) or f"sent {self._sent}"
        if name not in self._items:
            self._items[name] = _Item(item, at, echoed=False)

    def _taken(self, item: Body) -> None:
        for name, known in self._items.items():
            if not known.echoed and all(known.body.get(key) == item.get(key) for key in ("type", "role", "call_id")):
                del self._items[name]
                return

    def _done(self, response: Body, at: Any) -> None:
        name = text(response.get("id")) or f"response {len(self._ends)}"
        for item in arr(response.get("output")):
            self._add(obj(item), at, None, name)
        counted = obj(response.get("usage"))
        details = {f"{side}_tokens_details": counted.get(f"{side}_token_details") for side in ("input", "output")}
        if (usage := tokens({**details, **counted})) is not None:
            self._usage[name] = usage
        self._ends[name] = response

    def _hear(self, event: Body, said: str) -> None:
        item = self._items.setdefault(str(event.get("item_id")), _Item({"type": "message", "role": "assistant"}))
        place = event.get("content_index")
        item.heard = {**item.heard, place if type(place) is int else 0: said}
        item.response = item.response or text(event.get("response_id"))

    def outcome(self) -> Outcome:
        """The conversation, with the instructions before it."""
        messages: list[Message] = []
        before: str | None = None
        for item in self._items.values():
            for made in RESPONSES.message(_told(item)):
                made.at, end = item.at, self._ends.get(item.response or "", {})
                made.extra = {key: value for key, value in (made.extra or {}).items() if key != PIECE} or None
                if (
                    made.role == "assistant"
                    and messages
                    and messages[-1].role == "assistant"
                    and item.response == before
                ):
                    messages[-1] = joined(messages[-1], made)
                else:
                    messages.append(made)
                if made.role == "assistant" and item.response is not None:
                    self._count(messages[-1], item.response, end)
            before = item.response
        if not messages:
            return Ignored("silent_session", len(self.records))
        if text(self._config.get("instructions")):
            messages.insert(0, Message("system", self._config["instructions"]))
        failed = [
            why for end in self._ends.values() if (why := error_text(obj(end.get("status_details")).get("error")))
        ]
        last = next(reversed(self._ends.values()), {})
        return Conversation(
            messages, self.records, native_id=text(self._config.get("id")), tools=self._config.get("tools") or None,
            model=text(self._config.get("model")), provider="openai", usage=self._sum(), started_at=self._first,
            ended_at=self._last, finish_reason=text(last.get("status")),
            error=next(reversed(failed or self._errors), None) if last.get("status") in (None, "failed") else None,
            status="error" if last.get("status") == "failed" else None,
            extra=without(
                {"session": without(self._config, "id", "model", "instructions", "tools", "object", "client_secret"),
                 "errors": self._errors or None}, "none",
            ),
        )  # fmt: skip

    def _count(self, message: Message, response: str, end: Body) -> None:
        usage = self._usage.get(response)
        if usage is not None:
            message.input_tokens, message.output_tokens = usage.input_tokens, usage.output_tokens
        message.finish_reason = text(end.get("status"))

    def _sum(self) -> Tokens | None:
        """The counts of all responses."""
        made = Tokens()
        for usage in self._usage.values():
            for name in usage.__struct_fields__:
                if (count := getattr(usage, name)) is not None:
                    setattr(made, name, (getattr(made, name) or 0) + count)
        return made if self._usage else None


def _told(item: _Item) -> Body:
    """An item of the Responses API: what was heard as text, in its place."""
    body = without(item.body, "object", "status")
    if body.get("type") != "message":
        return {key: value for key, value in body.items() if key != "id"} if body.get("type") else body
    parts = [_part(part, item.heard.get(place)) for place, part in enumerate(arr(body.get("content")))]
    kind = "input_text" if body.get("role") == "user" else "output_text"
    parts += [{"type": kind, "text": said} for place, said in sorted(item.heard.items()) if place >= len(parts)]
    return {**body, "content": [part for part in parts if part is not None]}


def _part(part: Any, heard: str | None) -> Any:
    """A part of a message; of sound the transcript, from the part or from an event of its own."""
    told = obj(part)
    kind = _SPOKEN.get(str(told.get("type")))
    if kind is None:
        return {**told, "type": "output_text"} if told.get("type") == "text" else part
    said = text(told.get("transcript")) or heard
    rest = without(told, "type", "transcript", "text")
    return {"type": kind, "text": plain(said), **rest} if said or rest else None
