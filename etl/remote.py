"""Object stores as paths: `pip install "rollout-etl[cloud]"` brings obstore and universal-pathlib.

`s3://`, `gs://` and `az://` URIs (and their other spellings) are opened with what their usual environment says
(`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, …): obstore and the Delta library read it alike, both being made on the same
Rust library.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from etl.errors import MissingExtraError, SourceError, UsageError

if TYPE_CHECKING:
    import duckdb

_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
"""The name of an error in the answer of a store."""
SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss")


def is_remote(name: str) -> bool:
    """Whether a name is the URI of an object store, rather than a path or a file:// URI.

    >>> is_remote("s3://bucket/logs"), is_remote("/logs"), is_remote("file:///logs")
    (True, False, False)
    """
    return "://" in name and not name.startswith("file://")


def remote_path(uri: str) -> Path:
    """The URI as an object with the methods of a Path. UsageError for a scheme that no store has."""
    scheme = uri.partition("://")[0]
    if scheme not in SCHEMES:
        raise UsageError(f"{uri}: {scheme}:// is no object store that can be read; use {', '.join(SCHEMES)}")
    register()
    from upath import UPath

    return cast(Path, UPath(uri))


@functools.cache
def register() -> None:
    """Tell fsspec that obstore opens these schemes; once in every process that gets remote paths."""
    try:
        import obstore.fsspec
        import upath  # noqa: F401  (told now, rather than in the middle of a run)
    except ImportError:
        raise MissingExtraError('object stores need two more packages: pip install "rollout-etl[cloud]"') from None
    obstore.fsspec.register(list(SCHEMES))
    # A file that could not be opened has none of its own, and would say on stderr that it cannot be closed.
    obstore.fsspec.BufferedFile._reader = cast(Any, io.BytesIO())


def store_errors() -> tuple[type[Exception], ...]:
    """What object stores raise, none of it an OSError; nothing where nobody has loaded what opens them."""
    loaded = sys.modules.get("obstore.exceptions")
    return () if loaded is None else (loaded.BaseError,)


def read_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What reading a file raises, wherever it lies; `more`."""
    return (OSError, *store_errors(), *more)


@contextlib.contextmanager
def asking(uri: str) -> Iterator[None]:
    """SourceError, in one line, where the store of this URI gives no answer to what is asked of it inside."""
    try:
        yield
    except read_errors() as error:
        code = _CODE.search(str(error))
        reason = code[1] if code is not None else " ".join(str(error).split())[:200]
        raise SourceError(f"{uri}: the object store does not give what lies there ({reason})") from None


def path_of(name: str | Path) -> Path:
    """The path of a local file, or what stands for it in an object store."""
    return remote_path(str(name)) if is_remote(str(name)) else Path(name)


def open_to_duckdb(database: duckdb.DuckDBPyConnection, names: Iterable[str]) -> None:
    """Let a DuckDB connection read the schemes of these names, without an extension of its own."""
    schemes = {name.partition("://")[0] for name in names if is_remote(name)}
    if not schemes:
        return
    register()
    import fsspec  # type: ignore[import-untyped]

    for scheme in sorted(schemes):
        if not database.filesystem_is_registered(scheme):
            database.register_filesystem(fsspec.filesystem(scheme))
