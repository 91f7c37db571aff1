"""Content blocks, Anthropic and OpenAI style, read once for every adapter: text, reasoning, parts, calls and results.

A message's content is a string or a list of blocks, and the same dozen block types turn up in request logs, session
files and traces under a few spellings each. What is not text goes to `parts` as the log has it; keys of a block that
nothing else holds go to `rest`, so nothing is thrown away.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import msgspec

from etl.adapters._block_spellings import named_by_key, printed, untold
from etl.conversation import ToolCall

_TEXT = frozenset({"text", "input_text", "output_text", "summary_text"})
_REASONING = frozenset({"thinking", "reasoning", "think", "reasoning_text", "reasoning_content"})
_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_CALLS = frozenset({"tool_use", "tool_call", "tool-call", "toolCall", "function_call", "function"}) | _SERVER_CALLS
_RESULTS = frozenset({"tool_result", "tool-result", "toolResult", "function_call_output"})
_CALL_IDS = ("call_id", "id", "tool_call_id", "toolCallId", "tool_use_id")
_RESULT_IDS = ("tool_use_id", "tool_call_id", "toolCallId", "call_id", "toolUseID")
_NAMES = ("name", "toolName", "tool_name")
_ARGUMENTS = ("input", "arguments", "args", "parameters")
_OUTPUTS = ("content", "output", "result")
_CITED = ("citations", "annotations")


class Result(msgspec.Struct, gc=False):
    """What came back from one call, as a block of a message tells it."""

    call_id: str | None
    text: str
    parts: list[Any] | None = None
    failed: bool | None = None
    """The block's own error flag; None where it has none."""
    name: str | None = None
    rest: dict[str, Any] | None = None
    """Keys of the block that no field here holds."""
    server: bool = False
    """True where the call ran at the model's provider."""


class Blocks(msgspec.Struct, gc=False):
    """One message's content, taken apart."""

    text: str = ""
    reasoning: str | None = None
    parts: list[Any] | None = None
    """Images, audio, files, citations, signatures and every block of an unknown type, in order, as the log has them."""
    calls: list[ToolCall] | None = None
    results: list[Result] | None = None
    rest: list[Any] | None = None
    """For each text or call block with keys that nothing else holds: those keys, with its `type` (and `id`)."""


