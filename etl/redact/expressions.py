"""Signs of rules as expressions over bytes, as Hyperscan takes and likes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_EDGES = (("(?:^|", "(?:"), ("|^|", "|"), ("(?:$|", "(?:"), ("|$|", "|"), ("|$)", ")"))
_PIECE = re.compile(
    r"(?P<token>\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[a-z-]*:|.)(?P<times>[?*+]|\{(?P<least>\d+)(?:,(?P<most>\d*))?\})?",
    re.DOTALL,
)
_WIDE = re.compile(r"\[\^|\\[SWD]|\.")
"""How a token begins that may stand for a character outside ASCII."""
_WIDE_AS_CLASS = {".": r"\n", r"\S": r"\s", r"\W": r"\w", r"\D": r"\d"}
"""What such a token does not stand for."""
_BACKSLASH = "\\"
_NOT_ASCII = r"\x80-\xff"
_CHARACTER = r"[\xc2-\xf4][\x80-\xbf]{1,3}"
"""One outside ASCII in UTF-8."""
_MANY = 8
"""From here on it is not worth counting how many characters there are at most."""
_BRACKET = re.compile(r"\(|\)")
_LEADING = re.compile(r"\(\?[a-z-]*:")
_DEEPEST = 3
"""So many groups within groups are taken apart."""


def in_bytes(sign: str) -> list[str]:
    r"""A sign as expressions over the bytes of joined texts: one for each of its branches, as Hyperscan likes them.

    >>> in_bytes("(?i:pass|(?:^|[^a-z])pw)|a.?b")
    ['(?i:pass)', '(?i:(?:[^a-z])pw)', 'a(?:[^\\x80-\\xff\\n]|[\\xc2-\\xf4][\\x80-\\xbf]{1,3})?b']
    """
    for edge, rest in _EDGES:
        sign = sign.replace(edge, rest)
    return [_widened(branch) for branch in dict.fromkeys(_apart(sign))]


def _widened(branch: str) -> str:
    """Room for all bytes of a character where one is meant; both cases of a letter outside ASCII."""
    pieces = list(_PIECE.finditer(branch))
    inner = [place for place, piece in enumerate(pieces) if not _BRACKET.match(piece["token"])]
    repeated = any(piece["token"] == ")" and piece["times"] not in (None, "?") for piece in pieces)
    # At both ends a character's last or first byte is enough.
    ends = () if repeated else (inner[0], inner[-1])
    return "".join(
        piece.group() if place in ends and not piece["times"] and piece["token"].isascii() else _piece_in_bytes(piece)
        for place, piece in enumerate(pieces)
    )


def _piece_in_bytes(piece: re.Match[str]) -> str:
    token, times = piece["token"], piece["times"] or ""
    if not token.isascii():
        return f"(?:{'|'.join(dict.fromkeys((token.lower(), token.upper())))}){times}"
    if not _WIDE.match(token) or times in ("*", "+"):
        return piece.group()
    if piece["least"] is not None and (piece["most"] == "" or int(piece["most"] or piece["least"]) >= _MANY):
        return f"{token}{{{piece['least']},}}"
    others = token[2:-1] if token[0] == "[" else _WIDE_AS_CLASS[token]
    narrow = f"[^{_NOT_ASCII}{_BACKSLASH if others.startswith(']') else ''}{others}]"
    return f"(?:{narrow}|{_CHARACTER}){times}"


def _apart(sign: str, depth: int = _DEEPEST) -> Iterator[str]:
    """The branches of a sign, those of a group at its beginning among them."""
    for branch in _branches(sign):
        opening = _LEADING.match(branch)
        if not opening or not depth:
            yield branch
            continue
        inner, rest = _group(branch, opening.end())
        if rest[:1] in ("?", "*", "+", "{"):
            yield branch
        else:
            for part in _apart(inner, depth - 1):
                yield f"{opening.group()}{part}){rest}"


def _branches(sign: str) -> list[str]:
    found, depth = [""], 0
    for piece in _PIECE.finditer(sign):
        token = piece["token"]
        depth += (token[0] == "(") - (token == ")")
        if token == "|" and not depth:
            found.append("")
        else:
            found[-1] += piece.group()
    return found


def _group(branch: str, start: int) -> tuple[str, str]:
    """What is in the group whose inside begins at a place, and what follows it."""
    depth = 1
    for piece in _PIECE.finditer(branch, start):
        token = piece["token"]
        depth += (token[0] == "(") - (token == ")")
        if not depth:
            return branch[start : piece.start()], branch[piece.start() + 1 :]
    raise ValueError(f"a group is not closed: {branch}")
