"""Parts of a file of lines: what is read apart from the rest, by another process or on another night.

A part is read as if all before it had been read: it is told the number of its first line and how often each of its
records occurs before it. Whoever parts a file goes over its bytes once, which costs a tenth of parsing them, and takes
the file's digest on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple

from etl.adapter import Adapter
from etl.detection import Detection, sample
from etl.digest import LineDigest
from etl.errors import SourceError
from etl.framing import BOM, Limits, is_lines, line_text
from etl.identity import Occurrences, record_name
from etl.lake import KnownFile
from etl.opening import BLOCK, blocks, is_plain, span
from etl.remote import is_remote
from etl.walk import FoundFile

SHARE, LEAST = 8, 4
"""A part is at most such a share of what is left of its file, and at least such a share of the usual length: at the end
nobody waits long for who got the last one.
"""
LONGEST = 4
"""Parts become so many times longer to end with a line; a file with a longer line is read whole."""


class Part(NamedTuple):
    """Bytes `start` to `end` of a plain file of lines, both where a line begins (or at the end of the file)."""

    start: int
    end: int
    line: int
    """The number of its first line."""
    before: Mapping[bytes, int]
    """How often records of this part occur before it, by `record_name`; those that do not are not named."""


class Work(NamedTuple):
    """A file to read, or a part of one; or one of which the lake knows a beginning."""

    file: FoundFile
    known: KnownFile | None = None
    """What was read before, where the file may have grown since."""
    part: Part | None = None
    adapter: str | None = None
    """The adapter that reads the part."""

    @property
    def size(self) -> int:
        """Bytes to read."""
        return max(self.file.size, 0) if self.part is None else self.part.end - self.part.start


class UnpartableError(SourceError):
    """A line is longer than parts may become."""


def is_parted(file: FoundFile, detection: Detection, limits: Limits) -> bool:
    """Whether the lines of a file can be read apart from each other."""
    if file.member is not None or is_remote(file.uri):
        return False
    with file.path.open("rb") as opened:
        head = opened.read(BLOCK >> 8)
    if not is_plain(head):
        return False
    found = detection.sample or sample(file.path, None, file.uri)
    if not detection.adapter.lines_apart(found):
        return False
    return is_lines(blocks(file.path), limits)


def names_records(adapter: Adapter) -> bool:
    """Whether rows of the adapter's are named by the records of their file, so that equal ones have to be counted."""
    return not adapter.spans_files


def parts(file: FoundFile, digest: LineDigest, size: int, named: bool) -> Iterator[Part]:
    """The parts of a file of lines in order, of about `size` bytes, the last ones less; `digest` takes in every byte.

    `named`: say how often records occur before a part. UnpartableError where a line is too long.
    """
    seen = Occurrences()
    start, line = 0, 1
    gathered: list[bytes] = []
    length = 0
    for block in span(file.path, 0, file.size, digest):
        gathered.append(block)
        length += len(block)
        if length > LONGEST * size + BLOCK:
            raise UnpartableError(f"{file.uri}: a line of more than {length} bytes")
        usual = max(size // LEAST, min(size, (file.size - start) // SHARE))
        if length < usual or (cut := block.rfind(b"\n") + 1) == 0:
            continue
        gathered[-1], rest = block[:cut], block[cut:]
        lines = digest.lines + 1
        part = _part(gathered, start, line, seen, named)
        yield part
        start, line = part.end, lines
        gathered, length = [rest], len(rest)
    if start < digest.whole < start + length:
        whole = b"".join(gathered)
        part = _part([whole[: digest.whole - start]], start, line, seen, named)
        yield part
        gathered, start, line = [whole[digest.whole - start :]], part.end, digest.lines + 1
    if any(gathered):
        yield _part(gathered, start, line, seen, named)


def _part(blocks: list[bytes], start: int, line: int, seen: Occurrences, named: bool) -> Part:
    end = start + sum(map(len, blocks))
    if not named:
        return Part(start, end, line, {})
    first: dict[bytes, int] = {}
    for name in _names(b"".join(blocks), start):
        number = seen.take(name)
        first.setdefault(name, number)
    return Part(start, end, line, {name: number for name, number in first.items() if number})


def _names(data: bytes, start: int) -> Iterator[bytes]:
    """The names of the records that lines may be."""
    at, text = len(BOM) if start == 0 and data.startswith(BOM) else 0, memoryview(data)
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        if at < end:
            odd = data[end - 1] in b"\r "
            yield record_name(line_text(data[at:end]) if odd else text[at:end])
        at = end + 1


def names_in(file: FoundFile, start: int, end: int) -> tuple[set[bytes], set[int]]:
    """The names of the records between two bytes where lines begin, and their lengths."""
    names, lengths = set(), set()
    for raw in _lines(file, start, end, None):
        text = line_text(raw)
        names.add(record_name(text))
        lengths.add(len(text))
    return names, lengths


def occurring(file: FoundFile, end: int, digest: LineDigest, names: Set[bytes], lengths: Set[int]) -> dict[bytes, int]:
    """How often these records occur in the first `end` bytes, all of which `digest` takes in."""
    found: dict[bytes, int] = {}
    for raw in _lines(file, 0, end, digest):
        text = line_text(raw)
        if len(text) in lengths and (name := record_name(text)) in names:
            found[name] = found.get(name, 0) + 1
    return found


def _lines(file: FoundFile, start: int, end: int, digest: LineDigest | None) -> Iterator[bytes]:
    rest: list[bytes] = []
    at_start = start == 0
    for block in span(file.path, start, end, digest):
        if at_start:
            block, at_start = block.removeprefix(BOM), False
        if b"\n" not in block:
            rest.append(block)
            continue
        head, *whole = block.split(b"\n")
        yield b"".join([*rest, head])
        rest = [whole.pop()]
        yield from whole
    yield b"".join(rest)
