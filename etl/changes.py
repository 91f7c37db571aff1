"""Which files have to be read: told from what the lake knows of them, size and time first, digest where they
disagree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from etl.discover import members
from etl.lake import KnownFile
from etl.remote import read_errors
from etl.walk import FoundFile

Known = Mapping[str, Mapping[str, KnownFile]]
"""Source → uri → file."""


class Change(NamedTuple):
    """A file to read, and how it differs from what was known: `new`, `grown` or `unchanged` (then it is not read)."""

    file: FoundFile
    kind: str
    known: KnownFile | None = None
    """What was known of one that is unchanged, or may only have become longer."""
    source: str | None = None


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
    version: int | None = None
    """Of the map that reads them: what another map read is read again without `reparse`."""

    def of(self, files: Sequence[FoundFile]) -> tuple[list[Change], Known]:
        """How each of some files differs, and what was known of them. An archive is given as its files."""
        known = self.known([file.uri for file in files])
        found: list[Change] = []
        inside: list[FoundFile] = []
        for file in files:
            change = self._change(file, known)
            # An archive is known by its files; one that is unchanged is none, and is not opened.
            if change.kind == "unchanged" or (within := members(file)) == [file]:
                found.append(change)
            else:
                inside += within
        if inside:
            of_members = self.known([file.uri for file in inside])
            found = sorted(
                [*found, *(self._change(file, of_members) for file in inside)], key=lambda change: change.file
            )
            known = {name: {**known.get(name, {}), **of_members[name]} for name in of_members}
        return found, known

    def _change(self, file: FoundFile, known: Known) -> Change:
        for name in known if self.source is None else (self.source,):
            before = known[name].get(file.uri)
            if before is None or before.adapter is None or (self.format is not None and before.adapter != self.format):
                continue
            if self.source is None and before.adapter != name:
                continue
            longer = file.size > before.size
            if before.state in ("done", "growing") and _same(file, before):
                if not self.reparse and not self._is_stale(before):
                    return Change(file, "unchanged", before, name)
                return Change(file, "grown")
            return Change(file, "grown" if longer else "new", before if longer and not self.reparse else None)
        return Change(file, "new")

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
