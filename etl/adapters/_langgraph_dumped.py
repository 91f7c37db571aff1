"""A plain dump of the database of LangGraph's PostgreSQL saver (`pg_dump`): its tables as rows of the SQLite saver.

The saver keeps the values of a state apart, each version of a channel once; a checkpoint names those that it has.
A dump is read by where its rows lie, so that only names are held; nothing of it is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO, Any

from etl.adapters._langgraph_stored import FAULTS, MESSAGES, OPENED, framed, opened
from etl.decode import JsonError, decode
from etl.framing import Broken, Framed, Limits
from etl.opening import spooled

_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?(?:--[ \t]*\r?\n)*-- PostgreSQL database dump\b")
_COPY = re.compile(
    rb'COPY (?:"?\w+"?\.)?"?(checkpoints|checkpoint_blobs|checkpoint_writes)"? \(([^)]{1,2000})\) FROM stdin;'
)
_ESCAPED = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_CONTROLS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_NULL, _END = b"\\N", b"\\."
_BYTES = frozenset({"blob"})
_TABLES = {"checkpoints": "checkpoints", "writes": "checkpoint_writes"}
_TOO_LONG = "more than one record may have"


def is_dump(head: bytes) -> bool:
    """Whether a file is a plain dump of PostgreSQL."""
    return _BEGINS.match(head) is not None


def names_saver(head: bytes) -> bool:
    """Whether the first bytes of a dump name the tables of the saver."""
    return is_dump(head) and b"checkpoint_blobs" in head and b"parent_checkpoint_id" in head


def dumped_records(blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
    """The checkpoints and writes of a dump; where it is cut off, one more record says so."""
    with spooled(blocks) as path, path.open("rb") as file:
        dump = _Dump(file, limits)
        rows = 0
        for found in framed(dump, limits):
            rows += 1
            yield found
        if dump.torn:
            message = "the dump ends within the rows of a table; make it again"
            yield Broken("torn_tail", message, b"", rows + 1, rows, tail=True)


class _Dump:
    """Where the rows of the saver's tables lie in a dump."""

    def __init__(self, file: IO[bytes], limits: Limits) -> None:
        self._file = file
        self._most = limits.record_bytes * 2 + (1 << 16)
        """Bytes of a row: those of a value stand as two digits each."""
        self._columns: dict[str, list[str]] = {}
        self._places: dict[str, list[int]] = {}
        self._blobs: dict[tuple[str, str, str, str], int] = {}
        self.torn = False
        self._index()

    def _index(self) -> None:
        table: str | None = None
        place = 0
        self._file.seek(0)
        for line in iter(lambda: self._file.readline(self._most), b""):
            begun = place
            place += len(line)
            if table is None:
                found = _COPY.match(line)
                if found is not None:
                    table = found[1].decode()
                    self._columns[table] = [name.strip(' "') for name in found[2].decode("utf-8", "replace").split(",")]
            elif line.rstrip(b"\r\n") == _END:
                table = None
            elif line.endswith(b"\n") or len(line) == self._most:  # else the dump ends within the row
                self._places.setdefault(table, []).append(begun)
                if table == "checkpoint_blobs":
                    row = self._row(table, line, ("thread_id", "checkpoint_ns", "channel", "version"))
                    self._blobs[tuple(str(row.get(key) or "") for key in row)] = begun  # type: ignore[index]
                while not line.endswith(b"\n") and (more := self._file.readline(self._most)):
                    place += len(more)
                    line = more
        self.torn = table is not None

    def rows(self, table: str, only: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """The rows of a table of the SQLite saver, in the order of the dump."""
        name = _TABLES[table]
        for place in self._places.get(name, ()):
            row = self._at(name, place, only)
            if only is None and name == "checkpoint_writes":
                row["value"] = row.pop("blob", None)
            elif only is None:
                row = self._whole(row)
            yield row

    def _at(self, table: str, place: int, only: Sequence[str] | None = None) -> dict[str, Any]:
        self._file.seek(place)
        line = self._file.readline(self._most)
        row = self._row(table, line, only)
        return row if line.endswith(b"\n") or len(line) < self._most else {**row, "type": _TOO_LONG}

    def _row(self, table: str, line: bytes, only: Sequence[str] | None = None) -> dict[str, Any]:
        cells = line.rstrip(b"\r\n").split(b"\t")
        named = zip(self._columns[table], cells, strict=False)
        found = {name: _cell(cell, name in _BYTES) for name, cell in named if only is None or name in only}
        return found if only is None else {name: found.get(name) for name in only}

    def _whole(self, row: dict[str, Any]) -> dict[str, Any]:
        """A checkpoint with the values of its channels, each in the version that it names."""
        told = row.get("checkpoint")
        if not isinstance(told, str) or row.get("type") == _TOO_LONG:
            return row
        try:
            held = decode(told.encode("utf-8", "surrogatepass")).value
        except JsonError:
            return {**row, "type": "json"}
        if not isinstance(held, dict):
            return {**row, "type": "json"}
        values = held.get("channel_values")
        found = dict(values) if isinstance(values, dict) else {}
        versions = held.get("channel_versions")
        for channel, version in versions.items() if isinstance(versions, dict) else ():
            names = (row.get("thread_id"), row.get("checkpoint_ns"), channel, version)
            place = self._blobs.get(tuple(str(name or "") for name in names))  # type: ignore[arg-type]
            if place is None:
                continue
            blob = self._at("checkpoint_blobs", place)
            if blob.get("type") == "empty":
                continue
            try:
                found[channel] = opened(blob.get("type"), blob.get("blob"))
            except FAULTS:
                if channel in MESSAGES:
                    return {**row, "type": blob.get("type")}
                found[channel] = {"unopened": blob.get("type")}
        return {**row, "type": OPENED, "checkpoint": {**held, "channel_values": found}}


def _cell(cell: bytes, is_bytes: bool) -> str | bytes | None:
    r"""A cell of a row in the text form of COPY.

    >>> _cell(b"a\\tb", False), _cell(b"\\\\x6869", True), _cell(b"\\N", False)
    ('a\tb', b'hi', None)
    """
    if cell == _NULL:
        return None
    plain = _ESCAPED.sub(_unescaped, cell) if b"\\" in cell else cell
    if is_bytes and plain.startswith(b"\\x"):
        try:
            return bytes.fromhex(plain[2:].decode("ascii", "replace"))
        except ValueError:
            return None
    return plain.decode("utf-8", "replace")


def _unescaped(found: re.Match[bytes]) -> bytes:
    octal, digits, other = found.groups()
    if octal is not None:
        return bytes((int(octal, 8) & 255,))
    if digits is not None:
        return bytes((int(digits, 16),))
    return _CONTROLS.get(other, other)
