"""Byte blocks into records, whatever the file's name says: JSON Lines, one array, or values one after another.

The layout is told from the first block. Lines end at `\\n` and nowhere else (U+2028 and its like are text). What does
not decode becomes `Broken` with its bytes and place; a record glued to a cut-off one, or to another record, is found
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import msgspec

from etl.conversation import Record
from etl.decode import MAX_DEPTH, MORE_TEXT, TOO_DEEP, JsonError, RecordDecoder, decode

BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n\x00"
_OPENERS = (b"{", b"[", b'"')
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("|\Z)|[{}\[\]]', re.DOTALL)
_NEXT_VALUE = re.compile(rb"\n[{\[]")


class Limits(NamedTuple):
    """What a record may cost."""

    nesting: int = MAX_DEPTH
    """Deepest nesting of a record; deeper ones are rejected, since every later reader recurses too."""

    record_bytes: int = 256 << 20
    """Longest record; longer ones are rejected unread."""
    whole_array_bytes: int = 64 << 20
    """An array up to this size is decoded at once, a larger one element by element."""


LIMITS = Limits()
"""The limits where nobody sets others."""


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


class _Input:
    """The blocks behind one growing buffer: `data[at:]` is what is not yet framed."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.data = b""
        self.at = 0
        self.base = 0
        self.line = 1
        self.done = False

    @property
    def offset(self) -> int:
        return self.base + self.at

    def more(self, least: int = 0) -> bool:
        """Append a block (or as many as give `least` bytes); False at the end."""
        parts, gained = [self.data[self.at :] if self.at else self.data], 0
        self.base += self.at
        self.at = 0
        while not self.done and (gained == 0 or gained < least):
            block = next(self._blocks, None)
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


def frame(blocks: Iterator[bytes], limits: Limits = LIMITS) -> Iterator[Framed]:
    """Every record of a file in order, with line (from 1) and offset (from 0, in the decompressed UTF-8 text).

    Errors of `blocks` (SourceError) pass through after everything before them was given.
    """
    source = _Input(blocks)
    source.more()
    if source.data.startswith(BOM):
        source.at = len(BOM)
    if _is_lines(source, limits):
        yield from _lines(source, limits)
    else:
        yield from _values(source, limits)


def _is_lines(source: _Input, limits: Limits) -> bool:
    """JSON Lines, or values that span lines? A line from column 0 that is a whole object decides for lines."""
    while True:
        start = source.at
        while start < len(source.data) and source.data[start] in _SPACE:
            start += 1
        window = source.data[start:]
        if b"\n" in window or len(window) > limits.whole_array_bytes or not source.more(len(window)):
            break
    first, lines = window[:1], [line.rstrip(_SPACE) for line in window.split(b"\n", 40)[:40]]
    if first == b"[":
        return len(lines) > 1 and _is_value(lines[0]) and any(_is_value(line) for line in lines[1:])
    if b"\n" not in window or (first == b"{" and _is_value(lines[0])):
        return True
    return lines[0] != b"{" and any(len(line) > 2 and _is_value(line) for line in lines[1:])


def _glued(error: JsonError) -> bool:
    """Whether a whole value was decoded, and something else follows it."""
    return str(error) == MORE_TEXT


def _is_value(line: bytes) -> bool:
    """One whole object or array, from column 0."""
    if line[:1] not in (b"{", b"["):
        return False
    try:
        decode(line)
    except JsonError as error:
        return _glued(error) and line[error.position : error.position + 1] in _OPENERS[:2]
    return True


