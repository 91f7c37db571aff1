"""JSON bytes into Python values without losing any: fast where the text is plain, exact where it is not.

msgspec decodes whatever is strictly valid and keeps integers of any size. What it refuses (NaN, lone surrogates, numbers beyond
a double, raw control characters, invalid UTF-8) and what it would lose (duplicate keys) goes to a second, exact decoder.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

import msgspec

MAX_DEPTH = 400
"""Deepest nesting of a record; deeper ones are rejected, since every later reader recurses too."""

DUPLICATES = "duplicate_keys"
"""Key under which an object keeps the earlier values of a key that occurs twice (the last one wins, as in every reader)."""

_plain = msgspec.json.Decoder()
_SURROGATE = re.compile("[\ud800-\udfff]")


class Decoded(NamedTuple):
    """A value with what was unusual about its text; see `conversation.Record`."""

    value: Any
    notes: tuple[str, ...] = ()
    mended: tuple[tuple[str, str], ...] = ()


class JsonError(ValueError):
    """The bytes are not one JSON value. `position` is where it stops making sense, `complete` false when text is missing."""

    def __init__(self, message: str, position: int, complete: bool) -> None:
        super().__init__(message)
        self.position = position
        self.complete = complete


def decode(raw: bytes) -> Decoded:
    """The one JSON value in `raw`; JsonError where it is none.

    >>> decode(b'{"n": 18446744073709551617, "f": 1e400}')
    Decoded(value={'n': 18446744073709551617, 'f': '1e400'}, notes=('number_range',), mended=())
    """
    try:
        value = _plain.decode(raw)
    except (ValueError, RecursionError):
        return _exact(raw)
    if type(value) is dict or type(value) is list:
        keys = _count_keys(value)
        if keys < 0:
            raise JsonError(f"nested deeper than {MAX_DEPTH} levels", 0, True)
        if raw.count(b'":') - raw.count(b'\\":') != keys:
            return _exact(raw)
    return Decoded(value)


def _count_keys(value: Any) -> int:
    """Keys of all objects in a decoded value; -1 where it is nested too deep."""
    keys = 0
    level = [value]
    for _ in range(MAX_DEPTH):
        below = []
        for item in level:
            if type(item) is dict:
                keys += len(item)
                below += [x for x in item.values() if type(x) is dict or type(x) is list]
            else:
                below += [x for x in item if type(x) is dict or type(x) is list]
        if not below:
            return keys
        level = below
    return -1


class _Notes:
    """What the exact decoder met."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.mended: list[tuple[str, str]] = []

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) == len(pairs):
            return result
        self.seen.add("duplicate_keys")
        last = {key: index for index, (key, _) in enumerate(pairs)}
        earlier = [{key: value} for index, (key, value) in enumerate(pairs) if last[key] != index]
        name = DUPLICATES
        while name in result:
            name = "_" + name
        result[name] = earlier
        return result

    def real(self, text: str) -> float | str:
        number = float(text)
        if math.isinf(number):
            self.seen.add("number_range")
            return text
        return number

    def constant(self, text: str) -> str:
        self.seen.add("nan")
        return text

    def mend(self, text: str) -> str:
        """The string with U+FFFD for each lone surrogate, its escapes remembered."""
        if not _SURROGATE.search(text):
            return text
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _paired(text) else text
        mended = _SURROGATE.sub("�", whole)
        raw_bytes = any("\udc80" <= char <= "\udcff" for char in text)
        self.seen.add("invalid_utf8" if raw_bytes else "lone_surrogate")
        self.mended.append((mended, escapes(text)))
        return mended


def _paired(text: str) -> bool:
    return re.search("[\ud800-\udbff][\udc00-\udfff]", text) is not None


def escapes(text: str) -> str:
    r"""The string with each lone surrogate as its JSON escape, cut to the surroundings where it is long.

    >>> escapes("a\ud83eb")
    'a\\ud83eb'
    """
    parts = []
    for match in list(_SURROGATE.finditer(text))[:20]:
        parts.append((max(0, match.start() - 40), match.end() + 40))
    shown = text if len(text) <= 400 else " … ".join(text[start:end] for start, end in parts)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", shown)


def _exact(raw: bytes) -> Decoded:
    notes = _Notes()
    text = raw.decode("utf-8", "surrogateescape")
    decoder = json.JSONDecoder(
        object_pairs_hook=notes.pairs, parse_float=notes.real, parse_constant=notes.constant, strict=False
    )
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        value, end = decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        position = len(text[: error.pos].encode("utf-8", "surrogateescape"))
        complete = bool(text[error.pos :].strip()) and not error.msg.startswith("Unterminated string")
        raise JsonError(error.msg, position, complete) from None
    except RecursionError:
        raise JsonError(f"nested deeper than {MAX_DEPTH} levels", 0, True) from None
    if text[end:].strip(" \t\r\n"):
        raise JsonError("more text after the value", len(text[:end].encode("utf-8", "surrogateescape")), True)
    if isinstance(value, (dict, list)) and _count_keys(value) < 0:
        raise JsonError(f"nested deeper than {MAX_DEPTH} levels", 0, True)
    value = _mend(value, notes)
    return Decoded(value, tuple(sorted(notes.seen)), tuple(notes.mended))


def _mend(value: Any, notes: _Notes) -> Any:
    if isinstance(value, str):
        return notes.mend(value)
    if isinstance(value, list):
        return [_mend(item, notes) for item in value]
    if isinstance(value, dict):
        return {notes.mend(key): _mend(item, notes) for key, item in value.items()}
    return value


def encode(value: Any) -> str:
    """A decoded value as compact JSON text; strings with lone surrogates or beyond come out as valid JSON all the same.

    >>> encode({"a": [1, None, "é"]})
    '{"a":[1,null,"é"]}'
    """
    return msgspec.json.encode(value).decode()
