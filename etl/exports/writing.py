"""The second pass: records in their order into Parquet or JSON Lines, one file at a time."""

from __future__ import annotations

import abc
import tempfile
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from etl.errors import UsageError
from etl.exports.dialogue import Dialogue
from etl.exports.examine import Reading, rows
from etl.exports.request import Request
from etl.exports.spool import Shard, Spool
from etl.exports.target import Example, File, Tally, Target

_GROUP_BYTES = 16 << 20
"""Size of a row group, as text."""
_encode = msgspec.json.Encoder().encode

_RECORDS = """
SELECT {columns}, p.side, p.score, p.ground_truth, a.unit, a.split, a.shard, a.shards, a.position,
    t.task_id AS tally_task, t.n AS tally_n, t.passed AS tally_passed, t.mean_reward AS tally_mean
FROM rollouts_stored r
JOIN plan p USING (rollout_id)
JOIN arranged a ON a.unit = p.unit
LEFT JOIN tallies t ON t.task_key = p.task_key
WHERE p.reason IS NULL
"""


class Written(NamedTuple):
    """The data files, and how often each repair was made."""

    files: list[File]
    repairs: Counter[str]


def write(reading: Reading, folder: Path, told: Callable[[str, int], None]) -> Written:
    """All records of the tables `plan` and `arranged` into files in `folder`; `told` hears of a phase and its rows."""
    files: list[File] = []
    repairs: Counter[str] = Counter()
    done = 0
    with tempfile.TemporaryDirectory(prefix=".spool.", dir=folder) as name:
        for shard, of_shard in _spooled(reading, Path(name), told).shards():
            writer = _writer(folder / _name(reading.target, shard), reading.target, reading.request)
            for _, unit in groupby(of_shard, itemgetter("unit")):
                sides = list(unit)
                dialogues = [reading.read(row) for row in sides]
                writer.add(reading.target.record(_example(reading, sides, dialogues)))
                for said in dialogues:
                    repairs.update(said.repairs)
                done += len(sides)
                if done % 256 < len(sides):
                    told("writing", done)
            files.append(writer.close(folder, shard.split))
    return Written(files, repairs)


def _spooled(reading: Reading, folder: Path, told: Callable[[str, int], None]) -> Spool:
    """The rows that stay, each with the place it goes to."""
    spool = Spool(folder)
    reader = reading.connection.cursor()
    for number, row in enumerate(rows(reader, _RECORDS.format(columns=reading.columns())), 1):
        spool.add(Shard(row["split"], row["shard"], row["shards"]), 2 * row["position"] + row["side"], row)
        if number % 256 == 0:
            told("gathering", number)
    return spool


def _example(reading: Reading, sides: list[dict[str, Any]], dialogues: list[Dialogue]) -> Example:
    first = sides[0]
    tally = Tally(
        first["tally_task"] or first["task_id"], first["tally_n"] or 0, first["tally_passed"] or 0, first["tally_mean"]
    )
    return Example(
        dialogues,
        tally,
        [row["score"] for row in sides],
        first["ground_truth"],
        first["split"],
        first["position"],
        reading.request.pass_at,
        reading.tokenizer,
    )


def _name(target: Target, shard: Shard) -> str:
    suffix = "jsonl" if target.schema() is None else "parquet"
    if not target.stem:
        return f"{shard.split}-{shard.number:05}-of-{shard.of:05}.{suffix}"
    below = shard.split if shard.of == 1 else f"{shard.split}/{shard.number:05}"
    return f"{below}/{target.stem}.{suffix}"


class _Writer(abc.ABC):
    """One file. Records wait until they fill a row group."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.columns = columns
        self.rows = 0

    @abc.abstractmethod
    def add(self, record: dict[str, Any]) -> None:
        """Take one record."""

    @abc.abstractmethod
    def finish(self) -> None:
        """Write what waits, and end the file."""

    def close(self, folder: Path, split: str) -> File:
        """What was written."""
        self.finish()
        digest = sha256()
        with self.path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        name = self.path.relative_to(folder).as_posix()
        return File(name, split, self.rows, self.path.stat().st_size, digest.hexdigest())


class _JsonLines(_Writer):
    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        super().__init__(path, columns)
        self._file = path.open("wb")

    def add(self, record: dict[str, Any]) -> None:
        if self.columns:
            record = {name: record[name] for name in self.columns if name in record}
        self._file.write(_encode(record) + b"\n")
        self.rows += 1

    def finish(self) -> None:
        self._file.close()


class _Parquet(_Writer):
    def __init__(self, path: Path, columns: tuple[str, ...], schema: pa.Schema) -> None:
        super().__init__(path, columns)
        self._schema = schema
        self._waiting: list[dict[str, Any]] = []
        self._size = 0
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def add(self, record: dict[str, Any]) -> None:
        self._waiting.append(record)
        self._size += len(_encode(record))
        self.rows += 1
        if self._size >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._waiting, schema=self._schema))
        self._waiting.clear()
        self._size = 0

    def finish(self) -> None:
        if self._waiting:
            self._flush()
        self._writer.close()


def written_schema(target: Target, columns: tuple[str, ...]) -> pa.Schema | None:
    """The schema of the target's files, with only these columns where any are named; UsageError for one it has not."""
    schema = target.schema()
    if schema is None or not columns:
        return schema
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise UsageError(f"--columns {unknown[0]}: {target.name} has {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in columns])


def _writer(path: Path, target: Target, request: Request) -> _Writer:
    schema = written_schema(target, request.columns)
    return _JsonLines(path, request.columns) if schema is None else _Parquet(path, request.columns, schema)
