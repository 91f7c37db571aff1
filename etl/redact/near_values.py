"""What a value looks like that a word near it says is a credential: as itself, and as a sign of it in a view."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from etl.redact.credentials import Credential, is_value, looks_chosen, looks_random
from etl.redact.families import Shown
from etl.redact.regex import regex

PRESSED = regex(r"\{[a-z]{3,12}\}\Z")
"""A key that is pressed after a value is typed."""
_DIGITS, _LETTERS = regex(r"[0-9]"), regex(r"[A-Za-z]")
_APART = regex(r"[(){}\[\],;|?]+")
_WITHIN = regex(r"[=:/&~+>-]")
"""What a value may begin after, where what it is part of goes by another name."""
_LONGEST = 500
"""A longer run may be one value or several."""
_SPECIAL_IN = re.compile(rb"[!#$^~@%*&?+=]")
IN_BARE, IN_QUOTES = r"[!#-&*+\--:=@-Z^_a-z~]", r"[!#-&(-;=?-\[\]-_a-~]"
_GAP = r"{0,24}"
"""Matches that go on and on are told of at every character; a longer value has ten characters beside a digit."""
TWO_DIGITS = (
    rf"(?:[A-Za-z]{IN_BARE}{_GAP}[0-9]{IN_BARE}{_GAP}[0-9]|[0-9]{IN_BARE}{_GAP}[A-Za-z]{IN_BARE}{_GAP}[0-9]"
    rf"|[0-9]{IN_BARE}{_GAP}[0-9]{IN_BARE}{_GAP}[A-Za-z]|{IN_BARE}{{26}})"
)
"""How a bare value with two digits and a letter begins: one that is too long for the gaps has so many characters."""
BOTH = rf"(?:[0-9]{IN_QUOTES}{{0,128}}[A-Za-z]|[A-Za-z]{IN_QUOTES}{{0,128}}[0-9])"
"""In a memorable value with digits and letters."""
STRONG_ENOUGH = (
    rf"(?:[0-9]{IN_QUOTES}{_GAP}[A-Za-z]{IN_QUOTES}{_GAP}[0-9]|[A-Za-z]{IN_QUOTES}{_GAP}[0-9]{IN_QUOTES}{_GAP}[0-9]"
    rf"|[0-9]{IN_QUOTES}{_GAP}[0-9]{IN_QUOTES}{_GAP}[A-Za-z]"
    rf"|[0-9]{IN_QUOTES}{_GAP}[!#$^~@%*&?+=]|[!#$^~@%*&?+=]{IN_QUOTES}{_GAP}[0-9]"
    rf"|[0-9]{IN_QUOTES}{{10}}|{IN_QUOTES}{{10}}[0-9])"
)
"""In every value that looks chosen or random and has both digits and letters."""


def has_both(value: str) -> bool:
    """Digits and letters: what the sifting of whole columns asks for."""
    return bool(_DIGITS.search(value) and _LETTERS.search(value))


def fits(value: str, promise: Credential, *, quoted: bool) -> bool:
    """Whether a value looks like what is promised."""
    if not is_value(value, ""):
        return False
    if not promise.strong:
        return len(value) >= 24 and looks_random(value, strict=True)
    if len(value) >= 16 and looks_random(value, strict=True):
        return True
    return looks_chosen(value) and (quoted or promise.rule == "password")


@functools.lru_cache(1 << 14)
def _stands_out(value: str) -> bool:
    """Whether a value may be one that looks like what a name promises."""
    return has_both(value) and fits(value, Credential("password", True), quoted=True)


@functools.lru_cache(1 << 15)
def _holds_one(run: bytes) -> bool:
    """Whether a value that stands out may be in a run of characters: in whole, or in a part that a name is before."""
    size = len(run)
    digits = size - len(run.translate(None, b"0123456789"))
    if size < 6 or not digits or digits == size:
        return False
    if digits == 1 and size < 20 and (run.islower() or run.isupper() or not _SPECIAL_IN.search(run)):
        return False
    said = run.decode("ascii")
    if len(run) > _LONGEST or _stands_out(PRESSED.sub("", said)):
        return True
    for piece in _APART.split(said):
        for start in (0, *(mark.end() for mark in _WITHIN.finditer(piece))):
            value = piece[start:]
            if len(value) >= 8 and (
                _stands_out(value.rstrip(".,:")) or _stands_out(value.partition("&")[0].rstrip(".,:"))
            ):
                return True
    return False


def has_value(shown: Shown, ends: Sequence[int]) -> bool:
    """Whether a run of characters that a match ends in has a value in it."""
    runs, done = shown.runs, 0
    for end in ends:
        if end > done:
            done = runs.find(b" ", end - 1)
            done = done if done >= 0 else len(runs)
            if _holds_one(runs[runs.rfind(b" ", 0, end) + 1 : done]):
                return True
    return False
