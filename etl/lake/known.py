"""What `sources` says of files that were read before.

A run asks for the files that it has just found, some thousands at a time: they lie close to each other in the order of
their names, and so does what earlier runs wrote of them, so that the statistics of most row groups say that there is
nothing to be found in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from etl.lake.log import LiveFile
from etl.lake.parquet import open_parquet

_ROWS = 10_000
"""Rows of `sources` in memory at a time."""


class KnownFile(NamedTuple):
    """What `sources` says of a file that was read before (as `schema.SourceFile`)."""

    uri: str
    size: int
    modified_at: int | None
    """Microseconds since 1970."""
    sha256: str | None
    adapter: str | None
    adapter_version: int | None
    state: str
    rows: int
    rejects: int
    records_in: int
    records_used: int
    read_bytes: int | None = None
    read_sha256: str | None = None
    read_counts: str | None = None
    error: str | None = None

    def whole(self) -> KnownFile:
        """The same of a file that is to be read from its beginning."""
        return self._replace(read_bytes=None, read_sha256=None, read_counts=None)


def known_files(
    live: Sequence[LiveFile], sources: Set[str] | None, uris: Sequence[str] | None
) -> dict[str, dict[str, KnownFile]]:
    """Source → uri → what is known, for these sources (None: all that there are) and these files (None: all)."""
    found: dict[str, dict[str, KnownFile]] = {source: {} for source in sorted(sources or ())}
    wanted = None if uris is None else pa.array(uris, pa.string())
    for file in live:
        source = file.partition["source"]
        if sources is None or source in sources:
            of_source = found.setdefault(source, {})
            with open_parquet(file.path) as opened:
                for rows in _rows(opened, wanted):
                    of_source.update(rows)
    return found


def first_uri(path: str) -> str:
    """The least name in a file of `sources`; merged in this order, files that lie apart stay apart."""
    with open_parquet(path) as opened:
        ends = [_ends(opened.metadata.row_group(group)) for group in range(opened.num_row_groups)]
    return min((told[0] for told in ends if told is not None), default="")


def _rows(opened: pq.ParquetFile, wanted: pa.Array | None) -> Iterator[dict[str, KnownFile]]:
    groups = list(range(opened.num_row_groups))
    if wanted is not None and len(wanted):
        ends = pc.min_max(wanted)
        first, last = ends["min"].as_py(), ends["max"].as_py()
        groups = [group for group in groups if _may_hold(opened.metadata.row_group(group), first, last)]
    columns = list(KnownFile._fields)
    for batch in opened.iter_batches(_ROWS, groups, columns, use_threads=False) if groups else ():
        rows = batch.select(columns)
        if wanted is not None:
            rows = rows.filter(pc.is_in(rows["uri"], value_set=wanted))
        # As a number: Arrow makes times with pandas where that is installed, which takes long to load.
        at = columns.index("modified_at")
        values = [column.cast("int64") if number == at else column for number, column in enumerate(rows.columns)]
        told = map(KnownFile._make, zip(*(column.to_pylist() for column in values), strict=True))
        yield {known.uri: known for known in told}


def _may_hold(group: pq.RowGroupMetaData, first: str, last: str) -> bool:
    """Whether the statistics of a row group allow for names between these two."""
    told = _ends(group)
    return told is None or (told[0] <= last and told[1] >= first)


def _ends(group: pq.RowGroupMetaData) -> tuple[str, str] | None:
    """The least and the greatest name in a row group; None where it does not say."""
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema == "uri":
            told = column.statistics
            return None if told is None or not told.has_min_max else (told.min, told.max)
    return None
