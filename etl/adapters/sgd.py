"""Schema-guided dialogues (SGD, SGD-X): `{dialogue_id, services, turns: [{speaker, utterance, frames}]}`.

A turn of the system tells in its frames which service it called before it spoke, and what came back: the call and its
result stand before the utterance. Dialogue ids repeat between the parts of the set, so a row is known by all it says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from etl.adapters._blocks import identifier, plain
from etl.adapters._records import RecordAdapter
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, ToolCall, Unusable
from etl.decode import encode

_ROLES = {"USER": "user", "SYSTEM": "assistant"}


class Sgd(RecordAdapter):
    """Dialogues of the Schema-Guided Dialogue set."""

    name = "sgd"
    version = 1
    about = (
        "Schema-guided dialogues (SGD): {dialogue_id, turns: [{speaker, utterance, frames}]}, service calls as steps"
    )
    expects = "a dialogue is a JSON object with a list `turns`"

    ignores: ClassVar[dict[str, str]] = {
        "service_schema": "the definition of a service, from the `schema.json` beside the dialogues: nobody speaks"
    }

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of turns with speaker, utterance and frames, and of the schema beside them."""
        return 0.95 if _is_dialogue(value) or _is_schema(value) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """One dialogue."""
        yield Ignored("service_schema") if _is_schema(value) else _outcome(record, value)


def _is_dialogue(value: dict[str, Any]) -> bool:
    turns = value.get("turns")
    return (
        isinstance(turns, list)
        and bool(turns)
        and all(isinstance(turn, dict) and {"speaker", "utterance", "frames"} <= turn.keys() for turn in turns[:8])
    )


def _is_schema(value: dict[str, Any]) -> bool:
    return "turns" not in value and {"service_name", "slots", "intents"} <= value.keys()


def _outcome(record: Record, value: dict[str, Any]) -> Outcome:
    turns = value.get("turns")
    if not isinstance(turns, list) or not turns:
        return Unusable(record, "no_messages", "a dialogue is an object with a list `turns`; this has none")
    messages: list[Message] = []
    made = 0
    for index, turn in enumerate(turns):
        speaker = turn.get("speaker") if isinstance(turn, dict) else None
        role = _ROLES.get(speaker) if isinstance(speaker, str) else None
        if role is None:
            return Unusable(
                record, "unknown_role", f"turn {index} is by {plain(speaker)[:60]!r}, neither user nor system"
            )
        said = _turn(turn, role, made)
        made += sum(len(message.calls or ()) for message in said)
        messages += said
    local_id = identifier(value.get("dialogue_id"))
    held = {"turns"} if local_id is None else {"turns", "dialogue_id"}
    rest = {key: item for key, item in value.items() if key not in held and item is not None}
    return Conversation(messages, (record,), local_id=local_id, task_from_prompt=True, extra=rest or None)


def _turn(turn: dict[str, Any], role: str, made: int) -> list[Message]:
    """The utterance, after the calls of its frames and their results."""
    logged = turn["frames"] if isinstance(turn.get("frames"), list) else []
    calls: list[ToolCall] = []
    results: list[Message] = []
    services: list[Any] = []
    frames: list[Any] = []
    for frame in logged:
        asked = frame.get("service_call") if isinstance(frame, dict) else None
        if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
            frames.append(frame)
            continue
        call_id = f"call_{made + len(calls) + 1}"
        calls.append(ToolCall(asked["method"], asked.get("parameters"), call_id))
        more = {key: item for key, item in asked.items() if key not in ("method", "parameters")}
        services.append({"service": frame.get("service"), **more})
        if frame.get("service_results") is not None:
            results.append(Message("tool", encode(frame["service_results"]), call_id=call_id, name=asked["method"]))
        frames.append({key: item for key, item in frame.items() if key not in ("service_call", "service_results")})
    rest = {key: item for key, item in turn.items() if key not in ("speaker", "utterance", "frames")}
    if frames or not isinstance(turn.get("frames"), list):
        rest["frames"] = frames or turn.get("frames")
    said = Message(role, plain(turn.get("utterance")), extra={key: item for key, item in rest.items() if item} or None)
    if not calls:
        return [said]
    return [Message("assistant", calls=calls, extra={"services": services}), *results, said]
