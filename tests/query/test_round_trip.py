"""Arrow → Parquet → Delta → Arrow is the identity, for every table: a full row, a row of nulls, and generated rows."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from hypothesis import given
from hypothesis import strategies as st

from etl.schema import PARTITIONS, TABLES, arrow_schema
from tests.examples import examples

_MOMENT = dt.datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=dt.UTC)
_FIRST, _LAST = dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)  # noqa: DTZ001  (the zone is drawn apart)
_LEAVES: dict[pa.DataType, Any] = {
    pa.string(): 'text "1e5" \u0000 é 🙂 \u2028 {}',
    pa.int8(): -128,
    pa.int32(): 2**31 - 1,
    pa.int64(): 2**53 + 1,
    pa.float32(): 0.5,
    pa.float64(): 0.1 + 0.2,
    pa.bool_(): True,
    pa.binary(): b"\x00\xff",
    pa.timestamp("us", tz="UTC"): _MOMENT,
}


def full(arrow: pa.DataType) -> Any:
    """A value of a type in which nothing is null or empty."""
    if pa.types.is_dictionary(arrow):
        return "a b/ü%20"
    if pa.types.is_list(arrow):
        return [full(arrow.value_type), full(arrow.value_type)]
    if pa.types.is_struct(arrow):
        return {field.name: full(field.type) for field in arrow}
    return _LEAVES[arrow]


def values(arrow: pa.DataType) -> st.SearchStrategy[Any]:
    """Any value of a type, null included."""
    if pa.types.is_dictionary(arrow) or pa.types.is_string(arrow):
        strategy: st.SearchStrategy[Any] = st.text(st.characters(codec="utf-8"), max_size=8)
    elif pa.types.is_list(arrow):
        strategy = st.lists(values(arrow.value_type), max_size=3)
    elif pa.types.is_struct(arrow):
        strategy = st.fixed_dictionaries({field.name: values(field.type) for field in arrow})
    elif pa.types.is_integer(arrow):
        strategy = st.integers(-(2 ** (arrow.bit_width - 1)), 2 ** (arrow.bit_width - 1) - 1)
    elif pa.types.is_floating(arrow):
        strategy = st.floats(width=arrow.bit_width, allow_nan=False)
    elif pa.types.is_timestamp(arrow):
        strategy = st.datetimes(_FIRST, _LAST, timezones=st.just(dt.UTC))
    else:
        strategy = st.booleans() if pa.types.is_boolean(arrow) else st.binary(max_size=8)
    return st.none() | strategy


def through_delta(folder: Path, table: str, data: pa.Table) -> pa.Table:
    """The rows after a Parquet file, a Delta commit and a read of the file that Delta names."""
    text_keys = [pa.field(f.name, pa.string()) if f.name in PARTITIONS[table] else f for f in arrow_schema(table)]
    delta = DeltaTable.create(folder, pa.schema(text_keys), partition_by=list(PARTITIONS[table]))
    pq.write_table(data, folder / "part.parquet", compression="zstd")
    size = (folder / "part.parquet").stat().st_size
    keys = {key: data.column(key)[0].as_py() for key in PARTITIONS[table]}
    add = AddAction("part.parquet", size, keys, int(time.time() * 1000), True, json.dumps({"numRecords": 1}))
    delta.create_write_transaction([add], "append", pa.schema(text_keys), partition_by=list(PARTITIONS[table]))
    (uri,) = DeltaTable(folder).file_uris()
    return pq.ParquetFile(uri).read()


@pytest.mark.parametrize("table", TABLES)
def test_a_full_row_survives(table: str, tmp_path: Path) -> None:
    schema = arrow_schema(table)
    data = pa.Table.from_pylist([{field.name: full(field.type) for field in schema}], schema=schema)
    back = through_delta(tmp_path, table, data)
    assert back.schema.equals(schema)
    assert back.equals(data)


@pytest.mark.parametrize("table", TABLES)
def test_a_row_of_nulls_survives(table: str, tmp_path: Path) -> None:
    schema = arrow_schema(table)
    data = pa.Table.from_pylist([dict.fromkeys(schema.names)], schema=schema)
    back = through_delta(tmp_path, table, data)
    assert back.schema.equals(schema)
    assert back.equals(data)


@pytest.mark.parametrize("table", TABLES)
@examples(15)
@given(data=st.data())
def test_any_rows_survive_and_duckdb_reads_the_same(table: str, data: st.DataObject) -> None:
    schema = arrow_schema(table)
    row = st.fixed_dictionaries({field.name: values(field.type) for field in schema})
    rows = pa.Table.from_pylist(data.draw(st.lists(row, min_size=1, max_size=2)), schema=schema)
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/part.parquet"
        pq.write_table(rows, file, compression="zstd")
        assert pq.ParquetFile(file).read().equals(rows)
        read = duckdb.connect().execute("SELECT * FROM read_parquet($1)", [file]).fetchall()
    assert read == [tuple(row.values()) for row in rows.to_pylist()]
