r"""The patterns of the kept rules as signs: what they match in a view, they match in the bytes of joined texts.

A view has a byte for each character: a `?` for those outside ASCII, a space for those that are not printed. Joined
texts have what was written. So a class with the `?` in it takes bytes of UTF-8 too, one with the space takes what
is shown as one, and both ends of a text are line feeds. Where a pattern counts beyond `_MOST`, its sign does not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from etl.redact.escapes import PLAIN

_MOST = 200
"""Counting further costs Hyperscan seconds of compiling, and tells few texts apart."""
_LONGEST = 4
"""Bytes of a character in UTF-8."""
_ASCII = [chr(byte) for byte in range(0x80)]
_SHOWN_AS_SPACE = frozenset(letter for letter, shown in zip(_ASCII, PLAIN, strict=False) if shown == 0x20)
_ANY = r"[\s\S]"
_ANYTHING = re.compile(r"\(\?:\.\|\[(?:\\n\\r|\\r\\n)\]\)|\(\?s:\.\)")
"""How patterns say any character, line feeds too."""
_DOTS_ARE_ANY = re.compile(r"\(\?[a-rt-z]*s")
_PIECE = re.compile(
    r"(?P<token>\\x[0-9a-fA-F]{2}|\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\(\?(?:P?<\w+>|[a-z-]+[:)]|:)|.)"
    r"(?P<times>[?*+]|\{\d+(?:,\d*)?\})?\??",
    re.DOTALL,
)
_ASIDE = re.compile(r"[()|]|\(\?.*|\\[bB]")
"""Tokens that stand for no character."""
_NAMED = {"[:alnum:]": "a-zA-Z0-9", "[:alpha:]": "a-zA-Z", "[:digit:]": "0-9", "[:xdigit:]": "0-9a-fA-F"}
_UNKNOWN = re.compile(r"\\[pPuUQEKGR1-9]|\(\?(?:[<!=>#]|P[=>])|&&|\[:\^?\w+:\]")
"""What a sign cannot say, or says otherwise."""
_EDGES = ("^", "$", r"\A", r"\z", r"\Z")
_TIMES = {"": (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}
_UNSPACED = "(?x)"


def sign(pattern: str) -> str:
    r"""A pattern that is sought in the data of views, as an expression that matches wherever it does, and a bit more.

    ValueError where it cannot be told how.

    >>> sign(r"\bkey[ ]{0,3}=[^-~]{40}$")
    '\\bkey[\\x00-\\x08\\x0b-\\x20\\x7f-\\x7f]{0,3}=[\\x00-\\x2c\\x2e-\\x7d\\x7f-\\xff]{40,160}\\n'
    """
    bare = _ANYTHING.sub(lambda _: _ANY, pattern.removeprefix(_UNSPACED))
    for named, letters in _NAMED.items():
        bare = bare.replace(named, letters)
    if unknown := _UNKNOWN.search(bare):
        raise ValueError(f"{unknown.group()} in {pattern}")
    if _DOTS_ARE_ANY.search(bare):
        bare = re.sub(r"(\\.)|(\[(?:\\.|[^\]\\])*\])|\.", lambda found: found[1] or found[2] or _ANY, bare)
    pieces = _PIECE.finditer(bare)
    unspaced = pattern.startswith(_UNSPACED)
    return "".join(_piece(piece) for piece in pieces if not (unspaced and piece["token"].isspace()))


def _piece(piece: re.Match[str]) -> str:
    token, times = piece["token"], piece["times"] or ""
    if token in _EDGES:
        return r"\n"
    if _ASIDE.fullmatch(token):
        return token + _said(*_counted(times), wide=False)
    letters = _letters(token)
    wide, blank = "?" in letters, " " in letters
    if blank:
        letters |= _SHOWN_AS_SPACE
    shown = _as_class(letters, wide=wide) if wide or blank else token
    return shown + _said(*_counted(times), wide=wide)


@functools.cache
def _letters(token: str) -> frozenset[str]:
    """What a token stands for in ASCII."""
    return frozenset(filter(re.compile(token, re.ASCII | re.DOTALL * (token == _ANY)).fullmatch, _ASCII))


def _as_class(letters: Iterable[str], *, wide: bool) -> str:
    codes = sorted({ord(letter) for letter in letters} | (set(range(0x80, 0x100)) if wide else set()))
    edges = [code for code in codes if code - 1 not in codes], [code for code in codes if code + 1 not in codes]
    return "[" + "".join(rf"\x{first:02x}-\x{last:02x}" for first, last in zip(*edges, strict=True)) + "]"


def _counted(times: str) -> tuple[int, int | None]:
    if times in _TIMES:
        return _TIMES[times]
    least, comma, most = times[1:-1].partition(",")
    return int(least), int(most) if most else None if comma else int(least)


def _said(least: int, most: int | None, *, wide: bool) -> str:
    if wide and most:
        most *= _LONGEST
    if most and most > _MOST:
        most = None
    least = min(least, _MOST)
    for said, times in _TIMES.items():
        if times == (least, most):
            return said
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
