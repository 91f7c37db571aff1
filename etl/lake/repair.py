"""Taking data files that are gone out of a table, so that commits work again and their sources are read again."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from etl.lake.commit import Committing, commit_rows, try_again
from etl.lake.log import commit, snapshot
from etl.lake.lookup import Lookup


def drop_lost(to: Committing, table: str, paths: Sequence[str]) -> None:
    """Removes files that are not there from the newest version of a table; those that came back stay.

    What the lake knows of the files of their log streams is forgotten, so that the next ingest reads them again: rows
    that are still there are found unchanged, the lost ones come back where their sources do.
    """

    def attempt() -> set[str]:
        base = snapshot(to.place, table)
        lost = [path for path in paths if path in base.files and not to.place.data_file(table, path).exists()]
        if lost:
            info, now_ms = {"batch_id": to.batch.id}, int(to.clock() * 1000)
            commit(to.place, base, [], lost, info=info, now_ms=now_ms, lost=True)
        return {base.files[path].partition["source"] for path in lost}

    sources = try_again(to, table, attempt)
    if sources and table != "sources":
        _forget_files(to, sources)


def _forget_files(to: Committing, sources: set[str]) -> None:
    def decide(lookup: Lookup) -> None:
        lookup.table_of("streams", pa.table({"source": sorted(sources)}))
        of_streams = lookup.in_partitions(lambda partition: partition["source"] in sources)
        lookup.load("live", "uri", where="source::VARCHAR IN (FROM streams)", only=of_streams)
        lookup.run("INSERT INTO dropped SELECT 'live', file, position FROM live")

    commit_rows(to, "sources", [], decide)
