r"""Seeing through backslash escapes, and getting back to where a thing stood.

Conversation logs are JSON in JSON in JSON: a tool result is JSON text inside a message, and a command in it is quoted
once more. Rules are written for plain text, so they look at a *view*: the text with its escapes undone at whatever
depth they stand (`\n`, `\\n` and `\\\"` alike), every character outside ASCII replaced by `?`. The view keeps a map
back, so that what is masked is the escaped form itself, whole escapes only: a JSON text stays one.
"""

from __future__ import annotations

import bisect
import functools
import json
import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from etl.redact.spans import Span

_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}"
_CODE = r"u[0-9a-fA-F]{4}"
_ESCAPE = re.compile(rf"""\\+(?:{_PAIR}|{_CODE}|[nrtbf"'/])|\\{{2,}}""")
_BACKSLASH, _U = b"\\u"
_GONE = 0xFF
"""No byte of UTF-8."""
_HEX = np.full(256, 0xFF, np.uint8)
"""What a digit of a code is worth."""
for _worth in range(16):
    _HEX[list(f"{_worth:x}{_worth:X}".encode())] = _worth
_HIGH, _LOW = 0xD8 >> 2, 0xDC >> 2
"""The first six bits of the two halves of a character."""
MEANT = np.zeros(256, np.uint8)
"""What the character after a backslash means, 0 where the two are no escape."""
for _letter, _meaning in zip(b"nrtbf\"'/", b"\n\n   \"'/", strict=True):
    MEANT[_letter] = _meaning
_COLOUR = re.compile(rb"\x1b\[[0-9;]{0,16}[A-Za-z]")
"""What colours a terminal: it may touch what is said."""
_QUOTE = re.compile(r"""\\*["'`]""")
PLAIN = bytes(byte if byte >= 0x20 or byte in b"\n\t" else 0x20 for byte in range(0x7F)) + b" " + b"?" * 0x80
"""A byte of ASCII as a view shows it; all others are `?`."""


class View:
    """A text as rules see it: `text` (ASCII), `data` (its bytes, one per character), and the way back by `raw_at`."""

    def __init__(self, raw: str, data: bytes | None = None) -> None:
        """`data` is given where it is known from `Texts.shown`."""
        self.raw = raw
        self.data = self.flat.encode("ascii", "replace").translate(PLAIN) if data is None else data
        self.text = self.data.decode("ascii")
        self._places: dict[str, list[int]] = {}

    @functools.cached_property
    def flat(self) -> str:
        """The text with its characters outside ASCII."""
        return _flat(self.raw) if "\\" in self.raw or "\x1b" in self.raw else self.raw

    @functools.cached_property
    def _lower(self) -> str:
        return self.data.lower().decode("ascii")

    @functools.cached_property
    def _map(self) -> tuple[list[int], list[int]]:
        """Where an escape has just ended, in the view and in the raw text. Few views are ever asked for it."""
        starts, ends = _escapes(self.raw)
        return (ends - np.cumsum(ends - starts - 1)).tolist(), ends.tolist()

    def places(self, literal: str, *, lower: bool = True) -> Sequence[int]:
        """Where a literal stands in the view; by default one in lower case, found in any case."""
        if not lower:
            return list(_places(self.text, literal))
        found = self._places.get(literal)
        if found is None:
            found = self._places[literal] = list(_places(self._lower, literal))
        return found

    def span(self, start: int, end: int, rule: str, rank: int = 1) -> Span:
        """`text[start:end]` as an offer of a rule, in places of the raw text."""
        return Span(*self.raw_span(start, end), rule, rank)

    def raw_at(self, position: int) -> int:
        """Where in the raw text the thing at `position` of the view begins; also good for the end of a span.

        >>> view = View('a' + chr(92) * 3 + '"b"'); view.text, [view.raw_at(n) for n in range(5)]
        ('a"b"', [0, 1, 5, 6, 7])
        """
        view_at, raw_at = self._map
        index = bisect.bisect_right(view_at, position) - 1
        return position if index < 0 else raw_at[index] + position - view_at[index]

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """The raw place of `text[start:end]`, widened so that it never begins or ends inside an escape."""
        raw = self.raw
        first, last = self.raw_at(start), self.raw_at(end)
        run = _run_before(raw, first)
        if run % 2 or (run and raw[first] == "\\"):
            first -= run
        if last > first and raw[last - 1] == "\\":
            while last < len(raw) and raw[last] == "\\":
                last += 1
            last = min(last + _run_before(raw, last) % 2, len(raw))
        return first, last


def _places(text: str, literal: str) -> Iterator[int]:
    place = text.find(literal)
    while place >= 0:
        yield place
        place = text.find(literal, place + 1)


def _run_before(raw: str, position: int) -> int:
    """How many backslashes stand right before a position."""
    return position - len(raw[:position].rstrip("\\")) if position and raw[position - 1] == "\\" else 0


