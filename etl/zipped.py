"""Members of ZIP archives as files: Zstandard (method 93), which `zipfile` reads from Python 3.14 on only, and bzip2,
of which `zipfile` gives all at once that some bytes hold, gigabytes for a few of them.
"""

from __future__ import annotations

import bz2
import io
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Protocol, cast

import zstandard

ZSTANDARD = 93
_ENCRYPTED = 0x1
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods for which `zipfile` gives no more than it is asked for."""
_SIP = 4096
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Signature, lengths of name and extra field of the header before a member's data."""


def named(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files of an archive by name; one whose name another has is `NAME#2` and so on, so that each is read."""
    found: dict[str, zipfile.ZipInfo] = {}
    count: Counter[str] = Counter()
    for info in archive.infolist():
        if not info.is_dir():
            name = info.filename
            while name in found:
                count[info.filename] += 1
                name = f"{info.filename}#{count[info.filename] + 1}"
            found[name] = info
    return found


@contextmanager
def opened(archive: zipfile.ZipFile, member: str) -> Iterator[IO[bytes]]:
    """The member for reading. BadZipFile where it is broken, RuntimeError where it is encrypted."""
    info = named(archive)[member]
    if info.compress_type not in (ZSTANDARD, zipfile.ZIP_BZIP2):
        with archive.open(info) as plain:
            yield plain if info.compress_type in _BOUNDED else cast(IO[bytes], _Sips(plain))
        return
    if info.flag_bits & _ENCRYPTED:
        raise RuntimeError(f"{member} is encrypted")
    held = archive.fp
    if held is None:
        raise zipfile.BadZipFile("the archive is closed")
    held.seek(info.header_offset)
    header = held.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size or not header.startswith(b"PK\x03\x04"):
        raise zipfile.BadZipFile(f"bad header of {member}")
    _, name, extra = _LOCAL_HEADER.unpack(header)
    held.seek(name + extra, io.SEEK_CUR)
    yield cast(IO[bytes], _Member(held, info))


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Sips(io.RawIOBase):
    """A member (LZMA) that `zipfile` gives as much of as its compressed bytes hold, a little at a time."""

    def __init__(self, plain: IO[bytes]) -> None:
        self._plain = plain

    def read(self, size: int = -1) -> bytes:
        return self._plain.read(_SIP if size < 0 else min(size, _SIP))


class _Member(io.RawIOBase):
    """The content of a member, its checksum compared at the end."""

    def __init__(self, held: IO[bytes], info: zipfile.ZipInfo) -> None:
        self._held = held
        self._left = info.compress_size
        self._info = info
        self._checksum = 0
        packed = cast(IO[bytes], _Bounded(self))
        self._stream: _Readable = (
            zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
            if info.compress_type == ZSTANDARD
            else bz2.BZ2File(packed)
        )

    def take(self, size: int) -> bytes:
        """Compressed bytes, never beyond the member."""
        data = self._held.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(data)
        return data

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._stream.read(size)
        except (zstandard.ZstdError, OSError) as error:
            raise zipfile.BadZipFile(f"{self._info.filename}: {error}") from None
        self._checksum = zlib.crc32(data, self._checksum)
        if not data and self._checksum != self._info.CRC:
            raise zipfile.BadZipFile(f"bad checksum of {self._info.filename}")
        return data


class _Bounded(io.RawIOBase):
    """What the decompressor reads from."""

    def __init__(self, member: _Member) -> None:
        self._member = member

    def read(self, size: int = -1) -> bytes:
        return self._member.take(size)
