"""Tables as JSON Lines: Parquet, Arrow IPC (file and stream form) and delimited text, told by content.

One row is one record `{column: value}`, so that every adapter reads a table as it reads JSON. Timestamps become ISO
8601 text with their zone and all their digits, bytes base64, decimals text, maps objects (a key that a map has twice,
the object has twice). A null member of a nested struct is left out: columns hold the union of the members of all rows,
so null there says the same as absent. NaN and infinity become null, as JSON has neither. Cells of delimited text stay
text.

Line N is row N; for delimited text it is the line of the file, its header included. Offsets count in the JSON text.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from etl.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET = b"PAR1"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
BATCH_ROWS = 256
"""Rows made Python values at once: a row may hold a long conversation."""

_DELIMITERS = ",\t;|"
SNIFFED = 1 << 16
"""How much of a text its delimiter is told from."""
_COLUMN = re.compile(r"[\w .:/()\[\]#@$%&*+?-]{1,120}")
_ROWS_SNIFFED = 20
_HEAD = 1024
"""Characters kept of a line that is too long."""


def columnar(head: bytes) -> Callable[[Path], Iterator[bytes]] | None:
    """What reads a file of columns that begins with `head`, as JSON Lines; None where it is none."""
    if head.startswith(PARQUET):
        return _parquet
    if head.startswith(ARROW_FILE):
        return _arrow_file
    if head.startswith(ARROW_STREAM) and len(head) > 16 and head[4:8] != ARROW_STREAM:
        return _arrow_stream
    return None


def _parquet(path: Path) -> Iterator[bytes]:
    import pyarrow.parquet as pq

    def batches() -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=BATCH_ROWS, use_threads=False)

    return _lines("Parquet", batches())


def _arrow_file(path: Path) -> Iterator[bytes]:
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as file:
            for number in range(file.num_record_batches):
                yield file.get_batch(number)

    return _lines("Arrow", batches())


def _arrow_stream(path: Path) -> Iterator[bytes]:
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as stream:
            yield from stream

    return _lines("Arrow", batches())


def _lines(kind: str, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Blocks of lines. SourceError, with the rows given so far, where the file cannot be read on."""
    import pyarrow as pa

    given = 0
    encoder = msgspec.json.Encoder(decimal_format="string")
    try:
        for batch in batches:
            batch.validate(full=True)  # Arrow ends the process, or reads beyond, where lengths lie
            names = _distinct(batch.schema.names)
            schema = pa.schema([field.with_type(_json_type(field.type)) for field in batch.schema])
            for start in range(0, batch.num_rows, BATCH_ROWS):
                part = batch.slice(start, BATCH_ROWS)
                columns = [column.cast(field.type) for column, field in zip(part.columns, schema, strict=True)]
                values = [_values(column, encoder) for column in columns]
                rows = [dict(zip(names, map(_without_nulls, row), strict=True)) for row in zip(*values, strict=True)]
                yield encoder.encode_lines(rows or [{}] * part.num_rows)
                given += part.num_rows
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200]
        raise SourceError(f"{kind} file cannot be read after row {given} ({reason}); copy or write it again") from None


def _values(column: pa.Array, encoder: msgspec.json.Encoder) -> list[Any]:
    """The cells of a column as Python values, maps as dicts."""
    try:
        return list(column.to_pylist(maps_as_pydicts="strict"))
    except KeyError:  # a map has a key twice
        return [_objects(cell, column.type, encoder) for cell in column.to_pylist()]