def _escapes(raw: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each match of `_ESCAPE` begins and ends."""
    letters = np.frombuffer(raw.encode("utf-32-le", "surrogatepass"), np.uint32)
    marks = np.flatnonzero(letters == _BACKSLASH)
    if not len(marks):
        return marks, marks
    first = np.diff(marks, prepend=-2) > 1
    starts, stops = marks[first], marks[np.append(first[1:], True)] + 1
    following = np.append(letters, 0)[stops]
    ends = stops + ((following < 0x80) & (MEANT[following & 0x7F] > 0))
    for place in np.flatnonzero(following == _U).tolist():
        code = _ESCAPE.match(raw, int(starts[place]))
        ends[place] = code.end() if code else stops[place]
    real = (ends > stops) | (stops - starts > 1)
    inside = np.append(False, ends[:-1] > starts[1:])
    return starts[real & ~inside], ends[real & ~inside]


def _flat(raw: str) -> str:
    data = np.frombuffer(bytearray(raw.encode("utf-8", "surrogatepass")), np.uint8)
    return flattened(data).tobytes().decode("utf-8", "surrogatepass")


def flattened(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """UTF-8 with one character for every match of `_ESCAPE`, and colours blanked out. What is given is written over.

    A byte that is none of UTF-8 and divides texts stays where it is, and no escape goes beyond it.
    """
    marks = np.flatnonzero(data == _BACKSLASH)
    if len(marks):
        after = marks + 1
        after[-1] = min(after[-1], len(data) - 1)
        following = data[after]
        meant = MEANT[following]
        data[after[meant > 0]] = meant[meant > 0]
        # Of backslashes in a row one counts, and the last character is none of its own.
        data[marks[((meant > 0) | (following == _BACKSLASH)) & (after > marks)]] = _GONE
        data = data[data != _GONE]
        if np.any(following == _U):
            data = _decoded(data)
    shown = data.tobytes()
    if b"\x1b[" in shown:
        blank = _COLOUR.sub(lambda match: b" " * len(match.group()), shown)
        data = np.frombuffer(bytearray(blank), np.uint8)
    return data


def _decoded(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """With the characters that codes stand for; a `?` where two of them are one character."""
    marks = np.flatnonzero(data[:-5] == _BACKSLASH)
    marks = marks[data[marks + 1] == _U]
    digits = _HEX[data[marks[:, None] + np.arange(2, 6)]]
    whole = (digits < 16).all(1)
    marks, digits = marks[whole], digits[whole].astype(np.uint16)
    codes = (digits << np.array([12, 8, 4, 0], np.uint16)).sum(1, dtype=np.uint16)
    halves = codes >> 10
    pairs = np.flatnonzero((halves[:-1] == _HIGH) & (halves[1:] == _LOW) & (np.diff(marks) == 6))
    codes[pairs] = ord("?")
    for place in range(1, 6):
        data[marks + place] = _GONE
    for least, most, form in ((0, 0x80, (0,)), (0x80, 0x800, (0xC0, 0x80)), (0x800, 0x10000, (0xE0, 0x80, 0x80))):
        chosen = (codes >= least) & (codes < most)
        for place, high in enumerate(form):
            bits = codes[chosen] >> (6 * (len(form) - 1 - place))
            data[marks[chosen] + place] = (bits & 0x3F if high == 0x80 else bits) | high
    data[marks[pairs + 1]] = data[marks[pairs + 1] + 1] = data[marks[pairs + 1] + 2] = _GONE
    left: NDArray[np.uint8] = data[data != _GONE]
    return left


def literal_end(raw: str, opening: int, content: int) -> int | None:
    r"""Where the string literal ends whose opening quote, with its backslashes, is `raw[opening:content]`.

    A quote written with 2^d - 1 backslashes opens a literal d levels deep; the quote that closes it has as many more as
    escaped backslashes of that level before it. None when the text ends before the literal does.

    >>> literal_end(r'{"a": "say \"hi\" now"}', 6, 7)
    21
    """
    quote, depth_marks = raw[content - 1], content - 1 - opening
    step = 2 * (depth_marks + 1)
    for match in _QUOTE.finditer(raw, content):
        marks = match.end() - match.start() - 1
        if match.group()[-1] != quote:
            continue
        if marks < depth_marks or (marks - depth_marks) % step == 0:
            return match.end() - 1 - min(marks, depth_marks)
    return None


def literal_text(raw: str, opening: int, content: int, end: int) -> str:
    r"""What the literal at `raw[content:end]` says, in ASCII: decoded as often as its quote is escaped, and once more.

    >>> literal_text(r'{"a": "C:\\new \"x\""}', 6, 7, 20)
    'C:\\new "x"'
    """
    text = raw[content:end]
    try:
        for _ in range((content - opening).bit_length()):
            text = str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return View(raw[content:end]).text
    return text.encode("ascii", "replace").decode("ascii")
