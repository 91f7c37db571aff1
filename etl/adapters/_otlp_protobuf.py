"""OTLP as protobuf: an export request as it is sent, requests one after another, or each with its length before it.

A request is a sequence of resource groups (field 1), and each of these is a record, read into the shape that OTLP JSON
gives it. Which signal a group holds is told by its first item: a span begins with a trace id of 16 bytes, a log record
with a time.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

from etl.conversation import Record
from etl.framing import Broken, Framed, Limits

Layout: TypeAlias = Literal["plain", "prefixed", "delimited"]
GROUP = 0x0A
"""Tag of field 1, length-delimited: a resource group in a request, a resource in a group."""
_LARGEST = (1 << 31) - 1
"""Bytes that a message of protobuf may have."""
MAX_DEPTH = 100


class Field(NamedTuple):
    """How a field is written in OTLP JSON: its name, what it holds (a kind or a message), and whether it is a list."""

    name: str
    holds: str
    listed: bool = False


_ATTRIBUTES = Field("attributes", "KeyValue", True)
MESSAGES: dict[str, dict[int, Field]] = {
    "ResourceSpans": {
        1: Field("resource", "Resource"),
        2: Field("scopeSpans", "ScopeSpans", True),
        3: Field("schemaUrl", "text"),
    },
    "ResourceLogs": {
        1: Field("resource", "Resource"),
        2: Field("scopeLogs", "ScopeLogs", True),
        3: Field("schemaUrl", "text"),
    },
    "Resource": {1: _ATTRIBUTES, 2: Field("droppedAttributesCount", "number")},
    "ScopeSpans": {1: Field("scope", "Scope"), 2: Field("spans", "Span", True), 3: Field("schemaUrl", "text")},
    "ScopeLogs": {1: Field("scope", "Scope"), 2: Field("logRecords", "LogRecord", True), 3: Field("schemaUrl", "text")},
    "Scope": {1: Field("name", "text"), 2: Field("version", "text"), 3: _ATTRIBUTES},
    "Span": {
        1: Field("traceId", "id"),
        2: Field("spanId", "id"),
        3: Field("traceState", "text"),
        4: Field("parentSpanId", "id"),
        5: Field("name", "text"),
        6: Field("kind", "number"),
        7: Field("startTimeUnixNano", "time"),
        8: Field("endTimeUnixNano", "time"),
        9: _ATTRIBUTES,
        10: Field("droppedAttributesCount", "number"),
        11: Field("events", "Event", True),
        12: Field("droppedEventsCount", "number"),
        13: Field("links", "Link", True),
        14: Field("droppedLinksCount", "number"),
        15: Field("status", "Status"),
        16: Field("flags", "number"),
    },
    "Event": {1: Field("timeUnixNano", "time"), 2: Field("name", "text"), 3: _ATTRIBUTES},
    "Link": {1: Field("traceId", "id"), 2: Field("spanId", "id"), 3: Field("traceState", "text"), 4: _ATTRIBUTES},
    "Status": {2: Field("message", "text"), 3: Field("code", "number")},
    "LogRecord": {
        1: Field("timeUnixNano", "time"),
        2: Field("severityNumber", "number"),
        3: Field("severityText", "text"),
        5: Field("body", "AnyValue"),
        6: _ATTRIBUTES,
        7: Field("droppedAttributesCount", "number"),
        8: Field("flags", "number"),
        9: Field("traceId", "id"),
        10: Field("spanId", "id"),
        11: Field("observedTimeUnixNano", "time"),
        12: Field("eventName", "text"),
    },
    "KeyValue": {1: Field("key", "text"), 2: Field("value", "AnyValue")},
    "AnyValue": {
        1: Field("stringValue", "text"),
        2: Field("boolValue", "bool"),
        3: Field("intValue", "number"),
        4: Field("doubleValue", "double"),
        5: Field("arrayValue", "ArrayValue"),
        6: Field("kvlistValue", "KeyValueList"),
        7: Field("bytesValue", "base64"),
    },
    "ArrayValue": {1: Field("values", "AnyValue", True)},
    "KeyValueList": {1: Field("values", "KeyValue", True)},
}
"""Message → number → field."""


class Malformed(ValueError):
    """The bytes are no such message."""


class Cut(Malformed):
    """The bytes end in the middle of a message."""


def varint(data: bytes, place: int) -> tuple[int, int]:
    """The number at a place, and the place after it.

    >>> varint(bytes([0x96, 0x01]), 0)
    (150, 2)
    """
    number = shift = 0
    while True:
        if place >= len(data):
            raise Cut("a number is cut off")
        byte = data[place]
        number |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return number, place
        shift += 7
        if shift > 63:
            raise Malformed("a number is longer than 64 bits")


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(number, wire type, value) of every field: an int, 4 or 8 bytes, or the bytes of what is length-delimited."""
    place = 0
    while place < len(data):
        tag, place = varint(data, place)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, place = varint(data, place)
            yield number, wire, value
            continue
        if wire == 2:
            size, place = varint(data, place)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise Malformed(f"field {number} has the wire type {wire}")
        if place + size > len(data):
            raise Cut(f"field {number} is cut off")
        yield number, wire, data[place : place + size]
        place += size


