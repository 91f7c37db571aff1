"""SQLite databases in use: their newest pages lie in a log beside them (`name-wal`) until somebody tidies up.

A program that runs keeps a log of some megabytes, often the newest sessions. It is read from copies: the database
itself is neither locked nor changed.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from etl.remote import read_errors

SUFFIX = "-wal"
_MAGIC = b"SQLite format 3\x00"
_HEADER = 20
_LOGGED = 2
"""What the header says of a database that has a log."""


def log_beside(path: Path) -> Path | None:
    """The log of a database that has one with something in it; None for any other file."""
    log = path.with_name(path.name + SUFFIX)
    try:
        if log.stat().st_size == 0:
            return None
        with path.open("rb") as file:
            head = file.read(_HEADER)
    except read_errors():
        return None
    return log if head.startswith(_MAGIC) and head[18:20] == bytes((_LOGGED, _LOGGED)) else None


@contextmanager
def merged(path: Path, log: Path) -> Iterator[Path]:
    """A copy of the database with the log's whole transactions in it; without them where the log is of no use."""
    with tempfile.TemporaryDirectory(prefix="etl-database-") as folder:
        copy = Path(folder, "copy.db")
        shutil.copyfile(path, copy)
        shutil.copyfile(log, copy.with_name(copy.name + SUFFIX))
        try:
            with closing(sqlite3.connect(copy)) as database:
                database.execute("PRAGMA trusted_schema = OFF")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            shutil.copyfile(path, copy)
        yield copy
