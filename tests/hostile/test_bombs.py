"""Files that are far larger than they look."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import etl
from etl import opening
from etl.detection import sample
from etl.errors import SourceError
from etl.framing import frame
from etl.opening import BLOCK, Truncated, blocks
from tests.lakes import NOW, rows
from tests.measured import GOOD, cost

HUGE = 300 << 20
"""More than a record may have."""
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 1),
    "bzip2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}
METHODS = {"deflate": 8, "bzip2": 12, "lzma": 14}


def _line(size: int) -> bytes:
    return GOOD + b'{"messages":"' + b"a" * size + b'"}\n' + GOOD


def _zip(data: bytes, method: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.writestr("log.jsonl", data)
    return made.getvalue()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that small files reach."""
    monkeypatch.setattr(opening, "FREE", 1 << 20)
    monkeypatch.setattr(opening, "MOST_GROWTH", 100)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("packer", PACKERS)
def test_what_gives_many_times_its_size_is_refused_by_name(packer: str, tmp_path: Path, lake: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(PACKERS[packer](_line(20 << 20)))
    (file,) = etl.ingest([log], lake=lake, now=NOW, strict=True).files
    assert file.state == "failed"
    assert "as a decompression bomb does" in str(file.error)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("method", METHODS)
def test_so_is_a_member_of_an_archive(method: str, tmp_path: Path, lake: Path) -> None:
    log = tmp_path / "log.zip"
    log.write_bytes(_zip(_line(20 << 20), METHODS[method]))
    (file,) = etl.ingest([log], lake=lake, now=NOW, strict=True).files
    assert file.state == "failed"
    assert "!log.jsonl: gives more than 100 times its size" in str(file.error)


@pytest.mark.usefixtures("small")
def test_so_is_a_table_whose_cells_stand_for_many(tmp_path: Path) -> None:
    log = tmp_path / "log.parquet"
    pq.write_table(pa.table({"content": pa.array(["x" * 10_000] * 20_000).dictionary_encode()}), log)
    with pytest.raises(SourceError, match="gives more than 100 times its size"):
        for _ in blocks(log):
            pass


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("packer", PACKERS)
def test_what_is_only_well_compressed_is_read(packer: str, tmp_path: Path, lake: Path) -> None:
    log = tmp_path / "log"
    text = b"".join(GOOD.replace(b"six", b"%08x" % (number * 2654435761 % 2**32)) for number in range(20_000))
    log.write_bytes(PACKERS[packer](text))
    assert b"".join(blocks(log)) == text


@pytest.mark.parametrize("packer", PACKERS)
def test_blocks_are_small_whatever_a_stream_holds(packer: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(PACKERS[packer](GOOD + b" " * (60 << 20)))
    assert max(map(len, blocks(log))) <= 16 * BLOCK


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("size", [1, 2, 3, 100, 1 << 20])
def test_streams_one_after_another_and_zeros_between_and_behind(packer: str, size: int) -> None:
    packed = PACKERS[packer](GOOD)
    for data, text in (
        (packed, GOOD), (packed + bytes(5), GOOD), (packed + bytes(3_000), GOOD), (packed * 2, GOOD * 2),
        (packed + bytes(7) + packed, GOOD * 2),
    ):  # fmt: skip
        assert b"".join(opening._decompressed(_pieces(data, size), "log")) == text
    with pytest.raises(Truncated, match="followed by"):
        list(opening._decompressed(_pieces(packed + b"more", size), "log"))


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    yield data[:8]
    yield from (data[at : at + size] for at in range(8, len(data), size))


@pytest.mark.parametrize("packer", PACKERS)
def test_what_is_packed_twice_is_not_unpacked_twice(packer: str, tmp_path: Path, lake: Path) -> None:
    log, archive = tmp_path / "log", tmp_path / "logs.zip"
    log.write_bytes(PACKERS[packer](PACKERS[packer](GOOD)))
    archive.write_bytes(_zip(_zip(GOOD, 8), 8))
    assert [file.state for file in etl.ingest([log, archive], lake=lake, now=NOW).files] == ["skipped", "skipped"]
    assert rows(lake) == []


def test_an_xz_stream_that_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
    packed = bytearray(lzma.compress(GOOD, filters=filters))
    place = packed.index(bytes((0x21, 0x01))) + 2  # the filter's id, the size of its properties, the dictionary
    packed[place] = 40  # 4 GB
    header = packed[12 : 12 + (packed[12] + 1) * 4]
    packed[12 + len(header) - 4 : 12 + len(header)] = zlib.crc32(header[:-4]).to_bytes(4, "little")
    log.write_bytes(packed)
    with pytest.raises(Truncated, match=r"[Mm]emory"):
        list(blocks(log))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zstd line", "gzip zeros", "bzip2 zeros", "zip bzip2", "zip lzma", "zip deflate"])
def test_hundreds_of_megabytes_cost_little_memory(name: str, tmp_path: Path) -> None:
    kind, _, what = name.partition(" ")
    data = _line(HUGE) if what not in ("zeros",) else bytes(HUGE)
    log = tmp_path / "log"
    log.write_bytes(_zip(data, METHODS[what]) if kind == "zip" else PACKERS[kind](data))
    del data
    spent = cost(log, tmp_path / "lake")
    ((state, error, _, _),) = spent.files
    nothing_in_it = what == "zeros" and state == "skipped"
    assert nothing_in_it or "bomb" in str(error) or "too_long" in spent.files[0][2]
    assert spent.mb < 700
    assert spent.cpu < 30


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" ", b"\0"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_what_follows_a_long_blank_beginning_is_read(blank: bytes, mark: bytes, tmp_path: Path, lake: Path) -> None:
    beginning = mark + blank * ((9 << 20) // len(blank))
    records = {"line": GOOD, "list": b"[" + GOOD.strip() + b"]", "space": b" " + GOOD}
    for name, record in records.items():
        (tmp_path / f"{name}.jsonl").write_bytes(beginning + record.replace(b"six", name.encode()))
    report = etl.ingest([tmp_path / "*.jsonl"], lake=lake, now=NOW)
    assert {Path(file.uri).stem: (file.state, file.rows, file.records_in) for file in report.files} == dict.fromkeys(
        records, ("done", 1, 1)
    )
    lines = {Path(row["source_uri"]).stem: row["source_line"] for row in rows(lake)}
    assert lines == dict.fromkeys(records, beginning.count(b"\n") + 1)


def test_a_bomb_of_blank_lines_ends_by_its_limit(tmp_path: Path, lake: Path) -> None:
    (tmp_path / "a.jsonl.bz2").write_bytes(bz2.compress(b"\n" * (80 << 20)))
    report = etl.ingest([tmp_path / "a.jsonl.bz2"], lake=lake, now=NOW)
    assert [file.state for file in report.files] == ["failed"]
    assert "decompression bomb" in str(report.files[0].error)


def test_a_blank_beginning_is_not_held(tmp_path: Path) -> None:
    with (tmp_path / "a.jsonl").open("wb") as file:
        for _ in range(60):
            file.write(b"\n" * (1 << 20))
        file.write(GOOD)
    tracemalloc.start()
    try:
        assert [record.line for record in frame(blocks(tmp_path / "a.jsonl"))] == [(60 << 20) + 1]
        assert len(sample(tmp_path / "a.jsonl", None, "a.jsonl").values) == 1
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
