"""Files that a lake knows below the folders of a run, and that lie there no more: vanished, or moved to another place.

Their rows stay: what was logged has happened. Only names are compared, some thousands at a time; the disk is asked
where more names are known than were found.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from etl.lake import Lake, open_parquet
from etl.remote import is_remote
from etl.report import UNDETECTED
from etl.walk import absolute, is_folder

if TYPE_CHECKING:
    from etl.changes import Change
    from etl.report import Report

_ROWS = 10_000


class _Known(NamedTuple):
    uri: str
    sha256: str | None


class Gone:
    """What a run finds of what is known below its folders."""

    def __init__(self, lake: Lake, source: str | None, batch_id: str, roots: Sequence[str]) -> None:
        self._lake = lake
        self._source = source
        self._batch_id = batch_id
        whole = (absolute(root) for root in roots if not is_remote(root))
        self._folders = [folder.removesuffix("/") + "/" for folder in whole if is_folder(folder)]
        self._are_folders = len(self._folders) == len(roots)
        self._kept = 0
        self.missing = 0
        """Files that are known and lie there no more, wherever else."""
        self.is_certain = True
        """Whether each file that is known below the folders was found, or is missing."""
        self._named: set[str] = set()

    def told(self, changes: Sequence[Change]) -> Sequence[Change]:
        """The same files, which were found."""
        below = tuple(self._folders)
        for change in changes if below else ():
            file = change.file
            self._kept += not change.is_read and file.uri.startswith(below)
            if not file.uri.startswith(file.place):
                self._named.add(file.uri)  # nothing lies there by that name
        return changes

    def tell(self, report: Report) -> None:
        """Say what has gone, once everything is committed."""
        known_below = sum(rows.num_rows for rows in self._rows(below=True)) if self._folders else 0
        if known_below <= self._kept:
            return
        missing = [known for known in self._names(below=True) if not self._is_there(known.uri)]
        self.missing = len(missing)
        self.is_certain = self._are_folders and known_below - self.missing == self._kept
        gone = {*missing}
        digests = {known.sha256 for known in gone} - {None}
        elsewhere = {
            known.sha256 for known in self._names(below=False) if known.sha256 in digests and known not in gone
        }
        report.vanished = sum(known.sha256 not in elsewhere for known in gone)
        report.count_moved(digests & elsewhere)

    def _is_there(self, uri: str) -> bool:
        return uri in self._named or os.path.lexists(uri) or ("!" in uri and os.path.lexists(uri.partition("!")[0]))

    def _names(self, *, below: bool) -> Iterator[_Known]:
        for rows in self._rows(below=below):
            yield from map(_Known, rows["uri"].to_pylist(), rows["sha256"].to_pylist())

    def _rows(self, *, below: bool) -> Iterator[pa.RecordBatch]:
        """What is known of the source; `below` the folders only, and but for what this run has read."""
        for file in self._lake.live("sources"):
            source = file.partition["source"]
            if self._source not in (None, source):
                continue
            with open_parquet(file.path) as opened:
                columns = ["uri", "sha256", "adapter", "batch_id"]
                for rows in opened.iter_batches(_ROWS, columns=columns, use_threads=False):
                    if self._source is None and source != UNDETECTED:
                        # Without a name for the source each file is known under that of its adapter.
                        rows = rows.filter(pc.equal(rows["adapter"], source))
                    yield rows.filter(self._is_below(rows)) if below else rows

    def _is_below(self, rows: pa.RecordBatch) -> pa.Array:
        starts = (pc.starts_with(rows["uri"], folder) for folder in self._folders)
        return pc.and_(functools.reduce(pc.or_, starts), pc.not_equal(rows["batch_id"], self._batch_id))
