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
import pyarrow as pa
import pyarrow.compute as pc

from etl.redact.spans import Span

_PAIR = r"u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}"
_CODE = r"u[0-9a-fA-F]{4}"
_ESCAPE = re.compile(rf"""\\+(?:{_PAIR}|{_CODE}|[nrtbf"'/])|\\{{2,}}""")
_CODED = re.compile(rf"\\(?:{_PAIR}|{_CODE})")
_MEANINGS = (
    ("\\n", "\n"),
    ('\\"', '"'),
    ("\\t", " "),
    ("\\r", "\n"),
    ("\\/", "/"),
    ("\\'", "'"),
    ("\\b", " "),
    ("\\f", " "),
)
_COLOUR = re.compile("\x1b\\[[0-9;]{0,16}[A-Za-z]")
"""What colours a terminal: it may touch what is said."""
_QUOTE = re.compile(r"""\\*["'`]""")
_PLAIN = bytes(byte if byte >= 0x20 or byte in b"\n\t" else 0x20 for byte in range(0x7F)) + b" " + b"?" * 0x80
_CONTINUATION = bytes(range(0x80, 0xC0))
_BACKSLASH, _SPACE, _ZERO, _U = np.frombuffer(b"\\ 0u", np.uint8)
_MEANT = np.zeros(256, np.uint8)
"""What the letter of an escape means, 0 where it means itself."""
for _letter, _meaning in zip(b"nrtbf", b"\n\n   ", strict=True):
    _MEANT[_letter] = _meaning
_CODES = tuple(code.encode() for code in ("26", "3c", "3C", "3d", "3D", "3e", "3E", "27", "22"))
UNCLEAR = r"\x1b\[| u00[0-7][0-9a-fA-F]| u[0-9a-fA-F]{4}[A-Za-z0-9]"
"""Escapes (in a padded column) that may hide something: ASCII written as a code, a code that what follows may touch."""


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
        self.data = flat.encode("ascii", "replace").translate(_PLAIN)
        self.text = self.data.decode("ascii")

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

    def places(self, literal: str, *, lower: bool = True) -> Iterator[int]:
        """Where a literal stands in the view; by default one in lower case, found in any case."""
        text = self._lower if lower else self.text
        place = text.find(literal)
        while place >= 0:
            yield place
            place = text.find(literal, place + 1)

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


def _run_before(raw: str, position: int) -> int:
    """How many backslashes stand right before a position."""
    return position - len(raw[:position].rstrip("\\")) if position and raw[position - 1] == "\\" else 0


def _flat(raw: str) -> str:
    """The raw text with one character for every match of `_ESCAPE`, by whole-text replacements."""
    while "\\\\" in raw:
        raw = raw.replace("\\\\", "\\")
    for escape, meaning in _MEANINGS:
        raw = raw.replace(escape, meaning)
    return _CODED.sub(_coded, raw) if "\\u" in raw else raw


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


def text_ends(texts: pa.Array) -> Sequence[int]:
    """Where each string of a column begins in its bytes, and last where the last one ends."""
    offsets = memoryview(texts.buffers()[1]).cast("i")
    return offsets[texts.offset : texts.offset + len(texts) + 1]


def padded(texts: pa.Array) -> pa.Array:
    """A whole column nearly as `View.text` shows it, in no time: every escape blanked out where it stands.

    Good enough to tell which strings deserve a view; `UNCLEAR` says where it is not. Lengths and offsets stay.
    """
    _, offsets, values = texts.buffers()
    data = np.frombuffer(values, np.uint8) if values else _MEANT[:0]
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    marks = np.flatnonzero(data[ends[0] : ends[-1]] == _BACKSLASH) + ends[0]
    if not len(marks):
        return texts
    shown = data.copy()
    shown[marks] = _SPACE
    left = ends[np.searchsorted(ends, marks, "right")] - marks - 1
    after = marks[left > 0] + 1
    letters = data[after]
    meant = _MEANT[letters]
    shown[after[meant > 0]] = meant[meant > 0]
    coded = marks[left > 4] + 1
    coded = coded[(data[coded] == _U) & (data[coded + 1] == _ZERO) & (data[coded + 2] == _ZERO)]
    for high, low in _CODES:
        found = coded[(data[coded + 3] == high) & (data[coded + 4] == low)]
        for place in range(4):
            shown[found + place] = _SPACE
        shown[found + 4] = int(bytes((high, low)), 16)
    return pa.Array.from_buffers(texts.type, len(texts), [None, offsets, pa.py_buffer(shown)], 0, texts.offset)


def joined(texts: pa.Array) -> tuple[bytes, Sequence[int]]:
    """The strings of a padded column as `View.data` shows them: a byte a character, a line feed between any two. And
    where the next one begins after each.
    """
    lists = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    data: bytes = pc.binary_join(lists, "\n")[0].as_buffer().to_pybytes()
    if not data.isascii():
        nexts = pc.cumulative_sum(pc.add(pc.utf8_length(texts).cast(pa.int64()), 1)).to_pylist()
        return data.translate(_PLAIN, _CONTINUATION), nexts
    ends = np.array(text_ends(texts), np.int64)
    plain = np.frombuffer(data, np.uint8)
    odd = np.flatnonzero(plain - _SPACE >= 0x5F)
    if len(odd):
        plain = plain.copy()
        plain[odd] = np.frombuffer(_PLAIN, np.uint8)[plain[odd]]
        data = plain.tobytes()
    return data, (ends[1:] - ends[0] + np.arange(1, len(ends))).tolist()
