"""The files below a folder, one after another in the order of their paths, whatever their number.

Held are the names of the folders that lead to where the walk is; those of a folder with very many as bytes.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from etl.journal import SUFFIX
from etl.remote import path_of

if TYPE_CHECKING:
    import pyarrow as pa

MANY = 20_000
"""So many names of one folder are held as they are."""


class FoundFile(NamedTuple):
    """A file to read. `uri` is the plain absolute path or an object's URI; an archive member follows after `!`."""

    uri: str
    place: str
    """What the system opens: for a member its archive, and a name that is no UTF-8 with all its bytes."""
    size: int
    modified_ns: int
    member: str | None = None

    @property
    def path(self) -> Path:
        """The same as a path, made when it is asked for: a run may find a million files."""
        return path_of(self.place)

    @property
    def own_name(self) -> str:
        """Its name in the place where it lies, whatever a lake calls it."""
        return shown(self.place) if self.member is None else f"{shown(self.place)}!{self.member}"


class Exclusion:
    """What is left out: globs over the whole path, the path below the given folder, and the names of both."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._matches = re.compile("|".join(map(fnmatch.translate, patterns))).match if patterns else None

    def __bool__(self) -> bool:
        return self._matches is not None

    def leaves_out(self, *texts: str) -> bool:
        """Whether one of these matches."""
        return self._matches is not None and any(map(self._matches, texts))


def walk(root: str, exclude: Exclusion) -> Iterator[FoundFile]:
    """The files below a folder by path; lakes, and what links to folders lead to, are left out.

    A folder that cannot be listed is given like a file: reading it fails, and the report names it.
    """
    given = "" if root == "." else root.removesuffix("/") + "/"
    top = absolute(root).removesuffix("/") + "/"
    try:
        waiting = [("", *_names(top))]
    except OSError:
        yield found_at(absolute(root))
        return
    while waiting:
        below, names, logs = waiting[-1]
        name = next(names, None)
        if name is None:
            waiting.pop()
        elif name.endswith("/"):
            if not (exclude and exclude.leaves_out(name[:-1])):
                try:
                    waiting.append((below + name, *_names(top + below + name)))
                except OSError:
                    yield found_at((top + below + name)[:-1])
        elif not (exclude and exclude.leaves_out(given + below + name, below + name, name)):
            file = found_at(top + below + name)
            yield with_log(file) if name + SUFFIX in logs else file


def _names(folder: str) -> tuple[Iterator[str], set[str]]:
    """What lies in a folder by name, folders with a slash after it; and the logs of databases among it."""
    names: list[str] = []
    packed: list[pa.Array] = []
    logs: set[str] = set()
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(SUFFIX):
                logs.add(name)
            if _is_folder(entry):
                if _tells_of_lake(entry):
                    return iter(()), set()
                if entry.is_symlink():
                    continue
                name += "/"
            names.append(name)
            if len(names) == MANY:
                packed.append(packed_texts(map(os.fsencode, names)))
                names.clear()
    if packed:
        packed.append(packed_texts(map(os.fsencode, names)))
        return map(os.fsdecode, in_order(packed)), logs
    names.sort(key=os.fsencode)
    return iter(names), logs


def packed_texts(texts: Iterable[bytes]) -> pa.Array:
    """Texts in less memory than Python needs for them."""
    import pyarrow as pa  # few folders are so large, and the workers of a run start before anything is loaded

    return pa.array(texts, pa.large_binary())


def in_order(lots: Sequence[pa.Array]) -> Iterator[bytes]:
    """Packed texts from the least on, some of them in memory at a time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    packed = pa.concat_arrays(lots)
    order = pc.array_sort_indices(packed)
    for first in range(0, len(packed), 1_000):
        yield from packed.take(order.slice(first, 1_000)).to_pylist()


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _tells_of_lake(entry: os.DirEntry[str]) -> bool:
    """Whether the folder that holds this one is a lake, or a table of one."""
    return entry.name == "_delta_log" or (entry.name == "rollouts" and is_folder(f"{entry.path}/_delta_log"))


def is_folder(place: str) -> bool:
    """Whether a folder lies there, or a link to one."""
    try:
        return stat.S_ISDIR(os.stat(place).st_mode)  # noqa: PTH116  (as in `found_at`)
    except (OSError, ValueError):
        return False


def absolute(path: str) -> str:
    """The whole path; a link keeps its own name."""
    return os.path.abspath(path)  # noqa: PTH100


def shown(place: str) -> str:
    """A name as a table can hold it: one that is no UTF-8 with its bytes escaped."""
    return place if place.isascii() else os.fsencode(place).decode("utf-8", "backslashreplace")


def found_at(place: str) -> FoundFile:
    """The file of an absolute path; one of no size where nothing can be said of it."""
    uri = shown(place)
    try:
        status = os.stat(place)  # noqa: PTH116  (a Path for each of a million files costs more than the call)
    except (OSError, ValueError):
        return FoundFile(uri, place, 0, 0)
    if stat.S_ISREG(status.st_mode):
        return FoundFile(uri, place, status.st_size, status.st_mtime_ns)
    return FoundFile(uri, place, 0 if stat.S_ISDIR(status.st_mode) else -1, status.st_mtime_ns)


def is_recent(modified_ns: int, now_ns: int) -> bool:
    """Whether a file may be written to again now and keep its time: file systems count in ticks, some in seconds."""
    tick_ns = 20_000_000 if modified_ns % 1_000_000_000 else 2_000_000_000
    return modified_ns > now_ns - tick_ns


def with_log(file: FoundFile) -> FoundFile:
    """A database as new as the log beside it, which is read with it; any other file as it is."""
    try:
        log = os.stat(file.place + SUFFIX)  # noqa: PTH116  (as in `found_at`)
    except (OSError, ValueError):
        return file
    return file._replace(modified_ns=max(file.modified_ns, log.st_mtime_ns))