def message(data: bytes, name: str, depth: int = MAX_DEPTH) -> dict[str, Any]:
    """A message in the shape of OTLP JSON; fields that it does not have are named under `unknownFields`."""
    if depth == 0:
        raise Malformed(f"nested deeper than {MAX_DEPTH} messages")
    schema = MESSAGES[name]
    made: dict[str, Any] = {}
    for number, wire, value in fields(data):
        field = schema.get(number)
        if field is None:
            made.setdefault("unknownFields", []).append(number)
            continue
        plain = _value(field, wire, value, depth)
        if field.listed:
            made.setdefault(field.name, []).append(plain)
        else:
            made[field.name] = plain
    return made


def _value(field: Field, wire: int, value: Any, depth: int) -> Any:
    holds = field.holds
    if holds in MESSAGES:
        if wire != 2:
            raise Malformed(f"{field.name} is no message")
        return message(value, holds, depth - 1)
    if holds in ("text", "id", "base64"):
        if wire != 2:
            raise Malformed(f"{field.name} is no text")
        if holds == "text":
            return value.decode("utf-8", "replace")
        return value.hex() if holds == "id" else base64.b64encode(value).decode()
    if holds == "double":
        if wire != 1:
            raise Malformed(f"{field.name} is no double")
        return struct.unpack("<d", value)[0]
    number = value if wire == 0 else int.from_bytes(value, "little")
    if holds == "bool":
        return bool(number)
    return number - (1 << 64) if holds == "number" and number >= 1 << 63 else number


def group(data: bytes) -> dict[str, Any]:
    """A batch with one resource group; metrics are told apart and left unread."""
    signal = _signal(data)
    if signal is None:
        return {"resourceMetrics": []}
    return {f"resource{signal}": [message(data, f"Resource{signal}")]}


def _signal(data: bytes) -> str | None:
    """Spans or Logs, by the first item of the group; None for anything else."""
    for number, wire, scope_group in fields(data):
        if (number, wire) != (2, 2):
            continue
        for inner, inner_wire, item in fields(scope_group):
            if (inner, inner_wire) == (2, 2):
                held = {(place, kind): value for place, kind, value in fields(item)}
                if len(held.get((1, 2), b"")) == 16 and len(held.get((2, 2), b"")) == 8:
                    return "Spans"
                if {(1, 1), (11, 1), (2, 0)} & held.keys():
                    return "Logs"
                return None
    return "Spans"


def layout(head: bytes) -> Layout | None:
    """How requests lie in a file, told by its first bytes; None where these are no OTLP protobuf."""
    if _begins_group(head):
        return "plain"
    if len(head) > 4 and 0 < int.from_bytes(head[:4], "big") < 1 << 30 and _begins_group(head[4:]):
        return "prefixed"
    try:
        size, place = varint(head, 0)
    except Malformed:
        return None
    return "delimited" if size and _begins_group(head[place:]) else None


