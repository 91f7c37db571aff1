"""Single values of OpenTelemetry records: ids, times, kinds and attributes, in every spelling, as plain values."""

from __future__ import annotations

import ast
import base64
import binascii
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

_VALUES = {
    "stringValue": "string",
    "intValue": "int",
    "doubleValue": "double",
    "boolValue": "bool",
    "arrayValue": "array",
    "kvlistValue": "kvlist",
    "bytesValue": "bytes",
    "string_value": "string",
    "int_value": "int",
    "double_value": "double",
    "bool_value": "bool",
    "array_value": "array",
    "kvlist_value": "kvlist",
    "bytes_value": "bytes",
}
_KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{11}=|[A-Za-z0-9+/]{22}==")

MAX_LITERAL = 4 << 20
"""Characters of Python text that are read as a value; what is longer stays text."""


def first(item: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = item.get(key)
        if value is not None and value != "":
            return value
    return None


def put(form: dict[str, Any], /, **values: Any) -> None:
    """Set what is there: neither None nor empty."""
    form.update({key: value for key, value in values.items() if value not in (None, "", [], {})})


def identifier(value: Any) -> str | None:
    """A trace or span id: hex in lower case without `0x`, base64 of 8 or 16 bytes as hex, other text as it is.

    >>> identifier("0xDF8466EEEFD28BD5"), identifier("YdgoL3swLp+JZvH7OCzppQ=="), identifier("0" * 16), identifier("t1")
    ('df8466eeefd28bd5', '61d8282f7b302e9f8966f1fb382ce9a5', None, 't1')
    """
    if not isinstance(value, str):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return f"{value:x}" if whole and 0 < value < 1 << 128 else None
    hexadecimal = _HEX.match(value)
    if hexadecimal:
        digits = hexadecimal[1].lower()
        return digits if digits.strip("0") else None
    if _BASE64.fullmatch(value):
        try:
            return base64.b64decode(value, validate=True).hex()
        except binascii.Error:
            return value
    return value.strip() or None


def time(value: Any) -> int | str | None:
    """A time as an integer or as text; JavaScript's `[seconds, nanoseconds]` and `{"seconds", "nanos"}` as nanoseconds.

    >>> time("1771754402000000000"), time([1770131992, 242000000]), time("2026-03-01T20:47:18Z"), time(0)
    (1771754402000000000, 1770131992242000000, '2026-03-01T20:47:18Z', None)
    """
    if isinstance(value, str):
        text = value.strip()
        if text.isdecimal() and text.isascii() and len(text) < 20:
            return int(text) or None
        return text or None
    if isinstance(value, float):
        return round(value * 1_000_000_000) if 946_684_800 <= value < 4_102_444_800 else round(value) or None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 < value < 1 << 63 else None
    if isinstance(value, dict):
        value = [value.get("seconds"), value.get("nanos", 0)]
    if isinstance(value, list) and len(value) == 2:
        seconds, nanos = value[0], value[1]
        if isinstance(seconds, str) and seconds.isdecimal() and len(seconds) < 12:
            seconds = int(seconds)
        if type(seconds) is int and type(nanos) is int and 0 < seconds < 1 << 33 and 0 <= nanos < 1_000_000_000:
            return seconds * 1_000_000_000 + nanos
    return None


def fingerprint(form: Mapping[str, Any]) -> str:
    """What a form says, as 128 bits in hex: the same for equal forms."""
    return blake2b(msgspec.json.encode(form, order="deterministic"), digest_size=16).hexdigest()


def kind_of(value: Any) -> str | None:
    """INTERNAL, CLIENT, … from a number or any spelling of the name."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _KINDS[value] if 0 < value < len(_KINDS) else None
    if isinstance(value, str):
        name = value.upper().removeprefix("SPANKIND.").removeprefix("SPAN_KIND_")
        return name if name in _KINDS[1:] else value or None
    return None


def plain_attributes(value: Any) -> dict[str, Any]:
    """Attributes as name → plain value, from OTLP's list of pairs, Jaeger's tags or an object; nulls left out."""
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item is not None}
    made: dict[str, Any] = {}
    for pair in value if isinstance(value, list) else ():
        if isinstance(pair, dict) and isinstance(key := pair.get("key"), str):
            held = pair.get("value")
            plain = held["stringValue"] if type(held) is dict and "stringValue" in held else value_of(held)
            if plain is not None:
                made[key] = plain
    return made


def value_of(value: Any) -> Any:
    """An OTLP AnyValue as a plain value (bytes stay base64 text); what is none stays as it is.

    >>> value_of({"kvlistValue": {"values": [{"key": "n", "value": {"intValue": "7"}}]}}), value_of({"kvlistValue": {}})
    ({'n': 7}, {})
    """
    if not isinstance(value, dict):
        return value
    if not value:
        return None
    if len(value) != 1:
        return value
    ((name, inner),) = value.items()
    kind = _VALUES.get(name)
    if kind == "int":
        if isinstance(inner, str) and inner.removeprefix("-").isdecimal() and len(inner) <= 20:
            return int(inner)
        return inner
    if kind == "array":
        return [value_of(item) for item in as_list(inner.get("values") if isinstance(inner, dict) else None)]
    if kind == "kvlist":
        pairs = as_list(inner.get("values") if isinstance(inner, dict) else None)
        return {
            str(pair["key"]): value_of(pair.get("value")) for pair in pairs if isinstance(pair, dict) and "key" in pair
        }
    return value if kind is None else inner


def dotted(value: dict[str, Any], prefix: str) -> dict[str, Any]:
    """A nested object as names with dots.

    >>> dotted({"token_count": {"prompt": 1}, "model_name": "m"}, "llm")
    {'llm.token_count.prompt': 1, 'llm.model_name': 'm'}
    """
    made: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict) and item:
            made.update(dotted(item, f"{prefix}.{key}"))
        elif item is not None:
            made[f"{prefix}.{key}"] = item
    return made


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def literal(value: Any) -> Any:
    """Python's text of a list or an object as its value; anything else as it is.

    >>> literal("[{'message.role': 'user', 'message.content': None}]"), literal("{broken")
    ([{'message.role': 'user', 'message.content': None}], '{broken')
    """
    if not isinstance(value, str) or value[:1] not in ("[", "{") or len(value) > MAX_LITERAL:
        return value
    try:
        read = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return read if _is_plain(read) else value


def _is_plain(value: Any, depth: int = 40) -> bool:
    """Whether JSON has all of it."""
    if depth == 0:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item, depth - 1) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_plain(item, depth - 1) for item in value)
    return value is None or isinstance(value, (str, int, float, bool))
