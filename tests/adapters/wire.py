"""OTLP JSON into protobuf, by the numbers of the OTLP definitions, for tests: written apart from what reads it."""

from __future__ import annotations

import base64
import struct
from typing import Any


def varint(number: int) -> bytes:
    """A number of up to 64 bits; negative ones as two's complement."""
    number &= (1 << 64) - 1
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def part(number: int, content: bytes | str) -> bytes:
    """A length-delimited field."""
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


def whole(number: int, value: int) -> bytes:
    """A varint field."""
    return varint(number << 3) + varint(value)


def fixed(number: int, value: int) -> bytes:
    """A field of 8 bytes."""
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def any_value(value: dict[str, Any]) -> bytes:
    """An AnyValue."""
    if not value:
        return b""
    ((kind, inner),) = value.items()
    if kind == "stringValue":
        return part(1, inner)
    if kind == "boolValue":
        return whole(2, int(inner))
    if kind == "intValue":
        return whole(3, int(inner))
    if kind == "doubleValue":
        return varint(4 << 3 | 1) + struct.pack("<d", inner)
    if kind == "arrayValue":
        return part(5, b"".join(part(1, any_value(item)) for item in inner.get("values", ())))
    if kind == "kvlistValue":
        return part(6, attributes(inner.get("values", ()), 1))
    return part(7, base64.b64decode(inner))


def attributes(listed: Any, number: int) -> bytes:
    """Pairs of key and value, each a field of this number."""
    return b"".join(part(number, part(1, pair["key"]) + part(2, any_value(pair["value"]))) for pair in listed)


def span(value: dict[str, Any]) -> bytes:
    """A span."""
    made = part(1, bytes.fromhex(value["traceId"])) + part(2, bytes.fromhex(value["spanId"]))
    if value.get("parentSpanId"):
        made += part(4, bytes.fromhex(value["parentSpanId"]))
    made += part(5, value["name"]) + whole(6, value["kind"])
    made += fixed(7, int(value["startTimeUnixNano"])) + fixed(8, int(value["endTimeUnixNano"]))
    made += attributes(value.get("attributes", ()), 9)
    for event in value.get("events", ()):
        told = fixed(1, int(event["timeUnixNano"])) + part(2, event["name"])
        made += part(11, told + attributes(event.get("attributes", ()), 3))
    status = value.get("status", {})
    return made + part(15, part(2, status.get("message", "")) + whole(3, status.get("code", 0)))


def log(value: dict[str, Any]) -> bytes:
    """A log record."""
    made = part(5, any_value(value["body"])) + attributes(value["attributes"], 6)
    made += part(9, bytes.fromhex(value["traceId"])) + part(10, bytes.fromhex(value["spanId"]))
    return made + fixed(11, int(value["observedTimeUnixNano"])) + part(12, value["eventName"])


def request(value: dict[str, Any]) -> bytes:
    """An export request from its JSON."""
    made = b""
    for groups, scopes, items, write in (
        ("resourceSpans", "scopeSpans", "spans", span),
        ("resourceLogs", "scopeLogs", "logRecords", log),
    ):
        for group in value.get(groups, ()):
            inner = part(1, attributes(group["resource"].get("attributes", ()), 1))
            for scope in group[scopes]:
                told = part(1, part(1, scope["scope"].get("name", "")))
                inner += part(2, told + b"".join(part(2, write(item)) for item in scope[items]))
            made += part(1, inner)
    return made
