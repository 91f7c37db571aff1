"""What `schemas/` holds that follows from the row: JSON Schema, DDL, column reference, typed empty tables of the views.

`python -m etl.derive` writes the files, `--check` only says which of them differ (exit 1). They are committed, so that
a reader, a diff and a test see them.
"""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from etl.flags import FLAGS
from etl.schema import PARTITIONS, SCHEMA_VERSION, TABLES, arrow_schema, arrow_type, describe
from etl.shipped import schema_text, shipped

_SQL_TYPES: dict[pa.DataType, str] = {
    pa.string(): "VARCHAR",
    pa.int8(): "TINYINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.binary(): "BLOB",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
}

_UNITS: dict[str, str] = {
    "adapter_version": "version",
    "cache_write_tokens": "tokens",
    "cached_tokens": "tokens",
    "cost_usd": "US dollars",
    "duration_ms": "milliseconds",
    "input_tokens": "tokens",
    "length": "bytes",
    "logprobs": "nats",
    "loss_mask": "0 or 1",
    "message_index": "place, from 0",
    "n_records": "records",
    "n_steps": "calls",
    "n_turns": "turns",
    "output_tokens": "tokens",
    "prompt_len": "messages",
    "read_bytes": "bytes",
    "read_lines": "lines",
    "reasoning_tokens": "tokens",
    "records_in": "records",
    "records_used": "records",
    "rejects": "records",
    "result_index": "place, from 0",
    "reward": "as logged",
    "rows": "rows",
    "sample_index": "place, from 0",
    "seed": "number",
    "size": "bytes",
    "source_line": "line, from 1",
    "source_offset": "byte, from 0",
    "token_ids": "token ids",
    "value": "as logged",
}
"""Unit of every column that holds numbers, by name; a test asks for one for each."""

_BEGIN = "-- derived from etl/schema.py by `python -m etl.derive`: begin\n"
_END = "-- derived: end\n"


class Documented(NamedTuple):
    """One line of the column reference: a column, or a field inside one (`steps[].tool`)."""

    path: str
    arrow: pa.DataType
    nullable: bool
    values: tuple[str, ...]
    """The words it can hold, where they are a closed set."""
    description: str

    @property
    def unit(self) -> str:
        """What its numbers count; for times the clock; empty for text and structures."""
        if pa.types.is_timestamp(self.arrow):
            return "UTC, µs"
        return _UNITS.get(self.path.rpartition(".")[2].removesuffix("[]"), "") if _is_numeric(self.arrow) else ""


def sql_type(arrow: pa.DataType) -> str:
    """The DuckDB type that a stored type is read as.

    >>> sql_type(pa.list_(pa.struct([("name", pa.string())])))
    'STRUCT("name" VARCHAR)[]'
    """
    if pa.types.is_dictionary(arrow):
        return sql_type(arrow.value_type)
    if pa.types.is_list(arrow):
        return f"{sql_type(arrow.value_type)}[]"
    if pa.types.is_struct(arrow):
        fields = ", ".join(f'"{field.name}" {sql_type(field.type)}' for field in arrow)
        return f"STRUCT({fields})"
    return _SQL_TYPES[arrow]


def documented(model: type[BaseModel], prefix: str = "") -> Iterator[Documented]:
    """Every column of a model and every field inside it, depth first."""
    describe(model)
    hints = typing.get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        annotation = hints[name]
        options = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
        nullable = type(None) in options
        bare = next(option for option in options if option is not type(None))
        path = prefix + name
        yield Documented(path, arrow_type(bare), nullable, _words(bare), _one_line(field.description))
        if typing.get_origin(bare) is list:
            bare, path = typing.get_args(bare)[0], f"{path}[]"
        if isinstance(bare, type) and issubclass(bare, BaseModel):
            yield from documented(bare, f"{path}.")


def json_schema() -> str:
    """JSON Schema of a lake as one object of four arrays of rows; timestamps are ISO 8601, bytes are text."""
    modes = [(model, typing.cast("Any", "serialization")) for model in TABLES.values()]
    _, schema = models_json_schema(
        modes,
        title=SCHEMA_VERSION,
        description="The tables of a lake, each an array of rows.",
        ref_template="#/$defs/{model}",
    )
    tables = {name: {"type": "array", "items": {"$ref": f"#/$defs/{model.__name__}"}} for name, model in TABLES.items()}
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": schema["title"],
        "description": schema["description"],
        "type": "object",
        "properties": tables,
        "$defs": _on_one_line(schema["$defs"]),
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def ddl() -> str:
    """CREATE TABLE and COMMENT statements of all tables, for DuckDB."""
    statements = [f"-- {SCHEMA_VERSION}: the tables of a lake as DuckDB reads them. Derived by `python -m etl.derive`."]
    for table, model in TABLES.items():
        columns = [column for column in documented(model) if "." not in column.path]
        width = max(len(column.path) for column in columns) + 2
        lines = ",\n".join(
            f"    {_named(column.path):<{width}} {sql_type(column.arrow)}{'' if column.nullable else ' NOT NULL'}"
            for column in columns
        )
        statements.append(f"\nCREATE TABLE {table} (\n{lines}\n);")
        statements.append(f"COMMENT ON TABLE {table} IS {quoted(_about(model))};")
        comments = [
            f"COMMENT ON COLUMN {table}.{_named(column.path)} IS {quoted(column.description)};" for column in columns
        ]
        statements += comments
    return "\n".join(statements) + "\n"