def _begins_group(data: bytes) -> bool:
    """Whether a resource group begins here: a resource whose attributes have names, or a group of a scope."""
    try:
        if data[:1] != bytes([GROUP]):
            return False
        size, place = varint(data, 1)
        inner = data[place : place + size]
        number, wire, value = next(fields(inner))
        if (number, wire) == (1, 2):
            keys = [message(pair, "KeyValue").get("key") for at, kind, pair in fields(value) if (at, kind) == (1, 2)]
            return bool(keys) and all(isinstance(key, str) and key.isprintable() and key for key in keys)
        return (number, wire) == (2, 2) and message(value, "ScopeSpans") is not None
    except Cut:
        return _begins_nested(data)
    except (Malformed, StopIteration):
        return False


def _begins_nested(data: bytes) -> bool:
    """Of the little that is left of a group: whether group, resource, attribute and key lie in one another."""
    place, around = 0, 1 << 62
    for level in range(4):
        if place >= len(data):
            return level > 1
        if data[place] != GROUP:
            return False
        try:
            size, place = varint(data, place + 1)
        except Malformed:
            return level > 1
        if not 0 < size < around:
            return False
        around = size
    return True


def records(blocks: Iterator[bytes], how: Layout, limits: Limits) -> Iterator[Framed]:
    """Every resource group of a file, with its offset; one that is cut off is the torn tail."""
    source = _Stream(blocks)
    while source.has(1):
        start, left = source.offset, None
        if how != "plain":
            left = source.number(4) if how == "prefixed" else source.varint()
            if left is None or not source.has(min(left, limits.record_bytes)):
                yield _torn(start, source)
                return
        end = None if left is None else source.offset + left
        while source.has(1) and (end is None or source.offset < end):
            framed = _group(source, limits)
            yield framed
            if isinstance(framed, Broken) and framed.reason != "bad_message":
                return


def _group(source: _Stream, limits: Limits) -> Framed:
    """The resource group that begins here."""
    start = source.offset
    tag, size = source.varint(), source.varint()
    if tag is None or size is None:
        return _torn(start, source)
    head = _as_varint(tag) + _as_varint(size)
    if tag != GROUP or size > _LARGEST:
        return Broken(
            "not_protobuf", "no resource group of an OTLP request begins here", head + source.rest(), 1, start
        )
    if size > limits.record_bytes:
        message = (
            f"a group of {size} bytes is longer than the limit of {limits.record_bytes}; raise the limit to read it"
        )
        return Broken("too_long", message, source.take(1024), 1, start, length=size)
    if not source.has(size):
        return _torn(start, source, head)
    data = source.take(size)
    try:
        return Record(group(data), head + data, None, start)
    except Malformed as error:
        return Broken(
            "bad_message", f"a resource group that is no OTLP ({error}); see what wrote it", head + data, 1, start
        )


def _torn(start: int, source: _Stream, head: bytes = b"") -> Broken:
    message = "the file ends in the middle of this request; ingest it again when it is complete"
    return Broken("torn_tail", message, head + source.rest(), 1, start, tail=True)


def _as_varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


class _Stream:
    """Bytes with their place, as many at a time as are needed."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._data = b""
        self._at = 0
        self.offset = 0

    def has(self, size: int) -> bool:
        """Whether so many bytes are left; reads them."""
        if len(self._data) - self._at < size:
            parts = [self._data[self._at :]]
            held = len(parts[0])
            for block in self._blocks:
                parts.append(block)
                held += len(block)
                if held >= size:
                    break
            self._data, self._at = b"".join(parts), 0
        return len(self._data) - self._at >= size

    def take(self, size: int) -> bytes:
        """The next bytes, fewer at the end."""
        self.has(size)
        taken = self._data[self._at : self._at + size]
        self._at += len(taken)
        self.offset += len(taken)
        return taken

    def number(self, size: int) -> int | None:
        """A big-endian number of so many bytes."""
        taken = self.take(size)
        return int.from_bytes(taken, "big") if len(taken) == size else None

    def varint(self) -> int | None:
        """A varint; None where it is cut off or none."""
        self.has(10)
        try:
            number, place = varint(self._data, self._at)
        except Malformed:
            return None
        self.take(place - self._at)
        return number

    def rest(self) -> bytes:
        """All that is left."""
        taken = b"".join(chain([self._data[self._at :]], self._blocks))
        self._data, self._at = b"", 0
        self.offset += len(taken)
        return taken
