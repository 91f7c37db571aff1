"""Kiro CLI sessions of 2026: `<session>.jsonl`, lines `{version, kind, data}`, and `<session>.json` with their state.

The lines are the conversation, and name no session: it is known by the id of its first message. The state beside it has
the session's id, the model, times, and what each turn used; it names the messages of its turns, by which the two are
put together, else the session for which the file of lines is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._blocks import identifier
from etl.adapters._kiro_blocks import exit_code
from etl.adapters._session import Naming, SureAdapter, dict_of, list_of, sessions, stored, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import (
    Conversation,
    Fragment,
    Ignored,
    Message,
    Outcome,
    Record,
    StoredEvent,
    Tokens,
    ToolCall,
    Unusable,
)
from etl.decode import encode

_KINDS = frozenset({"Prompt", "AssistantMessage", "ToolResults"})
_ALONE = "state_without_session"
_COUNTS = ("cache_read_input_token_count", "cache_write_input_token_count", "input_token_count", "output_token_count")
_TURN = ("result", "message_ids", "loop_id", *_COUNTS)


class KiroCli(SureAdapter):
    """Sessions that Kiro's command line keeps as files."""

    name = "kiro_cli"
    about = (
        "Kiro CLI sessions: lines {version, kind: Prompt|AssistantMessage|ToolResults, data}, their state beside them"
    )
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {_ALONE: "the state of a session whose lines are not there"}

    def looks(self, value: Any) -> float:
        """Sure of a line of the three kinds, and of a state."""
        if _is_state(value):
            return 0.95
        held = dict_of(value, "data")
        if text_of(value, "kind") in _KINDS and isinstance(held.get("content"), list):
            return 0.97
        return 0.4 if text_of(value, "kind", "version") and held else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each line, and for a state, under the first message of the session."""
        called = f"session {re.split('[/!]', file.uri)[-1].split('.')[0]}"
        naming = Naming()
        for record in records:
            value = record.value
            if _is_state(value):
                named = f"session {text_of(value, 'session_id')}"
                ids = (list_of(turn, "message_ids") for turn in _turns(value))
                first = next((name for listed in ids for name in listed if isinstance(name, str)), named)
                yield Fragment(record, first, named, value.get("created_at"))
                continue
            held = dict_of(value, "data")
            if not held:
                yield Unusable(record, "no_message", "a line of a session has a kind and data; this has not")
                continue
            name = text_of(held, "message_id")
            if naming.key is None and name is not None:
                yield from naming.begin(name)
            yield from naming.take(record, dict_of(held, "meta").get("timestamp"), called)
        yield from naming.end()

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Ignored]:
        """A row for each session in which somebody says something."""
        states = [(event, value) for event in family if _is_state(value := stored(event))]
        used: set[int] = set()
        for key, events in sorted(sessions(family).items()):
            lines = [(event, value) for event in events if not _is_state(value := stored(event))]
            links = {event.link for event, _ in lines}
            own = [each for each in states if each[0].key == key or each[0].link in links] if lines else []
            state: dict[str, Any] = max(
                (value for _, value in own), key=lambda value: (len(_turns(value)), encode(value)), default={}
            )
            reading = _Reading(text_of(_model(state), "model_id"))
            for _, value in lines:
                reading.take(value)
            if not reading.talk.messages:
                continue
            used.update(id(event) for event, _ in own)
            made = Conversation([], [event.record for event, _ in (*lines, *own)], native_id=key)
            made.agent, made.conversation_id = "kiro-cli", key
            _settle(made, state, reading.talk)
            yield reading.talk.tell(made)
        yield from (Ignored(_ALONE, 1, event.record) for event, _ in states if id(event) not in used)


def _is_state(value: Any) -> bool:
    return text_of(value, "session_id") is not None and bool(dict_of(value, "session_state")) and "kind" not in value


def _turns(state: dict[str, Any]) -> list[Any]:
    return list_of(dict_of(dict_of(state, "session_state"), "conversation_metadata"), "user_turn_metadatas")


def _model(state: dict[str, Any]) -> dict[str, Any]:
    return dict_of(dict_of(dict_of(state, "session_state"), "rts_model_state"), "model_info")


def _settle(made: Conversation, state: dict[str, Any], talk: Talk) -> None:
    """What the state says: times, and what each turn used (nought where only credits are counted)."""
    turns = [turn for turn in _turns(state) if isinstance(turn, dict)]
    for turn in turns:
        read_again, written, fresh, out = (whole(turn.get(name)) for name in _COUNTS)
        if fresh or out:
            total = None if fresh is None else fresh + (read_again or 0) + (written or 0)
            talk.tokens.append(Tokens(total, out, read_again, written))
    ends = [turn.get("end_timestamp") for turn in turns]
    made.started_at = state.get("created_at")
    made.ended_at = next((end for end in reversed(ends) if end), state.get("updated_at"))
    rest = without(state, "created_at", "session_state")
    told = without(dict_of(state, "session_state"), "conversation_metadata", "rts_model_state")
    if spent := [left for turn in turns if (left := without(turn, *_TURN))]:
        told["turns"] = spent
    made.extra = {**rest, **({"session_state": told} if told else {})} or None


class _Reading:
    """The lines of one session, one after the other."""

    def __init__(self, model: str | None) -> None:
        self.talk = Talk(model)

    def take(self, value: Any) -> None:
        """Read a line."""
        kind, held = text_of(value, "kind"), dict_of(value, "data")
        at = dict_of(held, "meta").get("timestamp")
        if kind == "ToolResults":
            self._results(held, at)
        elif kind in _KINDS:
            self._said(kind == "Prompt", held, at)
        else:
            self.talk.note({"kind": kind, **held})

    def _said(self, person: bool, held: dict[str, Any], at: Any) -> None:
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[ToolCall] = []
        others: list[Any] = []
        for block in list_of(held, "content"):
            kind, data = text_of(block, "kind"), block.get("data") if isinstance(block, dict) else block
            if kind == "text" and isinstance(data, str):
                texts.append(data)
            elif kind == "thinking" and (thought := text_of(data, "text")) is not None:
                thoughts.append(thought)
            elif kind == "toolUse" and isinstance(data, dict):
                calls.append(ToolCall(text_of(data, "name") or "tool", data.get("input"), _called(data)))
            elif kind == "image" and isinstance(data, dict):
                others.append({"type": "image", **data})
            else:
                others.append(block)
        rest = without(held, "message_id", "content", "meta") | without(dict_of(held, "meta"), "timestamp")
        text, name = "\n".join(text for text in texts if text), text_of(held, "message_id")
        if person:
            self.talk.ask(text, at, id=name, parts=others or None, extra=rest)
            return
        message = Message("assistant", text, "\n".join(thoughts) or None, calls or None, at=at, parts=others or None)
        message.id, message.model, message.extra = name, self.talk.model, rest or None
        self.talk.say(message)

    def _results(self, held: dict[str, Any], at: Any) -> None:
        rest = without(held, "message_id", "content", "meta", "results")
        for block in list_of(held, "content"):
            data = dict_of(block, "data")
            if text_of(block, "kind") != "toolResult" or not data:
                self.talk.note({"kind": "ToolResults", "block": block})
                continue
            message = Message("tool", call_id=_called(data), at=at)
            said = []
            for inner in list_of(data, "content"):
                told = inner.get("data") if isinstance(inner, dict) else inner
                if text_of(inner, "kind") == "json":
                    said.append(encode(told))
                    code = exit_code(told)
                    if code:
                        message.failed, message.error = True, f"exit {code}"
                elif isinstance(told, str):
                    said.append(told)
                else:
                    message.parts = [*(message.parts or ()), inner]
            message.content = "\n".join(said)
            status = text_of(data, "status")
            if status is not None and message.failed is None:
                message.failed = status.lower() == "error"
            message.extra = {**without(data, "toolUseId", "content", "status"), **rest} or None
            rest = {}
            self.talk.say(message)


def _called(data: dict[str, Any]) -> str | None:
    return identifier(data.get("toolUseId"))
