"""Looking for the ends of JSON values in bytes that arrive block by block, and naming what is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from etl.conversation import Record
from etl.decode import TOO_DEEP, JsonError
from etl.errors import SourceError
from etl.limits import MAX_DEPTH, Limits

SPACE = b" \t\r\n\x00"
OPENERS = (b"{", b"[", b'"')
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("|\Z)|[{}\[\]]', re.DOTALL)
_NEXT_VALUE = re.compile(rb"\n[{\[]")
HEAD = 1024
"""Bytes kept of a record that is too long."""
RAISE_LENGTH = "to read it, raise --max-record-mb and give --reparse"


_PLACEHOLDER = re.compile(rb"<[A-Z][A-Z _-]{2,60}>")


class Broken(msgspec.Struct, gc=False):
    """Bytes between records that are no record. `tail` where the file simply ends in the middle of one."""

    reason: str
    message: str
    raw: bytes
    line: int
    offset: int
    tail: bool = False
    length: int = 0
    """Where `raw` is only the beginning: the true length."""


Framed: TypeAlias = Record | Broken


class ByteInput:
    """The blocks behind one growing buffer: `data[at:]` is what is not yet framed."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.data = b""
        self.at = 0
        self.base = 0
        self.line = 1
        self.done = False
        self.failure: SourceError | None = None
        """Why the blocks ended early, where they did."""

    @property
    def offset(self) -> int:
        return self.base + self.at

    def more(self, least: int = 0) -> bool:
        """Append a block (or as many as give `least` bytes); False at the end."""
        parts, gained = [self.data[self.at :] if self.at else self.data], 0
        self.base += self.at
        self.at = 0
        while not self.done and (gained == 0 or gained < least):
            try:
                block = next(self._blocks, None)
            except SourceError as error:
                block, self.failure = None, error
            if block is None:
                self.done = True
                break
            parts.append(block)
            gained += len(block)
        self.data = b"".join(parts) if len(parts) > 1 else parts[0]
        return gained > 0

    def skip(self, end: int) -> bytes:
        """Take `data[at:end]`, counting its lines."""
        taken = self.data[self.at : end]
        self.line += taken.count(b"\n")
        self.at = end
        return taken


def too_long(head: bytes, line: int, offset: int, length: int, limits: Limits) -> Broken:
    message = f"record of {length} bytes is longer than the limit of {limits.record_bytes}; {RAISE_LENGTH}"
    return Broken("too_long", message, head, line, offset, length=length)


def is_placeholder(text: bytes) -> bool:
    """Whether a text only stands for a record that was left out, as `<PLACEHOLDER ROW>` does."""
    return _PLACEHOLDER.fullmatch(text.strip(SPACE)) is not None


def broken(raw: bytes, line: int, offset: int, tail: bool, error: JsonError) -> Broken:
    if is_placeholder(raw):
        message = "a placeholder stands here, not a record; get the file with its rows"
        return Broken("placeholder", message, raw, line, offset)
    if tail:
        return Broken(
            "torn_tail",
            "the file ends in the middle of this record; ingest it again when it is complete",
            raw,
            line,
            offset,
            tail=True,
        )
    if str(error).startswith(TOO_DEEP):
        deepest = str(error) == f"{TOO_DEEP} {MAX_DEPTH} levels"
        advice = "flatten it to read it" if deepest else "to read it, raise --max-nesting and give --reparse"
        return Broken("too_deep", f"{error}; {advice}", raw, line, offset)
    return Broken("not_json", f"not a JSON record (byte {offset + error.position}: {error})", raw, line, offset)


def pass_space(source: ByteInput, also: bytes) -> bool:
    """Go to the next byte that is no white space; False at the end."""
    space = SPACE + also
    while True:
        end = source.at
        while end < len(source.data) and source.data[end] in space:
            end += 1
        if end < len(source.data):
            source.skip(end)
            return True
        source.skip(end)
        if not source.more():
            return False


def end_of_value(source: ByteInput, limits: Limits) -> int | None:
    """Position after the value that begins at `at`; None where it does not end (or is too long)."""
    char = source.data[source.at : source.at + 1]
    if char not in OPENERS:
        return _end_of_scalar(source)
    depth, place = 0, source.at
    while True:
        for token in _TOKEN.finditer(source.data, place):
            first = source.data[token.start()]
            if first == 0x22:
                if token.group(1) != b'"':
                    break
                if depth == 0:
                    return token.end()
            elif first in b"{[":
                depth += 1
            else:
                depth -= 1
                if depth <= 0:
                    return token.end()
            place = token.end()
        if len(source.data) - source.at > limits.record_bytes:
            return None
        done = place - source.at
        held = len(source.data) - source.at
        if not source.more(min(held, limits.record_bytes - held + 1)):
            return None
        place = source.at + done


def _end_of_scalar(source: ByteInput) -> int | None:
    while True:
        match = re.compile(rb"[-+.\w]+").match(source.data, source.at)
        if match is None:
            return None
        if match.end() < len(source.data) or not source.more():
            return match.end()


def resumed(source: ByteInput, error: JsonError, limits: Limits) -> Broken:
    """Pass over what is no value, up to a line that begins with one."""
    line, offset = source.line, source.offset
    parts: list[bytes] = []
    size = 0
    while True:
        match = _NEXT_VALUE.search(source.data, source.at + 1)
        if match is not None:
            parts.append(source.skip(match.start() + 1))
            break
        parts.append(source.skip(len(source.data)))
        size += len(parts[-1])
        if size > limits.record_bytes:
            parts = [b"".join(parts)[:HEAD]]
        if not source.more():
            break
    raw = b"".join(parts)
    ended = source.done and source.at >= len(source.data)
    if source.offset - offset > limits.record_bytes:
        return too_long(raw[:HEAD], line, offset, source.offset - offset, limits)
    return broken(raw.rstrip(SPACE), line, offset, ended and raw[:1] in OPENERS, error)
