"""Where a lake lies, and the few file operations that commits need; the one module that knows it is a local folder."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from etl.errors import UsageError
from etl.schema import PARTITIONS

STAGING = ".staging"
SETTINGS = "settings.json"
REPORTS = "reports"
REPORTS_KEPT = 5_000
"""Reports of runs that stay; the oldest go."""


class Place:
    """The folder of a lake: `<root>/<table>/source=…/…` and `<root>/.staging/`."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = _local_folder(os.fspath(root))
        self.staging = self.root / STAGING

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
        for path in sorted(folder.glob(f"{pattern}/*.parquet")):
            yield path.relative_to(folder).as_posix()

    def log_folder(self, table: str) -> Path:
        """The folder of the Delta log of a table."""
        return self.root / table / "_delta_log"

    def checkpoint_pointer(self, table: str) -> Path:
        """The file that says which checkpoint is the newest; it is there once there is one."""
        return self.log_folder(table) / "_last_checkpoint"

    def log_file(self, table: str, version: int) -> Path:
        """The file of one version in the Delta log."""
        return self.log_folder(table) / f"{version:020}.json"

    def log_texts(self, table: str) -> Iterator[tuple[int, str]]:
        """Every version that the log holds as a file of its own, with its text, oldest first."""
        for path in sorted(self.log_folder(table).glob("*.json")):
            if path.stem.isdigit():
                with contextlib.suppress(FileNotFoundError):  # cleaned up by another run meanwhile
                    yield int(path.stem), path.read_text(encoding="utf-8")

    def read_log(self, table: str, version: int) -> str | None:
        """The text of one version of the log; None where that version does not exist."""
        path = self.log_file(table, version)
        return path.read_text(encoding="utf-8") if path.exists() else None

    def sync(self, *paths: Path) -> None:
        """Makes what was written to files and folders last through a loss of power."""
        for path in paths:
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
        try:
            settings = json.loads((self.root / SETTINGS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return 0
        return int(settings["retain_ms"])

    def write_retain_ms(self, milliseconds: int, folder: Path) -> None:
        """Sets how long replaced data files stay."""
        self.write_text(SETTINGS, json.dumps({"retain_ms": milliseconds}), folder)

    def write_report(self, batch_id: str, text: str, folder: Path) -> None:
        """Keeps what a run did as `reports/<batch>.json`."""
        (self.root / REPORTS).mkdir(exist_ok=True)
        self.write_text(f"{REPORTS}/{batch_id}.json", text, folder)
        for path in self._reports()[:-REPORTS_KEPT]:
            path.unlink(missing_ok=True)

    def read_reports(self, newest: int) -> list[str]:
        """The texts of the newest reports, oldest first."""
        return [path.read_text(encoding="utf-8") for path in self._reports()[-newest:]]

    def _reports(self) -> list[Path]:
        """Oldest first: batch ids begin with the time."""
        return sorted((self.root / REPORTS).glob("*.json"))

    def write_text(self, name: str, text: str, folder: Path) -> None:
        """Writes a file beside the tables, whole or not at all, by way of a folder; the same text is left alone."""
        path = self.root / name
        if not path.exists() or path.read_bytes() != text.encode():
            written = folder / f"{uuid4()}.new"
            written.write_bytes(text.encode())
            written.replace(path)

    def move(self, old: Path, new: Path) -> None:
        """Renames within the lake, making the folder of the new place."""
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)

    def __repr__(self) -> str:
        return f"Place({str(self.root)!r})"


def new_name() -> str:
    """A file name that nobody else has."""
    return f"{uuid4()}.parquet"


def _local_folder(root: str) -> Path:
    """The absolute folder that a lake's name means; UsageError for a store that is not a folder."""
    if not root:
        raise UsageError("the lake has no name; give a folder, for example --lake ./lake")
    scheme = urlsplit(root).scheme if "://" in root else ""
    if scheme == "file":
        return Path(unquote(urlsplit(root).path)).absolute()
    if scheme:
        raise UsageError(f"a lake on {scheme}:// comes with a later version; give a local folder")
    return Path(os.path.abspath(root))  # noqa: PTH100  (resolves `..` and no symbolic links)
