"""Fenced blocks and generated parts of a Markdown file."""

from __future__ import annotations

import re
from typing import NamedTuple

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, its text, the line of the file it starts at."""

    language: str
    text: str
    line: int


def blocks(text: str, language: str) -> list[Block]:
    """Every fenced block of a language, in order."""
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 2)
        for found in _FENCE.finditer(text)
        if found[1] == language
    ]


def with_part(text: str, name: str, part: str) -> str:
    """The text with what stands between `<!-- begin NAME -->` and `<!-- end NAME -->` replaced."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    assert found, f"no part {name}: {begin.strip()} … {end} is missing"
    return f"{head}{begin}{part}{end}{tail}"
