"""Which ingests are alive, and what they hold: nobody sweeps the files of a batch that still runs.

A batch is a folder `.staging/<batch>/` with a lock file `.staging/<batch>.lock` beside it. The lock (flock) is held
shared by the run and by each of its workers, and the system releases it when they end, however they end. Before a batch
renames files into a table it writes their names into a claim in its folder: they are its own until they are committed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from etl.errors import LakeError, UsageError
from etl.lake.errors import one_line
from etl.lake.place import Place, new_name

if TYPE_CHECKING:
    import duckdb

_BATCH_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_LOCK = ".lock"
_CLAIM = ".claim"


class Claim(NamedTuple):
    """A data file that a batch is about to commit: its table, and its path relative to the table."""

    table: str
    path: str


class Batch:
    """The staging folder of one run, alive until it is closed or its process ends."""

    def __init__(self, place: Place, batch_id: str) -> None:
        """Makes the folder and holds its lock; LakeError where it cannot be made or the id is in use."""
        if not _BATCH_ID.fullmatch(batch_id):
            raise UsageError(
                f"the batch id {batch_id!r} must be letters, digits, `_`, `-` and `.`, at most 200 of them"
            )
        self.id = batch_id
        self.database: duckdb.DuckDBPyConnection | None = None
        """What its commits look rows up with, one after another; the first opens it."""
        self._place = place
        self.folder = place.staging / batch_id
        with one_line(f"write to the lake {place.root}"):
            place.staging.mkdir(parents=True, exist_ok=True)
            self._lock_file = _lock_new(place.staging / f"{batch_id}{_LOCK}")
            try:
                self.folder.mkdir()
            except OSError as error:
                os.close(self._lock_file)
                if not isinstance(error, FileExistsError):
                    raise
                raise LakeError(
                    f"the batch {batch_id} already runs on {place.root}; give this one another id"
                ) from None
        self._lock_path = place.staging / f"{batch_id}{_LOCK}"

    def new_path(self) -> Path:
        """Where to write a new file of this batch."""
        return self.folder / new_name()

    @contextlib.contextmanager
    def claim(self, claims: Sequence[Claim]) -> Iterator[None]:
        """Tells sweepers that these data files are this batch's own, as long as the block runs."""
        path = self.folder / f"{uuid4()}{_CLAIM}"
        path.write_text(json.dumps(claims), encoding="utf-8")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def close_database(self) -> None:
        """Gives back what its commits looked rows up with."""
        if self.database is not None:
            self.database.close()
        self.database = None

    def close(self) -> None:
        """Removes the folder with whatever is left in it, then the lock."""
        self.close_database()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._place.clear_shared_staging(self.id)
        with contextlib.suppress(OSError):  # what cannot be removed is a dead batch to the next sweep
            self._lock_path.unlink()
        os.close(self._lock_file)


@contextlib.contextmanager
def joined(place: Place, batch_id: str) -> Iterator[Path]:
    """The folder of a batch that somebody else (the run) holds open, which a worker keeps alive as well.

    LakeError where no such batch is open: what is written then would be swept away.
    """
    lock = join(place, batch_id)
    try:
        yield place.staging / batch_id
    finally:
        os.close(lock)


@contextlib.contextmanager
def guest(place: Place, batch_id: str) -> Iterator[None]:
    """The batch of a run on another machine, as long as the block runs: a folder and a lock on this one.

    Where the run is on this machine, or the folder is shared, its own are used.
    """
    folder, lock_path = place.staging / batch_id, place.staging / f"{batch_id}{_LOCK}"
    if not place.is_remote or lock_path.exists():
        yield
        return
    place.staging.mkdir(parents=True, exist_ok=True)
    lock = _lock_new(lock_path)
    try:
        folder.mkdir(exist_ok=True)
        yield
    finally:
        with contextlib.suppress(OSError):  # another task of this machine may be at work in it
            folder.rmdir()
            lock_path.unlink()
        os.close(lock)


def join(place: Place, batch_id: str) -> int:
    """The file descriptor of a shared lock on a batch that is open; whoever closes it leaves the batch."""
    path = place.staging / f"{batch_id}{_LOCK}"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise LakeError(
            f"the batch {batch_id} is not open on {place.root}; use `with lake.batch(…)` around it"
        ) from error
    fcntl.flock(lock, fcntl.LOCK_SH)
    if not _is_file(lock, path):
        os.close(lock)
        raise LakeError(f"the batch {batch_id} on {place.root} has ended; start the run again")
    return lock


class StagingState(NamedTuple):
    """What lies in the staging folder."""

    dead: list[str]
    """Batches whose processes have ended."""
    claims: set[Claim]
    """Data files of live batches that are being committed."""


def staging_state(place: Place, *, remove_dead: bool) -> StagingState:
    """Looks at every batch; with `remove_dead` the folders of those that have ended go."""
    dead: list[str] = []
    claims: set[Claim] = set()
    names = {entry.name.removesuffix(_LOCK) for entry in place.staging.iterdir()} if place.staging.is_dir() else set()
    for name in sorted(names):
        with _held_if_dead(place.staging / f"{name}{_LOCK}") as is_dead:
            if is_dead:
                dead.append(name)
                if remove_dead:
                    _remove(place.staging / name)
                    (place.staging / f"{name}{_LOCK}").unlink(missing_ok=True)
            else:
                claims |= _claims(place.staging / name)
    return StagingState(dead, claims)


@contextlib.contextmanager
def _held_if_dead(path: Path) -> Iterator[bool]:
    """Whether nobody holds the lock file; if so it is held alone while the block runs.

    A batch makes its lock before its folder and removes it after, so a folder without a lock is a dead one.
    """
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)


def _lock_new(path: Path) -> int:
    """Creates a lock file and holds it shared; again where a sweeper removed it in between."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(lock, fcntl.LOCK_SH)
        if _is_file(lock, path):
            return lock
        os.close(lock)


def _is_file(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one of that path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _claims(folder: Path) -> set[Claim]:
    """The claims of one live batch. One that is half-written names no file that was renamed yet."""
    found: set[Claim] = set()
    for path in folder.glob(f"*{_CLAIM}"):
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            found |= {Claim(*pair) for pair in json.loads(path.read_text(encoding="utf-8"))}
    return found


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
