"""Which files have to be read: told from what the lake knows of them, size and time first, digest where they
disagree.

Files are looked for by their own names first, which costs nothing, and what is to be read by the names that the lake
gives them (`etl/naming.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from etl.discover import members
from etl.lake import KnownFile
from etl.naming import Named
from etl.remote import read_errors
from etl.report import UNDETECTED
from etl.walk import FoundFile

Known = Mapping[str, Mapping[str, KnownFile]]
"""Source → uri → file."""


class Change(NamedTuple):
    """A file, and how it differs from what was known: `new`, `grown` (as far as its size tells), `replaced` or
    `unchanged`.
    """

    file: FoundFile
    kind: str
    known: KnownFile | None = None
    """What was known of it."""
    source: str | None = None
    """The one under which it is known."""
    is_read: bool = True
    former: tuple[str, ...] = ()
    """Names that the lake knows it by, and shall not any more."""
    was_undetected: bool = False
    """Whether the lake knows it as one that no adapter reads."""


class Changes(NamedTuple):
    """How found files differ from what a lake knows.

    Files that failed or were skipped are looked at again, since an adapter may read them now.
    """

    known: Callable[[Sequence[str]], Known]
    """What is known of some files, by their uris."""
    source: str | None
    """The one under which they are looked for; without one each is looked for under its adapter's name."""
    format: str | None
    reparse: bool
    """Unchanged files are read again, as after a change of their adapter."""
    names: Callable[[Sequence[FoundFile]], list[Named]]
    """What the lake calls some files."""
    version: int | None = None
    """Of the map that reads them: what another map read is read again without `reparse`."""

    def of(self, files: Sequence[FoundFile]) -> list[Change]:
        """How each of some files differs from what was known of it. An archive is given as its files."""
        found, others = self._apart(files)
        # An archive is known by its files; one that is unchanged is none, and is not opened.
        inside = [within for file in others for within in members(file)]
        if inside != others:
            unchanged, inside = self._apart(inside)
            found += unchanged
        if inside:
            found = sorted([*found, *self._by_names(self.names(inside))], key=lambda change: change.file)
        return found

    def _apart(self, files: Sequence[FoundFile]) -> tuple[list[Change], list[FoundFile]]:
        """Those that lie in the lake under their own names and are as they were, and the others."""
        known = self.known([file.uri for file in files])
        found: list[Change] = []
        others: list[FoundFile] = []
        for file in files:
            change = self._change(Named(file), known)
            if change.is_read:
                others.append(file)
            else:
                found.append(change)
        return found, others

    def _by_names(self, named: Sequence[Named]) -> list[Change]:
        known = self.known([uri for each in named for uri in (each.file.uri, *each.former)])
        return [self._change(each, known) for each in named]

    def _change(self, named: Named, known: Known) -> Change:
        file = named.file
        sources = known if self.source is None else (self.source,)
        former = tuple(uri for uri in named.former if any(uri in of_source for of_source in known.values()))
        was_undetected = file.uri in known[UNDETECTED]
        for uri in (file.uri, *former):
            for name in sources:
                before = known[name].get(uri)
                if before is None or not self._is_of(before, name):
                    continue
                if before.state in ("done", "growing") and _same(file, before):
                    is_read = self.reparse or self._is_stale(before) or uri != file.uri
                    return Change(file, "unchanged", before.whole(), name, is_read, former, was_undetected)
                kind = "grown" if file.size > before.size else "replaced"
                if self.reparse or uri != file.uri or kind == "replaced":
                    before = before.whole()
                return Change(file, kind, before, name, True, former, was_undetected)
        looked_at = known[self.source or UNDETECTED].get(file.uri)
        return Change(file, "new", looked_at, None, True, former, was_undetected)

    def _is_of(self, before: KnownFile, source: str) -> bool:
        """Whether that is what a run like this one left of a file."""
        if before.adapter is None or (self.format is not None and before.adapter != self.format):
            return False
        return self.source is not None or before.adapter == source

    def _is_stale(self, known: KnownFile) -> bool:
        """Whether the file was read by another map, or by this one when it said something else."""
        return self.version is not None and known.adapter_version not in (None, self.version)


def _same(file: FoundFile, known: KnownFile) -> bool:
    """Whether the bytes are those that were read."""
    if file.size != known.size:
        return False
    if known.modified_at is not None and known.modified_at == file.modified_ns // 1_000:
        return True
    if known.sha256 is None:
        return False
    try:
        with file.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == known.sha256
    except read_errors():
        return False
