"""The stored rollouts as a Polars source, which lists its files when it is collected and survives an ingest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from etl.errors import LakeError
from etl.lake import Lake
from etl.schema import PARTITIONS, arrow_schema

_KEYS = PARTITIONS["rollouts"]


def stored_rollouts(root: Path) -> pl.LazyFrame:
    """The stored columns of `rollouts` of the lake at `root`, the partition keys as text."""
    return register_io_source(partial(_batches, root), schema=_schema(), explain_name="rollouts")


def _schema() -> pl.Schema:
    plain = [pa.field(c.name, pa.string()) if c.name in _KEYS else c for c in arrow_schema("rollouts")]
    return pl.DataFrame(pa.schema(plain).empty_table()).schema


def _batches(
    root: Path, columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
) -> Iterator[pl.DataFrame]:
    """Frames with these columns, of rows that satisfy the predicate, at most so many: what Polars asks of a source.

    A file that an ingest replaces before anything was handed out makes it start over, once.
    """
    for last_try in (False, True):
        handed_out = False
        try:
            for batch in _frame(root, columns, predicate, n_rows).collect_batches(chunk_size=batch_size):
                handed_out = True
                yield batch
        except FileNotFoundError as error:
            if handed_out or last_try:
                message = "a file of the lake was replaced while it was being read; collect again"
                raise LakeError(message) from error
        else:
            return


def _frame(root: Path, columns: Sequence[str] | None, predicate: pl.Expr | None, n_rows: int | None) -> pl.LazyFrame:
    files = [file.path for file in Lake.open(root, older=True).live("rollouts")]
    schema = _schema()
    if files:
        as_text = {key: pl.String() for key in _KEYS}
        frame = pl.scan_parquet(files, hive_partitioning=True, hive_schema=as_text, glob=False).select(schema.names())
    else:
        frame = pl.LazyFrame(schema=schema)
    if predicate is not None:
        frame = frame.filter(predicate)
    if n_rows is not None:
        frame = frame.head(n_rows)
    return frame if columns is None else frame.select(columns)
