"""Which files have to be read: told from what the lake knows of them, size and time first, digest where they
disagree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from etl.discover import FoundFile, members
from etl.lake import KnownFile
from etl.report import FileResult

if TYPE_CHECKING:
    from etl.mapping import Mapping as Map


class Change(NamedTuple):
    """A file to read, and how it differs from what was known: `new`, `grown` or `unchanged` (then it is not read)."""

    file: FoundFile
    kind: str
    known: KnownFile | None = None
    source: str | None = None

    def as_unchanged(self) -> FileResult:
        """What the report says of a file that is not read again."""
        known = self.known
        assert known is not None
        return FileResult(
            self.file.uri, self.source or "", self.file.size, self.file.modified_ns, known.sha256, known.adapter,
            known.adapter_version, known.state, "unchanged",
        )  # fmt: skip


def changes(
    files: Iterable[FoundFile],
    known: Mapping[str, Mapping[str, KnownFile]],
    source: str | None,
    format: str | None,
    reparse: bool,
    mapping: Map | None = None,
) -> list[Change]:
    """How each file differs. `known` is source → uri → file; without a `source`, a file is looked for under its
    adapter's name.

    Files that failed or were skipped are looked at again, since an adapter may read them now. `reparse` reads
    unchanged files again, as after a change of their adapter; those that another map read are read again without it.
    """
    version = None if mapping is None else mapping.adapter_version
    names = [source] if source is not None else list(known)
    found: list[Change] = []
    for file in files:
        change = _change(file, known, names, source, format, reparse, version)
        # An archive is known by its files; one that is unchanged is none, and is not opened.
        inside = [file] if change.kind == "unchanged" else members(file)
        if inside != [file]:
            found += [_change(member, known, names, source, format, reparse, version) for member in inside]
        else:
            found.append(change)
    return found


def _change(
    file: FoundFile,
    known: Mapping[str, Mapping[str, KnownFile]],
    names: Sequence[str],
    source: str | None,
    format: str | None,
    reparse: bool,
    version: int | None,
) -> Change:
    for name in names:
        before = known.get(name, {}).get(file.uri)
        if before is None or before.adapter is None or (format is not None and before.adapter != format):
            continue
        if source is None and before.adapter != name:
            continue
        if before.state in ("done", "growing") and _same(file, before):
            kind = "grown" if reparse or _is_stale(before, version) else "unchanged"
        else:
            kind = "grown" if file.size > before.size else "new"
        return Change(file, kind, before, name)
    return Change(file, "new")


def _is_stale(known: KnownFile, version: int | None) -> bool:
    """Whether the file was read by another map, or by this one when it said something else."""
    return version is not None and known.adapter_version not in (None, version)


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
    except OSError:
        return False