def _objects(value: Any, type: pa.DataType, encoder: msgspec.json.Encoder) -> Any:
    """The value with its maps (lists of pairs) as dicts; as JSON text where a key is there twice."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_map(type):
        pairs = [(key, _without_nulls(_objects(item, type.item_type, encoder))) for key, item in value]
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        return msgspec.Raw(b"{%b}" % b",".join(b"%b:%b" % (*map(encoder.encode, pair),) for pair in pairs))
    if pa.types.is_struct(type):
        return {field.name: _objects(value[field.name], field.type, encoder) for field in type}
    if isinstance(value, list):
        return [_objects(item, type.value_type, encoder) for item in value]
    return value


def _distinct(names: list[str]) -> list[str]:
    """The names; one that is there twice is `NAME_N` in its column N, so that no cell is lost.

    >>> _distinct(["a", "a", "a_3", "a_2"])
    ['a', 'a_2_', 'a_3', 'a_2']
    """
    if len(set(names)) == len(names):
        return names
    found: dict[str, None] = {}
    for number, name in enumerate(names, 1):
        other = name
        if other in found:
            other = f"{name}_{number}"
            while other in found or other in names:
                other += "_"
        found[other] = None
    return list(found)


def _json_type(type: pa.DataType) -> pa.DataType:
    """The type with what JSON and Python lack replaced: timestamps by text, durations by their count of units."""
    import pyarrow as pa

    if pa.types.is_timestamp(type) or pa.types.is_time(type) or pa.types.is_date(type):
        return pa.string()  # Python has no dates beyond the year 9999
    if pa.types.is_null(type):
        return pa.string()  # a cast of nulls inside a struct inside a list fails otherwise
    if pa.types.is_duration(type):
        return pa.int64()
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(_json_type(field.type)) for field in type])
    if pa.types.is_map(type):
        return pa.map_(pa.string(), _json_type(type.item_type))
    if pa.types.is_fixed_size_list(type):
        return pa.list_(type.value_field.with_type(_json_type(type.value_type)), type.list_size)
    if pa.types.is_large_list(type):
        return pa.large_list(type.value_field.with_type(_json_type(type.value_type)))
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(_json_type(type.value_type)))
    if pa.types.is_dictionary(type):
        return _json_type(type.value_type)
    return type


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value] if value and isinstance(value[0], (dict, list)) else value
    return value


def delimiter(head: bytes) -> str | None:
    """The delimiter of a text that begins with `head` and is a table with a header; None where it is none.

    A table has at least two columns with names, all different, and as many cells in each of its first rows.
    """
    text = head[:SNIFFED].removeprefix(codecs.BOM_UTF8)
    if not text or text.lstrip()[:1] in (b"{", b"[", b"<", b"") or b"\x00" in text:
        return None
    lines = [f"{line}\n" for line in text.decode("utf-8", "surrogateescape").split("\n")]
    if len(text) == SNIFFED:
        lines.pop()
    found = [(width, mark) for mark in _DELIMITERS if lines and (width := _width(lines, mark))]
    return max(found)[1] if found else None


def _width(lines: list[str], mark: str) -> int:
    """Columns of the table that these lines are with that delimiter; 0 where they are none."""
    if mark not in lines[0]:
        return 0
    try:
        reader = csv.reader(lines, delimiter=mark, strict=True)
        header = next(reader)
        rows = [row for row, _ in zip(filter(None, reader), range(_ROWS_SNIFFED), strict=False)]
    except csv.Error:
        return 0  # also where the sniffed part ends inside quotes before it gave a row
    except StopIteration:
        return 0
    named = all(_COLUMN.fullmatch(name) for name in header) and len(set(header)) == len(header)
    return len(header) if named and len(header) > 1 and rows and all(len(row) == len(header) for row in rows) else 0


def delimited_lines(blocks: Iterable[bytes], mark: str, limit: int) -> Iterator[bytes]:
    """Rows of a delimited text as JSON Lines, as many line ends as the text has.

    A row with more cells than the header keeps them under `column_N`; one with fewer lacks the rest. What is not UTF-8
    or closes no quote is given as it stands, so that it becomes a reject with its bytes. `limit`: longest cell.
    """
    csv.field_size_limit(limit)
    taken: list[str] = []
    cut: list[str] = []
    reader = csv.reader(_text_lines(blocks, taken, cut, limit), delimiter=mark, strict=True)
    header: list[str] | None = None
    while True:
        taken.clear()
        cut.clear()
        try:
            row = next(reader, None)
            if cut:
                raise csv.Error("too long")
        except csv.Error:
            yield "".join(taken).encode("utf-8", "surrogateescape")
            continue
        if row is None:
            return
        if header is None:
            header = row
            yield b"\n" * len(taken)
        elif not row:
            yield b"\n"
        else:
            names = header + [f"column_{number + 1}" for number in range(len(header), len(row))]
            yield _row(dict(zip(_distinct(names), row, strict=False)), taken)


def _row(row: dict[str, str], taken: list[str]) -> bytes:
    try:
        return msgspec.json.encode(row) + b"\n" * len(taken)
    except UnicodeEncodeError:
        return "".join(taken).encode("utf-8", "surrogateescape")


def _text_lines(blocks: Iterable[bytes], taken: list[str], cut: list[str], limit: int) -> Iterator[str]:
    """Lines with their ends, each also put into `taken`; bytes that are no UTF-8 are escaped.

    Of a line that is longer than the limit only the beginning is given, and that it was is put into `cut`.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
    rest: list[str] = []
    size = 0
    long = False
    for block in chain(blocks, (b"",)):
        text = decoder.decode(block, final=not block)
        first, *others = text.split("\n")
        rest.append(first)
        size += len(first)
        if size > limit:
            rest, size, long = ["".join(rest)[:_HEAD]], limit, True
        for line in others:
            if long:
                cut.append("long")
            taken.append("".join(rest) + "\n")
            yield taken[-1]
            rest, size, long = [line], len(line), False
    if last := "".join(rest):
        if long:
            cut.append("long")
        taken.append(last)
        yield last
