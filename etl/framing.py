"""Byte blocks into records, whatever the file's name says: JSON Lines, one array, or values one after another.

The layout is told from the first block. Lines end at `\\n` and nowhere else (U+2028 and its like are text). What does
not decode becomes `Broken` with its bytes and place; a record glued to a cut-off one, or to another record, is found
again.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from etl.conversation import Record
from etl.decode import MORE_TEXT, JsonError, RecordDecoder, decode
from etl.limits import LIMITS, Limits
from etl.scanning import (
    HEAD,
    OPENERS,
    RAISE_LENGTH,
    SPACE,
    Broken,
    ByteInput,
    Framed,
    broken,
    end_of_value,
    pass_space,
    resumed,
    too_long,
)

BOM = b"\xef\xbb\xbf"
PADDED, GLUED = "nul_padding", "glued_record"
"""Notes of a record that was found again in a line that is not exactly one."""
_ODD = object()
"""Stands for the value of a line that has something unusual about it, or is no record."""
_DECODED_WHOLE = 16
"""Long records of a file that are decoded without a look for what repeats: a session has hardly more."""
_LAYOUT_BYTES = 1 << 16
"""How much of a file its layout is told from (more where its first line is longer), however it arrives."""


def frame(blocks: Iterator[bytes], limits: Limits = LIMITS) -> Iterator[Framed]:
    """Every record of a file in order, with line (from 1) and offset (from 0, in the decompressed UTF-8 text).

    Where `blocks` end with a SourceError, all before it is given, the record that it cut as torn; then it is raised.
    """
    source = _opened(blocks)
    if _is_lines(source, limits):
        yield from _lines(source, limits)
    else:
        yield from _values(source, limits)
    if source.failure is not None:
        raise source.failure


def frame_lines(blocks: Iterator[bytes], limits: Limits, line: int, offset: int) -> Iterator[Framed]:
    """As `frame`, of a part of a file of lines: `line` and `offset` are those of its first byte, of a line."""
    source = _opened(blocks, line, offset)
    yield from _lines(source, limits)
    if source.failure is not None:
        raise source.failure


def is_lines(blocks: Iterator[bytes], limits: Limits = LIMITS) -> bool:
    """Whether `frame` takes each line of a file that begins so for a record of its own."""
    return _is_lines(_opened(blocks), limits)


def _opened(blocks: Iterator[bytes], line: int = 1, offset: int = 0) -> ByteInput:
    source = ByteInput(blocks)
    source.line, source.base = line, offset
    source.more(_LAYOUT_BYTES)
    if offset == 0 and source.data.startswith(BOM):
        source.at = len(BOM)
    while source.data[source.at : source.at + 1] in SPACE and not source.data[source.at :].strip(SPACE):
        source.skip(len(source.data))  # a blank beginning may be of any length
        if not source.more(_LAYOUT_BYTES):
            break
    return source


def line_text(raw: bytes) -> bytes:
    """The record's own bytes in a line that is one record."""
    return raw.strip(SPACE) if raw[-1:] in (b"\r", b" ") else raw


def _is_lines(source: ByteInput, limits: Limits) -> bool:
    """JSON Lines, or values that span lines? A line from column 0 that is a whole object decides for lines."""
    while True:
        start = source.at
        while start < len(source.data) and source.data[start] in SPACE:
            start += 1
        window = source.data[start:]
        told = len(window) >= _LAYOUT_BYTES and (b"\n" in window or len(window) > limits.whole_array_bytes)
        if told or not source.more(max(len(window), _LAYOUT_BYTES)):
            break
    if b"\n" in window[:_LAYOUT_BYTES]:
        window = window[:_LAYOUT_BYTES]
    first, lines = window[:1], [line.rstrip(SPACE) for line in window.split(b"\n", 40)[:40]]
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
        return _glued(error) and line[error.position : error.position + 1] in OPENERS[:2]
    return True


def _lines(source: ByteInput, limits: Limits) -> Iterator[Framed]:
    decoder = RecordDecoder(limits.nesting, _DECODED_WHOLE)
    line, offset = source.line, source.offset
    passed = 0  # bytes of a line that is too long, let go after its beginning
    pending: list[bytes] = [source.data[source.at :]]
    size = len(pending[0])
    source.at = len(source.data)
    while True:
        if b"\n" in pending[-1]:
            text = b"".join(pending) if len(pending) > 1 else pending[0]
            pending.clear()
            start = 0
            while (end := text.find(b"\n", start)) >= 0:
                raw, start = text[start:end], end + 1
                length, passed = len(raw) + passed + 1, 0
                if length > 1:
                    if length > limits.record_bytes:
                        yield too_long(raw[:HEAD], line, offset, length - 1, limits)
                    else:
                        try:
                            value = decoder.plain(raw)
                        except (ValueError, RecursionError):
                            value = _ODD
                        if value is _ODD:
                            yield from _line(raw, line, offset, False, limits)
                        else:
                            yield Record(value, line_text(raw), line, offset)
                line += 1
                offset += length
            pending, size = [text[start:]], len(text) - start
            del text
        elif size > limits.record_bytes:
            held = sum(map(len, pending))
            pending = [b"".join(piece[:HEAD] for piece in pending[:HEAD])[:HEAD]]
            passed += held - len(pending[0])
            size = limits.record_bytes
        if not source.more():
            break
        pending.append(source.data)
        source.at = len(source.data)
        size += len(source.data)
    rest = b"".join(pending)
    if len(rest) + passed > limits.record_bytes:
        yield too_long(rest[:HEAD], line, offset, len(rest) + passed, limits)
    elif rest:
        yield from _line(rest, line, offset, True, limits)


