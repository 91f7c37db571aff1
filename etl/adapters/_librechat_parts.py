"""What one message of LibreChat says: its text, or the parts that agents and assistants make of it."""

from __future__ import annotations

import re
from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._records import left
from etl.adapters._rollouts import items, obj, text
from etl.adapters._turns import Turn
from etl.conversation import Message, ToolCall

_THOUGHT = re.compile(r":::thinking\n(.*?)\n?:::\n*", re.DOTALL)
"""Reasoning as the text has it where there are no parts."""
_CALL = frozenset({"id", "name", "args", "output", "type", "function", "code_interpreter", "progress"})


def answer(value: dict[str, Any]) -> list[Message]:
    """The messages of an answer: one for each response that its parts show."""
    parts = [part for part in items(value, "content") if part is not None]
    turn = Turn()
    said = value.get("text")
    if not parts:
        found = _THOUGHT.match(said) if isinstance(said, str) else None
        if found is not None and isinstance(said, str):
            turn.reasoning(found.group(1))
            said = said[found.end() :]
        turn.text(plain(said))
        return turn.done()
    for part in parts:
        _take(turn, part)
    made = turn.done()
    shown = [message.content for message in made if message.content]
    if isinstance(said, str) and said.strip() and not any(said.strip() in each or each in said for each in shown):
        made[0].extra = {"text": said}
    return made


def failure(value: dict[str, Any]) -> str | None:
    """What a message says of an error that stands in the place of an answer."""
    for part in items(value, "content"):
        if isinstance(part, dict) and part.get("type") == "error":
            return _text(part.get("error")) or _text(part.get("text")) or "error"
    if value.get("error") in (True, "true"):
        return plain(value.get("text")) or "error"
    return None


def _take(turn: Turn, part: Any) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and (said := _text(part.get("text"))):
        turn.text(said)
        rest = left(part, ("type", "text", "tool_call_ids")) or {}
        if isinstance(part.get("text"), dict):
            rest |= left(part["text"], ("value",)) or {}
        if rest := {key: item for key, item in rest.items() if item not in ([], {})}:
            turn.part({"type": "text", **rest})
    elif kind == "think" and (thought := _text(part.get("think"))):
        turn.reasoning(thought)
    elif kind == "tool_call" and isinstance(part.get("tool_call"), dict):
        _call(turn, part["tool_call"], left(part, ("type", "tool_call")))
    elif not (kind in ("text", "think") and len(part) <= len(("type", "text"))):
        turn.part(part)


def _text(value: Any) -> str:
    """A text, or the `value` of one that has annotations."""
    return text(value.get("value") if isinstance(value, dict) else value) or ""


def _call(turn: Turn, told: dict[str, Any], beside: dict[str, Any] | None) -> None:
    """A call of an agent, or one of the Assistants API; what came back stands in it."""
    made, function = told, obj(told, "function")
    code = obj(told, "code_interpreter")
    name, given = text(told.get("name")), told.get("args")
    if function:
        made, name, given = function, text(function.get("name")), function.get("arguments")
    elif code:
        name, given = "code_interpreter", {"code": code.get("input")}
    output = code.get("outputs") if code else made.get("output")
    call = ToolCall(name or text(told.get("type")) or "", given, identifier(told.get("id")))
    result = None if output in (None, "") else Message("tool", plain(output), call_id=call.id)
    turn.call(call, result)
    if rest := {**(left(told, _CALL) or {}), **(beside or {})}:
        turn.note(f"call:{call.id or call.name}", rest)
