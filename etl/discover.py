"""Paths as a person gives them into the files to read: sorted, each once, the same on every machine."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from etl.errors import SourceError, UsageError
from etl.journal import SUFFIX
from etl.opening import zip_members
from etl.remote import is_remote, remote_path
from etl.walk import Exclusion, FoundFile, absolute, found_at, walk, with_log

_GLOB = re.compile(r"[*?\[]")


class _Root(NamedTuple):
    """A file or folder that was given, or that a glob matches."""

    key: bytes
    """Its absolute path, with a slash after a folder's: no file of it lies before that."""
    given: str


def discover(paths: Iterable[str | Path], exclude: Sequence[str] = ()) -> list[FoundFile]:
    """Every file that `find` gives, an archive as the files in it."""
    return [each for file in find(paths, exclude) for each in members(file)]


def find(paths: Iterable[str | Path], exclude: Sequence[str] = ()) -> Iterator[FoundFile]:
    """Every file under the given files, folders and globs by path, one after another; lakes and what `exclude` matches
    are left out. No file is opened.

    `exclude` globs are matched against the whole path, the path below the given folder, and the name.
    UsageError, before the first, where a path does not exist or a glob matches nothing.
    """
    roots = sorted({_root(given) for path in paths for given in _roots(str(path))})
    return chain.from_iterable(_overlapping(roots, Exclusion(exclude)))


def members(file: FoundFile) -> list[FoundFile]:
    """The files of a ZIP archive in its place; any other file as it is."""
    try:
        names = zip_members(file.path) if file.size > 4 else []
    except (SourceError, OSError):
        return [file]
    return [file._replace(uri=f"{file.uri}!{name}", member=name) for name in names] or [file]


def _overlapping(roots: Sequence[_Root], exclude: Exclusion) -> Iterator[Iterator[FoundFile]]:
    """The files of each root; those of roots that lie in one another as one."""
    first = 0
    while first < len(roots):
        key, last = roots[first].key, first + 1
        while last < len(roots) and (roots[last].key == key or (key[-1:] == b"/" and roots[last].key.startswith(key))):
            last += 1
        alone = last == first + 1
        yield _files(roots[first], exclude) if alone else _merged(roots[first:last], exclude)
        first = last


def _merged(roots: Sequence[_Root], exclude: Exclusion) -> Iterator[FoundFile]:
    """The files of roots that lie in one another, each once; a root is looked into when its turn has come."""
    begun: list[tuple[bytes, int, FoundFile, Iterator[FoundFile]]] = []
    last = ""
    to_begin = 0
    while begun or to_begin < len(roots):
        if to_begin < len(roots) and (not begun or roots[to_begin].key <= begun[0][0]):
            number, files = to_begin, _files(roots[to_begin], exclude)
            to_begin += 1
        else:
            _, number, file, files = heapq.heappop(begun)
            if file.uri != last:
                last = file.uri
                yield file
        if (following := next(files, None)) is not None:
            heapq.heappush(begun, (os.fsencode(following.place), number, following, files))


def _root(given: str) -> _Root:
    if is_remote(given):
        path = remote_path(given)
        return _Root(os.fsencode(f"{given}/" if path.is_dir() else given), given)
    whole = absolute(given)
    return _Root(os.fsencode(whole.removesuffix("/") + "/" if Path(given).is_dir() else whole), given)


def _roots(given: str) -> list[str]:
    if given.startswith("file://"):
        given = given.removeprefix("file://")
    elif is_remote(given):
        return _remote_roots(given)
    path = Path(given).expanduser()
    if path.exists() or path.is_symlink():
        return [str(path)]
    matches = _matches(path)
    if not matches:
        raise UsageError(f"{given}: no such file or folder, and no file matches it as a glob")
    return matches


def _matches(pattern: Path) -> list[str]:
    """What a glob matches; `**` follows no link to a folder, as two that lead back would never end."""
    # Two stars that are not all of a part mean one.
    parts = [part if part == "**" else re.sub(r"\*\*+", "*", part) for part in pattern.parts]
    fixed = next((number for number, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    return list(map(str, Path(*parts[:fixed]).glob(str(Path(*parts[fixed:]))))) if fixed < len(parts) else []


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
    if not exclude.leaves_out(given, Path(given).name):
        file = found_at(absolute(given))
        yield with_log(file) if Path(f"{given}{SUFFIX}").exists() else file


def _remote_files(root: _Root, exclude: Exclusion) -> Iterator[FoundFile]:
    top = remote_path(root.given)
    is_folder = root.key.endswith(b"/")
    found = [path for path in top.rglob("*") if not path.is_dir()] if is_folder else [top]
    names = list(map(str, found))
    lakes = {name.partition("/rollouts/_delta_log/")[0] for name in names if "/rollouts/_delta_log/" in name}
    for name, path in sorted(zip(names, found, strict=True), key=lambda pair: os.fsencode(pair[0])):
        below = name.removeprefix(f"{root.given}/") if is_folder else path.name
        if any(name.startswith(f"{lake}/") for lake in lakes):
            continue
        if not (exclude and exclude.leaves_out(name, below, path.name, *Path(below).parts[:-1])):
            status = path.stat()
            yield FoundFile(name, name, status.st_size, int(status.st_mtime * 1_000_000) * 1_000)
