"""Paths as a person gives them into the files to read: sorted, each once, the same on every machine."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from etl.errors import SourceError, UsageError
from etl.journal import SUFFIX
from etl.opening import zip_members
from etl.remote import is_remote, remote_path

_GLOB = re.compile(r"[*?\[]")


class FoundFile(NamedTuple):
    """A file to read. `uri` is the plain absolute path or an object's URI; an archive member follows after `!`."""

    uri: str
    path: Path
    size: int
    modified_ns: int
    member: str | None = None


def discover(paths: Iterable[str | Path], exclude: Sequence[str] = (), archives: bool = True) -> list[FoundFile]:
    """Every file under the given files, folders and globs, sorted by path; lakes and what `exclude` matches are left
    out.

    `exclude` globs are matched against the whole path, the path below the given folder, and the name. An archive is
    given as the files in it, with `archives` false as itself (then no file is opened).
    UsageError where a path does not exist or a glob matches nothing.
    """
    found: dict[str, FoundFile] = {}
    for given in paths:
        for root in _roots(str(given)):
            for path, logged in _files(root):
                if not (exclude and _excluded(path, root, exclude)):
                    entry = _with_log(_entry(path)) if logged else _entry(path)
                    found.update({each.uri: each for each in (members(entry) if archives else (entry,))})
    return [found[uri] for uri in sorted(found)]


def members(file: FoundFile) -> list[FoundFile]:
    """The files of a ZIP archive in its place; any other file as it is."""
    try:
        names = zip_members(file.path) if file.size > 4 else []
    except (SourceError, OSError):
        return [file]
    return [file._replace(uri=f"{file.uri}!{name}", member=name) for name in names] or [file]


def _roots(given: str) -> list[Path]:
    if given.startswith("file://"):
        given = given.removeprefix("file://")
    elif is_remote(given):
        return _remote_roots(given)
    path = Path(given).expanduser()
    if path.exists() or path.is_symlink():
        return [path]
    matches = _matches(path)
    if not matches:
        raise UsageError(f"{given}: no such file or folder, and no file matches it as a glob")
    return matches


def _matches(pattern: Path) -> list[Path]:
    """What a glob matches; `**` follows no link to a folder, as two that lead back would never end."""
    # Two stars that are not all of a part mean one.
    parts = [part if part == "**" else re.sub(r"\*\*+", "*", part) for part in pattern.parts]
    fixed = next((number for number, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    return sorted(Path(*parts[:fixed]).glob(str(Path(*parts[fixed:])))) if fixed < len(parts) else []


def _remote_roots(given: str) -> list[Path]:
    """A file of an object store, a prefix that files share with a slash after it, or what a glob matches there."""
    if not _GLOB.search(given):
        path = remote_path(given.rstrip("/"))
        if path.exists():
            return [path]
        raise UsageError(f"{given}: there is no such object, and none below it")
    bucket, _, pattern = given.partition("://")[2].partition("/")
    root = remote_path(f"{given.partition('://')[0]}://{bucket}")
    matches = sorted(root.glob(pattern), key=str)
    if not matches:
        raise UsageError(f"{given}: no object matches it")
    return matches


def _remote_files(root: Path) -> list[Path]:
    found = [path for path in root.rglob("*") if not path.is_dir()]
    lakes = {name.partition("/rollouts/_delta_log/")[0] for name in map(str, found) if "/rollouts/_delta_log/" in name}
    return [path for path in found if not any(str(path).startswith(f"{lake}/") for lake in lakes)]


def _files(root: Path) -> Iterable[tuple[Path, bool]]:
    """The files, and whether the log of a database lies beside each."""
    if is_remote(str(root)):
        yield from ((path, False) for path in (_remote_files(root) if root.is_dir() else [root]))
        return
    if not root.is_dir():
        yield root, Path(f"{root}{SUFFIX}").exists()
        return
    unreadable: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=unreadable.append):
        folders[:] = sorted(name for name in folders if not _is_lake(Path(folder, name)))
        if _is_lake(Path(folder)):
            folders[:] = []
            continue
        logs = {name for name in names if name.endswith(SUFFIX)}
        for name in sorted(names):
            yield Path(folder, name), bool(logs) and name + SUFFIX in logs
    # A folder that cannot be listed is given like a file: reading it fails, and the report names it.
    yield from ((Path(error.filename), False) for error in unreadable)


def _is_lake(folder: Path) -> bool:
    try:
        return (folder / "_delta_log").is_dir() or (folder / "rollouts" / "_delta_log").is_dir()
    except OSError:
        return False


def _excluded(path: Path, root: Path, patterns: Sequence[str]) -> bool:
    below = str(path).removeprefix(f"{root}/") if path != root else path.name
    return any(
        fnmatch.fnmatchcase(text, pattern)
        for pattern in patterns
        for text in (str(path), below, path.name, *Path(below).parts[:-1])
    )


def _with_log(file: FoundFile) -> FoundFile:
    """A database as new as its log, which is read with it."""
    try:
        return file._replace(modified_ns=max(file.modified_ns, Path(f"{file.path}{SUFFIX}").stat().st_mtime_ns))
    except OSError:
        return file


def _entry(path: Path) -> FoundFile:
    if is_remote(str(path)):
        found = path.stat()
        return FoundFile(str(path), path, found.st_size, int(found.st_mtime * 1_000_000) * 1_000)
    absolute = os.path.abspath(path)  # noqa: PTH100 (a link keeps its own name)
    path = Path(absolute)  # what is said of it names it as the report does
    # A name that is no UTF-8 is shown with its bytes escaped, as a table can hold it.
    uri = os.fsencode(absolute).decode("utf-8", "backslashreplace")
    try:
        status = path.stat()
    except OSError:
        return FoundFile(uri, path, 0, 0)
    if stat.S_ISDIR(status.st_mode):
        return FoundFile(uri, path, 0, status.st_mtime_ns)
    if not stat.S_ISREG(status.st_mode):
        return FoundFile(uri, path, -1, status.st_mtime_ns)
    return FoundFile(uri, path, status.st_size, status.st_mtime_ns)
