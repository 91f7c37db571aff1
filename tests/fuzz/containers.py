"""Mutations inside of containers: what a member, a cell, a field or a column holds is changed, and all is packed again.

They raise what they like on bytes that are no such container: `targets.mutated` changes bytes then.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import json
import lzma
import random
import sqlite3
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.fuzz.mutating import Pool, mutated_bytes, mutated_json, mutated_value

_NAMES = (
    "a.json",
    "../../a.json",
    "/etc/a.json",
    "a\nb.jsonl",
    "\x1b[31m.json",
    "a" * 300,
    "..",
    "a/b/c.zip",
    "nul\x00.json",
    "é.json",
)
_YAML = (
    "&a [*a]", "*a", "!!python/object/apply:os.system ['true']", "!!python/name:os.system", "!!binary |", "!!set {a}",
    "!!timestamp 9999-99-99", "2026-04-01 02:00:00.5 +14:00", "0001-01-01", "!!omap [a: 1]", "&b {c: *b}", "<<: *a",
    "? [a]", "0x_", "1_000:60:60", ".nan", "0b2", "1e999", "~", "---", "...", "%YAML 9.9", "!!float x", "!!int 0o9",
    "{a: {a: {a: 1}}}",
    "|2", ">-", "'", '"\\ud800"', "\t", "!!merge x", "!<tag:x> y", "=",
)  # fmt: skip


def mutated_zip(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """Members changed, renamed, doubled, nested, and packed in another way."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    for _ in range(1 + rng.randrange(3)):
        number = rng.randrange(len(members))
        name, content = members[number]
        kind = rng.randrange(6)
        if kind == 0:
            members[number] = (rng.choice(_NAMES), content)
        elif kind == 1:
            members.append((name, mutated_json(content, rng, pool)))
        elif kind == 2:
            members[number] = (name, rng.choice(pool) if pool else data)
        elif kind == 3:
            members[number] = (name, mutated_bytes(content, rng, pool))
        else:
            members[number] = (name, mutated_json(content, rng, pool))
    made = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(name, content)
    return made.getvalue()


