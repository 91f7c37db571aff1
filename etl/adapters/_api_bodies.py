"""Bodies of HTTP calls as values: JSON, JSON in bytes, gzip, server-sent events, lines, AWS event streams.

A stream comes back as the list of its events; `Body.whole` is false where it ends in the middle of one.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from etl.decode import MORE_TEXT, JsonError, decode

_GZIP = b"\x1f\x8b"
_SSE = ("data:", "event:", "id:", "retry:", ":")
_PRELUDE = struct.Struct(">III")
_LEAST_TEXT = 32
"""Shorter texts are never taken for bytes in hex or base64."""


class Read(NamedTuple):
    """A body: one value, or the events of a stream; `text` is what could not be read as either."""

    value: Any = None
    events: list[Any] | None = None
    whole: bool = True
    text: str | None = None


def read_body(body: Any) -> Read:
    """A body as any envelope holds it: decoded already, text, bytes, or bytes in base64 or hex.

    >>> read_body('data: {"n": 1}\\n\\ndata: [DONE]\\n\\n').events
    [{'n': 1}]
    """
    if type(body) is bytes:
        return _bytes(body)
    if type(body) is list:
        if body and all(type(line) is str for line in body):
            return read_body("\n\n".join(body))  # a stream kept line by line
        return Read(body, body)
    if type(body) is not str:
        return Read(body)
    stripped = body.strip()
    if stripped[:1] in ("{", "["):
        return _json(stripped)
    if stripped.startswith(_SSE):
        return _events(stripped)
    raw = _unwrapped(stripped)
    if raw is not None:
        return _bytes(raw)
    return Read(None, None, True, body or None)


def _bytes(raw: bytes) -> Read:
    if raw[:2] == _GZIP:
        stream = zlib.decompressobj(31)
        try:
            raw = stream.decompress(raw)
        except zlib.error:
            return Read(None, None, False)
        read = _bytes(raw)
        return read if stream.eof else read._replace(whole=False)
    if _is_event_stream(raw):
        events, whole = _aws(raw)
        return Read(None, events, whole)
    return read_body(raw.decode("utf-8", "replace")) if raw else Read()


def _unwrapped(text: str) -> bytes | None:
    """Bytes that were written as hex or base64, where they are a stream or an archive; None for plain text."""
    if len(text) < _LEAST_TEXT or " " in text[:64]:
        return None
    for decoder in (bytes.fromhex, _base64):
        try:
            raw = decoder(text)
        except (ValueError, binascii.Error):
            continue
        if raw[:2] == _GZIP or _is_event_stream(raw):
            return raw
    return None


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _json(text: str) -> Read:
    """One value; several, one after another (Ollama's lines); or a value that was cut off."""
    values: list[Any] = []
    raw = text.encode("utf-8", "surrogatepass")
    while raw:
        try:
            values.append(decode(raw).value)
            break
        except JsonError as error:
            if str(error) != MORE_TEXT:
                return Read(None, values or None, False, None if values else text)
            values.append(decode(raw[: error.position]).value)
            raw = raw[error.position :].strip()
    if len(values) != 1:
        return Read(None, values)
    return Read(values[0], values[0] if type(values[0]) is list else None)


def _events(text: str) -> Read:
    """Server-sent events: the data of each, `[DONE]` left out. An event without a type in its data gets its name."""
    events: list[Any] = []
    whole = True
    for block in text.replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        name, lines = "", []
        for line in block.split("\n"):
            field, _, value = line.partition(":")
            if field == "data":
                lines.append((name, value.removeprefix(" ")))
            elif field == "event":
                name = value.strip()
        found = _data(name, "\n".join(value for _, value in lines))
        if found is None:  # the empty lines between events may be lost: each line of data by itself
            each = [_data(*line) for line in lines]
            found = [event for of_line in each for event in of_line or ()]
            whole = whole and None not in each
        events += found
    return Read(None, events, whole)


def _data(name: str, data: str) -> list[Any] | None:
    """The event, or none, in some data; None where it is no JSON."""
    if not data or data.strip() == "[DONE]":
        return []
    try:
        event = decode(data.encode("utf-8", "surrogatepass")).value
    except JsonError:
        return None
    if name and type(event) is dict and "type" not in event and "object" not in event:
        event = {"type": name, **event}
    return [event]


def _is_event_stream(raw: bytes) -> bool:
    """The prelude of the first message carries its own check sum."""
    if len(raw) < 16:
        return False
    size, _, check = _PRELUDE.unpack_from(raw)
    return bool(16 <= size <= 1 << 25 and zlib.crc32(raw[:8]) == check)


def _aws(raw: bytes) -> tuple[list[Any], bool]:
    """The messages of an AWS event stream: `{event type: payload}`; of InvokeModel the model's own events."""
    events: list[Any] = []
    while raw:
        if not _is_event_stream(raw):
            return events, False
        size, headers, _ = _PRELUDE.unpack_from(raw)
        if size > len(raw) or headers > size - 16:
            return events, False
        named = dict(_headers(raw[12 : 12 + headers]))
        events += _message(named, raw[12 + headers : size - 4])
        raw = raw[size:]
    return events, True


def _message(named: dict[str, str], payload: bytes) -> Iterator[Any]:
    try:
        value = decode(payload).value if payload else {}
    except JsonError:
        return
    kind = named.get(":exception-type") or named.get(":event-type") or "event"
    inner = value.get("bytes") if type(value) is dict else None
    if kind == "chunk" and type(inner) is str:
        try:
            yield decode(_base64(inner)).value
        except (JsonError, ValueError):
            return
    else:
        if type(value) is dict:
            value.pop("p", None)  # padding against guessing by length
        yield {kind: value}


def _headers(raw: bytes) -> Iterator[tuple[str, str]]:
    """Text headers (type 7) until one of another type."""
    at = 0
    while at + 1 < len(raw):
        end = at + 1 + raw[at]
        name = raw[at + 1 : end].decode("utf-8", "replace")
        if end + 3 > len(raw) or raw[end] != 7:
            return
        size = int.from_bytes(raw[end + 1 : end + 3], "big")
        yield name, raw[end + 3 : end + 3 + size].decode("utf-8", "replace")
        at = end + 3 + size
