"""Secrets in many texts at once: whole columns are sifted natively, only what is suspicious is looked at closely.

Every distinct text is read once, however many columns and rows repeat it. Long texts are cut into overlapping
windows, so that cost and memory grow with their length and no rule sees more than 64 Ki characters; a secret longer
than the overlap (8 Ki characters) that a cut divides may be masked in part.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from etl.redact import kept, rules
from etl.redact.closer import Suspect
from etl.redact.escapes import View
from etl.redact.spans import LABEL, Masked, Span, mask
from etl.redact.texts import Texts, text_ends

if TYPE_CHECKING:
    from etl.redact.personal import Personal

WINDOW = kept.WINDOW
OVERLAP = 1 << 13
_SLICE = 1 << 21
_GROUP = 32
_ROUNDS = 8
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class Window(NamedTuple):
    """A piece of a text: `text[start:start + len(piece)]`."""

    text: str
    start: int
    piece: str
    suspect: Suspect | None = None
    """What may be in it; None where anything may."""


def masked_texts(texts: pa.ChunkedArray, personal: Personal | None = None) -> dict[str, Masked]:
    """Every text of a column that holds a secret (or, with its rules, something personal), with what is left of it.

    What a replacement leaves is searched again until nothing is found in it, so masking twice is masking once.
    """
    found: dict[str, Masked] = {}
    origins: dict[str, list[str]] | None = None
    for _ in range(_ROUNDS):
        changed = _masked_once(texts, personal)
        if not changed:
            break
        following: dict[str, list[str]] = {}
        for text, masked in changed.items():
            for origin in origins[text] if origins else [text]:
                before = found[origin].counts if origin in found else Counter()
                found[origin] = Masked(masked.text, before + masked.counts)
                following.setdefault(masked.text, []).append(origin)
        origins = following
        texts = pa.chunked_array([pa.array(list(following), pa.string())])
    return found


def _masked_once(texts: pa.ChunkedArray, personal: Personal | None) -> dict[str, Masked]:
    spans: dict[str, list[Span]] = {}
    for window in _windows(texts, personal):
        found = list(_spans(window, personal))
        if found:
            spans.setdefault(window.text, []).extend(found)
    return {text: mask(text, group) for text, group in spans.items()}


def _spans(window: Window, personal: Personal | None = None) -> Iterator[Span]:
    view = View(window.piece, window.suspect and window.suspect.data)
    sought = window.suspect and window.suspect.sought
    size = len(window.piece)
    offers = [*personal.spans(view, sought)] if personal else []
    if sought is None or kept.PACKAGE in sought:
        offers += kept.spans(view)
    offers += rules.spans(view, sought)
    labels = [match.span() for match in LABEL.finditer(window.piece)] if offers else []
    for span in offers:
        start, end = span.start, span.end
        if any(start >= first and end <= last for first, last in labels) or start >= end:
            continue
        if _is_bare_number(window.piece, start, end):
            if not span.put:
                continue
            if window.piece.lstrip()[:1] in ("{", "["):
                span = span._replace(put=_number_for(span.put))
        cut_before = start == 0 and window.start > 0
        cut_after = end == size and window.start + size < len(window.text)
        if (cut_before or cut_after) and end - start < OVERLAP // 2:
            continue
        yield span._replace(start=window.start + start, end=window.start + end)


def _is_bare_number(text: str, start: int, end: int) -> bool:
    """A number that stands in JSON without quotes: a label there would change its type and break the JSON."""
    if not _NUMBER.fullmatch(text, start, end):
        return False
    return text[:start].rstrip()[-1:] in (":", "[", ",") and text[end : end + 80].lstrip()[:1] in (",", "]", "}", "")


def _number_for(put: str) -> str:
    """A number that stands for a pseudonym where JSON has one without quotes: too short for any rule to find it."""
    return str(100_000 + int.from_bytes(put.encode(), "big") % 900_000)


def _windows(texts: pa.ChunkedArray, personal: Personal | None) -> Iterator[Window]:
    """The suspicious pieces of suspicious texts, each text once."""
    short: list[pa.Array] = []
    seen: list[memoryview] = []
    for chunk in texts.chunks:
        if (pc.max(pc.binary_length(chunk)).as_py() or 0) <= WINDOW:
            short.append(chunk)
            continue
        is_long = pc.greater(pc.utf8_length(chunk), WINDOW)
        short.append(chunk.filter(pc.invert(is_long)))
        for place in pc.indices_nonzero(is_long).to_pylist():
            data = _bytes_of(chunk, place)
            if data not in seen:
                seen.append(data)
                in_ascii = pc.string_is_ascii(chunk.slice(place, 1))[0].as_py()
                yield from _windows_of_long(data, personal, in_ascii=in_ascii)
    distinct = pa.chunked_array(short, pa.string()).unique()
    for part in _slices(distinct.drop_null()):
        for index, suspect in suspects(part, personal).items():
            piece = part[index].as_py()
            yield Window(piece, 0, piece, suspect)


def _bytes_of(texts: pa.Array, place: int) -> memoryview:
    """The UTF-8 of one string where it lies; a scalar would be a copy."""
    ends = text_ends(texts)
    return memoryview(texts.buffers()[2])[ends[place] : ends[place + 1]]


def _windows_of_long(data: memoryview, personal: Personal | None, *, in_ascii: bool) -> Iterator[Window]:
    """Overlapping pieces of a text. A text in ASCII is not decoded as a whole before one of them is suspicious."""
    whole = "" if in_ascii else str(data, "utf-8")
    starts = range(0, (len(data) if in_ascii else len(whole)) - OVERLAP, WINDOW - OVERLAP)
    for first in range(0, len(starts), _GROUP):
        group = starts[first : first + _GROUP]
        if in_ascii:
            pieces = [str(data[start : start + WINDOW], "ascii") for start in group]
        else:
            pieces = [whole[start : start + WINDOW] for start in group]
        for index, suspect in suspects(pa.array(pieces, pa.string()), personal).items():
            whole = whole or str(data, "ascii")
            yield Window(whole, group[index], pieces[index], suspect)


def _slices(texts: pa.Array) -> Iterator[pa.Array]:
    """A column in slices of about 2 MB, so that the copies a search makes stay small."""
    start = 0
    while start < len(texts):
        ends = text_ends(texts)
        stop = max(start + 1, bisect.bisect_right(ends, ends[start] + _SLICE) - 1)
        # A copy whose bytes begin at 0: `binary_join` of a slice overruns its memory (pyarrow 26.0.1).
        yield pa.concat_arrays([texts.slice(start, stop - start), texts.slice(0, 0)])
        start = stop


def suspects(column: pa.Array, personal: Personal | None) -> dict[int, Suspect]:
    """Which texts may hold something: a superset of those in which `_spans` finds it. With what they may hold."""
    texts = Texts(column)
    found = _sifted(texts, personal)
    hidden = [place for place, names in found.items() if rules.HIDDEN in names]
    # An escape may be half of a character that UTF-8 cannot say.
    said = (View(column[place].as_py()).flat.encode("utf-8", "replace").decode() for place in hidden)
    flat = pa.array(said, pa.string())
    for place, names in (_sifted(Texts(flat), personal) if hidden else {}).items():
        found[hidden[place]] |= names
    for place in hidden:
        found[place] -= {rules.HIDDEN}
    return rules.closely(texts, dict(sorted(found.items())))


def _sifted(texts: Texts, personal: Personal | None) -> dict[int, frozenset[str]]:
    found: defaultdict[int, frozenset[str]] = defaultdict(frozenset)
    for by_rules in (rules.suspects(texts), personal.suspects(texts) if personal else {}):
        for place, names in by_rules.items():
            found[place] |= names
    return found
