"""Which version of the product wrote a table, as the metadata of its Delta log says."""

from __future__ import annotations

import functools
import re

import pyarrow as pa
from deltalake import DeltaTable, Schema

from etl.errors import LakeError
from etl.lake.migrations import present_version
from etl.lake.place import Place
from etl.schema import SCHEMA_VERSION, arrow_schema

VERSION_KEY = "etl.schema_version"
_FIRST = "rollout.v1"
"""What lakes of version 1 say, which had no version of their own."""
_STAMP = re.compile(r"(?:lake|rollout)\.v(\d{1,9})")
_READER, _WRITER = 1, 2
"""The Delta protocol of our tables."""


def stamp() -> str:
    """What a table of the present version says."""
    return f"lake.v{present_version()}"


def stamped(delta: DeltaTable, place: Place, table: str) -> int:
    """The version of a table; LakeError where a newer product or a newer Delta wrote it, or it is none of ours."""
    folder = place.table(table)
    protocol = delta.protocol()
    if protocol.min_reader_version > _READER or protocol.min_writer_version > _WRITER:
        raise LakeError(
            f"{folder} needs Delta reader {protocol.min_reader_version} and writer "
            f"{protocol.min_writer_version}, this version of etl knows {_READER} and {_WRITER}: upgrade rollout-etl"
        )
    written = delta.metadata().configuration.get(VERSION_KEY)
    match = _STAMP.fullmatch(written or "")
    if match is None:
        raise LakeError(f"{folder} has the schema {written or 'of another program'}: choose another lake")
    version, ours = int(match[1]), present_version()
    is_row_schema = str(written).startswith("rollout") and written != _FIRST
    if version > ours or (is_row_schema and version > 1):
        raise LakeError(f"{folder} has the schema {written}, this version of etl knows {stamp()}: upgrade rollout-etl")
    return version


def check_present(delta: DeltaTable, place: Place, table: str) -> None:
    """LakeError where a table is not of the present version, or another program changed its columns."""
    version = stamped(delta, place, table)
    if version < present_version():
        raise LakeError(
            f"{place.root} is a lake of version {version}, this version of etl writes version {present_version()}: "
            f"run `etl migrate --lake {place.root}`"
        )
    fields = pa.schema(delta.schema().to_arrow())
    wanted = _columns(table)
    if not fields.equals(wanted):
        names = sorted({*fields.names} ^ {*wanted.names}) or ["the types of columns"]
        raise LakeError(
            f"{place.table(table)} differs from {SCHEMA_VERSION} in {', '.join(names)}: another program changed it"
        )


@functools.cache
def _columns(table: str) -> pa.Schema:
    """The columns of a table as its Delta log gives them."""
    return pa.schema(Schema.from_arrow(arrow_schema(table)).to_arrow())