def reference() -> str:
    """The column reference: every column of every table with type, unit and meaning, and the list of flags."""
    parts = [
        f"# Column reference ({SCHEMA_VERSION})\n",
        "Derived from `etl/schema.py` by `python -m etl.derive`. Types are DuckDB's. Times are UTC with microseconds,",
        "JSON is stored as text, `null` marks what can be null, and a list that has nothing in it is `[]`.\n",
    ]
    for table, model in TABLES.items():
        keys = ", ".join(f"`{key}`" for key in PARTITIONS[table])
        parts += [f"## `{table}`\n", f"{_about(model)} Partitioned by {keys}.\n"]
        parts += ["| column | type | unit | null | meaning |", "|---|---|---|---|---|"]
        parts += [_reference_line(column) for column in documented(model)]
        parts.append("")
    parts += ["## Flags\n", "What `rollouts.flags` can hold.\n", "| flag | meaning |", "|---|---|"]
    parts += [f"| `{name}` | {meaning} |" for name, meaning in sorted(FLAGS.items())]
    return "\n".join(parts) + "\n"


def views(current: str) -> str:
    """`views.sql` with the typed empty tables (for a table that has no file yet) in their place."""
    head, _, rest = current.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    empties = "".join(
        f"CREATE OR REPLACE TEMP TABLE etl_no_{table} AS SELECT {_nulls(arrow_schema(table))} WHERE false;\n"
        for table in TABLES
    )
    return f"{head}{_BEGIN}{empties}{_END}{tail}"


def derived() -> dict[str, str]:
    """Name of every derived file → the text it must have."""
    return {
        f"{SCHEMA_VERSION}.schema.json": json_schema(),
        f"{SCHEMA_VERSION}.sql": ddl(),
        f"{SCHEMA_VERSION}.md": reference(),
        "views.sql": views(schema_text("views.sql")),
    }


def drifted(folder: Path) -> list[str]:
    """Names of the files in `folder` that are not what the row says."""
    return [
        name
        for name, text in derived().items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def quoted(text: str) -> str:
    """A string literal of SQL.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def main(arguments: Sequence[str]) -> int:
    """Write the files, or with `--check` name those that differ. Returns the exit code."""
    if list(arguments) not in ([], ["--check"]):
        sys.stderr.write("usage: python -m etl.derive [--check]\n")
        return 2
    folder = shipped("schemas")
    stale = drifted(folder)
    if arguments:
        sys.stderr.writelines(f"{folder / name} has drifted; run: python -m etl.derive\n" for name in stale)
        return 1 if stale else 0
    for name, text in derived().items():
        if name in stale:
            (folder / name).write_text(text, encoding="utf-8")
            sys.stderr.write(f"wrote {folder / name}\n")
    return 0


def _reference_line(column: Documented) -> str:
    nested = pa.types.is_struct(column.arrow) or (
        pa.types.is_list(column.arrow) and pa.types.is_struct(column.arrow.value_type)
    )
    shown = ("STRUCT[]" if pa.types.is_list(column.arrow) else "STRUCT") if nested else sql_type(column.arrow)
    meaning = column.description.replace("|", "\\|")
    if column.values and not all(word in column.description for word in column.values):
        meaning += f" One of: {', '.join(column.values)}."
    return f"| `{column.path}` | {shown} | {column.unit} | {'null' if column.nullable else ''} | {meaning} |"


def _named(column: str) -> str:
    """A column name of SQL; `at` is a word of DuckDB's grammar."""
    return f'"{column}"'


def _nulls(schema: pa.Schema) -> str:
    return ", ".join(f"NULL::{sql_type(field.type)} AS {_named(field.name)}" for field in schema)


def _about(model: type[BaseModel]) -> str:
    return _one_line(model.__doc__)


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _on_one_line(schema: Any) -> Any:
    """A JSON Schema whose descriptions do not show where the source code wraps."""
    if isinstance(schema, dict):
        return {
            k: _one_line(v) if k == "description" and isinstance(v, str) else _on_one_line(v) for k, v in schema.items()
        }
    return [_on_one_line(item) for item in schema] if isinstance(schema, list) else schema


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def _words(annotation: Any) -> tuple[str, ...]:
    return typing.get_args(annotation) if typing.get_origin(annotation) is typing.Literal else ()


def _is_numeric(arrow: pa.DataType) -> bool:
    if pa.types.is_list(arrow):
        return _is_numeric(arrow.value_type)
    return bool(pa.types.is_integer(arrow) or pa.types.is_floating(arrow))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