def _lines(source: _Input, limits: Limits) -> Iterator[Framed]:
    decoder = RecordDecoder(limits.nesting)
    line, offset = source.line, source.offset
    pending: list[bytes] = [source.data[source.at :]]
    size = len(pending[0])
    source.at = len(source.data)
    while True:
        if b"\n" in pending[-1]:
            text = b"".join(pending) if len(pending) > 1 else pending[0]
            pending.clear()
            *whole, rest = text.split(b"\n")
            del text
            for raw in whole:
                length = len(raw) + 1
                if length > 1:
                    if length > limits.record_bytes:
                        yield _too_long(raw[:1024], line, offset, length - 1, limits)
                    else:
                        yield from _line(raw, line, offset, False, decoder, limits)
                line += 1
                offset += length
            pending, size = [rest], len(rest)
        if not source.more():
            break
        pending.append(source.data)
        source.at = len(source.data)
        size += len(source.data)
    rest = b"".join(pending)
    if len(rest) > limits.record_bytes:
        yield _too_long(rest[:1024], line, offset, len(rest), limits)
    elif rest:
        yield from _line(rest, line, offset, True, decoder, limits)


def _too_long(head: bytes, line: int, offset: int, length: int, limits: Limits) -> Broken:
    message = f"record of {length} bytes is longer than the limit of {limits.record_bytes}; raise the limit to read it"
    return Broken("too_long", message, head, line, offset, length=length)


def _line(raw: bytes, line: int, offset: int, last: bool, decoder: RecordDecoder, limits: Limits) -> Iterator[Framed]:
    """The record of one line, or what can be found again in a line that is not exactly one record."""
    try:
        decoded = decoder.decode(raw)
    except JsonError:
        yield from _recovered(raw, line, offset, last, limits)
        return
    yield Record(decoded.value, raw.strip(_SPACE) if raw[-1:] in (b"\r", b" ") else raw, line, offset, *decoded[1:])


def _recovered(raw: bytes, line: int, offset: int, last: bool, limits: Limits) -> Iterator[Framed]:
    """Padding stripped, glued records parted, a cut-off record told from the one that follows it on the same line."""
    text = raw.strip(_SPACE)
    source = _Input(iter(()))
    source.data, source.base = text, offset + raw.find(text)
    while source.at < len(source.data):
        place = source.offset
        end = _end_of_value(source, limits)
        if end is not None:
            piece = source.data[source.at : end]
            try:
                decoded = decode(piece, limits.nesting)
            except JsonError:
                decoded = None
            if decoded is not None and (isinstance(decoded.value, (dict, list)) or piece == text):
                yield Record(decoded.value, piece, line, place, *decoded[1:])
                source.at = end
                _pass_space(source, b"")
                continue
        text = source.data[source.at :]
        try:
            decode(text, limits.nesting)
        except JsonError as error:
            failure = error
        start = _restart(text, failure)
        if start <= 0:
            yield _broken(text, line, place, last, failure)
            return
        yield _broken(text[:start], line, place, False, failure)
        source.at += start


def _restart(text: bytes, error: JsonError) -> int:
    """Where the next record begins in a line whose first one breaks off; 0 where none does.

    Text before any record is passed over. A record that breaks off inside a text, a name, a number or a word is
    followed by a brace just where decoding fails: at the brace, or right after it when its first quote ended an open
    string. A line that is only torn fails at its end: its inner objects are no records.
    """
    position = error.position
    if text[:1] not in _OPENERS:
        start = min((found for found in (text.find(opener) for opener in (b'{"', b"[{")) if found > 0), default=0)
    elif error.complete:
        start = text.rfind(b'{"', 1, position + 2)
        if start not in (position, position - 2):
            start = text.find(b'{"', position, position + 7)
    else:
        return 0
    if start <= 0:
        return 0
    try:
        value = decode(text[start:]).value
    except JsonError as rest:
        if not _glued(rest):
            return 0
        value = decode(text[start : start + rest.position]).value
    return start if isinstance(value, (dict, list)) else 0


def _broken(raw: bytes, line: int, offset: int, tail: bool, error: JsonError) -> Broken:
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
        return Broken("too_deep", f"{error}; flatten it to read it", raw, line, offset)
    return Broken("not_json", f"not a JSON record (byte {offset + error.position}: {error})", raw, line, offset)


