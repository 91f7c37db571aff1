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

from etl.redact.spans import Span

_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}"
_CODE = r"u[0-9a-fA-F]{4}"
_ESCAPE = re.compile(rf"""\\+(?:{_PAIR}|{_CODE}|[nrtbf"'/])|\\{{2,}}""")
_CODED = re.compile(rf"\\(?:{_PAIR}|{_CODE})")
_BACKSLASH = ord("\\")
_GONE = 0xFF
"""No byte of UTF-8."""
MEANT = np.zeros(256, np.uint8)
"""What the character after a backslash means, 0 where the two are no escape."""
for _letter, _meaning in zip(b"nrtbf\"'/", b"\n\n   \"'/", strict=True):
    MEANT[_letter] = _meaning
_COLOUR = re.compile("\x1b\\[[0-9;]{0,16}[A-Za-z]")
"""What colours a terminal: it may touch what is said."""
_QUOTE = re.compile(r"""\\*["'`]""")
PLAIN = bytes(byte if byte >= 0x20 or byte in b"\n\t" else 0x20 for byte in range(0x7F)) + b" " + b"?" * 0x80
"""A byte of ASCII as a view shows it; all others are `?`."""


class View:
    """A text as rules see it: `text` (ASCII), `data` (its bytes, one per character), and the way back by `raw_at`.

    `flat` is the same with its characters outside ASCII.
    """

    def __init__(self, raw: str) -> None:
        self.raw = raw
        flat = _flat(raw) if "\\" in raw else raw
        if "\x1b" in flat:
            flat = _COLOUR.sub(lambda match: " " * len(match.group()), flat)
        self.flat = flat
        self.data = flat.encode("ascii", "replace").translate(PLAIN)
        self.text = self.data.decode("ascii")
        self._places: dict[str, list[int]] = {}

    @functools.cached_property
    def _lower(self) -> str:
        return self.text.lower()

    @functools.cached_property
    def _map(self) -> tuple[list[int], list[int]]:
        """Where an escape has just ended, in the view and in the raw text. Few views are ever asked for it."""
        view_at: list[int] = []
        raw_at: list[int] = []
        shrunk = 0
        for match in _ESCAPE.finditer(self.raw):
            end = match.end()
            shrunk += end - match.start() - 1
            view_at.append(end - shrunk)
            raw_at.append(end)
        return view_at, raw_at

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


def _flat(raw: str) -> str:
    """The raw text with one character for every match of `_ESCAPE`."""
    data = np.frombuffer(raw.encode("utf-8", "surrogatepass"), np.uint8).copy()
    marks = np.flatnonzero(data == _BACKSLASH)
    after = marks + 1
    after[-1] = min(after[-1], len(data) - 1)
    following = data[after]
    meant = MEANT[following]
    data[after[meant > 0]] = meant[meant > 0]
    # Of backslashes in a row one counts, and the last character is none of its own.
    data[marks[((meant > 0) | (following == _BACKSLASH)) & (after > marks)]] = _GONE
    flat = data.tobytes().translate(None, bytes([_GONE])).decode("utf-8", "surrogatepass")
    return _CODED.sub(_coded, flat) if "\\u" in flat else flat


def _coded(match: re.Match[str]) -> str:
    return chr(int(match.group()[2:], 16)) if len(match.group()) == 6 else "?"


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
