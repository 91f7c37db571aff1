"""MultiWOZ: the `data.json` of versions 2.0 to 2.4, the columns of its Hugging Face form, and ConvLab's unified form.

(Version 2.2 is schema-guided: the `sgd` adapter reads it.) The system's queries are no turns of the set: what it found
in its database (`db_results`) and what it booked (`booked`, with a reference) are steps before the reply, called by the
names that the set's own schema has for them, `find_<domain>` and `book_<domain>`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._records import RecordAdapter, left, part
from etl.adapters._rollouts import items, obj
from etl.conversation import Conversation, Message, Outcome, Record, ToolCall, Unusable
from etl.decode import encode

_SPEAKERS = {"user": "user", "system": "assistant", "0": "user", "1": "assistant"}
_COLUMNS = frozenset({"speaker", "utterance"})


class MultiWoz(RecordAdapter):
    """Dialogues of the MultiWOZ sets."""

    name = "multiwoz"
    version = 1
    about = (
        "MultiWOZ: data.json ({name: {goal, log}}), Hugging Face columns, ConvLab turns; bookings and finds as steps"
    )
    expects = "a dialogue, or a file of them by name, is a JSON object"
    splits = True

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of a goal with a log of texts and metadata, of columns of turns, of turns with acts."""
        dialogues = [found for _, found in _dialogues(value)] or [value]
        told = [found for found in dialogues if isinstance(found, dict) and found.get("log") != []]
        return 0.93 if told and all(map(_is_dialogue, told[:4])) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One dialogue, or every one of a file."""
        named = _dialogues(value)
        if not named:
            yield _outcome(record, value, None)
        for name, found in named:
            yield _outcome(part(record, {name: found}), found, name)


def _dialogues(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """The dialogues of a file by name; none where it is one itself."""
    if "log" in value or "turns" in value:
        return []
    return (
        list(value.items())
        if value and all(isinstance(item, dict) and "log" in item for item in value.values())
        else []
    )


def _is_dialogue(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    log = value.get("log")
    if isinstance(log, list) and "goal" in value:
        return bool(log) and all(isinstance(turn, dict) and {"text", "metadata"} <= turn.keys() for turn in log[:8])
    turns = value.get("turns")
    if isinstance(turns, dict):
        return turns.keys() >= _COLUMNS and isinstance(turns["utterance"], list) and isinstance(turns["speaker"], list)
    return (
        isinstance(turns, list)
        and bool(turns)
        and all(
            isinstance(t, dict) and {"speaker", "utterance", "dialogue_acts"} <= t.keys() and "frames" not in t
            for t in turns[:8]
        )
    )


def _outcome(record: Record, value: Any, name: str | None) -> Outcome:
    if not _is_dialogue(value):
        return Unusable(record, "no_messages", "a dialogue has a `goal` and a `log`, or `turns`; this has neither")
    turns = _turns(value)
    messages: list[Message] = []
    booked: dict[str, Any] = {}
    for index, turn in enumerate(turns):
        speaker = turn.get("speaker", "user" if index % 2 == 0 else "system")
        role = _SPEAKERS.get(plain(speaker).lower())
        if role is None:
            return Unusable(record, "unknown_role", f"turn {index} is of the speaker {plain(speaker)}, who is unknown")
        made = sum(len(message.calls or ()) for message in messages)
        messages += _said(turn, role, booked, made)
    found = next((key for key in ("dialogue_id", "original_id", "id") if identifier(value.get(key))), None)
    held = {"log", "turns", *([found] if found else [])}
    return Conversation(
        messages,
        (record,),
        local_id=name or (identifier(value[found]) if found else None),
        task_from_prompt=True,
        extra=left(value, held),
    )


def _turns(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The turns of any form, one object each; speakers of a log alternate, the user first."""
    if isinstance(value.get("log"), list):
        return [turn if isinstance(turn, dict) else {"text": plain(turn)} for turn in value["log"]]
    turns = value["turns"]
    if isinstance(turns, list):
        return [turn if isinstance(turn, dict) else {"utterance": plain(turn)} for turn in turns]
    columns = {key: column for key, column in turns.items() if isinstance(column, list)}
    length = max(map(len, columns.values()), default=0)
    return [{key: column[n] for key, column in columns.items() if n < len(column)} for n in range(length)]


def _said(turn: dict[str, Any], role: str, booked: dict[str, Any], made: int) -> list[Message]:
    """The utterance; before one of the system, what it found and booked."""
    key = "utterance" if "utterance" in turn else "text"
    asked = [*_found(turn), *_booked(obj(turn, "metadata"), booked)] if role == "assistant" else []
    rest = {name: _terse(item) for name, item in turn.items() if name not in (key, "speaker", "db_results")}
    extra = {name: item for name, item in rest.items() if item not in (None, "", [], {})}
    said = Message(role, plain(turn.get(key)), extra=extra or None)
    if not asked:
        return [said]
    calls = [ToolCall(name, arguments, f"call_{made + n + 1}") for n, (name, arguments, _) in enumerate(asked)]
    results = [
        Message("tool", encode(result), call_id=call.id, name=call.name)
        for call, (_, _, result) in zip(calls, asked, strict=True)
        if result is not None
    ]
    return [Message("assistant", calls=calls), *results, said]


def _found(turn: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """What the database gave for the state of each domain."""
    state = obj(turn, "state")
    return [
        (f"find_{domain}", _terse(state.get(domain)) or {}, rows) for domain, rows in obj(turn, "db_results").items()
    ]


def _booked(metadata: dict[str, Any], before: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Bookings that an earlier turn did not have yet."""
    found: list[tuple[str, Any, Any]] = []
    for domain, state in metadata.items():
        book = obj(state, "book")
        booked = items(book, "booked")
        if booked and before.get(domain) != booked:
            before[domain] = booked
            found.append((f"book_{domain}", _terse({k: v for k, v in book.items() if k != "booked"}), booked))
    return found


def _terse(value: Any) -> Any:
    """Without the empty slots, which most of a state are."""
    if isinstance(value, dict):
        told = {key: _terse(item) for key, item in value.items()}
        return {key: item for key, item in told.items() if item not in (None, "", [], {})}
    return value
