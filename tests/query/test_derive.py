"""`schemas/` says what the row says, and DuckDB reads the row as the DDL says."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from etl.derive import documented, drifted, main, sql_type
from etl.flags import FLAGS
from etl.schema import TABLES, arrow_schema
from etl.shipped import schema_text, shipped


def test_the_committed_files_have_not_drifted() -> None:
    assert drifted(shipped("schemas")) == []
    assert main(["--check"]) == 0


def test_drift_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in shipped("schemas").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "rollout.v1.sql").write_text("-- something else\n")
    (tmp_path / "rollout.v1.md").unlink()
    assert drifted(tmp_path) == ["rollout.v1.sql", "rollout.v1.md"]
    assert main(["--fix"]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_explained_and_every_number_has_a_unit(table: str) -> None:
    for column in documented(TABLES[table]):
        assert column.description.endswith((".", "…")), column.path
        leaf = column.arrow.value_type if pa.types.is_list(column.arrow) else column.arrow
        if pa.types.is_integer(leaf) or pa.types.is_floating(leaf) or pa.types.is_timestamp(leaf):
            assert column.unit, f"{table}.{column.path} has no unit"


@pytest.mark.parametrize("table", TABLES)
def test_duckdb_reads_a_file_with_the_types_of_the_ddl(table: str, tmp_path: Path) -> None:
    schema = arrow_schema(table)
    pq.write_table(pa.Table.from_pylist([dict.fromkeys(schema.names)], schema=schema), tmp_path / "file.parquet")
    connection = duckdb.connect()
    connection.execute(schema_text("rollout.v1.sql"))
    declared = connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE {table})").fetchall()
    read = connection.execute(
        "SELECT column_name, column_type FROM (DESCRIBE FROM read_parquet($1))", [str(tmp_path / "file.parquet")]
    ).fetchall()
    assert declared == read


def test_the_ddl_explains_its_columns() -> None:
    connection = duckdb.connect()
    connection.execute(schema_text("rollout.v1.sql"))
    comments = "SELECT count(*), count(comment) FROM duckdb_columns() WHERE table_name = 'rollouts'"
    assert connection.execute(comments).fetchall() == [(52, 52)]


def test_the_reference_has_every_column_field_and_flag() -> None:
    text = schema_text("rollout.v1.md")
    for table, model in TABLES.items():
        assert f"## `{table}`" in text
        for column in documented(model):
            assert f"| `{column.path}` |" in text
    for flag in FLAGS:
        assert f"| `{flag}` |" in text


def test_the_json_schema_has_every_column() -> None:
    schema = json.loads(schema_text("rollout.v1.schema.json"))
    assert list(schema["properties"]) == list(TABLES)
    for table, model in TABLES.items():
        definition = schema["$defs"][model.__name__]
        assert list(definition["properties"]) == arrow_schema(table).names
        assert definition["additionalProperties"] is False


def test_types_that_no_column_has_yet_are_refused() -> None:
    with pytest.raises(KeyError):
        sql_type(pa.large_string())
