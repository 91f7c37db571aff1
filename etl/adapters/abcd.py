"""ABCD support chats: `{convo_id, scenario, original: [[speaker, text]], delexed: [{speaker, text, targets, …}]}`, a
list of them, or one object of the parts `train`, `dev` and `test`.

Turns of the speaker `action` are what the agent did in its tools: a step with the name and values that the target of
the turn gives, and the logged text as its result. The scenario is what the customer was told, so it is not in the
prompt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._records import RecordAdapter, part
from etl.conversation import Conversation, Message, Outcome, Record, ToolCall, Unusable

_PARTS = ("train", "dev", "test")
_ROLES = {"agent": "assistant", "customer": "user", "action": "action"}
_TARGETS = 5
"""A target is intent, next step, action, values, utterance."""


class Abcd(RecordAdapter):
    """Chats of the Action-Based Conversations set."""

    name = "abcd"
    version = 1
    about = "ABCD support chats: {convo_id, scenario, original, delexed}; what the agent did in its tools is a step"
    expects = "a chat, or a set of them in parts, is a JSON object"
    splits = True

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of `original` beside a `convo_id`, in a list or in parts."""
        return _score(value)

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """Every chat of the record."""
        parts = _parts(value)
        if not parts:
            yield _outcome(record, value, None)
            return
        rest = {key: item for key, item in value.items() if key not in parts}
        if rest or not any(parts.values()):
            yield Unusable(
                part(record, rest), "no_messages", "beside its parts, or in them, the file holds what is no chat"
            )
        for name, chats in parts.items():
            for chat in chats:
                yield _outcome(part(record, chat), chat, name)


def _parts(value: Any) -> dict[str, list[Any]]:
    """The chats of a whole set by part; empty where the value is none."""
    if not isinstance(value, dict) or "original" in value:
        return {}
    return {part: value[part] for part in _PARTS if isinstance(value.get(part), list)}


def _score(value: dict[str, Any]) -> float:
    chats = [chat for part in _parts(value).values() for chat in part[:4]] or [value]
    return 0.95 if all(_is_chat(chat) for chat in chats) else 0.0


def _is_chat(value: Any) -> bool:
    return isinstance(value, dict) and "convo_id" in value and isinstance(value.get("original"), list)


def _outcome(record: Record, value: Any, part: str | None) -> Outcome:
    listed = value.get("original") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not listed:
        return Unusable(record, "no_messages", "a chat has a list `original` of [speaker, text]; this has none")
    delexed = value["delexed"] if isinstance(value.get("delexed"), list) else []
    told = delexed if len(delexed) == len(listed) else []
    messages: list[Message] = []
    for index, turn in enumerate(listed):
        pair = turn if isinstance(turn, list) and len(turn) == 2 else (None, None)
        role = _ROLES.get(pair[0]) if isinstance(pair[0], str) else None
        if role is None:
            return Unusable(record, "unknown_role", f"turn {index} is no [speaker, text] of a known speaker")
        messages += _turn(role, plain(pair[1]), told[index] if told else None, index)
    local_id = identifier(value.get("convo_id"))
    held = {"original"} | ({"convo_id"} if local_id is not None else set()) | ({"delexed"} if told else set())
    rest = {key: item for key, item in value.items() if key not in held and item is not None}
    if part is not None:
        rest["part"] = part
    return Conversation(messages, (record,), local_id=local_id, task_from_prompt=True, extra=rest or None)


def _turn(role: str, text: str, told: Any, index: int) -> list[Message]:
    """One turn, with the annotations of its anonymised twin."""
    extra = {"delexed": told} if told is not None else None
    if role != "action":
        return [Message(role, text, extra=extra)]
    name, arguments = _action(told)
    call_id = f"action_{index}"
    done = [Message("tool", text, call_id=call_id, name=name)] if text else []
    return [Message("assistant", calls=[ToolCall(name, arguments, call_id)], extra=extra), *done]


def _action(told: Any) -> tuple[str, dict[str, Any]]:
    """The action that a target names, with its values; a chat without targets only says that there was one."""
    targets = told.get("targets") if isinstance(told, dict) else None
    if isinstance(targets, list) and len(targets) == _TARGETS and isinstance(targets[2], str):
        return targets[2], {"values": targets[3]} if targets[3] is not None else {}
    return "action", {}
