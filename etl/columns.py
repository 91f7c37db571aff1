"""Rows into Arrow columns: flat Python lists and offsets, never a dict per row.

Each nested column is built from its leaves with `ListArray.from_arrays` and `StructArray.from_arrays`; types come
from the one schema, so a column that is all null has the same type as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any

import pyarrow as pa

from etl.row import Row
from etl.schema import SCHEMA_VERSION, arrow_schema

SCHEMA = arrow_schema("rollouts")
_NESTED = frozenset(
    {
        "messages",
        "message_info",
        "steps",
        "judgments",
        "scenario",
        "usage",
        "seeded",
        "flags",
        "token_ids",
        "loss_mask",
        "logprobs",
    }
)
_BATCH = frozenset({"schema_version", "batch_id", "ingested_at"})
_PLAIN_NAMES = [name for name in SCHEMA.names if name not in _NESTED and name not in _BATCH]
_plain_values = attrgetter(*_PLAIN_NAMES)


def rollouts_table(rows: Sequence[Row], batch_id: str, ingested_at: int) -> pa.Table:
    """The rows as a table of the one schema; `ingested_at` in microseconds."""
    count = len(rows)
    plain = dict(
        zip(
            _PLAIN_NAMES, zip(*map(_plain_values, rows), strict=True) if rows else [()] * len(_PLAIN_NAMES), strict=True
        )
    )
    plain["schema_version"] = (SCHEMA_VERSION,) * count
    plain["batch_id"] = (batch_id,) * count
    plain["ingested_at"] = (ingested_at,) * count
    arrays = []
    for field in SCHEMA:
        if field.name in plain:
            arrays.append(column(plain[field.name], field.type))
        elif field.name == "messages":
            arrays.append(_messages(rows, field.type))
        elif pa.types.is_struct(field.type):
            arrays.append(_structs([getattr(row, field.name) for row in rows], field.type))
        elif pa.types.is_struct(field.type.value_type):
            arrays.append(_list_of_structs([getattr(row, field.name) for row in rows], field.type))
        else:
            arrays.append(pa.array([getattr(row, field.name) for row in rows], field.type))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """One flat column; partition keys are dictionary-encoded."""
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode().cast(kind)
    if values and values[0] is None and values.count(None) == len(values):
        return pa.nulls(len(values), kind)
    return pa.array(values, kind)


def _offsets(lengths: Iterable[int]) -> pa.Array:
    return pa.array([0, *accumulate(lengths)], pa.int32())


def _struct_of(columns: Sequence[Sequence[Any]], kind: pa.StructType) -> pa.StructArray:
    return pa.StructArray.from_arrays(
        [column(values, field.type) for values, field in zip(columns, kind, strict=True)], fields=list(kind)
    )


def _transposed(tuples: Sequence[tuple[Any, ...]], width: int) -> list[tuple[Any, ...]]:
    return list(zip(*tuples, strict=True)) if tuples else [()] * width


def _list_of_structs(lists: list[list[tuple[Any, ...]]], kind: pa.ListType) -> pa.ListArray:
    flat = [item for items in lists for item in items]
    values = _struct_of(_transposed(flat, kind.value_type.num_fields), kind.value_type)
    return pa.ListArray.from_arrays(_offsets(map(len, lists)), values, type=kind)


def _structs(values: list[tuple[Any, ...] | None], kind: pa.StructType) -> pa.StructArray:
    blank = (None,) * kind.num_fields
    columns = [
        column(items, field.type)
        for items, field in zip(_transposed([v or blank for v in values], kind.num_fields), kind, strict=True)
    ]
    return pa.StructArray.from_arrays(
        columns, fields=list(kind), mask=pa.array([value is None for value in values], pa.bool_())
    )


def _messages(rows: Sequence[Row], kind: pa.ListType) -> pa.ListArray:
    lists = [row.messages for row in rows]
    flat = [message for messages in lists for message in messages]
    columns = _transposed(flat, kind.value_type.num_fields)
    fields = list(kind.value_type)
    arrays = [
        _tool_calls(values, field.type) if field.name == "tool_calls" else column(values, field.type)
        for values, field in zip(columns, fields, strict=True)
    ]
    values = pa.StructArray.from_arrays(arrays, fields=fields)
    return pa.ListArray.from_arrays(_offsets(map(len, lists)), values, type=kind)


def _tool_calls(lists: Sequence[list[tuple[str, str, str]] | None], kind: pa.ListType) -> pa.ListArray:
    flat = [call for calls in lists if calls for call in calls]
    ids, names, arguments = _transposed(flat, 3)
    call = kind.value_type
    function = _struct_of([names, arguments], call.field("function").type)
    values = pa.StructArray.from_arrays(
        [pa.array(ids, pa.string()), pa.array(("function",) * len(flat), pa.string()), function], fields=list(call)
    )
    offsets = _offsets(len(calls) if calls else 0 for calls in lists)
    mask = pa.array([calls is None for calls in lists], pa.bool_())
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=mask)
