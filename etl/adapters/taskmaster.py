"""Taskmaster dialogues (TM-1 to TM-4): `{conversation_id, utterances: [{speaker, text, segments, …}]}`; and the scored
answers of TM-3, `{conversation_id, context, generation, reward}`, where context and answer are JSON text.

Calls of an API (`apis` of an utterance, `api` and `response` turns of a context) are steps. Of a scored answer the
context is inherited: the reward is about the answer alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import parsed
from etl.adapters._records import RecordAdapter
from etl.conversation import Conversation, Message, Outcome, Record, ToolCall, Unusable
from etl.decode import encode
from etl.identity import digest

_ROLES = {"user": "user", "assistant": "assistant", "agent": "assistant", "system": "assistant"}
_SCORED = frozenset({"context", "generation", "reward"})


class Taskmaster(RecordAdapter):
    """Dialogues and scored answers of the Taskmaster sets."""

    name = "taskmaster"
    version = 1
    about = "Taskmaster dialogues (TM-1 to TM-4): utterances with segments and API calls; scored answers of TM-3"
    expects = "a record is an object with `utterances` or `context`"

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of utterances with a speaker and of context, generation and reward."""
        return 0.95 if _is_scored(value) or _is_dialogue(value) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One dialogue or scored answer."""
        yield _scored(record, value) if value.keys() >= _SCORED else _dialogue(record, value)


def _is_scored(value: dict[str, Any]) -> bool:
    return value.keys() >= _SCORED and isinstance(value["context"], str) and value["context"].lstrip()[:1] == "["


def _is_dialogue(value: dict[str, Any]) -> bool:
    listed = value.get("utterances")
    return (
        isinstance(listed, list)
        and bool(listed)
        and all(isinstance(item, dict) and {"speaker", "text"} <= item.keys() for item in listed[:8])
    )


class _Turns:
    """The messages of a dialogue, being read."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.made = 0
        self.open: list[tuple[str, str]] = []
        """Calls that no response followed yet: name and id."""

    def called(self, name: str, arguments: Any, extra: dict[str, Any] | None = None) -> str:
        """A call, as a message of its own."""
        self.made += 1
        call_id = f"call_{self.made}"
        self.messages.append(Message("assistant", calls=[ToolCall(name, arguments, call_id)], extra=extra))
        self.open.append((name, call_id))
        return call_id

    def returned(self, name: str | None, response: Any) -> None:
        """A response, which answers the first open call of its name."""
        waiting = next((call for call in self.open if call[0] == name), None)
        if waiting is not None:
            self.open.remove(waiting)
        call_id = waiting[1] if waiting is not None else None
        self.messages.append(Message("tool", plain(response), call_id=call_id, name=name))


def _role(value: Any, key: str) -> str | None:
    speaker = value.get(key) if isinstance(value, dict) else None
    return _ROLES.get(speaker.lower()) if isinstance(speaker, str) else None


def _dialogue(record: Record, value: dict[str, Any]) -> Outcome:
    listed = value.get("utterances")
    if not isinstance(listed, list) or not listed:
        return Unusable(record, "no_messages", "a dialogue has a list `utterances`; this has none")
    turns = _Turns()
    for index, item in enumerate(listed):
        role = _role(item, "speaker")
        if role is None:
            return Unusable(record, "unknown_role", f"utterance {index} is by nobody known; see what wrote it")
        rest = {key: found for key, found in item.items() if key not in ("speaker", "text") and found not in (None, [])}
        apis = rest.pop("apis", None)
        unread = [call for call in apis if not _api(call, turns)] if isinstance(apis, list) else apis
        if unread:
            rest["apis"] = unread
        turns.messages.append(Message(role, plain(item.get("text")), extra=rest or None))
    return _made(record, value, turns, "utterances")


def _api(call: Any, turns: _Turns) -> bool:
    """Take in a call that an utterance rests on; False where it names no API."""
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return False
    more = {key: item for key, item in call.items() if key not in ("name", "args", "response") and item is not None}
    turns.called(call["name"], call.get("args"), {"api": more} if more else None)
    if call.get("response") is not None:
        turns.returned(call["name"], call["response"])
    return True


def _scored(record: Record, value: dict[str, Any]) -> Outcome:
    context, answer = (_json(value[key]) for key in ("context", "generation"))
    if not isinstance(context, list):
        return Unusable(record, "bad_message", "`context` is no JSON text of a list of turns")
    turns = _Turns()
    for index, item in enumerate(context):
        if not _turn(item, turns):
            return Unusable(record, "unknown_role", f"context turn {index} is by nobody known; see what wrote it")
    for message in turns.messages:
        message.inherited = message.role != "user"
    if isinstance(answer, dict):
        if not _turn(answer, turns):
            return Unusable(record, "unknown_role", "the generation is by nobody known; see what wrote it")
    elif value["generation"] is not None:
        turns.messages.append(Message("assistant", plain(value["generation"])))
    made = _made(record, value, turns, "context", "generation", "reward")
    made.reward = value["reward"]
    made.task = ("taskmaster", digest(encode(context).encode()))
    return made


def _json(value: Any) -> Any:
    return parsed(value) if isinstance(value, str) else value


def _turn(item: Any, turns: _Turns) -> bool:
    """One turn of a context: what was said, what was called, what came back; False where nobody known speaks."""
    if not isinstance(item, dict):
        return False
    if item.get("role") == "api":
        response = item.get("response")
        if isinstance(response, dict) and len(response) == 1:
            (name, found), *_ = response.items()
            turns.returned(name, found)
        else:
            turns.returned(None, {key: found for key, found in item.items() if key != "role"})
        return True
    role = _role(item, "role")
    if role is None:
        return False
    held = {"role", "text"}
    api = item.get("api")
    if isinstance(api, dict) and api:
        held.add("api")
        for name, arguments in api.items():
            turns.called(name, arguments)
    rest = {key: found for key, found in item.items() if key not in held and found is not None}
    if "text" in item or rest or "api" not in held:
        turns.messages.append(Message(role, plain(item.get("text")), extra=rest or None))
    return True


def _made(record: Record, value: dict[str, Any], turns: _Turns, *held: str) -> Conversation:
    local_id = identifier(value.get("conversation_id"))
    taken = {*held, "conversation_id"} if local_id is not None else set(held)
    rest = {key: item for key, item in value.items() if key not in taken and item is not None}
    return Conversation(
        turns.messages,
        (record,),
        local_id=local_id,
        task_from_prompt=True,
        extra=rest or None,
    )
