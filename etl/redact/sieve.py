r"""Telling which texts rules are worth asking for: all their signs are looked for in one pass.

Texts are joined to one run of bytes, and Hyperscan reads it once for hundreds of expressions (`hyperscan`, which
carries Vectorscan). Where that package has no wheels (Linux on ARM) RE2 is asked sign by sign: it finds the same texts
and takes several times as long.

A sign is written for RE2 and one padded text. Where it means an edge it says `(?:^|[^a-z])` or `(?:$|[^a-z])`, with a
line feed among what may stand there; nothing else looks around. So it means the same among joined texts.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import re
import stat
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import pyarrow as pa
import pyarrow.compute as pc

from etl.redact.texts import Texts

if TYPE_CHECKING:
    import hyperscan

IN_ONE_PASS = importlib.util.find_spec("hyperscan") is not None
_CACHE = platformdirs.user_cache_path("rollout-etl", appauthor=False) / "signs"
_KEPT = 8
"""Compiled signs that stay: of other versions, policies and machines that share the folder."""
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


class Sieve:
    """Signs by name. Cheap to make: what is compiled is compiled when it is first asked."""

    def __init__(self, signs: Mapping[str, str], *, in_one_pass: bool = IN_ONE_PASS) -> None:
        self._signs = dict(signs)
        self._in_one_pass = in_one_pass

    def matching(self, texts: Texts) -> dict[str, list[int]]:
        """The places of the texts that have a sign, by its name; names that no text has are left out."""
        if not self._in_one_pass:
            found = {name: matching(texts.padded, sign) for name, sign in self._signs.items()}
        else:
            found = {name: sorted(places) for name, places in self._scanned(texts).items()}
        return {name: places for name, places in found.items() if places}

    def _scanned(self, texts: Texts) -> dict[str, set[int]]:
        import hyperscan

        names = list(self._signs)
        found: dict[str, set[int]] = {name: set() for name in names}
        hits: list[tuple[int, int]] = []
        data, starts = texts.joined

        def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            hits.append((number, end))

        # A scratch of its own for each call: threads may sift at once.
        self._database.scan(data, note, scratch=hyperscan.Scratch(self._database))
        for number, end in hits:
            found[names[number]].add(bisect.bisect_right(starts, end - 1) - 1)
        return found

    @functools.cached_property
    def _database(self) -> hyperscan.Database:
        return _compiled(list(self._signs.values()))


def _compiled(signs: list[str]) -> hyperscan.Database:
    """Signs by their number, from the user's cache folder if they are there: compiling takes 0.2 s, reading 1 ms."""
    import hyperscan

    told = repr(
        (Path(__file__).read_bytes(), signs, metadata.version("hyperscan"), platform.machine(), platform.processor())
    )
    kept = _CACHE / f"{hashlib.sha256(told.encode()).hexdigest()}.hs"
    with contextlib.suppress(OSError, hyperscan.HyperscanError):
        if _is_private(kept.parent):
            return hyperscan.loadb(kept.read_bytes(), hyperscan.HS_MODE_BLOCK)
    parts = [(part, number) for number, sign in enumerate(signs) for part in in_bytes(sign)]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile([part.encode() for part, _ in parts], [number for _, number in parts])
    with contextlib.suppress(OSError):
        _keep(kept, hyperscan.dumpb(database))
    return database


def _is_private(folder: Path) -> bool:
    """Nobody else may write there: what is compiled is trusted."""
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _keep(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all; those of older signs make way for it."""
    path.parent.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    Path(file.name).replace(path)
    for older in sorted(path.parent.glob("*.hs"), key=lambda each: each.stat().st_mtime)[:-_KEPT]:
        older.unlink(missing_ok=True)


def by_place(found: Mapping[str, Iterable[int]]) -> dict[int, frozenset[str]]:
    """Name → places turned round.

    >>> by_place({"a": [3], "b": [3]}) == {3: {"a", "b"}}
    True
    """
    names: defaultdict[int, set[str]] = defaultdict(set)
    for name, places in found.items():
        for place in places:
            names[place].add(name)
    return {place: frozenset(each) for place, each in names.items()}


def matching(texts: pa.Array, pattern: str) -> list[int]:
    """The places of the texts of a column that RE2 finds a pattern in."""
    return pc.indices_nonzero(pc.match_substring_regex(texts, pattern)).to_pylist()  # type: ignore[no-any-return]


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
