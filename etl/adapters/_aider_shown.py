"""What of the text that aider shows went to the model: the output of a command that a person added to the chat, and the
errors that the program had it mend.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_YES = r"\?.*\by(?:es)?\s*"
_ADDED = re.compile(rf"Add\b.*\boutput\b.*\bchat{_YES}")
_MEND = re.compile(rf"Attempt to fix (?:lint|test) errors{_YES}")
_MALFORMED = re.compile(r"The LLM did not conform to the edit format\..*")
_ADDRESS = re.compile(r"(?:For more info see: )?https?://\S+\s*")
_DONE = re.compile(r"(?:Tokens: |Applied edit to |Commit ).*")
_UNSEEN = re.compile(r"(?:Added \d+ lines? of output to the chat\.|\.\.\. added to chat\.)\s*")
_ANSWER = re.compile(r".*\(Y\)es/\(N\)o.*\[\w+\]: ?\w*")


class Shown(NamedTuple):
    """Text of the program: what of it went to the model, and what stands before and after that."""

    before: str
    sent: str
    after: str
    unseen: bool = False
    """Whether it says that something was added to the chat which it does not show."""


def shown(text: str, commanded: bool, answered: bool) -> Shown:
    """What the program shows after a command (`commanded`), before an answer of the model (`answered`).

    >>> shown("2 failed\\nAdd the output to the chat? y", True, True)
    Shown(before='', sent='2 failed', after='Add the output to the chat? y', unseen=False)
    """
    lines = text.split("\n")
    begin, end = _added(lines) if commanded else _mended(lines) if answered else (0, 0)
    parts = ("\n".join(part) for part in (lines[:begin], lines[begin:end], lines[end:]))
    before, sent, after = (part.strip("\n") for part in parts)
    return Shown(before, sent, after, not sent and any(map(_UNSEEN.fullmatch, lines)))


def _added(lines: list[str]) -> tuple[int, int]:
    """Where the output lies: before the question whether to add it, in old versions after it."""
    asked = next((number for number, line in enumerate(lines) if _ADDED.fullmatch(line)), None)
    if asked is None:
        return 0, 0
    if asked:
        return 0, asked
    end = next((number for number, line in enumerate(lines) if _UNSEEN.fullmatch(line)), len(lines))
    return 1, max(1, end)


def _mended(lines: list[str]) -> tuple[int, int]:
    """Where the errors lie: before the question whether to mend them, or after the line that tells of them."""
    asked = next((number for number, line in enumerate(lines) if _MEND.fullmatch(line)), None)
    if asked is not None:
        done = [number for number in range(asked) if _DONE.fullmatch(lines[number])]
        return (done[-1] + 1 if done else 0), asked
    told = next((number for number, line in enumerate(lines) if _MALFORMED.fullmatch(line)), None)
    if told is None:
        return 0, 0
    begin = told + 1
    while begin < len(lines) and (not lines[begin].strip() or _ADDRESS.fullmatch(lines[begin])):
        begin += 1
    return begin, len(lines)


def is_mark(text: str) -> bool:
    """Whether a line that stands as a person's is the console's own: an empty input, a question settled before.

    >>> is_mark("<blank>"), is_mark("Add file to the chat? (Y)es/(N)o/(A)ll [Yes]: all"), is_mark("yes")
    (True, True, False)
    """
    return text == "<blank>" or _ANSWER.fullmatch(text) is not None
