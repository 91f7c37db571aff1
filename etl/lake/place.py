"""Where a lake lies, and the few file operations that commits need: the one module that knows a folder from a store.

In an object store a file is there once it is whole, so nothing is renamed: staged files lie in a local folder, one for
each lake and machine, and are uploaded to their place right before the commit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from etl.errors import LakeError, UsageError
from etl.remote import is_remote, remote_path
from etl.tables import PARTITIONS

STAGING = ".staging"
SETTINGS = "settings.json"
UNCOMMITTED_MS = 86_400_000
"""A data file in a store that no version shows is nobody's after a day: no commit takes that long."""
_UPLOAD_BYTES = 8 << 20
FORGOTTEN = "forgotten"
REPORTS = "reports"
REPORTS_KEPT = 5_000
"""Reports of runs that stay; the oldest go."""


class Place:
    """The folder of a lake: `<root>/<table>/source=…/…` and `<root>/.staging/`."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        name = str(root)
        self.is_remote = is_remote(name)
        if self.is_remote:
            self.root = remote_path(name.rstrip("/"))
            self.staging = _local_staging(name.rstrip("/"))
        else:
            self.root = _local_folder(name)
            self.staging = self.root / STAGING
        self.kept: dict[str, Any] = {}
        """What was read of the log of each table (`log.snapshot`)."""

    def names(self) -> set[str]:
        """What lies in the lake's folder; nothing where it is not there."""
        return {entry.name for entry in self.root.iterdir()} if self.root.is_dir() else set()

    def table(self, table: str) -> Path:
        """The folder of a table."""
        return self.root / table

    def data_file(self, table: str, path: str) -> Path:
        """A data file by its path relative to the table, as it is on disk (percent-encoded folders)."""
        return self.root / table / path

    def data_files(self, table: str) -> Iterator[str]:
        """Every Parquet file in the partition folders of a table, live or not, relative to the table."""
        folder = self.root / table
        pattern = "/".join(f"{key}=*" for key in PARTITIONS[table])
        for path in sorted(str(path) for path in folder.glob(f"{pattern}/*.parquet")):
            yield path.removeprefix(f"{folder}/")

    def is_there(self, path: str) -> bool:
        """Whether the data file of that whole path or URI exists."""
        return (self.root / path.removeprefix(f"{self.root}/")).exists()

    def log_folder(self, table: str) -> Path:
        """The folder of the Delta log of a table."""
        return self.root / table / "_delta_log"

    def checkpoint_pointer(self, table: str) -> Path:
        """The file that says which checkpoint is the newest; it is there once there is one."""
        return self.log_folder(table) / "_last_checkpoint"

    def log_file(self, table: str, version: int) -> Path:
        """The file of one version in the Delta log."""
        return self.log_folder(table) / f"{version:020}.json"

    def log_mark(self, table: str, version: int) -> tuple[int, int, int] | None:
        """What tells the file of a version from any that may come in its place; None where nothing does."""
        if self.is_remote:
            return None
        with contextlib.suppress(OSError):
            status = os.stat(self.log_file(table, version))  # noqa: PTH116  (asked some dozens of times)
            return status.st_ino, status.st_mtime_ns, status.st_size
        return None

    def log_texts(self, table: str) -> Iterator[tuple[int, str]]:
        """Every version that the log holds as a file of its own, with its text, oldest first."""
        for path in sorted(self.log_folder(table).glob("*.json"), key=str):
            if path.stem.isdigit():
                with contextlib.suppress(FileNotFoundError):  # cleaned up by another run meanwhile
                    yield int(path.stem), path.read_text(encoding="utf-8")

    def read_log(self, table: str, version: int) -> str | None:
        """The text of one version of the log; None where that version does not exist."""
        path = self.log_file(table, version)
        return path.read_text(encoding="utf-8") if path.exists() else None

    def sync(self, *paths: Path) -> None:
        """Makes what was written to files and folders last through a loss of power; a store sees to that itself."""
        for path in () if self.is_remote else paths:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def sync_data(self, table: str, paths: Iterable[str]) -> None:
        """Makes data files, and the folders that lead to them, last."""
        files = [self.data_file(table, path) for path in paths]
        folders = {folder for file in files for folder in file.parents if folder.is_relative_to(self.table(table))}
        self.sync(*files, *sorted(folders))

    def retain_ms(self) -> int:
        """How long replaced data files stay, in milliseconds; 0 where nobody set it."""
        path = self.root / SETTINGS
        if not path.exists():
            return 0
        try:
            return int(json.loads(path.read_text(encoding="utf-8"))["retain_ms"])
        except (ValueError, KeyError, TypeError):
            raise LakeError(f"{path} holds no settings; remove it, then say again `etl retain …`, if you had") from None

    def write_retain_ms(self, milliseconds: int, folder: Path) -> None:
        """Sets how long replaced data files stay."""
        self.write_text(SETTINGS, json.dumps({"retain_ms": milliseconds}), folder)

    def write_tombstones(self, batch_id: str, text: str, folder: Path) -> None:
        """Keeps hashes of what a batch forgot, as `forgotten/<batch>.json`."""
        if not self.is_remote:
            (self.root / FORGOTTEN).mkdir(exist_ok=True)
        self.write_text(f"{FORGOTTEN}/{batch_id}.json", text, folder)

    def read_tombstones(self) -> list[str]:
        """The texts of all of them."""
        return [path.read_text(encoding="utf-8") for path in sorted((self.root / FORGOTTEN).glob("*.json"), key=str)]

    def write_report(self, batch_id: str, text: str, folder: Path) -> None:
        """Keeps what a run did as `reports/<batch>.json`."""
        if not self.is_remote:
            (self.root / REPORTS).mkdir(exist_ok=True)
        self.write_text(f"{REPORTS}/{batch_id}.json", text, folder)
        for path in self._reports()[:-REPORTS_KEPT]:
            path.unlink(missing_ok=True)

    def read_reports(self, newest: int) -> list[str]:
        """The texts of the newest reports, oldest first."""
        return [path.read_text(encoding="utf-8") for path in self._reports()[-newest:]]

    def _reports(self) -> list[Path]:
        """Oldest first: batch ids begin with the time."""
        return sorted((self.root / REPORTS).glob("*.json"), key=str)

    def write_text(self, name: str, text: str, folder: Path) -> None:
        """Writes a file beside the tables, whole or not at all, by way of a folder; the same text is left alone."""
        path = self.root / name
        if path.exists() and path.read_bytes() == text.encode():
            return
        if self.is_remote:
            path.write_bytes(text.encode())
        else:
            written = folder / f"{uuid4()}.new"
            written.write_bytes(text.encode())
            written.replace(path)

    def shared_staging(self, batch_id: str) -> Path:
        """Where workers on other machines put the staged files of a batch of a lake in a store."""
        return self.root / STAGING / batch_id

    def clear_shared_staging(self, batch_id: str) -> None:
        """Removes what is left there."""
        if self.is_remote:
            for path in self.shared_staging(batch_id).glob("*.parquet"):
                path.unlink(missing_ok=True)

    def put(self, staged: Path, path: Path) -> None:
        """Brings a staged file to its place in a table: renamed in a folder, copied or uploaded in a store."""
        if self.is_remote:
            with staged.open("rb") as source, path.open("wb") as target:
                shutil.copyfileobj(source, target, _UPLOAD_BYTES)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            staged.rename(path)

    def take_back(self, staged: Path, path: Path) -> None:
        """Undoes `put`."""
        if self.is_remote:
            path.unlink(missing_ok=True)
        else:
            path.rename(staged)

    def may_be_uncommitted(self, path: Path, now_ms: int) -> bool:
        """Whether another machine may be about to commit a data file: locks tell of runs on this one only."""
        return self.is_remote and now_ms - path.stat().st_mtime * 1000 < UNCOMMITTED_MS

    def __repr__(self) -> str:
        return f"Place({str(self.root)!r})"


def new_name() -> str:
    """A file name that nobody else has."""
    return f"{uuid4()}.parquet"


def _local_folder(root: str) -> Path:
    """The absolute folder that a lake's name means."""
    if not root:
        raise UsageError("the lake has no name; give a folder, for example --lake ./lake")
    if root.startswith("file://"):
        return Path(unquote(urlsplit(root).path)).absolute()
    return Path(os.path.abspath(root))  # noqa: PTH100  (resolves `..` and no symbolic links)


def _local_staging(uri: str) -> Path:
    """The folder of this user on this machine in which files for a lake in a store are written."""
    name = hashlib.blake2b(uri.encode(), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir()) / f"etl-staging-{os.getuid()}" / name
