"""Secrets in many texts at once: whole columns are sifted in native code, and only what is suspicious is looked at closely.

Every distinct text is read once, however many columns and rows repeat it. Long texts are cut into overlapping windows, so
that cost and memory grow with their length and no rule sees more than 64 Ki characters; a secret longer than the overlap
(8 Ki characters) that a cut divides may be masked in part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from etl.redact import kept, rules
from etl.redact.escapes import View, flattened
from etl.redact.spans import LABEL, Masked, Span, mask

WINDOW = kept.WINDOW
OVERLAP = 1 << 13
SHORTEST = 8
"""No rule finds anything in fewer characters."""

_SLICE = 1 << 23
_ROUNDS = 8
_NUMBER = re.compile(r"-?[0-9][0-9.eE+-]*")


class Window(NamedTuple):
    """A piece of a text: `text[start:start + len(piece)]`."""

    text: int
    start: int
    piece: str
    length: int
    """Of the whole text."""


def masked_texts(texts: pl.Series) -> dict[str, Masked]:
    """Every text of a column of distinct ones that holds a secret, with what is left of it.

    What a replacement leaves is searched again until nothing is found in it, so masking twice is masking once.
    """
    found: dict[str, Masked] = {}
    pending = texts
    origins: dict[str, list[str]] | None = None
    for _ in range(_ROUNDS):
        changed = _masked_once(pending)
        if not changed:
            break
        following: dict[str, list[str]] = {}
        for text, masked in changed.items():
            for origin in origins[text] if origins else [text]:
                before = found[origin].counts if origin in found else Counter()
                found[origin] = Masked(masked.text, before + masked.counts)
                following.setdefault(masked.text, []).append(origin)
        origins = following
        pending = pl.Series(list(following), dtype=pl.String)
    return found


def _masked_once(texts: pl.Series) -> dict[str, Masked]:
    spans: dict[int, list[Span]] = {}
    for window in _windows(texts):
        found = list(_spans(window))
        if found:
            spans.setdefault(window.text, []).extend(found)
    return {texts[index]: mask(texts[index], group) for index, group in sorted(spans.items())}


def _spans(window: Window) -> Iterator[Span]:
    view = View(window.piece)
    labels = [match.span() for match in LABEL.finditer(window.piece)]
    size = len(window.piece)
    for span in (*kept.spans(view), *rules.spans(view)):
        start, end = span.start, span.end
        if any(start >= first and end <= last for first, last in labels) or start >= end:
            continue
        if _is_bare_number(window.piece, start, end):
            continue
        cut_before = start == 0 and window.start > 0
        cut_after = end == size and window.start + size < window.length
        if (cut_before or cut_after) and end - start < OVERLAP // 2:
            continue
        yield Span(window.start + start, window.start + end, span.rule, span.rank)


def _is_bare_number(text: str, start: int, end: int) -> bool:
    """A number that stands in JSON without quotes: a label there would change its type and break the JSON."""
    if not _NUMBER.fullmatch(text, start, end):
        return False
    return text[:start].rstrip()[-1:] in (":", "[", ",") and text[end : end + 80].lstrip()[:1] in (",", "]", "}", "")


def _windows(texts: pl.Series) -> Iterator[Window]:
    """The suspicious pieces of suspicious texts."""
    lengths = texts.str.len_chars()
    short = (lengths >= SHORTEST) & (lengths <= WINDOW)
    places = short.arg_true()
    for part in _slices(texts.gather(places)):
        for index in _suspects(part.texts):
            piece = part.texts[index]
            yield Window(places[part.start + index], 0, piece, len(piece))
    for place in (lengths > WINDOW).arg_true().to_list():
        text = texts[place]
        starts = range(0, len(text) - OVERLAP, WINDOW - OVERLAP)
        for first in range(0, len(starts), 64):
            group = starts[first : first + 64]
            pieces = pl.Series([text[start : start + WINDOW] for start in group], dtype=pl.String)
            for index in _suspects(pieces):
                yield Window(place, group[index], pieces[index], len(text))


class _Slice(NamedTuple):
    start: int
    texts: pl.Series


def _slices(texts: pl.Series) -> Iterator[_Slice]:
    """A column in slices of about 8 MB, so that the copies a search makes stay small."""
    groups = texts.str.len_bytes().cast(pl.Int64).cum_sum() // _SLICE
    start = 0
    for length in groups.rle().struct.field("len").to_list():
        yield _Slice(start, texts.slice(start, length))
        start += length


def _suspects(texts: pl.Series) -> list[int]:
    """Which texts may hold something: a superset of those in which `_spans` finds it."""
    escaped = texts.str.contains("\\", literal=True)
    found: set[int] = set()
    for places, views in (
        ((~escaped).arg_true(), texts.filter(~escaped)),
        (escaped.arg_true(), flattened(texts.filter(escaped))),
    ):
        if len(views):
            marked = set(views.str.contains(rules.SUSPECT).arg_true().to_list()) | kept.suspects(views)
            found.update(places[index] for index in marked)
    return sorted(found)
