"""The two histories of aider, line by line: what a person reads (Markdown), and what went to the model and came back.

In the Markdown a person's lines begin with `#### `, the program's with `> ` (both end in two blanks), and the model's
text stands bare. In the other every line begins with the role of its message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\n]*")
_PAGE = re.compile(r"</?div\b[^>]*>|<br\s*/?>|\s*")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_MESSAGE = re.compile(r"(SYSTEM|USER|ASSISTANT|FUNCTION|TOOL)(?: |$)")
PERSON, PROGRAM, MODEL = "person", "program", "model"


class Said(NamedTuple):
    """Consecutive lines of one speaker."""

    who: str
    text: str


def started_in(line: str) -> str | None:
    """The time in the header of a session; None for any other line.

    >>> started_in("# aider chat started at 2026-03-30 08:00:00")
    '2026-03-30 08:00:00'
    """
    found = _HEADER.fullmatch(line.rstrip())
    return found.group(1) if found else None


def turns(text: str, published: bool) -> Iterator[Said]:
    """Who says what in a session; pages of a web site (`published`) have tags around it, and no trailing blanks."""
    lines: list[str] = []
    who, fence, blank = MODEL, "", True
    for line in text.split("\n"):
        if published and (line.startswith("<") or not line) and _PAGE.fullmatch(line):
            line = ""
        speaker = _speaker(line, published, bool(fence), blank)
        if speaker is None:
            speaker = MODEL if who != MODEL and not line.strip() else who if who == MODEL else MODEL
        if speaker != who:
            yield from _closed(who, lines)
            who, lines, fence = speaker, [], ""
        if who == MODEL:
            fence = _fenced(line, fence)
            lines.append(line)
        else:
            lines.append(line[5:] if who == PERSON else line[2:])
        blank = not line.strip()
    yield from _closed(who, lines)


def _speaker(line: str, published: bool, in_fence: bool, after_blank: bool) -> str | None:
    """Whose line it is by how it begins; None where it may be the model's."""
    marked = line.endswith("  ") or (published and not in_fence)
    if line.startswith("#### ") or line == "####":
        return PERSON if not in_fence or (marked and after_blank) else None
    if line.startswith("> ") and (marked or line.rstrip() == ">"):
        return PROGRAM
    return None


def _fenced(line: str, fence: str) -> str:
    """The fence that is open after a line of the model."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    mark = found.group(1)
    if not fence:
        return mark
    return "" if mark.startswith(fence) and not line.strip().strip("`~") else fence


def _closed(who: str, lines: list[str]) -> Iterator[Said]:
    text = "\n".join(lines if who == MODEL else (line.rstrip() for line in lines)).strip("\n")
    if text.strip():
        yield Said(who, text)


class Spoken(NamedTuple):
    """A message of a request."""

    role: str
    text: str


def spoken(text: str) -> list[Spoken]:
    """The messages of a request or a response: a dashed line between them, the role before every line.

    >>> spoken("-------\\nSYSTEM Be brief.\\n-------\\nUSER Hi\\nUSER there")
    [Spoken(role='system', text='Be brief.'), Spoken(role='user', text='Hi\\nthere')]
    """
    found: list[Spoken] = []
    role: str | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        match = _MESSAGE.match(line)
        if line == "-------" or (match is None and role is None):
            found += [Spoken(role, "\n".join(lines))] if role is not None else []
            role, lines = None, []
        elif match is not None and match.group(1).lower() != role:
            found += [Spoken(role, "\n".join(lines))] if role is not None else []
            role, lines = match.group(1).lower(), [line[match.end() :]]
        else:
            lines.append(line[match.end() :] if match is not None else line)
    return [*found, Spoken(role, "\n".join(lines).rstrip("\n"))] if role is not None else found
