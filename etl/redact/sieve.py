r"""Telling which texts rules are worth asking for: all their signs are looked for in one pass.

Texts are joined to one run of bytes, and Vectorscan reads it once for hundreds of expressions: by the package
`hyperscan`, or by `pyperscan` where only that one has wheels (Linux on ARM). Without both RE2 is asked, pass by pass:
it finds the same texts and takes some twenty times as long.

A sign is written for RE2 and one padded text. Where it means an edge it says `(?:^|[^a-z])` or `(?:$|[^a-z])`, with a
line feed among what may stand there; nothing else looks around. So it means the same among joined texts.

Rules that are kept by others have a scanner of their own. Hyperscan takes their patterns into the same pass, and the
scanner is asked only for texts where one of them is; elsewhere, where nothing compiled can be kept, it reads all.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import stat
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import platformdirs
import pyarrow as pa
import pyarrow.compute as pc

from etl.redact import expressions
from etl.redact.texts import Texts

if TYPE_CHECKING:
    import hyperscan
    import pyperscan

Engine = Literal["hyperscan", "pyperscan", "re2"]
ENGINES: tuple[Engine, ...] = tuple(
    engine for engine in ("hyperscan", "pyperscan", "re2") if engine == "re2" or importlib.util.find_spec(engine)
)
"""What is installed, the best one first."""
_CACHE = platformdirs.user_cache_path("rollout-etl", appauthor=False) / "signs"
_KEPT = 8
"""Compiled signs that stay: of other versions, policies and machines that share the folder."""
_GROUP = 400
"""Characters of signs that RE2 looks for in one pass."""
_Hits = list[tuple[int, int]]
"""The number of a sign, and where in the joined texts what it matches ends."""


class Scanned(NamedTuple):
    """Rules that have a scanner of their own."""

    name: str
    version: Callable[[], str]
    """Changes when the rules do."""
    patterns: Callable[[], Iterable[str]]
    """What they match, as expressions over the bytes of joined texts; ValueError where it cannot be said."""
    places: Callable[[Texts], Set[int]]
    """The texts in which the scanner finds something."""


class Sieve:
    """Signs by name. Cheap to make: what is compiled is compiled when it is first asked."""

    def __init__(self, signs: Mapping[str, str], engine: Engine = ENGINES[0], scanned: Scanned | None = None) -> None:
        self._signs = dict(signs)
        self._engine = engine
        self._scanned_rules = scanned

    def matching(self, texts: Texts) -> dict[str, list[int]]:
        """The places of the texts that have a sign, by its name; names that no text has are left out."""
        found = self._asked(texts.padded) if self._engine == "re2" else self._scanned(texts)
        if self._scanned_rules and not self._has_their_patterns:
            found[self._scanned_rules.name] = {*self._scanned_rules.places(texts)}
        return {name: sorted(places) for name, places in found.items() if places}

    def _scanned(self, texts: Texts) -> dict[str, set[int]]:
        names = [*self._signs, *([self._scanned_rules.name] if self._scanned_rules else ())]
        found: dict[str, set[int]] = {name: set() for name in names}
        data, starts = texts.joined
        for number, end in self.hits(data):
            found[names[number]].add(bisect.bisect_right(starts, end - 1) - 1)
        return found

    @property
    def one_pass(self) -> bool:
        """Whether `hits` can tell."""
        return self._engine != "re2"

    def hits(self, data: bytes) -> _Hits:
        """Where in a run of bytes which sign is."""
        return self._hyperscan(data) if self._engine == "hyperscan" else self._pyperscan(data)

    def _hyperscan(self, data: bytes) -> _Hits:
        import hyperscan

        hits: _Hits = []

        def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            hits.append((number, end))

        # A scratch of its own for each call: threads may sift at once.
        self._database.scan(data, note, scratch=hyperscan.Scratch(self._database))
        return hits

    def _pyperscan(self, data: bytes) -> _Hits:
        import pyperscan

        hits: _Hits = []

        def note(_context: object, number: int, _start: int, end: int) -> pyperscan.Scan:
            hits.append((number, end))
            return pyperscan.Scan.Continue

        self._patterns.build(None, note).scan(data)
        return hits

    @functools.cached_property
    def _has_their_patterns(self) -> bool:
        """Whether the one pass looks for what a scanner of other rules would find."""
        return self._engine == "hyperscan" and self._with_their_patterns is not None

    @functools.cached_property
    def _database(self) -> hyperscan.Database:
        return self._with_their_patterns or _compiled(list(self._signs.values()))

    @functools.cached_property
    def _with_their_patterns(self) -> hyperscan.Database | None:
        import hyperscan

        with contextlib.suppress(ValueError, hyperscan.HyperscanError):
            return _compiled(list(self._signs.values()), self._scanned_rules) if self._scanned_rules else None
        return None

    @functools.cached_property
    def _patterns(self) -> pyperscan.BlockDatabase:
        import pyperscan

        return pyperscan.BlockDatabase(
            *(pyperscan.Pattern(part, tag=number) for part, number in _parts(list(self._signs.values())))
        )

    def _asked(self, texts: pa.Array) -> dict[str, set[int]]:
        """By RE2: group by group, and sign by sign in what a group lets through."""
        found: dict[str, set[int]] = {}
        for signs in self._groups:
            places = matching(texts, "|".join(f"(?:{sign})" for sign in signs.values()))
            few = texts.take(pa.array(places, pa.int64()))
            for name, sign in signs.items() if places else ():
                found[name] = {places[index] for index in matching(few, sign)}
        return found

    @functools.cached_property
    def _groups(self) -> list[dict[str, str]]:
        """Signs that together fit the memory in which RE2 is fast."""
        groups: list[dict[str, str]] = []
        room = 0
        for name, sign in self._signs.items():
            if room < len(sign):
                groups.append({})
                room = _GROUP
            groups[-1][name] = sign
            room -= len(sign)
        return groups


def _parts(signs: list[str]) -> list[tuple[bytes, int]]:
    return [(part.encode(), number) for number, sign in enumerate(signs) for part in expressions.in_bytes(sign)]


def _compiled(signs: list[str], scanned: Scanned | None = None) -> hyperscan.Database:
    """Signs by their number, and last what other rules match, from the user's cache folder if they are there.

    Compiling takes 0.3 s, with other rules 3 s; reading takes 1 ms.
    """
    import hyperscan

    said = (signs, scanned and scanned.version(), metadata.version("hyperscan"), platform.machine())
    told = repr((Path(expressions.__file__).read_bytes(), *said, platform.processor()))
    kept = _CACHE / f"{hashlib.sha256(told.encode()).hexdigest()}.hs"
    with contextlib.suppress(OSError, hyperscan.HyperscanError):
        if _is_private(kept.parent):
            return hyperscan.loadb(kept.read_bytes(), hyperscan.HS_MODE_BLOCK)
    parts = [(part, number, 0) for part, number in _parts(signs)]
    theirs = scanned.patterns() if scanned else ()
    parts += [(pattern.encode(), len(signs), hyperscan.HS_FLAG_PREFILTER) for pattern in theirs]
    texts, numbers, flags = map(list, zip(*parts, strict=True))
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(texts, numbers, flags=flags)
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
        try:
            file.write(data)
            file.flush()
            Path(file.name).replace(path)
        except OSError:
            Path(file.name).unlink()
            raise
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
