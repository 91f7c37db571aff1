"""Migrations that add columns."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa


def with_columns(rows: pa.Table, columns: Mapping[str, pa.DataType]) -> pa.Table:
    """The rows with more columns, all null; those that are there stay."""
    for name, kind in columns.items():
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, kind))
    return rows
