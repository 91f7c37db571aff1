"""What libraries raise about a lake, said as one LakeError line."""

from __future__ import annotations

import contextlib
import errno
import re
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

from etl.errors import LakeError
from etl.remote import store_errors

T = TypeVar("T")

_LIBRARY_ERRORS = (("deltalake.exceptions", "DeltaError"), ("pyarrow", "ArrowException"), ("duckdb", "Error"))
"""What each library raises. One that nobody has loaded raises nothing, and a run that changes nothing loads none."""

_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space and run it again",
    errno.EDQUOT: "the disk quota is used up: free some space and run it again",
    errno.EFBIG: "a file grew past the limit of this system: raise it and run it again",
    errno.EACCES: "permission denied: make the folder writable or choose another lake",
    errno.EPERM: "permission denied: make the folder writable or choose another lake",
    errno.EROFS: "the file system is read-only: choose another lake",
    errno.ENOTDIR: "a part of the path is a file, not a folder: choose another lake",
    errno.EEXIST: "a file, not a folder, has that name: choose another lake",
    errno.ENOENT: "a file is gone: `etl verify` says whether the lake is whole",
    errno.EMFILE: "too many open files: raise `ulimit -n`",
}

_OS_ERROR_WORDS = {
    "No space left on device": errno.ENOSPC,
    "StorageFull": errno.ENOSPC,
    "Permission denied": errno.EACCES,
    "PermissionDenied": errno.EACCES,
    "Read-only file system": errno.EROFS,
    "Not a directory": errno.ENOTDIR,
    "File too large": errno.EFBIG,
    "No such file or directory": errno.ENOENT,
    "No files found": errno.ENOENT,
    "404 Not Found": errno.ENOENT,
    "403 Forbidden": errno.EACCES,
}

_DENIED = (errno.EACCES, errno.EPERM)
_WRITES = ("write", "create", "tidy")
"""How what is being done begins, where it writes."""

_NO_BUCKET = ("NoSuchBucket", "The specified bucket does not exist", "ContainerNotFound")

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""What the Delta library puts around the words of some errors."""


def library_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What Delta, Arrow, DuckDB, the file system and object stores raise when a lake cannot be read or written; `more`.

    Only of libraries that are loaded: the others raise nothing.
    """
    loaded = (getattr(sys.modules[name], error) for name, error in _LIBRARY_ERRORS if name in sys.modules)
    return (OSError, *loaded, *store_errors(), *more)


def error_number(error: BaseException) -> int | None:
    """The operating system's number behind an error, also where a library only kept its words."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    text = str(error)
    return next((number for words, number in _OS_ERROR_WORDS.items() if words in text), None)


def file_is_gone(error: BaseException) -> bool:
    """Whether a read failed because a file it was given is no longer there."""
    return error_number(error) == errno.ENOENT


def lake_error(doing: str, error: BaseException) -> LakeError:
    """One line of what failed, why, and what to do."""
    if any(words in str(error) for words in _NO_BUCKET):
        return LakeError(f"cannot {doing}: there is no such bucket: make it or choose another lake")
    number = error_number(error)
    if number in _DENIED and not doing.startswith(_WRITES):
        return LakeError(f"cannot {doing}: permission denied: let this user read what lies there")
    if number in _ADVICE:
        return LakeError(f"cannot {doing}: {_ADVICE[number]}")
    reason = " ".join(_COLOUR.sub("", str(error)).split()) or type(error).__name__
    return LakeError(f"cannot {doing}: {reason[:300]}")


@contextlib.contextmanager
def one_line(doing: str) -> Iterator[None]:
    """Turns what libraries raise inside into one LakeError: `cannot <doing>: <why>: <what to do>`."""
    try:
        yield
    except library_errors() as error:
        raise lake_error(doing, error) from error


def reading(read: Callable[[], T]) -> T:
    """The result of `read`, which is run once more when a file it was to read is gone.

    A commit removes the files it replaced at once, so a reader that listed them before and opens them after is told so,
    loudly. `read` must list the live files itself: the second run then sees the new ones.
    """
    try:
        return read()
    except library_errors() as error:
        if not file_is_gone(error):
            raise
    return read()
