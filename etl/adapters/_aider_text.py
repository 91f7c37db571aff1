"""The two histories of aider, line by line: what a person reads (Markdown), and what went to the model and came back.

In the Markdown a person's lines begin with `#### `, the program's with `> ` (both end in two blanks), and the model's
text stands bare, between empty lines. A message of the program of several lines has its mark before the first and the
blanks after the last. In the other every line begins with the role of its message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\n]*")
_PAGE = re.compile(r"</?div\b[^>]*>|<br\s*/?>|\s*")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_MESSAGE = re.compile(r"(SYSTEM|USER|ASSISTANT|FUNCTION|TOOL)(?: |$)")
_QUOTED = re.compile(r"> ?")
_TRANSCRIPT = re.compile(r'<div\b[^>]*class="chat-transcript"')
PERSON, PROGRAM, MODEL, PAGE = "person", "program", "model", "page"


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
    lines = text.split("\n")
    reading = _Reading(published, [None] * len(lines) if published else _ends(lines))
    for number, line in enumerate(lines):
        yield from reading.take(number, line)
    yield from reading.closed()


class _Reading:
    """Lines of a session, one after the other, and whose the last of them were."""

    def __init__(self, published: bool, ends: list[int | None]) -> None:
        self.published, self.ends = published, ends
        self.inside = not published
        self.who, self.fence, self.blank = PAGE if published else MODEL, "", True
        self.lines: list[str] = []
        self.until = -1

    def take(self, number: int, line: str) -> Iterator[Said]:
        """A line, and what another speaker said before it."""
        if self.published:
            line = self._untagged(line)
        speaker = PROGRAM if number <= self.until else self._speaker(line)
        if speaker != self.who:
            yield from self.closed()
            self.who, self.fence = speaker, ""
        if speaker == PROGRAM and number > self.until:
            end = self.ends[number]
            self.until = end if end is not None and line.strip() and not line.endswith("  ") else -1
            line = _QUOTED.sub("", line, count=1)
        elif speaker == MODEL:
            self.fence = _fenced(line, self.fence)
        elif speaker == PERSON:
            line = line[5:]
        self.lines.append(line)
        self.blank = not line.strip()

    def closed(self) -> Iterator[Said]:
        """What the last speaker said."""
        lines = (line.rstrip() for line in self.lines) if self.who in (PERSON, PROGRAM) else self.lines
        text = "\n".join(lines).strip("\n")
        self.lines = []
        if text.strip():
            yield Said(self.who, text)

    def _untagged(self, line: str) -> str:
        """The line of a page without the tags around the transcript; those in code are the model's."""
        if _TRANSCRIPT.match(line):
            self.inside, self.blank = True, True
        elif self.fence or not line.startswith("<") or not _PAGE.fullmatch(line):
            return line
        elif line.startswith("</div"):
            self.inside = False
        return ""

    def _speaker(self, line: str) -> str:
        """Whose line it is by how it begins; without a mark the model's, if it stands apart."""
        if not self.inside:
            return PAGE if line.strip() else self.who
        page = self.published and not self.fence
        marked = page or line.endswith("  ")
        if line.startswith("#### ") or line == "####":
            if not self.fence or (marked and self.blank):
                return PERSON
        elif _QUOTED.match(line) and (line[1:2] == " " or (page and line[1:2] != ">")) and (marked or line == "> "):
            return PROGRAM
        if line.strip() and not self.blank and self.who in (PERSON, PROGRAM):
            return PROGRAM
        return MODEL


def _ends(lines: list[str]) -> list[int | None]:
    """For each line where a message of the program that is open after it ends: only its first line is marked, only its
    last has the trailing blanks.
    """
    ends: list[int | None] = []
    end: int | None = None
    for number in range(len(lines) - 1, -1, -1):
        ends.append(end)
        line = lines[number]
        if line.startswith(("#### ", "> ")):
            end = None
        elif line.endswith("  ") and line.strip():
            end = number
    return ends[::-1]


def _fenced(line: str, fence: str) -> str:
    """The fence that is open after a line of the model."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    mark = found.group(1)
    if not fence:
        return mark
    return "" if mark.startswith(fence) and not line.strip().strip("`~") else fence


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
