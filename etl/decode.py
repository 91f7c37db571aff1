"""JSON bytes into Python values without losing any: fast where the text is plain, exact where it is not.

msgspec decodes whatever is strictly valid and keeps integers of any size. What it refuses (NaN, lone surrogates,
numbers beyond a double, raw control characters, invalid UTF-8) and what it would lose (duplicate keys) goes to a
second, exact decoder.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import sys
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from etl.limits import MAX_DEPTH

MORE_TEXT = "more text after the value"
"""What JsonError says where a whole value was decoded; its `position` is then where the rest begins."""

TOO_DEEP = "nested deeper than"
"""How JsonError begins where a value is nested too deep."""

DUPLICATES = "duplicate_keys"
"""Key under which an object keeps the earlier values of a key that occurs twice (the last one wins, as in every
reader).
"""

_SHARED_LEAST, _SHARED_MOST, _SHARED_COUNT = 1_024, 1 << 16, 32
"""Bytes of members that are worth sharing, and how many are remembered: a service has a few dozen sets of tools."""

_SHARED_RECORD = 4_096
"""Bytes of a record from which on its members are looked at one by one."""

_GIVEN_UP = 64
"""After how many values in a row that were new a member is taken to be one that does not repeat, and a file to be one
whose members do not.
"""

_STAND_IN = (1 << 62) + secrets.randbits(62)
"""Stands in a text where a member was taken out whose value is known; no log can name it."""
_STAND_IN_TEXT = str(_STAND_IN).encode()

_COUNTED_NATIVELY = 4_096
"""Bytes from which on numpy counts faster than `bytes.count`, which stops at every hit."""
_QUOTE, _BRACE, _OPENING = b'"', b"{", b"["

_plain = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SURROGATE = re.compile("[\ud800-\udfff]")


class Decoded(NamedTuple):
    """A value with what was unusual about its text; see `conversation.Record`."""

    value: Any
    notes: tuple[str, ...] = ()
    mended: tuple[tuple[str, str], ...] = ()


class JsonError(ValueError):
    """The bytes are not one JSON value. `position` is where it stops making sense, `complete` false when text is
    missing.
    """

    def __init__(self, message: str, position: int, complete: bool) -> None:
        super().__init__(message)
        self.position = position
        self.complete = complete


def decode(raw: bytes, nesting: int = MAX_DEPTH) -> Decoded:
    """The one JSON value in `raw`; JsonError where it is none, or nested deeper than `nesting` levels.

    >>> decode(b'{"n": 18446744073709551617, "f": 1e400}')
    Decoded(value={'n': 18446744073709551617, 'f': '1e400'}, notes=('number_range',), mended=())
    """
    try:
        return Decoded(_checked(raw, nesting))
    except (ValueError, RecursionError):
        pass  # an error raised in here would hold this one, and with it every frame below, in a cycle
    return _exact(raw, nesting)


class RecordDecoder:
    """Decodes the records of one file. Members that repeat from record to record (tool definitions, settings) are
    decoded once and shared, so whoever gets a record must not change what lies in it.
    """

    def __init__(self, nesting: int = MAX_DEPTH, whole: int = 0) -> None:
        """`whole`: so many long records are decoded before members are looked at, since short files have few."""
        self._nesting = nesting
        self._repeats: dict[str, _Repeats] = {}
        self._alone = -whole
        """How many records since one had a member that was known."""

    def plain(self, raw: bytes) -> Any:
        """As `decode`, faster: the value of a record about whose text nothing is unusual; ValueError or RecursionError
        for any other.
        """
        if len(raw) < _SHARED_RECORD or self._alone >= _GIVEN_UP or raw[:1] != b"{":
            return _checked(raw, self._nesting)
        if self._alone < 0:
            self._alone += 1
            return _checked(raw, self._nesting)
        known = self._known(raw)
        return self._apart(raw) if known is None else known

    def _known(self, raw: bytes) -> dict[str, Any] | None:
        """The value of a record whose members that repeat are known ones: they are taken out of its text, and put into
        its value where a number stands that took their place. None where one is not known, or stood elsewhere.
        """
        text, taken = raw, dict[str, Any]()
        for name, repeats in self._repeats.items():
            if repeats.missed >= _GIVEN_UP:
                continue
            at = text.rfind(repeats.opening)
            if at < 0:
                continue
            at += len(repeats.opening)
            member = next((known for known in repeats.values if text.startswith(known, at)), None)
            if member is None or not repeats.opening:
                return None
            text = b"".join((text[:at], _STAND_IN_TEXT, text[at + len(member) :]))
            taken[name] = repeats.values[member]
        if not taken:
            return None
        value: dict[str, Any] = _checked(text, self._nesting)
        if any(value.get(name) != _STAND_IN for name in taken):
            return None
        for name in taken:
            self._repeats[name].missed = 0
        self._alone = 0
        value.update(taken)
        return value

    def _apart(self, raw: bytes) -> Any:
        """The value of a record, decoded member by member."""
        members = _members.decode(raw)
        self._alone += 1
        value = {name: self._member(name, bytes(text), raw) for name, text in members.items()}
        # What is left of the text when its members are taken away must be exactly their names, else one occurs twice.
        count = len(members)
        left = len(raw.rstrip()) - sum(map(len, members)) - sum(memoryview(text).nbytes for text in members.values())
        return value if left in (4 * count + 1, 6 * count) else _checked(raw, self._nesting)

    def _member(self, name: str, text: bytes, raw: bytes) -> Any:
        if len(text) < _SHARED_LEAST or len(text) > _SHARED_MOST:
            return _checked(text, self._nesting - 1)
        repeats = self._repeats.get(name)
        if repeats is None:
            repeats = self._repeats[name] = _Repeats()
        if repeats.missed >= _GIVEN_UP:
            return _checked(text, self._nesting - 1)
        known = repeats.values.get(text)
        if known is not None:
            repeats.missed = self._alone = 0
            repeats.opening = repeats.opening or _opening(raw, text)
            return known
        value = _checked(text, self._nesting - 1)
        repeats.add(text, value)
        return value


class _Repeats:
    """The last values of one member, by their text."""

    __slots__ = ("missed", "opening", "values")

    def __init__(self) -> None:
        self.values: dict[bytes, Any] = {}
        self.missed = 0
        self.opening = b""
        """What stands before its value: its name and a colon. Empty until a value was seen again."""

    def add(self, text: bytes, value: Any) -> None:
        self.missed += 1
        if self.missed >= _GIVEN_UP:
            self.values.clear()
            return
        if len(self.values) >= _SHARED_COUNT:
            del self.values[next(iter(self.values))]
        self.values[text] = value


def _opening(raw: bytes, member: bytes) -> bytes:
    """What stands before a member in the text of a record, from its name on."""
    at = raw.rfind(member)
    name_ends = raw.rfind(b'"', 0, at)
    return raw[raw.rfind(b'"', 0, max(name_ends, 0)) : at]


def _checked(text: bytes, nesting: int) -> Any:
    """A value whose text has neither duplicate keys nor too deep a nesting; ValueError sends it to the exact decoder.

    A key that is lost takes its two quotes with it: what the value encodes to has as many quotes as the text, or else
    the exact decoder has a look (it also does where a quote is spelt `\\u0022`).
    """
    value = _plain.decode(text)
    if type(value) is dict or type(value) is list:
        counted = count if len(text) >= _COUNTED_NATIVELY else bytes.count
        lost = counted(text, _QUOTE) != counted(_encode(value), _QUOTE)
        opened = counted(text, _OPENING) + counted(text, _BRACE) if len(text) > 2 * nesting else 0
        if lost or (opened > nesting and _depth(value, nesting) > nesting):
            raise ValueError
    return value


def count(text: bytes, char: bytes) -> int:
    """How often a character of one byte occurs in a text."""
    if len(text) < _COUNTED_NATIVELY or "numpy" not in sys.modules:  # an ingest has it with Arrow, `detect` neither
        return text.count(char)
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord(char)))


def _depth(value: Any, most: int) -> int:
    """How deep a decoded value is nested, counted up to `most` + 1."""
    level, depth = [value], 0
    while level and depth <= most:
        level = [
            x
            for item in level
            for x in (item.values() if type(item) is dict else item)
            if (kind := type(x)) is dict or kind is list
        ]
        depth += 1
    return depth


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

    def whole(self, text: str) -> int | str:
        try:
            return int(text)
        except ValueError:  # Python reads no more digits than `sys.get_int_max_str_digits` says
            self.seen.add("number_range")
            return text

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
    parts = [(max(0, match.start() - 40), match.end() + 40) for match in islice(_SURROGATE.finditer(text), 20)]
    shown = text if len(text) <= 400 else " … ".join(text[start:end] for start, end in parts)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", shown)


def _exact(raw: bytes, nesting: int) -> Decoded:
    notes = _Notes()
    text = raw.decode("utf-8", "surrogateescape")
    decoder = json.JSONDecoder(
        object_pairs_hook=notes.pairs,
        parse_float=notes.real,
        parse_int=notes.whole,
        parse_constant=notes.constant,
        strict=False,
    )
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        value, end = decoder.raw_decode(text, start)
        failure = None
    except json.JSONDecodeError as error:
        position = len(text[: error.pos].encode("utf-8", "surrogateescape"))
        complete = bool(text[error.pos :].strip()) and not error.msg.startswith("Unterminated string")
        failure = JsonError(error.msg.removesuffix(" starting at"), position, complete)
    except RecursionError:
        failure = JsonError(f"{TOO_DEEP} {nesting} levels", 0, True)
    if failure is not None:
        try:
            raise failure
        finally:
            del failure
    if text[end:].strip(" \t\r\n"):
        raise JsonError(MORE_TEXT, len(text[:end].encode("utf-8", "surrogateescape")), True)
    if isinstance(value, (dict, list)) and _depth(value, nesting) > nesting:
        raise JsonError(f"{TOO_DEEP} {nesting} levels", 0, True)
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
    return _encode(value).decode()
