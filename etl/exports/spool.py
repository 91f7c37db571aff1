"""Rows on their way to their files: they come in the order of the lake, and leave in the order of the export.

DuckDB sorts long conversations in memory only. Here a row waits on disk, in a file for each shard, and memory holds no
more than where each begins.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

_BUFFERED = 32 << 20
"""Bytes that wait in memory to be appended, over all shards."""
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


class Shard(NamedTuple):
    """A file to be: its split, its number, and how many the split has."""

    split: str
    number: int
    of: int


class _Waiting:
    """The rows of one shard: places in the file and in the order, and bytes not yet written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.orders = array("q")
        self.offsets = array("q", [0])
        self.buffer = bytearray()

    def add(self, order: int, packed: bytes) -> None:
        self.orders.append(order)
        self.offsets.append(self.offsets[-1] + len(packed))
        self.buffer += packed

    def flush(self) -> None:
        with self.path.open("ab") as file:
            file.write(self.buffer)
        self.buffer.clear()

    def in_order(self) -> Iterator[dict[str, Any]]:
        self.flush()
        with self.path.open("rb") as file:
            for place in sorted(range(len(self.orders)), key=self.orders.__getitem__):
                file.seek(self.offsets[place])
                yield _unpack(file.read(self.offsets[place + 1] - self.offsets[place]))
        self.path.unlink()


class Spool:
    """Takes rows in any order, gives them back shard by shard."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards: dict[Shard, _Waiting] = {}

    def add(self, shard: Shard, order: int, row: dict[str, Any]) -> None:
        """A row of a shard; `order` says where in it."""
        waiting = self._shards.get(shard)
        if waiting is None:
            waiting = self._shards[shard] = _Waiting(self._folder / f"{len(self._shards)}.rows")
        waiting.add(order, _pack(row))
        if len(waiting.buffer) > _BUFFERED // len(self._shards):
            waiting.flush()

    def shards(self) -> Iterator[tuple[Shard, Iterator[dict[str, Any]]]]:
        """Every shard with its rows in order; a shard's file goes when its rows were read."""
        for shard in sorted(self._shards):
            yield shard, self._shards[shard].in_order()
