"""Texts that are sifted together: as their views would nearly show them, and the whole column as one run of bytes."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etl.redact.escapes import MEANT, PLAIN, flattened

_CONTINUATION = bytes(range(0x80, 0xC0))
_BACKSLASH, _SPACE, _ZERO, _U = np.frombuffer(b"\\ 0u", np.uint8)
_LINE_FEED = 0x0A
_NOTHING = np.zeros(0, np.uint8)
_CODES = tuple(code.encode() for code in ("26", "3c", "3C", "3d", "3D", "3e", "3E", "27", "22"))
UNCLEAR = r"\x1b\[| u00[0-7][0-9a-fA-F]| u[0-9a-fA-F]{4}[A-Za-z0-9]"
"""Escapes (in a padded column) that may hide something: ASCII written as a code, a code that what follows may touch."""

Joined = tuple[bytes, Sequence[int]]
"""Texts with two line feeds before, between and after them; where each begins, and last where the next one would."""
_EDGE = 0xFE
"""No byte of UTF-8."""
_SHOWN = PLAIN[:_EDGE] + bytes([_EDGE]) + PLAIN[_EDGE + 1 :]
BETWEEN = 2
"""With two, what a line ends with and what the next one begins with are never of two texts."""


class Texts:
    """A column of strings (none of them null), in the forms in which it is sifted; each is made when asked for."""

    def __init__(self, column: pa.Array) -> None:
        self._column = column

    @functools.cached_property
    def padded(self) -> pa.Array:
        """The column nearly as `View.text` shows it, in no time: every escape blanked out where it stands.

        Good enough to tell which strings deserve a view; `UNCLEAR` says where it is not. Lengths and offsets stay.
        """
        return _padded(self._column)

    @functools.cached_property
    def joined(self) -> Joined:
        """The padded texts in UTF-8."""
        texts, between = self.padded, b"\n" * BETWEEN
        whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
        data = pc.binary_join(whole, between.decode())[0].as_buffer() or b""
        ends = np.array(text_ends(texts), np.int64)
        starts = ends - ends[0] + np.arange(1, len(ends) + 1) * BETWEEN
        return b"".join((between, data, between if len(texts) else b"")), starts.tolist()

    @functools.cached_property
    def plain(self) -> Joined:
        """The padded texts as `View.data` shows them: a byte a character."""
        data, starts = self.joined
        if not data.isascii():
            lengths = np.asarray(pc.utf8_length(self.padded), np.int64)
            starts = np.cumsum(np.concatenate(([BETWEEN], lengths + BETWEEN))).tolist()
            return data.translate(PLAIN, _CONTINUATION), starts
        bare = np.frombuffer(data, np.uint8)
        odd = np.flatnonzero(bare - _SPACE >= 0x5F)
        if len(odd) > len(starts):
            bare = bare.copy()
            bare[odd] = np.frombuffer(PLAIN, np.uint8)[bare[odd]]
            data = bare.tobytes()
        return data, starts

    def shown(self, places: Sequence[int]) -> Joined:
        """Some of the texts as their views show them: each is `View.data`."""
        column = self._column.take(pa.array(places, pa.int64())).cast(pa.binary())
        edge = bytes((_LINE_FEED, _EDGE))
        whole = pa.ListArray.from_arrays(pa.array([0, len(places)], pa.int32()), column)
        joined = pc.binary_join(whole, pa.scalar(edge, pa.binary()))[0].as_buffer()
        flat = flattened(np.frombuffer(bytearray(b"".join((edge, joined, edge))), np.uint8))
        data = np.frombuffer(bytearray(flat.tobytes().translate(_SHOWN, _CONTINUATION)), np.uint8)
        edges = np.flatnonzero(data == _EDGE)
        data[edges] = _LINE_FEED
        return data.tobytes(), (edges + 1).tolist()


def text_ends(texts: pa.Array) -> Sequence[int]:
    """Where each string of a column begins in its bytes, and last where the last one ends."""
    offsets = memoryview(texts.buffers()[1]).cast("i")
    return offsets[texts.offset : texts.offset + len(texts) + 1]


def _padded(texts: pa.Array) -> pa.Array:
    _, offsets, values = texts.buffers()
    data = np.frombuffer(values, np.uint8) if values else _NOTHING
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    marks = np.flatnonzero(data[ends[0] : ends[-1]] == _BACKSLASH) + ends[0]
    if not len(marks):
        return texts
    shown = data.copy()
    after = marks[: len(marks) - (marks[-1] + 1 == len(data))] + 1
    letters = data[after]
    meant = MEANT[letters]
    shown[after] = np.where(meant > 0, meant, letters)
    # What begins a string is not what a backslash at the end of the one before it is followed by.
    firsts = ends[:-1][ends[:-1] < ends[-1]]
    shown[firsts] = data[firsts]
    shown[marks] = _SPACE
    coded = after[letters == _U]
    coded = coded[ends[np.searchsorted(ends, coded - 1, "right")] - coded > 4]
    coded = coded[(data[coded + 1] == _ZERO) & (data[coded + 2] == _ZERO)]
    for high, low in _CODES:
        found = coded[(data[coded + 3] == high) & (data[coded + 4] == low)]
        for place in range(4):
            shown[found + place] = _SPACE
        shown[found + 4] = int(bytes((high, low)), 16)
    return pa.Array.from_buffers(texts.type, len(texts), [None, offsets, pa.py_buffer(shown)], 0, texts.offset)
