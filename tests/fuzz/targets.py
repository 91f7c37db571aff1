"""What is fuzzed: every adapter by its name, the detector, and the readers of containers, with their first inputs."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma
import os
import random
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from etl.adapter import adapters
from etl.detection import detect
from etl.errors import EtlError
from etl.opening import blocks
from tests.contract.harness import SAMPLES, sample_logs
from tests.fuzz import path as way
from tests.fuzz.containers import (
    mutated_columns,
    mutated_csv,
    mutated_packed,
    mutated_protobuf,
    mutated_sqlite,
    mutated_yaml,
    mutated_zip,
)
from tests.fuzz.mutating import Mutation, mutated_bytes, mutated_json
from tests.lakes import REPO

LONGEST_SEED, LONGEST = 100_000, 200_000
"""Bytes of a first input, and of any."""
WHOLE_RUNS = 16
"""One in so many inputs of a container's reader also goes through the whole of `etl.ingest`."""
SQLITE = b"SQLite format 3\x00"
REGRESSIONS = Path(__file__).parent / "regressions"


class Target(NamedTuple):
    """`formats`: what an input that no adapter claims is read as (one of them, by checksum); `forced`: every one is."""

    name: str
    mutate: Mutation
    formats: tuple[str, ...] = ()
    forced: bool = False
    whole: bool = False


READERS = (
    Target("detector", mutated_json),
    Target("zip", mutated_zip, ("openai_messages",), whole=True),
    Target("sqlite", mutated_sqlite, ("cursor", "opencode", "phoenix"), whole=True),
    Target("yaml", mutated_yaml, ("http_cassettes",), whole=True),
    Target("protobuf", mutated_protobuf, ("otlp",), whole=True),
    Target("parquet", mutated_columns, ("openai_messages", "mlflow"), whole=True),
    Target("csv", mutated_csv, ("openai_messages", "mlflow"), whole=True),
    Target("packed", mutated_packed, ("openai_messages",), whole=True),
)


def targets() -> dict[str, Target]:
    """All of them by name: the readers, then the adapters."""
    found = {target.name: target for target in READERS}
    for name in adapters():
        mutate = {"http_cassettes": mutated_yaml}.get(name, _mutated_anything)
        found[name] = Target(name, mutate, (name,), forced=True)
    return found


def _mutated_anything(data: bytes, rng: random.Random, pool: Sequence[bytes]) -> bytes:
    """The mutation that the input's container asks for."""
    if data.startswith(SQLITE):
        return mutated_sqlite(data, rng, pool)
    if data[:1] == b"\x0a" and data[1:2] not in (b"{", b"["):
        return mutated_protobuf(data, rng, pool)
    if rng.random() < 0.15:
        return mutated_bytes(data, rng, pool)
    return mutated_json(data, rng, pool)


def mutated(target: Target, data: bytes, rng: random.Random, pool: Sequence[bytes]) -> bytes:
    """An input made of another: by the target's own mutation, or of bytes where the other is no such container."""
    try:
        return target.mutate(data, rng, pool)
    except Exception:  # noqa: BLE001 (an input that was mutated before may be anything)
        return mutated_bytes(data, rng, pool)


def run(target: Target, data: bytes, folder: Path) -> None:
    """One input through its target. Raises what the product raises, and `Wrong` where it costs too much."""
    file = folder / "log"
    file.write_bytes(data)
    sum = zlib.crc32(data)
    with way.Measured(len(data)):
        results = [] if target.forced else way.read(file, None)
        if target.formats and (target.forced or not any(result.adapter for result in results)):
            format = target.formats[sum % len(target.formats)]
            way.read(file, format)
    if target.whole and sum % WHOLE_RUNS == 0:
        with way.Measured(len(data)):
            way.ingest(file, None if sum % 32 else (target.formats or (None,))[0])


@functools.cache
def seeds(target: Target) -> list[bytes]:
    """The first inputs, without copies; those of an adapter are its samples and the cases that it claims."""
    texts = [sample.path.read_bytes() for sample in sample_logs() if sample.path.stat().st_size <= LONGEST_SEED]
    made = {
        "detector": lambda: texts,
        "zip": lambda: [_zipped(texts[n : n + 2], how) for n in range(0, 12, 2) for how in (0, 8, 12, 14)],
        "sqlite": lambda: [text for text in texts if text.startswith(SQLITE)],
        "yaml": lambda: [p.read_bytes() for p in SAMPLES.rglob("*.yaml")],
        "protobuf": lambda: [p.read_bytes() for p in SAMPLES.rglob("*.pb")],
        "parquet": lambda: _columnar(texts),
        "csv": lambda: [p.read_bytes() for p in SAMPLES.rglob("*.csv")],
        "packed": lambda: _packed(texts),
    }
    found = made[target.name]() if target.name in made else _of_adapter(target.name)
    folder = REGRESSIONS / target.name
    known = [file.read_bytes() for file in sorted(folder.iterdir())] if folder.is_dir() else []
    return sorted({text for text in [*found, *known] if text}, key=lambda text: (len(text), text))


def _of_adapter(name: str) -> list[bytes]:
    found = []
    for sample in sample_logs():
        if sample.adapter.name == name and sample.path.stat().st_size <= LONGEST_SEED:
            found.append(sample.path.read_bytes() if sample.path.suffix in (".pb", ".db", ".vscdb") else sample.data())
    return [*found, *cases().get(name, ())]


@functools.cache
def cases() -> dict[str, list[bytes]]:
    """The shared cases by the adapter that claims them; none where there are none."""
    found: dict[str, list[bytes]] = {}
    folder = Path(os.environ.get("ETL_SHARED", REPO.parent / "shared")) / "cases"
    for file in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if file.is_file() and file.suffix not in (".md", ".py") and file.stat().st_size <= LONGEST_SEED:
            try:
                found.setdefault(detect(file).adapter.name, []).append(b"".join(blocks(file)))
            except EtlError:
                continue
    return found


def _zipped(texts: Sequence[bytes], method: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for number, text in enumerate(texts):
            archive.writestr(f"day/{number}.jsonl", text)
    return made.getvalue()


def _columnar(texts: Sequence[bytes]) -> list[bytes]:
    found = [text for text in texts if text.startswith((b"PAR1", b"ARROW1"))]
    messages = [[{"role": "user", "content": "Is it open?"}, {"role": "assistant", "content": "Until six."}]] * 3
    made = pa.table({"messages": messages, "id": ["a", "b", "c"], "at": pa.array([0, 1, 2], pa.timestamp("us", "UTC"))})
    for opened in (pa.ipc.new_file, pa.ipc.new_stream):
        sink = io.BytesIO()
        with opened(sink, made.schema) as writer:
            writer.write_table(made)
        found.append(sink.getvalue())
    for codec in ("none", "zstd", "gzip", "brotli", "lz4", "snappy"):
        sink = io.BytesIO()
        pq.write_table(made, sink, compression=codec, use_dictionary=codec != "none")
        found.append(sink.getvalue())
    return found


def _packed(texts: Sequence[bytes]) -> list[bytes]:
    plain = [text for text in texts if text[:1] in (b"{", b"[") and len(text) < 4_000][:12]
    pack = (gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress)
    found = [how(text) for text in plain for how in pack]
    found += [text.decode().encode(name) for text in plain[:3] for name in ("utf-16", "utf-16-be", "utf-32-le")]
    return found


def private_folder() -> tempfile.TemporaryDirectory[str]:
    """Where inputs lie while they are read: in memory, where the system offers that."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="etl-fuzz-", dir=memory if os.access(memory, os.W_OK) else None)