def plain(value: Any) -> str:
    """Text of a value that should have been text: a string as it is, null as nothing, the rest as JSON.

    >>> plain(None), plain("a"), plain({"ok": True})
    ('', 'a', '{"ok":true}')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return msgspec.json.encode(value).decode()


def identifier(value: Any) -> str | None:
    """An id as text: numbers are taken, empty and structured values are none.

    >>> identifier("toolu_1"), identifier(7), identifier(""), identifier({})
    ('toolu_1', '7', None, None)
    """
    if isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None


def join(pieces: list[tuple[str, bool]]) -> str:
    """Texts of consecutive blocks as one; the flag says that a block is a cited span.

    A model that cites has its sentences cut into blocks in mid-line: these are glued. Other blocks are lines.

    >>> join([("Here:", False), ("a list", False)])
    'Here:\\na list'
    >>> join([("It is ", False), ("four", True), (".", False)])
    'It is four.'
    """
    if len(pieces) == 1:
        return pieces[0][0]
    out: list[str] = []
    glued = True
    for text, cited in pieces:
        if not text:
            continue
        if out and not (glued or cited or out[-1][-1].isspace() or text[0].isspace()):
            out.append("\n")
        out.append(text)
        glued = cited
    return "".join(out)


def read(content: Any) -> Blocks:
    """Take a message's content apart: a string, a list of blocks (or strings), one block, or null.

    >>> read([{"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "t1", "name": "ls"}]).calls[0].name
    'ls'
    """
    if isinstance(content, str):
        return Blocks(content)
    if isinstance(content, dict):
        content = [content]
    elif not isinstance(content, list):
        return Blocks(plain(content))
    reading = _Reading()
    for block in content:
        reading.take(block)
    return reading.done()


class _Reading:
    """The blocks of one content list, being sorted."""

    __slots__ = ("calls", "parts", "reasoning", "rest", "results", "texts")

    def __init__(self) -> None:
        self.texts: list[tuple[str, bool]] = []
        self.reasoning: list[str] = []
        self.parts: list[Any] = []
        self.calls: list[ToolCall] = []
        self.results: list[Result] = []
        self.rest: list[Any] = []

    def take(self, block: Any) -> None:
        """Sort one block in."""
        if isinstance(block, str):
            self.texts.append((block, False))
            return
        if not isinstance(block, dict):
            if block is not None:
                self.parts.append(block)
            return
        kind = block.get("type")
        if not isinstance(kind, str):
            kind = "text" if kind is None and isinstance(block.get("text"), str) else ""
            if not kind and len(block) == 1:
                block = named_by_key(block)
                named = block.get("type")
                kind = named if isinstance(named, str) else ""
        if isinstance(block.get("value"), str):
            block = _valued(block, kind)
        if kind in _TEXT:
            self._text(block)
        elif kind in _REASONING:
            self._reasoning(block)
        elif kind in _CALLS:
            self._call(block, kind)
        elif kind in _RESULTS or kind.endswith("_tool_result"):
            self.results.append(result(block, server=kind not in _RESULTS))
        elif kind == "refusal" and isinstance(block.get("refusal"), str):
            self.texts.append((block["refusal"], False))
            self.parts.append({key: value for key, value in block.items() if key != "refusal"})
        else:
            self.parts.append(block)

    def _text(self, block: dict[str, Any]) -> None:
        text = block.get("text")
        if not isinstance(text, str):
            self.parts.append(block)
            return
        cited = False
        if len(block) > 2 or "type" not in block:
            cites = {key: block[key] for key in _CITED if block.get(key)}
            cited = bool(cites)
            if cites:
                self.parts.append({"type": "text", **cites})
            more = {key: value for key, value in block.items() if key not in ("type", "text", *_CITED)}
            if more:
                self.rest.append({"type": block.get("type"), **more})
        self.texts.append((text, cited))

    def _reasoning(self, block: dict[str, Any]) -> None:
        """Readable reasoning as text; signatures and encrypted reasoning as a part."""
        held = {"type"}
        for key in ("thinking", "text", "reasoning", "think", "content", "summary"):
            value = block.get(key)
            if isinstance(value, list) and all(_is_text(item) for item in value):
                value = "\n".join(item if isinstance(item, str) else item["text"] for item in value)
            if isinstance(value, str):
                held.add(key)
                if value:
                    self.reasoning.append(value)
        more = {key: value for key, value in block.items() if key not in held and value is not None}
        if more:
            self.parts.append({"type": block["type"], **more})

    def _call(self, block: dict[str, Any], kind: str) -> None:
        made = call(block)
        if made is None:
            self.parts.append(block)
            return
        if kind in _SERVER_CALLS:
            made.actor = "server"
        self.calls.append(made)
        more = unheld(block, made)
        if more:
            self.rest.append({"type": kind, "id": made.id, **more})

    def done(self) -> Blocks:
        """What was sorted, empty lists as none."""
        return Blocks(
            join(self.texts) if self.texts else "",
            "\n".join(self.reasoning) if self.reasoning else None,
            self.parts or None,
            self.calls or None,
            self.results or None,
            self.rest or None,
        )


def _valued(block: dict[str, Any], kind: str) -> dict[str, Any]:
    """A block that says all it says under `value` (training sets): a text, or a call as JSON text, by its usual keys.

    >>> _valued({"type": "text", "value": "Hi"}, "text")
    {'type': 'text', 'text': 'Hi'}
    """
    rest = {key: item for key, item in block.items() if key != "value"}
    if kind in _TEXT or kind in _REASONING:
        return block if "text" in block else {**rest, "text": block["value"]}
    if kind in _CALLS and not any(key in block for key in (*_NAMES, "function")):
        try:
            said = msgspec.json.decode(block["value"])
        except (ValueError, RecursionError):
            return block
        return {**said, **rest} if isinstance(said, dict) else block
    return block


def call(block: dict[str, Any]) -> ToolCall | None:
    """The call of a block or a `tool_calls` item, in any of the spellings; None where it names no tool.

    >>> call({"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}).arguments
    '{}'
    """
    inner = block.get("function")
    holder = inner if isinstance(inner, dict) else block
    name = _name(holder)
    if name is None:
        return None
    arguments = None
    for key in _ARGUMENTS:
        if key in holder:
            arguments = holder[key]
            break
    return ToolCall(name, arguments, _identified(block, _CALL_IDS))


def _name(block: dict[str, Any]) -> str | None:
    """The tool that a block names."""
    for key in _NAMES:
        value = block.get(key)
        if isinstance(value, str):
            return value
    return None


def _identified(block: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    """The first id under one of these keys."""
    for key in keys:
        value = block.get(key)
        if value is not None and (found := identifier(value)):
            return found
    return None


def unheld(block: dict[str, Any], made: ToolCall) -> dict[str, Any] | None:
    """What `call` left behind of a block: further ids, flags, whatever else it carries; None for nothing.

    >>> block = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}, "caller": {"type": "direct"}}
    >>> unheld(block, call(block))
    {'caller': {'type': 'direct'}}
    """
    inner = block.get("function")
    nested = isinstance(inner, dict)
    more = _left(block, made, nested)
    if isinstance(inner, dict) and (left := _left(inner, made, False)):
        more["function"] = left
    return more or None


def _left(holder: dict[str, Any], made: ToolCall, nested: bool) -> dict[str, Any]:
    """Keys of one level of a call whose value is not in the call made of it."""
    left: dict[str, Any] = {}
    for key, value in holder.items():
        if key == "type" or (key == "function" and nested):
            continue
        if key in _NAMES and value == made.name:
            continue
        if key in _ARGUMENTS and value is made.arguments:
            continue
        if key in _CALL_IDS and made.id is not None and identifier(value) == made.id:
            continue
        left[key] = value
    return left


def result(block: dict[str, Any], server: bool = False) -> Result:
    """The result that a block tells, its content a string, blocks, or anything."""
    if "run" in block or isinstance(block.get("output"), dict):
        block = untold(block)
    output_key = None
    for key in _OUTPUTS:
        if block.get(key) is not None:
            output_key = key
            break
    text, parts = _output(block[output_key]) if output_key is not None else ("", None)
    flag = block.get("is_error", block.get("isError"))
    failed = flag if isinstance(flag, bool) else None
    ran = block.get("content")
    if _is_printed(ran):
        text, parts, failed = printed(ran)
    call_id, name = _identified(block, _RESULT_IDS), _name(block)
    rest: dict[str, Any] = {}
    for key, value in block.items():
        if (
            key in ("type", output_key)
            or value is None
            or (key in _RESULT_IDS and call_id is not None and identifier(value) == call_id)
        ):
            continue
        if (key in ("is_error", "isError") and failed is not None) or (key in _NAMES and value == name):
            continue
        rest[key] = value
    if not text and not parts and isinstance(rest.get("text"), str):
        text = rest.pop("text")
    elif rest.get("text") == text:
        rest.pop("text", None)
    return Result(call_id, text, parts, failed, name, rest or None, server)


def given_back(content: Any) -> tuple[str, list[Any] | None]:
    """Text and other parts of what a tool gave back, as `result` reads them where they stand alone."""
    if content is None:
        return "", None
    return printed(content)[:2] if _is_printed(content) else _output(content)


def _is_printed(content: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(content, dict) and isinstance(content.get("stdout"), str) and "return_code" in content


def _output(content: Any) -> tuple[str, list[Any] | None]:
    """Text and other parts of a result; blocks inside that are neither text nor media stay parts, however deep."""
    if isinstance(content, str):
        return content, None
    if isinstance(content, dict) and _is_text(content):
        content = [content]
    if not isinstance(content, list):
        return plain(content), None
    texts: list[tuple[str, bool]] = []
    parts: list[Any] = []
    for item in content:
        if isinstance(item, str):
            texts.append((item, False))
        elif _is_text(item):
            texts.append((item["text"], False))
            if item.keys() - {"type", "text"}:
                parts.append({key: value for key, value in item.items() if key != "text"})
        else:
            parts.append(item)
    return join(texts) if texts else "", parts or None


def _is_text(item: Any) -> bool:
    """True for a string and for a block of text."""
    if isinstance(item, str):
        return True
    return (
        isinstance(item, dict)
        and isinstance(item.get("text"), str)
        and (item.get("type") or "text") in (*_TEXT, "text")
    )
