"""Rows of training sets: what stands beside the turns, and calls written into the text of a turn."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from etl.adapters._blocks import call, read, unheld
from etl.adapters._chat import parsed, take_text
from etl.conversation import Conversation, Message, Record, ToolCall
from etl.decode import encode

_CALL = re.compile(
    r"<tool_call>\s*(?P<call>.*?)\s*</tool_call>|<functioncall>\s*(?P<older>.*?)\s*(?:<\|endoftext\|>|\Z)", re.DOTALL
)
_MARKS = ("<tool_call>", "<functioncall>")
_IDS = ("id", "conversation_id", "uuid", "conversation_hash", "prompt_id", "question_id", "idx", "index")
_TOOLS = ("tools", "functions")
_SYSTEM = ("system", "system_prompt", "system_message")
_MEDIA = {"images": ("image", "<image>"), "videos": ("video", "<video>"), "audios": ("audio", "<audio>")}
"""Key of the files of a row → type of their parts, and what stands for one in a text."""
_LITERAL = 100_000
"""Longest text that is read as a Python literal."""


def row(record: Record, rest: dict[str, Any], messages: list[Message], unread: dict[str, Any]) -> Conversation:
    """A conversation of one record. `rest` holds the keys that are not its turns; what no column takes is `extra`.
    `unread` holds what should have been a call and was none, by place.
    """
    for key in _SYSTEM:
        if isinstance(rest.get(key), (str, list)) and not any(message.role == "system" for message in messages):
            told = read(rest.pop(key))
            if told.text or told.parts:
                messages.insert(0, Message("system", told.text, parts=told.parts))
            break
    place_media(rest, messages)
    tools = next((rest.pop(key) for key in _TOOLS if rest.get(key) is not None), None)
    made = Conversation(
        messages,
        (record,),
        local_id=take_text(rest, _IDS),
        task_from_prompt=True,
        tools=tools if tools not in ("", "[]") else None,
        model=take_text(rest, ("model", "model_name", "generator")),
        flags={"unreadable_value"} if unread else None,
    )
    if unread:
        rest["unread"] = {**rest["unread"], **unread} if isinstance(rest.get("unread"), dict) else unread
    made.extra = rest or None
    return made


def place_media(rest: dict[str, Any], messages: list[Message]) -> None:
    """Images, videos and recordings beside the turns go to the messages whose text has their marks, or to the parts
    that stand for them, in order; where there are more or fewer of these than files, they stay beside.
    """
    for key, (kind, mark) in _MEDIA.items():
        if key not in rest and isinstance(rest.get(kind), (str, list)):
            key = kind  # the file of a row that has one
        files = [rest[key]] if isinstance(rest.get(key), str) and rest[key] else rest.get(key)
        if not isinstance(files, list) or not files:
            continue
        bare = [(m, index) for m in messages for index, item in enumerate(m.parts or ()) if _is_bare(item, kind)]
        if len(files) == len(bare):
            del rest[key]
            for (message, index), file in zip(bare, files, strict=True):
                message.parts = [*(message.parts or ())]
                message.parts[index] = {**message.parts[index], kind: file}
            continue
        if len(files) != sum(message.content.count(mark) for message in messages):
            continue
        del rest[key]
        waiting = list(files)
        for message in messages:
            here = message.content.count(mark)
            if here:
                parts = [{"type": kind, kind: file} for file in waiting[:here]]
                message.parts = [*(message.parts or ()), *parts]
                del waiting[:here]


def _is_bare(item: Any, kind: str) -> bool:
    """Whether a part only says where a file belongs."""
    return isinstance(item, dict) and item.get("type") == kind and item.keys() <= {"type", "index"}


class Asked(NamedTuple):
    """Calls, and for each that has more keys than a call has: those keys."""

    calls: list[ToolCall]
    rest: list[Any]


class Pairs:
    """Calls and results that have no ids and belong together by order: results answer the calls just before them."""

    def __init__(self) -> None:
        self.unread: dict[str, Any] = {}
        self._made = 0
        self._open: list[str] = []

    def asked(self, calls: Iterable[ToolCall], more: bool = False) -> list[ToolCall]:
        """Calls with ids of their own; earlier ones wait no longer, unless these are `more` of the same turn."""
        named = list(calls)
        if not more:
            self._open = []
        for made in named:
            self._made += 1
            made.id = f"call_{self._made}"
            self._open.append(made.id)
        return named

    def answered(self) -> str | None:
        """The call that the next result answers."""
        return self._open.pop(0) if self._open else None

    def said(self, text: str, place: str) -> tuple[str, Asked]:
        """The text of a turn without the calls in it, and the calls; what is no call stays in the text."""
        if not any(mark in text for mark in _MARKS):
            return text, Asked([], [])
        found = Asked([], [])
        left: list[str] = []
        end = 0
        for match in _CALL.finditer(text):
            written = match["call"] if match["call"] is not None else match["older"]
            made = calls_of(written)
            if made is None:
                self.unread[place] = written
                continue
            found.calls.extend(made.calls)
            found.rest.extend(made.rest)
            left.append(text[end : match.start()])
            end = match.end()
        left.append(text[end:])
        return ("".join(left).strip() if found.calls else text), found


def calls_of(value: Any) -> Asked | None:
    """The call, or calls, of a value: an object with a name, a list of them, or the text of either (JSON, or a Python
    literal as some sets have it); None where it is anything else.

    >>> [made.name for made in calls_of("{'name': 'ls', 'arguments': {}}").calls]
    ['ls']
    """
    if isinstance(value, str):
        value = _written(value.strip())
    listed = value if isinstance(value, list) else [value]
    calls: list[ToolCall] = []
    rest: list[Any] = []
    for item in listed:
        made = call(item) if isinstance(item, dict) else None
        if made is None:
            return None
        calls.append(made)
        left = unheld(item, made)
        if left:
            rest.append(left)
    return Asked(calls, rest) if calls else None


def _written(text: str) -> Any:
    """The object or list that a text is, in JSON or as a Python literal; else None."""
    value = parsed(text)
    if value is not None or len(text) > _LITERAL or text[:1] not in ("{", "["):
        return value
    try:
        return parsed(encode(ast.literal_eval(text)))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
