"""Lakes of version 2 say in `sources` how far a file was read, so that a grown one is read from there."""

from __future__ import annotations

import functools

import pyarrow as pa

from etl.lake.migrations import Migration
from etl.lake.migrations.adding import with_columns

_COLUMNS = {
    "read_bytes": pa.int64(),
    "read_lines": pa.int64(),
    "read_sha256": pa.string(),
    "read_counts": pa.string(),
}

MIGRATION = Migration(
    "sources says how far a file was read", {"sources": functools.partial(with_columns, columns=_COLUMNS)}
)
