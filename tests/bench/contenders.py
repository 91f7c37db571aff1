"""What is compared, each run in a process of its own: `python -m tests.bench.contenders NAME INPUT OUTPUT [WORKERS]`.

Prints one JSON object: CPU seconds (user and system, children included), wall seconds, peak resident memory, bytes
written, rows.
"""

from __future__ import annotations

import functools
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from etl.policies import POLICIES
from tests.bench.peer_contenders import peak_bytes


def floor(source: Path, target: Path, workers: int) -> int | None:
    """The least that any reader does: decode every line, and compress the same bytes as fast as zstd can."""
    import orjson
    import zstandard

    compressor = zstandard.ZstdCompressor(level=1)
    with target.open("wb") as out:
        for path in sorted(source.iterdir()) if source.is_dir() else [source]:
            with path.open("rb") as file:
                rest = b""
                while block := file.read(1 << 20):
                    *lines, rest = (rest + block).split(b"\n")
                    for line in lines:
                        orjson.loads(line)
                    out.write(compressor.compress(block))
    return None


def duckdb_copy(source: Path, target: Path, workers: int) -> int | None:
    """What a user would do without us: DuckDB's JSON reader into zstd Parquet, on one thread."""
    import duckdb

    files = f"{source}/*.jsonl" if source.is_dir() else str(source)
    with duckdb.connect(config={"threads": 1}) as db:
        copy = f"COPY (SELECT * FROM read_json('{files}')) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
        return int(db.execute(copy).fetchall()[0][0])


def needed(source: Path, target: Path, workers: int) -> int | None:
    """What the contract asks of the libraries alone, with nothing of ours around them: no rows, pairing or lake.

    Every line is decoded once and named by its SHA-256, the file too; the lines are searched for the signs of secrets,
    and go into Parquet as they are, by zstd level 1.
    """
    import hashlib

    import orjson
    import pyarrow as pa
    import pyarrow.parquet as pq

    from etl.redact import rules
    from etl.redact.texts import Texts

    schema = pa.schema([("line", pa.string())])
    with pq.ParquetWriter(target, schema, compression="zstd", compression_level=1, use_dictionary=False) as out:
        for path in sorted(source.iterdir()) if source.is_dir() else [source]:
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while lines := file.readlines(1 << 21):
                    for line in lines:
                        orjson.loads(line)
                        hashlib.sha256(line).digest()
                        digest.update(line)
                    column = pa.array(lines, pa.binary()).cast(pa.string())
                    rules.suspects(Texts(column))
                    out.write_table(pa.table([column], schema))
    return None


def etl_ingest(source: Path, target: Path, workers: int) -> int | None:
    """The product: detection, pairing, redaction, checks and commit on."""
    import etl

    return etl.ingest([source], lake=target, workers=workers).rows.added


def etl_under(policy: str, source: Path, target: Path, workers: int) -> int | None:
    """The same with another policy of redaction than the default."""
    import etl

    return etl.ingest(
        [source], lake=target, workers=workers, redact=policy, pseudonym_key=b"only for this bench " * 2
    ).rows.added


CONTENDERS: dict[str, Callable[[Path, Path, int], int | None]] = {
    "floor": floor,
    "duckdb": duckdb_copy,
    "needed": needed,
    "etl": etl_ingest,
    **{policy: functools.partial(etl_under, policy) for policy in POLICIES},
}


def _written(target: Path) -> int:
    if target.is_file():
        return target.stat().st_size
    return sum(file.stat().st_size for file in target.glob("rollouts/source=*/day=*/*.parquet"))


def main(name: str, source: str, target: str, workers: str = "1") -> None:
    """Run one contender and print what it took."""
    started = time.monotonic()
    out = CONTENDERS[name](Path(source), Path(target), int(workers))
    wall = time.monotonic() - started
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    peak = peak_bytes(own.ru_maxrss)
    print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak, "written": _written(Path(target)), "out": out}))


if __name__ == "__main__":
    main(*sys.argv[1:])
