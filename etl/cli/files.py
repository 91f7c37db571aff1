"""Files that a command is told to write: whole or not there, and nobody else's to read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from etl.errors import EtlError


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place at the end; EtlError where the disk refuses."""
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            beside = Path(folder) / path.name
            yield beside
            beside.replace(path)
    except OSError as error:
        raise EtlError(f"cannot write {path}: {error.strerror or error}; choose another place with --out") from error
