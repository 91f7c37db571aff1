"""Files into decompressed UTF-8 byte blocks, with the digest of what lies on disk.

Compression is told by magic bytes, never by name. UTF-16 and UTF-32 (with a byte order mark, or plainly recognisable)
are transcoded; offsets then count in the UTF-8 text. Tables (Parquet, Arrow, delimited text) arrive as JSON Lines. A
compressed stream that ends early gives what can be read, then says so.
"""

from __future__ import annotations

import bz2
import codecs
import lzma
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

import zstandard

from etl.digest import Digest
from etl.errors import SourceError
from etl.journal import log_beside, merged
from etl.limits import LIMITS
from etl.remote import is_remote, read_errors
from etl.tabular import SNIFFED, columnar, delimited_lines, delimiter
from etl.zipped import named, opened

BLOCK = 1 << 20
"""Bytes read at a time."""
_SIP = 256
JSON_OPENERS = (b"{", b"[")
_MAGIC_BYTES = 32


class _Stream:
    """One compressed stream, given out in pieces of a bounded size whatever it holds."""

    def __init__(self, codec: str) -> None:
        self.rest = b""
        """After the end: what follows it, as far as it was given."""
        self.ended = False
        self._inflate = zlib.decompressobj(31) if codec == "gzip" else None
        self._zstd = zstandard.ZstdDecompressor().decompressobj() if codec == "zstd" else None
        self._other = bz2.BZ2Decompressor() if codec == "bzip2" else lzma.LZMADecompressor(memlimit=_DICTIONARY)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What these bytes give."""
        if self._inflate is not None:
            yield from self._inflated(self._inflate, data)
        elif self._zstd is not None:
            # No bound can be given to this one, so it gets little at a time: four bytes may give 128 KB.
            at = 0
            while at < len(data) and not self._zstd.eof:
                yield self._zstd.decompress(data[at : at + _SIP])
                at += _SIP
            self._end(self._zstd.eof, self._zstd.unused_data + data[at:])
        else:
            yield self._other.decompress(data, BLOCK)
            while not (self._other.eof or self._other.needs_input):
                yield self._other.decompress(b"", BLOCK)
            self._end(self._other.eof, self._other.unused_data)

    def _inflated(self, inflate: zlib._Decompress, data: bytes) -> Iterator[bytes]:
        while True:
            piece = inflate.decompress(data, BLOCK)
            yield piece
            data = inflate.unconsumed_tail
            if inflate.eof or (not data and len(piece) < BLOCK):
                break
        self._end(inflate.eof, inflate.unused_data)

    def _end(self, ended: bool, rest: bytes) -> None:
        self.ended = ended
        self.rest = rest if ended else b""


class _Codec(NamedTuple):
    name: str
    magic: tuple[bytes, ...]


_CODECS = (
    _Codec("gzip", (b"\x1f\x8b",)),
    _Codec("zstd", (b"\x28\xb5\x2f\xfd",)),
    _Codec("bzip2", (b"BZh",)),
    _Codec("xz", (b"\xfd7zXZ\x00",)),
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ARCHIVE_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(ValueError, LookupError, EOFError, RuntimeError, MemoryError),
)
"""What `zipfile` raises where an archive is broken (what it does not know is a NotImplementedError, a RuntimeError)."""
_DECOMPRESSION_ERRORS = (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError, EOFError, MemoryError)
_DICTIONARY = 256 << 20
"""Bytes of memory that an xz stream may ask for (a zstd stream: 128 MB, the library's own limit)."""
MOST_GROWTH, FREE = 1_000, 64 << 20
"""What a compressed file or a table may give for each byte that it has, beyond so many bytes."""


class Truncated(SourceError):
    """A compressed stream that ends before its end mark, or breaks in the middle."""


def zip_members(path: Path) -> list[str]:
    """Names of the files in a ZIP archive, in archive order, each another; [] where the file is none."""
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return []
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return list(named(archive))
    except read_errors(*_ARCHIVE_ERRORS) as error:
        raise SourceError(
            f"{path}: ZIP archive cannot be read ({_brief(error)}); unpack it and give the folder"
        ) from None


def _brief(error: Exception) -> str:
    """What it says, in one short line: `zipfile` quotes what stands in place of a name, of any length."""
    return " ".join(str(error).split(" and header ")[0].split())[:200]


def blocks(path: Path, member: str | None = None, digest: Digest | None = None) -> Iterator[bytes]:
    """The content as decompressed UTF-8 blocks. Raises SourceError where it cannot be read or is far larger than the
    file, Truncated where it ends early.
    """
    given, most = 0, FREE
    for block in _opened_blocks(path, member, digest):
        given += len(block)
        if given > most:
            most = max(FREE, MOST_GROWTH * _size(path))
            if given > most:
                raise SourceError(
                    f"{path}{'' if member is None else f'!{member}'}: gives more than {MOST_GROWTH} times its size, as "
                    "a decompression bomb does; if it is none, unpack it and ingest what is in it"
                )
        yield block


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except read_errors():
        return 0


def _opened_blocks(path: Path, member: str | None, digest: Digest | None) -> Iterator[bytes]:
    """As `blocks`, of any size."""
    try:
        if member is None and digest is not None and (log := log_beside(path)) is not None:
            yield from _with_log(path, log, digest)
            return
        with path.open("rb") as file:
            columns = columnar(file.read(_MAGIC_BYTES))
            file.seek(0)
            if member is None and columns is None:
                yield from _text(_decompressed(_raw(file, digest), str(path)))
                return
            if digest is not None:
                for _ in _raw(file, digest):
                    pass
        if columns is not None and member is None:
            with _local(path) as local:
                yield from columns(local)
        elif member is not None:
            with path.open("rb") as file, zipfile.ZipFile(file) as archive, opened(archive, member) as inner:
                yield from _text(_decompressed(_raw(inner, None), f"{path}!{member}"))
    except NotImplementedError as error:
        raise SourceError(f"{path}!{member}: {error}; unpack the archive and give the folder") from None
    except read_errors(*_ARCHIVE_ERRORS) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else _brief(error)
        raise SourceError(f"{path}: cannot be read ({reason})") from None


def small_text(path: Path) -> bytes | None:
    """All bytes of a file, where `blocks` gives them as they lie on disk and in one piece; None for any other."""
    try:
        with path.open("rb") as file:
            data = file.read(BLOCK + 1)
    except read_errors():
        return None
    plain = data[:1] in JSON_OPENERS and len(data) <= BLOCK and _encoding(data) is None
    return data if plain else None


def is_plain(head: bytes) -> bool:
    """Whether `blocks` gives the bytes of a file that begins so just as they lie on disk: JSON in UTF-8."""
    text = head.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n")
    return text[:1] in JSON_OPENERS and _encoding(head) in (None, "utf-8")


def span(path: Path, start: int, end: int, digest: Digest | None = None) -> Iterator[bytes]:
    """The bytes from `start` to `end` of a plain file; SourceError where there are fewer, or none can be read."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            left = end - start
            while left:
                data = file.read(min(BLOCK, left))
                if not data:
                    raise SourceError(f"{path}: became shorter while it was read; ingest it again")
                if digest is not None:
                    digest.update(data)
                left -= len(data)
                yield data
    except read_errors() as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else _brief(error)
        raise SourceError(f"{path}: cannot be read ({reason})") from None


def _with_log(path: Path, log: Path, digest: Digest) -> Iterator[bytes]:
    """A database with what its log has; the digest is of both, so that one whose log is gone is read again."""
    for part in (path, log):
        with part.open("rb") as file:
            for _ in _raw(file, digest):
                pass
    with merged(path, log) as whole, whole.open("rb") as file:
        yield from _raw(file, None)


@contextmanager
def _local(path: Path) -> Iterator[Path]:
    """The file where it lies, or a copy of one in an object store."""
    if not is_remote(str(path)):
        yield path
        return
    with path.open("rb") as file, spooled(_raw(file, None)) as copy:
        yield copy


@contextmanager
def spooled(source: Iterable[bytes]) -> Iterator[Path]:
    """The blocks as a temporary file, for containers that have to be opened by path (SQLite, Parquet, ZIP)."""
    with tempfile.NamedTemporaryFile(prefix="etl-spooled-") as file:
        for block in source:
            file.write(block)
        file.flush()
        yield Path(file.name)


def _text(source: Iterator[bytes]) -> Iterator[bytes]:
    """Decompressed blocks as UTF-8 text, a table as JSON Lines."""
    first = next(source, b"")
    if (reader := columnar(first)) is not None:
        with spooled(chain((first,), source)) as file:
            yield from reader(file)
        return
    text = _transcoded(chain((first,), source))
    head = next(text, b"")
    if head[:1] not in JSON_OPENERS:
        while len(head) < SNIFFED and (more := next(text, b"")):
            head += more
        if (mark := delimiter(head)) is not None:
            text, head = delimited_lines(chain((head,), text), mark, LIMITS.record_bytes), b""
    if head:
        yield head
    yield from text


def _raw(file: IO[bytes], digest: Digest | None) -> Iterator[bytes]:
    while data := file.read(BLOCK):
        if digest is not None:
            digest.update(data)
        yield data


def _decompressed(source: Iterator[bytes], name: str) -> Iterator[bytes]:
    first = next(source, b"")
    codec = next((codec for codec in _CODECS if first.startswith(codec.magic)), None)
    if codec is None:
        if first:
            yield first
        yield from source
        return
    stream, given = _Stream(codec.name), 0
    pending = first
    while True:
        try:
            for output in _gathered(stream.pieces(pending)):
                given += len(output)
                yield output
        except _DECOMPRESSION_ERRORS as error:
            raise Truncated(f"{name}: {codec.name} stream broken after {given} bytes ({_brief(error)})") from None
        pending = stream.rest if stream.ended else next(source, b"")
        if stream.ended:
            # Zeros may pad a stream, as tapes do.
            pending = pending.lstrip(b"\x00")
            while len(pending) < len(codec.magic[0]) and (more := next(source, b"")):
                pending = (pending + more).lstrip(b"\x00")
            if not pending:
                return
            if not pending.startswith(codec.magic):
                raise Truncated(f"{name}: {codec.name} stream is followed by {len(pending)} bytes of something else")
            stream = _Stream(codec.name)
        elif not pending:
            raise Truncated(
                f"{name}: {codec.name} stream truncated after {given} bytes; copy the file again and re-run"
            )


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of about BLOCK."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= BLOCK:
            yield b"".join(held)
            held, size = [], 0
    if size:
        yield b"".join(held)


def _transcoded(source: Iterator[bytes]) -> Iterator[bytes]:
    """UTF-8 blocks, byte order mark kept in place as it counts in offsets (framing passes over it)."""
    first = next(source, b"")
    encoding = _encoding(first)
    if encoding is None or encoding == "utf-8":
        if first:
            yield first
        yield from source
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="surrogatepass")
    try:
        yield decoder.decode(first).encode("utf-8", "surrogatepass")
        for block in source:
            yield decoder.decode(block).encode("utf-8", "surrogatepass")
        yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise SourceError(f"text is not valid {encoding} ({error.reason}); convert it to UTF-8") from None


def _encoding(first: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if first.startswith(mark):
            return encoding
    head = first[:64]
    if len(head) >= 4 and head[0] in b"{[" and head[1:2] == b"\x00" and head[3:4] == b"\x00":
        return "utf-16-le"
    if len(head) >= 4 and head[0:1] == b"\x00" and head[1] in b"{[" and head[2:3] == b"\x00":
        return "utf-16-be"
    return None
