"""Two attempts at one task, turn by turn beside each other, with what differs marked word by word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from etl.harmless import harmless
from etl.pages.conversation import SHOWN
from etl.show import pretty

_WORDS_AT_MOST = 2_000
"""Words of a turn that are compared one by one; longer turns are shown as they are."""


class Said(NamedTuple):
    """One message as text: who, and everything in it."""

    place: int
    role: str
    text: str


class Pair(NamedTuple):
    """Two turns beside each other; one may be missing."""

    kind: str
    """same, changed, or only (one side)."""
    left: Said | None
    right: Said | None
    left_text: Markup
    right_text: Markup


def said(row: Mapping[str, Any]) -> list[Said]:
    """The turns of a row, calls written out."""
    turns = []
    for place, message in enumerate(row["messages"]):
        functions = [call["function"] for call in message["tool_calls"] or ()]
        calls = [f"→ {function['name']} {pretty(function['arguments'])}" for function in functions]
        text = "\n".join(part for part in (message["content"], *calls) if part)
        turns.append(Said(place, message["role"], text[:SHOWN]))
    return turns


def pairs(left: Sequence[Said], right: Sequence[Said]) -> list[Pair]:
    """The turns of both, equal ones on one line, in between what stands in their places."""
    a_keys, b_keys = ([(turn.role, turn.text) for turn in side] for side in (left, right))
    found: list[Pair] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, a_keys, b_keys, autojunk=False).get_opcodes():
        if tag == "equal":
            found += [Pair("same", a, b, escape(harmless(a.text)), escape(harmless(b.text)))
                      for a, b in zip(left[i1:i2], right[j1:j2], strict=True)]  # fmt: skip
        else:
            found += _between(left[i1:i2], right[j1:j2])
    return found


def _between(left: Sequence[Said], right: Sequence[Said]) -> Iterator[Pair]:
    """Turns of one role that follow each other are compared; what is left over stands alone."""
    for number in range(max(len(left), len(right))):
        a = left[number] if number < len(left) else None
        b = right[number] if number < len(right) else None
        if a is not None and b is not None and a.role == b.role:
            yield Pair("changed", a, b, *_marked(a.text, b.text))
            continue
        if a is not None:
            yield Pair("only", a, None, escape(harmless(a.text)), Markup(""))
        if b is not None:
            yield Pair("only", None, b, Markup(""), escape(harmless(b.text)))


def _marked(left: str, right: str) -> tuple[Markup, Markup]:
    """Both texts with the words that the other lacks marked."""
    a, b = (re.findall(r"\s+|\w+|[^\w\s]", harmless(text)) for text in (left, right))
    if len(a) + len(b) > _WORDS_AT_MOST:
        return escape(harmless(left)), escape(harmless(right))
    sides: tuple[list[Markup], list[Markup]] = ([], [])
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        gone, come = escape("".join(a[i1:i2])), escape("".join(b[j1:j2]))
        if tag == "equal":
            sides[0].append(gone)
            sides[1].append(come)
        else:
            sides[0].append(Markup("<del>{}</del>").format(gone) if gone else gone)
            sides[1].append(Markup("<ins>{}</ins>").format(come) if come else come)
    return Markup("").join(sides[0]), Markup("").join(sides[1])
