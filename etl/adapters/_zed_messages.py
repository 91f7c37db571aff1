"""Messages of Zed's threads: tagged ones (`User`, `Agent`) of today, `segments` of before 2025's autumn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from etl.adapters._blocks import identifier, plain, read
from etl.adapters._records import left
from etl.adapters._rollouts import items, obj, text
from etl.conversation import Message, ToolCall

_ROLES = frozenset({"user", "assistant", "system"})
RESUME = "Resume"
_CANCELED = "Tool canceled by user"
_USE = frozenset({"id", "name", "input", "raw_input", "is_input_complete"})
_RESULT = frozenset({"tool_use_id", "tool_name", "is_error", "content", "output"})
_OLD = frozenset({"id", "role", "segments", "text", "tool_uses", "tool_results", "is_hidden"})


def is_message(item: Any) -> bool:
    """Whether it is a message of either form; `Resume` stands where a person let the agent go on."""
    if not isinstance(item, dict):
        return bool(item == RESUME)
    tagged = next(iter(item.values())) if len(item) == 1 else None
    if isinstance(tagged, dict) and ("User" in item or "Agent" in item):
        return isinstance(tagged.get("content"), list)
    role = item.get("role")
    return isinstance(role, str) and role in _ROLES and ("segments" in item or "text" in item)


def messages_of(item: Any) -> Iterator[Message]:
    """What a message says, and what came back from its calls."""
    if not isinstance(item, dict):
        return
    if "User" in item:
        yield _user(item["User"])
    elif "Agent" in item:
        yield from _agent(item["Agent"])
    else:
        yield from _segments(item)


def _user(told: dict[str, Any]) -> Message:
    """What was typed; what was mentioned in it stands with its content among the parts."""
    message = Message("user", id=identifier(told.get("id")))
    for piece in told["content"]:
        if isinstance(piece, dict) and isinstance(piece.get("Text"), str):
            message.content += piece["Text"]
        else:
            _add(message, _part(piece))
    message.extra = left(told, ("id", "content"))
    return message


def _agent(told: dict[str, Any]) -> Iterator[Message]:
    message = Message("assistant")
    texts: list[str] = []
    thoughts: list[str] = []
    unfinished: list[Any] = []
    for piece in told["content"]:
        kind = next(iter(piece), None) if isinstance(piece, dict) and len(piece) == 1 else None
        value = piece[kind] if kind is not None else None
        if kind == "Text" and isinstance(value, str):
            texts.append(value)
        elif kind == "Thinking" and isinstance(value, dict):
            thoughts.append(plain(value.get("text")))
            if value.get("signature"):
                _add(message, {"type": "thinking", "signature": value["signature"]})
        elif kind == "ToolUse" and isinstance(value, dict):
            message.calls = [*(message.calls or ()), _call(value)]
            unfinished += [rest] if (rest := left(value, _USE)) else []
        else:
            _add(message, _part(piece))
    message.content, message.reasoning = "".join(texts), "\n".join(filter(None, thoughts)) or None
    rest = left(told, ("content", "tool_results")) or {}
    message.extra = {**rest, **({"tool_uses": unfinished} if unfinished else {})} or None
    yield message
    results = told.get("tool_results")
    for name, result in results.items() if isinstance(results, dict) else ():
        yield _result(result if isinstance(result, dict) else {"content": result}, identifier(name))


def _call(use: dict[str, Any]) -> ToolCall:
    """A call; of one that broke off there is only its text."""
    given = use.get("input")
    if use.get("is_input_complete") is False and isinstance(use.get("raw_input"), str):
        given = use["raw_input"]
    return ToolCall(plain(use.get("name")), given, identifier(use.get("id")))


def _result(result: dict[str, Any], name: str | None) -> Message:
    """What came back, in texts and pictures; `output` is what the editor shows of it."""
    content = result.get("content")
    message = Message("tool", call_id=identifier(result.get("tool_use_id")) or name, name=text(result.get("tool_name")))
    texts: list[str] = []
    for piece in content if isinstance(content, list) else [content]:
        said = piece.get("Text", piece.get("text")) if isinstance(piece, dict) else piece
        if isinstance(said, str):
            texts.append(said)
        elif piece is not None:
            _add(message, _part(piece))
    message.content = "\n".join(texts)
    if isinstance(result.get("is_error"), bool):
        message.failed = result["is_error"]
    message.cancelled = message.failed is True and message.content == _CANCELED
    shown = result.get("output")
    rest = left(result, _RESULT) or {}
    if shown not in (None, "", {}, message.content):
        rest["output"] = shown
    message.extra = rest or None
    return message


def _part(piece: Any) -> Any:
    """A tagged value as a block with a type."""
    if not isinstance(piece, dict) or len(piece) != 1:
        return piece
    ((kind, value),) = piece.items()
    if kind == "RedactedThinking":
        return {"type": "redacted_thinking", "data": value}
    return {"type": kind.lower(), **value} if isinstance(value, dict) and "type" not in value else piece


def _add(message: Message, part: Any) -> None:
    message.parts = [*(message.parts or ()), part]


def _segments(item: dict[str, Any]) -> Iterator[Message]:
    """A message of the older form; in the oldest, results stand in the user's next message."""
    content = read(items(item, "segments") or item.get("text"))
    message = Message(item["role"], content.text, content.reasoning, parts=content.parts)
    message.synthetic = item.get("is_hidden") is True
    message.id = identifier(item.get("id"))
    calls = [_call(use) for use in items(item, "tool_uses") if isinstance(use, dict)]
    message.calls = calls or None
    results = [_result(result, None) for result in items(item, "tool_results") if isinstance(result, dict)]
    rest = {key: value for key, value in (left(item, _OLD) or {}).items() if value not in ("", [], {})}
    if content.rest:
        rest["blocks"] = content.rest
    message.extra = rest or None
    if item["role"] == "user" and results:
        yield from results
        if not (message.content or message.parts or rest):
            return
        results = []
    yield message
    yield from results


def text_thread(value: dict[str, Any]) -> list[Message] | str:
    """The messages of a text thread: one text, and where in its bytes each of them begins."""
    said = (text(value.get("text")) or "").encode("utf-8", "surrogatepass")
    marks = [mark for mark in items(value, "messages") if isinstance(mark, dict)]
    starts = [mark.get("start") for mark in marks]
    if not marks or not all(type(start) is int and 0 <= start <= len(said) for start in starts):
        return "its messages do not say where in the text they begin"
    made: list[Message] = []
    for index, mark in enumerate(marks):
        about = obj(mark, "metadata") or mark
        role = about.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            return f"messages[{index}] has no known role"
        end = starts[index + 1] if index + 1 < len(marks) else len(said)
        piece = said[starts[index] : end].decode("utf-8", "replace").removesuffix("\n")
        status = about.get("status")
        made.append(Message(role, piece, extra=None if status in (None, "Done") else {"status": status}))
    return made
