"""Paths as a person gives them into the files to read: sorted, each once, the same on every machine."""

from __future__ import annotations

import contextlib
import fnmatch
import heapq
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import NamedTuple

from etl.errors import SourceError, UsageError
from etl.listing import below
from etl.remote import asking, is_remote, read_errors, remote_path
from etl.walk import MANY, Exclusion, FoundFile, absolute, found_at, in_order, is_folder, packed_texts, walk, with_log

_GLOB = re.compile(r"[*?\[]")


class _Root(NamedTuple):
    """A file or folder that was given, or that a glob matches."""

    key: bytes
    """Its absolute path, with a slash after a folder's: no file of it lies before that."""
    given: str

    def is_whole(self) -> bool:
        """Whether it was given by that path."""
        return self.key.removesuffix(b"/") == os.fsencode(self.given)


def discover(paths: Iterable[str | Path], exclude: Sequence[str] = ()) -> list[FoundFile]:
    """Every file that `find` gives, an archive as the files in it."""
    return [each for file in find(paths, exclude) for each in members(file)]


def find(paths: Iterable[str | Path], exclude: Sequence[str] = ()) -> Iterator[FoundFile]:
    """Every file under the given files, folders and globs by path, one after another; lakes and what `exclude` matches
    are left out. No file is opened.

    `exclude` globs are matched against the whole path, the path below the given folder, and the name.
    UsageError, before the first, where a path does not exist or a glob matches nothing.
    """
    roots = _sorted(_root(given) for path in paths for given in _roots(str(path)))
    return _in_turn(roots, Exclusion(exclude))


def members(file: FoundFile) -> list[FoundFile]:
    """The files of a ZIP archive in its place; any other file as it is."""
    from etl.opening import zip_members

    try:
        names = zip_members(file.path) if file.size > 4 else []
    except read_errors(SourceError):
        return [file]
    return [file._replace(uri=f"{file.uri}!{name}", member=name) for name in names] or [file]


def _sorted(roots: Iterable[_Root]) -> Iterator[_Root]:
    """In the order of their keys; as bytes, as a glob may match very many files."""
    texts = (root.key if root.is_whole() else b"%b\0%b" % (root.key, os.fsencode(root.given)) for root in roots)
    few = list(islice(texts, MANY))
    if len(few) < MANY:
        return _unpacked(sorted(few))
    lots = iter(lambda: list(islice(texts, MANY)), [])
    return _unpacked(in_order([packed_texts(lot) for lot in (few, *lots)]))


def _unpacked(texts: Iterable[bytes]) -> Iterator[_Root]:
    for text in texts:
        key, _, given = text.partition(b"\0")
        yield _Root(key, os.fsdecode(given or key.removesuffix(b"/")))


def _in_turn(roots: Iterator[_Root], exclude: Exclusion) -> Iterator[FoundFile]:
    """The files of all roots by path, each once. A root is looked into when its turn has come, beside those that it
    lies in.
    """
    begun: list[tuple[bytes, int, FoundFile, Iterator[FoundFile]]] = []
    numbers = count()
    last = ""
    following = next(roots, None)
    while begun or following is not None:
        if following is not None and (not begun or following.key <= begun[0][0]):
            root, following = following, next(roots, None)
            number, files = next(numbers), _files(root, exclude)
            if not begun and (following is None or not _overlap(root, following)):
                yield from files
                continue
        else:
            _, number, file, files = heapq.heappop(begun)
            if file.uri != last:
                last = file.uri
                yield file
        if (further := next(files, None)) is not None:
            heapq.heappush(begun, (os.fsencode(further.place), number, further, files))


def _overlap(root: _Root, following: _Root) -> bool:
    return following.key == root.key or (root.key.endswith(b"/") and following.key.startswith(root.key))


def _root(given: str) -> _Root:
    if is_remote(given):
        with asking(given):
            return _Root(os.fsencode(f"{given}/" if remote_path(given).is_dir() else given), given)
    whole = absolute(given)
    return _Root(os.fsencode(whole.removesuffix("/") + "/" if is_folder(whole) else whole), given)


def _roots(given: str) -> Iterable[str]:
    if given.startswith("file://"):
        given = given.removeprefix("file://")
    elif is_remote(given):
        with asking(given):
            return _remote_roots(given)
    path = Path(given).expanduser()
    if path.exists() or path.is_symlink():
        return [str(path)]
    matches = _matches(path)
    if (first := next(matches, None)) is None:
        raise UsageError(f"{given}: no such file or folder, and no file matches it as a glob")
    return chain([first], matches)


def _matches(pattern: Path) -> Iterator[str]:
    """What a glob matches; `**` follows no link to a folder, as two that lead back would never end."""
    # Two stars that are not all of a part mean one.
    parts = [part if part == "**" else re.sub(r"\*\*+", "*", part) for part in pattern.parts]
    fixed = next((number for number, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    if fixed == len(parts):
        return
    folders, name = Path(*parts[:fixed]), parts[-1]
    if name == "**" or not _GLOB.search(name):
        yield from map(str, folders.glob(str(Path(*parts[fixed:]))))
        return
    # Folders are few; `Path.glob` would hold all the files of one.
    fits = re.compile(fnmatch.translate(name)).match
    for folder in folders.glob(str(Path(*parts[fixed:-1]))) if fixed < len(parts) - 1 else (folders,):
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            top = str(folder / "_")[:-1]
            yield from (top + entry.name for entry in entries if fits(entry.name))


def _remote_roots(given: str) -> list[str]:
    """A file of an object store, a prefix that files share with a slash after it, or what a glob matches there."""
    if not _GLOB.search(given):
        path = remote_path(given.rstrip("/"))
        if path.exists():
            return [str(path)]
        raise UsageError(f"{given}: there is no such object, and none below it")
    bucket, _, pattern = given.partition("://")[2].partition("/")
    root = remote_path(f"{given.partition('://')[0]}://{bucket}")
    matches = list(map(str, root.glob(pattern)))
    if not matches:
        raise UsageError(f"{given}: no object matches it")
    return matches


def _files(root: _Root, exclude: Exclusion) -> Iterator[FoundFile]:
    if is_remote(root.given):
        return _remote_files(root, exclude)
    if root.key.endswith(b"/"):
        return walk(root.given, exclude)
    return _file(root.given, exclude)


def _file(given: str, exclude: Exclusion) -> Iterator[FoundFile]:
    if not (exclude and exclude.leaves_out(given, Path(given).name)):
        yield with_log(found_at(absolute(given)))


def _remote_files(root: _Root, exclude: Exclusion) -> Iterator[FoundFile]:
    if root.key.endswith(b"/"):
        return below(root.given, exclude)
    path = remote_path(root.given)
    if exclude and exclude.leaves_out(root.given, path.name):
        return iter(())
    with asking(root.given):
        status = path.stat()
    return iter([FoundFile(root.given, root.given, status.st_size, int(status.st_mtime * 1_000_000) * 1_000)])
