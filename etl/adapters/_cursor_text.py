"""Transcripts of Cursor's agent as text, which older versions wrote: `user:` and `assistant:` on lines of their own.

Under the model's come its reasoning, its calls with their arguments indented, and what came back, each after a mark;
the rest is text. A record is what one of the two says, as the value that a line of a newer transcript has.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from etl.conversation import Record
from etl.decode import JsonError, decode, encode
from etl.framing import BOM, Broken, Framed, Limits

_WHO = re.compile(rb"(user|assistant):[ \t]*\r?\n?")
_MARK = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*(.*)")
BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?\s{0,100}user:[ \t]*\r?\n")
"""How such a file begins."""


def turns(blocks: Iterable[bytes], limits: Limits) -> Iterator[Framed]:
    """What each says in turn, with its place."""
    said: list[bytes] = []
    size, offset, first, start = 0, 0, 1, 0
    for number, line in enumerate(_lines(blocks), start=1):
        if _WHO.fullmatch(line.removeprefix(BOM)) is not None:
            yield from _turn(said, size, first, start, limits)
            said, size, first, start = [], 0, number, offset
        size += len(line)
        if size <= limits.record_bytes:
            said.append(line)
        offset += len(line)
    yield from _turn(said, size, first, start, limits)


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    for block in blocks:
        for line in block.splitlines(keepends=True) if b"\r" not in block else _at_newlines(block):
            rest.append(line)
            if line.endswith(b"\n"):
                yield b"".join(rest)
                rest = []
    if rest:
        yield b"".join(rest)


def _at_newlines(block: bytes) -> list[bytes]:
    *lines, last = block.split(b"\n")
    return [*(line + b"\n" for line in lines), *([last] if last else [])]


def _turn(said: list[bytes], size: int, line: int, offset: int, limits: Limits) -> Iterator[Framed]:
    raw = b"".join(said)
    if not _WHO.sub(b"", raw.removeprefix(BOM), count=1).strip():
        return  # a mark, and nothing said yet
    if size > limits.record_bytes:
        message = f"turn of {size} bytes is longer than the limit of {limits.record_bytes}; raise the limit to read it"
        yield Broken("too_long", message, raw[:1024], line, offset, length=size)
        return
    who = _WHO.match(raw.removeprefix(BOM))
    text = raw.removeprefix(BOM)[who.end() if who is not None else 0 :].decode("utf-8", "replace").replace("\r\n", "\n")
    role = who[1].decode() if who is not None else "user"
    content = _answer(text) if role == "assistant" else [{"type": "text", "text": text.strip()}]
    value = {"role": role, "message": {"content": content}}
    yield Record(value, encode(value).encode("utf-8", "surrogatepass"), line, offset)


def _answer(text: str) -> list[dict[str, Any]]:
    """What the model said, in order: a mark's body is what is indented (or blank) after it."""
    found: list[dict[str, Any]] = []
    plain: list[str] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        mark = _MARK.fullmatch(lines[at].strip())
        at += 1
        if mark is None:
            plain.append(lines[at - 1])
            continue
        end = at
        while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t"):
            end += 1
        if any(plain) and (words := "\n".join(plain).strip()):
            found.append({"type": "text", "text": words})
        plain = []
        found.append(_marked(mark[1], mark[2].strip(), textwrap.dedent("\n".join(lines[at:end])).strip()))
        at = end
    if words := "\n".join(plain).strip():
        found.append({"type": "text", "text": words})
    return [block for block in found if block]


def _marked(mark: str, told: str, body: str) -> dict[str, Any]:
    if mark == "Thinking":
        return {"type": "thinking", "thinking": "\n".join(part for part in (told, body) if part)}
    if mark == "Tool result":
        return {"type": "tool_result", "content": body} if body else {}
    return {"type": "tool_use", "name": told or "tool", "input": _arguments(body)}


def _arguments(body: str) -> Any:
    """The arguments of a call: JSON, or `name: value` (once `name=value`) on lines; any other text as it is."""
    try:
        value = decode(body.encode()).value
    except JsonError:
        value = None
    if isinstance(value, dict):
        return value
    pairs = [re.fullmatch(r"([\w-]{1,80})(?::[ \t]|=)(.*)", line) for line in body.split("\n") if line.strip()]
    if pairs and all(pairs):
        return {pair[1]: pair[2].strip() for pair in pairs if pair is not None}
    return {"input": body} if body else {}