def _values(source: _Input, limits: Limits) -> Iterator[Framed]:
    """Values that span lines: objects one after another, and the elements of arrays."""
    in_array = cut = False
    while True:
        if not _pass_space(source, b",\x1e" if in_array else b"\x1e"):
            if in_array and not cut:
                yield Broken(
                    "torn_tail",
                    "the file ends inside its array; ingest it again when it is complete",
                    b"",
                    source.line,
                    source.offset,
                    tail=True,
                )
            return
        char = source.data[source.at : source.at + 1]
        if char == b"]" and in_array:
            source.skip(source.at + 1)
            in_array = False
        elif char == b"[" and not in_array:
            yield from _small_array(source, limits)
            if source.at < len(source.data) and source.data[source.at : source.at + 1] == b"[":
                source.skip(source.at + 1)
                in_array = True
        else:
            for framed in _value(source, limits, in_array):
                cut = isinstance(framed, Broken) and framed.tail
                yield framed


def _pass_space(source: _Input, also: bytes) -> bool:
    """Go to the next byte that is no white space; False at the end."""
    space = _SPACE + also
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


def _small_array(source: _Input, limits: Limits) -> Iterator[Framed]:
    """All elements at once where the array is small and whole; leaves the place untouched where it is not."""
    while len(source.data) - source.at <= limits.whole_array_bytes and source.more(len(source.data)):
        pass
    if not source.done:
        return
    text = source.data[source.at :]
    try:
        elements = msgspec.json.decode(text.rstrip(_SPACE), type=list[msgspec.Raw])
    except (ValueError, RecursionError):
        return
    source.skip(source.at + 1)
    for element in elements:
        raw = bytes(element)
        source.skip(source.data.index(raw[:1], source.at) if raw[:1] not in _SPACE else source.at)
        line, offset = source.line, source.offset
        source.skip(source.at + len(raw))
        yield from _element(raw, line, offset, limits)
    source.skip(len(source.data))


def _element(raw: bytes, line: int, offset: int, limits: Limits) -> Iterator[Framed]:
    text = raw.strip(_SPACE)
    try:
        decoded = decode(text, limits.nesting)
    except JsonError as error:
        yield _broken(text, line, offset, False, error)
        return
    yield Record(decoded.value, text, line, offset, *decoded[1:])


def _value(source: _Input, limits: Limits, in_array: bool) -> Iterator[Framed]:
    """The next value, or the bytes up to where a value can begin again."""
    line, offset = source.line, source.offset
    end = _end_of_value(source, limits)
    if end is not None:
        raw = source.data[source.at : end]
        try:
            decoded = decode(raw, limits.nesting)
        except JsonError as error:
            if in_array:
                source.skip(end)
                yield _broken(raw, line, offset, False, error)
            else:
                yield _resumed(source, error, limits)
            return
        source.skip(end)
        yield Record(decoded.value, raw, line, offset, *decoded[1:])
        return
    yield _resumed(source, JsonError("no value begins or ends here", 0, False), limits)


def _end_of_value(source: _Input, limits: Limits) -> int | None:
    """Position after the value that begins at `at`; None where it does not end (or is too long)."""
    char = source.data[source.at : source.at + 1]
    if char not in _OPENERS:
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
        if not source.more(len(source.data) - source.at):
            return None
        place = source.at + done


def _end_of_scalar(source: _Input) -> int | None:
    while True:
        match = re.compile(rb"[-+.\w]+").match(source.data, source.at)
        if match is None:
            return None
        if match.end() < len(source.data) or not source.more():
            return match.end()


def _resumed(source: _Input, error: JsonError, limits: Limits) -> Broken:
    """Pass over what is no value, up to a line that begins with one."""
    line, offset = source.line, source.offset
    parts: list[bytes] = []
    while True:
        match = _NEXT_VALUE.search(source.data, source.at + 1)
        if match is not None:
            parts.append(source.skip(match.start() + 1))
            break
        parts.append(source.skip(len(source.data)))
        if not source.more():
            break
    raw = b"".join(parts)
    ended = source.done and source.at >= len(source.data)
    if len(raw) > limits.record_bytes:
        return _too_long(raw[:1024], line, offset, len(raw), limits)
    return _broken(raw.rstrip(_SPACE), line, offset, ended and raw[:1] in _OPENERS, error)