def _line(raw: bytes, line: int, offset: int, last: bool, limits: Limits) -> Iterator[Framed]:
    """The record of one line, or what can be found again in a line that is not exactly one record."""
    try:
        decoded = decode(raw, limits.nesting)
    except JsonError:
        yield from _recovered(raw, line, offset, last, limits)
        return
    yield Record(decoded.value, line_text(raw), line, offset, *decoded[1:])


def _recovered(raw: bytes, line: int, offset: int, last: bool, limits: Limits) -> Iterator[Framed]:
    """Padding stripped, glued records parted, a cut-off record told from the one that follows it on the same line; what
    was so found again says it in its notes.
    """
    text = whole = raw.strip(SPACE)
    padded = (PADDED,) if raw[:1] == b"\x00" or raw[-1:] == b"\x00" else ()
    source = ByteInput(iter(()))
    source.data, source.base = text, offset + raw.find(text)
    while source.at < len(source.data):
        place = source.offset
        end = end_of_value(source, limits)
        if end is not None:
            piece = source.data[source.at : end]
            try:
                decoded = decode(piece, limits.nesting)
            except JsonError:
                decoded = None
            if decoded is not None and (isinstance(decoded.value, (dict, list)) or piece == text):
                odd = padded if piece == whole else (GLUED, *padded)
                yield Record(decoded.value, piece, line, place, (*decoded.notes, *odd), decoded.mended)
                source.at = end
                pass_space(source, b"")
                continue
        text = source.data[source.at :]
        failure = JsonError("a value beside a record, no record itself", 0, True)
        try:
            decode(text, limits.nesting)
        except JsonError as error:
            failure = error.with_traceback(None)  # else it and this frame hold each other until the run ends
        start = _restart(text, failure)
        if start <= 0:
            yield broken(text, line, place, last, failure)
            return
        yield broken(text[:start], line, place, False, failure)
        source.at += start


def _restart(text: bytes, error: JsonError) -> int:
    """Where the next record begins in a line whose first one breaks off; 0 where none does.

    Text before any record is passed over. A record that breaks off inside a text, a name, a number or a word is
    followed by a brace just where decoding fails: at the brace, or right after it when its first quote ended an open
    string. A line that is only torn fails at its end: its inner objects are no records.
    """
    position = error.position
    if text[:1] not in OPENERS:
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


def _values(source: ByteInput, limits: Limits) -> Iterator[Framed]:
    """Values that span lines: objects one after another, and the elements of arrays."""
    in_array = cut = False
    while True:
        if not pass_space(source, b",\x1e" if in_array else b"\x1e"):
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


def _small_array(source: ByteInput, limits: Limits) -> Iterator[Framed]:
    """All elements at once where the array is small and whole; leaves the place untouched where it is not."""
    while len(source.data) - source.at <= limits.whole_array_bytes and source.more(len(source.data)):
        pass
    if not source.done:
        return
    text = source.data[source.at :]
    try:
        elements = msgspec.json.decode(text.rstrip(SPACE), type=list[msgspec.Raw])
    except (ValueError, RecursionError):
        return
    source.skip(source.at + 1)
    for element in elements:
        raw = bytes(element)
        source.skip(source.data.index(raw[:1], source.at) if raw[:1] not in SPACE else source.at)
        line, offset = source.line, source.offset
        source.skip(source.at + len(raw))
        yield from _element(raw, line, offset, limits)
    source.skip(len(source.data))


def _element(raw: bytes, line: int, offset: int, limits: Limits) -> Iterator[Framed]:
    text = raw.strip(SPACE)
    try:
        decoded = decode(text, limits.nesting)
    except JsonError as error:
        yield broken(text, line, offset, False, error)
        return
    yield Record(decoded.value, text, line, offset, *decoded[1:])


def _value(source: ByteInput, limits: Limits, in_array: bool) -> Iterator[Framed]:
    """The next value, or the bytes up to where a value can begin again."""
    line, offset = source.line, source.offset
    end = end_of_value(source, limits)
    if end is not None:
        raw = source.data[source.at : end]
        try:
            decoded = decode(raw, limits.nesting)
        except JsonError as error:
            if in_array:
                source.skip(end)
                yield broken(raw, line, offset, False, error)
            else:
                yield resumed(source, error, limits)
            return
        source.skip(end)
        yield Record(decoded.value, raw, line, offset, *decoded[1:])
        return
    yield resumed(source, JsonError("no value begins or ends here", 0, False), limits)


__all__ = [
    "BOM", "LIMITS", "RAISE_LENGTH", "Broken", "Framed", "Limits", "frame", "frame_lines", "is_lines", "line_text",
]  # fmt: skip