def mutated_sqlite(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """Cells of other types and with other JSON, columns and tables gone, rows doubled."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        database.execute("PRAGMA journal_mode = MEMORY").fetchall()
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for _ in range(1 + rng.randrange(4)):
            with contextlib.suppress(sqlite3.Error, ValueError, OverflowError, UnicodeError):
                _spoil_table(database, rng.choice(tables), rng)
        database.commit()
        return bytes(database.serialize())


def _spoil_table(database: sqlite3.Connection, table: str, rng: random.Random) -> None:
    name = '"' + table.replace('"', '""') + '"'
    columns = ['"' + row[1].replace('"', '""') + '"' for row in database.execute(f"PRAGMA table_info({name})")]
    column = rng.choice(columns)
    rows = [row[0] for row in database.execute(f"SELECT rowid FROM {name} LIMIT 200")]
    kind = rng.randrange(8)
    if kind == 0:
        database.execute(f"ALTER TABLE {name} DROP COLUMN {column}")
    elif kind == 1:
        database.execute(f"ALTER TABLE {name} RENAME COLUMN {column} TO {rng.choice(('x', 'id', 'data', 'value'))}")
    elif kind == 2:
        database.execute(f"INSERT INTO {name} SELECT * FROM {name} WHERE rowid = ?", [rng.choice(rows)])
    elif kind == 3:
        database.execute(f"CREATE VIEW v AS SELECT * FROM {name}; ")
        database.execute(f"DROP TABLE {name}")
    else:
        row = rng.choice(rows)
        (value,) = database.execute(f"SELECT {column} FROM {name} WHERE rowid = ?", [row]).fetchone()
        database.execute(f"UPDATE {name} SET {column} = ? WHERE rowid = ?", [_cell(value, rng), row])


def _cell(value: Any, rng: random.Random) -> Any:
    if isinstance(value, (str, bytes)) and rng.random() < 0.6:
        raw = value.encode("utf-8", "replace") if isinstance(value, str) else value
        changed = mutated_json(raw, rng, ()) if rng.random() < 0.7 else mutated_bytes(raw, rng, ())
        return changed if isinstance(value, bytes) else changed.decode("utf-8", "replace")
    return rng.choice((None, 0, -1, 2**63 - 1, 1e308, "", "x", b"", b"\xff\xfe", "{", "[]", "null", b"\x0a\x05hello"))


def mutated_columns(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """Rows changed and written anew as Parquet or Arrow, with types of all kinds; else the bytes."""
    if rng.random() < 0.5:
        return mutated_bytes(data, rng, pool)
    table = _table(data)
    rows = [mutated_value(row, rng, []) for row in json.loads(json.dumps(table.to_pylist()[:50], default=str))]
    made = pa.Table.from_pylist([row if isinstance(row, dict) else {"x": row} for row in rows])
    for number, name in enumerate(made.column_names):
        if rng.random() < 0.2:
            made = made.set_column(number, name, _odd_column(made.num_rows, rng))
    sink = io.BytesIO()
    kind = rng.randrange(3)
    if kind == 0:
        pq.write_table(made, sink, compression=rng.choice(("none", "zstd", "snappy", "gzip", "brotli")))
    else:
        opened = pa.ipc.new_file if kind == 1 else pa.ipc.new_stream
        with opened(sink, made.schema) as writer:
            writer.write_table(made, max_chunksize=7)
    return sink.getvalue()


def _table(data: bytes) -> pa.Table:
    if data.startswith(b"PAR1"):
        table = pq.read_table(io.BytesIO(data))
    else:
        opened = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
        table = opened(io.BytesIO(data)).read_all()
    table.validate(full=True)  # values of a table whose lengths lie would end the fuzzer, before the product saw them
    return table


def _odd_column(rows: int, rng: random.Random) -> pa.Array:
    made: tuple[Callable[[], pa.Array], ...] = (
        lambda: pa.array([2**62] * rows, pa.timestamp("ns", "Europe/Paris")),
        lambda: pa.array([-(2**62)] * rows, pa.timestamp("s")),
        lambda: pa.array([b"\xff"] * rows, pa.binary()),
        lambda: pa.array([None] * rows, pa.null()),
        lambda: pa.array([2**63] * rows, pa.uint64()),
        lambda: pa.array([float("nan")] * rows, pa.float16()),
        lambda: pa.array([[("a", 1), ("a", 2)]] * rows, pa.map_(pa.string(), pa.int64())),
        lambda: pa.array(["x"] * rows).dictionary_encode(),
        lambda: pa.array([1] * rows, pa.duration("us")),
        lambda: pa.array(["x"] * rows, pa.string_view()),
        lambda: pa.array([[["x"]]] * rows, pa.large_list(pa.list_(pa.large_string()))),
        lambda: pa.array([2**31 - 1] * rows, pa.date32()),
    )
    return rng.choice(made)()


def mutated_yaml(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """Lines and values replaced by what YAML is feared for."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng, pool)
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(1 + rng.randrange(4)):
        number = rng.randrange(len(lines))
        line = lines[number]
        kind = rng.randrange(6)
        if kind == 0:
            del lines[number]
        elif kind == 1:
            lines.insert(number, line)
        elif kind == 2:
            lines[number] = " " * rng.randrange(3) + line if rng.random() < 0.5 else line[1:]
        elif kind == 3:
            lines[number] = line[: rng.randrange(len(line) + 1)]
        else:
            name, colon, _ = line.partition(": ")
            lines[number] = (f"{name}{colon}" if colon else line[: len(line) - len(line.lstrip())]) + rng.choice(_YAML)
        lines = lines or [""]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def mutated_csv(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """Cells swapped, changed and quoted wrongly."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng, pool)
    text = data.decode("utf-8", "replace")
    rows = list(csv.reader(io.StringIO(text)))
    for _ in range(1 + rng.randrange(4)):
        row = rng.choice(rows or [[]])
        if row:
            at = rng.randrange(len(row))
            cell = row[at]
            more = rng.choice(('"', '""', ",", "\n", "\x00", "=1+1", "\ud800", "x" * 3000, "\r", "[]", "{", ""))
            row[at] = rng.choice((more, cell + more, mutated_json(cell.encode(), rng, ()).decode("utf-8", "replace")))
            if rng.random() < 0.2:
                row[at:at] = row
    made = io.StringIO()
    csv.writer(made, quoting=rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))).writerows(rows[:200])
    return made.getvalue().encode("utf-8", "surrogatepass")


_OPEN: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress, b"BZ": bz2.decompress, b"\xfd7": lzma.decompress,
    b"\x28\xb5": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}  # fmt: skip


def mutated_packed(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """The text changed and packed again: in one stream or several, in another encoding, cut, or with more behind it."""
    if rng.random() < 0.4:
        return mutated_bytes(data, rng, pool)
    text = _OPEN.get(data[:2], bytes)(data)
    text = mutated_json(text[: 1 << 20], rng, ())
    if rng.random() < 0.3:
        encoding = rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"))
        text = text.decode("utf-8", "replace").encode(encoding, "surrogatepass")
    pack = rng.choice(
        (gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress, lambda raw: raw)
    )
    half = rng.randrange(len(text) + 1) if rng.random() < 0.3 else 0
    packed = pack(text[:half]) + pack(text[half:]) if half else pack(text)
    return (
        packed
        if rng.random() < 0.8
        else packed[: rng.randrange(len(packed) + 1)] + rng.choice((b"", b"\x00" * 40, b"x"))
    )


def mutated_protobuf(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """A message taken apart, a field of it changed at some depth, lengths put right again."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng, pool)
    return _message(data, rng, rng.randrange(1, 9))


def _message(data: bytes, rng: random.Random, depth: int) -> bytes:
    """The message with one field changed, `depth` levels down where it goes so deep."""
    fields = list(_fields(data))
    if not fields or b"".join(raw for raw, _, _ in fields) != data:
        return mutated_bytes(data, rng, ()) if data else rng.choice((b"", b"\x08\x01", b"\xff" * 11))
    number = rng.randrange(len(fields))
    raw, tag, content = fields[number]
    kind = rng.randrange(8)
    if content is not None and depth:
        inner = _message(content, rng, depth - 1)
        fields[number] = (_varint(tag) + _varint(len(inner)) + inner, tag, inner)
    elif kind == 0:
        del fields[number]
    elif kind == 1:
        fields[number:number] = [fields[number]] * rng.choice((1, 2, 30))
    elif kind == 2:
        fields[number] = (_varint(tag ^ rng.choice((1, 2, 7, 8, 16))) + raw[1:], tag, None)
    elif kind == 3:
        fields[number] = (_varint(tag) + _varint(rng.choice((0, 2**31, 2**63, 2**64 - 1, 2**70))), tag, None)
    elif kind == 4:
        fields[number] = (_varint(tag) + b"\xff" * 11, tag, None)
    else:
        inner = mutated_bytes(content or b"", rng, ())
        fields[number] = (_varint(tag & ~7 | 2) + _varint(len(inner)) + inner, tag, None)
    return b"".join(raw for raw, _, _ in fields)


def _fields(data: bytes) -> Iterator[tuple[bytes, int, bytes | None]]:
    """(whole bytes, tag, content where it is length-delimited) of each field, as far as they make sense."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _read(data, at)
        size = {0: 0, 1: 8, 5: 4}.get(tag & 7)
        if tag & 7 == 0:
            _, at = _read(data, at)
        elif tag & 7 == 2:
            size, at = _read(data, at)
        if size is None or at + size > len(data):
            return
        at += size
        yield data[start:at], tag, data[at - size : at] if tag & 7 == 2 else None


def _read(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data) and shift < 70:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            break
    return number, at


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])
