"""The results of a run, one a file, kept whole but out of memory: a night may see a million files."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from etl.events import Touched
    from etl.growing import Beginning
    from etl.lake import KnownFile

HELD = 1_000
"""So many results are in memory before they are written down."""


class Place(NamedTuple):
    """Where something is to be found in a source."""

    uri: str
    line: int | None
    offset: int | None

    def __str__(self) -> str:
        return self.uri if self.line is None else f"{self.uri}:{self.line} (byte {self.offset})"


class Reached(NamedTuple):
    """The whole lines of a file that were read: their bytes, number and digest."""

    size: int
    lines: int
    sha256: str


def said_of(uri: str, error: str | None) -> str:
    """A file in a list: what is wrong with it, its name before that where that does not name it; else its name."""
    if error is None or uri.partition("!")[0] in error:
        return error or uri
    return f"{uri}: {error}"


@dataclass(slots=True)
class FileResult:
    """One file of a run. `state` is that of `schema.SourceFile`, or `unchanged` where it was not read."""

    uri: str
    source: str
    size: int = 0
    modified_ns: int = 0
    sha256: str | None = None
    adapter: str | None = None
    adapter_version: int | None = None
    state: str = "done"
    change: str = "new"
    """new, grown, replaced or unchanged, against what the lake knew."""
    error: str | None = None
    records_in: int = 0
    records_used: int = 0
    rows: int = 0
    rejects: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    touched: Touched | None = None
    """The conversations that its events belong to; None of a format that has no events."""
    first_rejects: dict[str, tuple[Place, str]] = field(default_factory=dict)
    """Reason → where it first occurred, and its message."""
    reached: Reached | None = None
    """Where reading goes on when the file has grown; None where it is read anew."""
    beginning: Beginning | None = None
    """What the file gave up to there."""
    spans: bool = False
    """Whether its conversations are put together from events; then `keys` are some of them, and `days` theirs."""
    keys: frozenset[str] = frozenset()
    days: frozenset[str] = frozenset()
    parsed: tuple[int, int] = (0, 0)
    """Rejects and ignored records before assembly."""
    read_from: int = 0
    """The byte from which on it was read, where what lies before was known."""
    others_touched: tuple[Touched, ...] = ()
    """What its other parts touch, where several processes read it."""
    part: int | None = None
    """Where the part begins that this is about; None: all of the file."""
    former: tuple[str, ...] = ()
    """Names that the lake knows it by, and shall not any more."""
    is_news: bool = True
    """Whether the lake has to be told of it."""
    is_first: bool = True
    """Whether the lake knew no such file yet."""
    again: bool = False
    """Whether it turned out that the file cannot be read in parts."""

    def is_known_as(self, known: KnownFile | None) -> bool:
        """Whether the lake says just this of a file that nothing was read of."""
        if known is None or known.adapter is not None or self.adapter is not None or self.records_in:
            return False
        modified = self.modified_ns // 1_000 or None
        told = (known.state, known.error, known.size, known.modified_at)
        return told == (self.state, self.error, max(self.size, 0), modified)

    def is_seen_first(self, known: KnownFile | None) -> bool:
        """Whether the lake knows nothing of it, or of another file: one read within a tick has no time there."""
        if known is None or known.state != self.state or known.size != max(self.size, 0):
            return True
        return known.modified_at not in (None, self.modified_ns // 1_000 or None)

    def balance(self) -> int:
        """Records that nothing accounts for; anything but 0 is a fault of the adapter."""
        return self.records_in - self.records_used - self.rejects.total() - self.ignored.total()


_TOLD = (
    "uri", "source", "size", "modified_ns", "sha256", "adapter", "adapter_version", "state", "change", "error",
    "records_in", "records_used", "rows", "rejects", "ignored", "first_rejects", "reached", "read_from",
)  # fmt: skip
"""What is told of a file when its run is over; the rest is for the commit."""
_told = attrgetter(*_TOLD)
_COUNTED = tuple(_TOLD.index(name) for name in ("rejects", "ignored", "first_rejects"))


class Results:
    """What a run has found out about each file, in the order in which it came: written to a file without a name, which
    goes with the last reader.
    """

    def __init__(
        self, folder: Path | None = None, *, load: Callable[[], Iterator[FileResult]] | None = None, count: int = 0
    ) -> None:
        """`folder` is where to write; by default where the system keeps temporary files. `load` gives so many results
        that nobody has looked up yet.
        """
        self._load = load
        self._folder = folder
        self._held: list[tuple[Any, ...]] = []
        self._file: Any = None
        self._written: list[int] = []
        self._number = count

    def __len__(self) -> int:
        return self._number

    def add(self, result: FileResult) -> None:
        """Take in what is known of a file now."""
        values = _told(result)
        self._add(tuple(value or None if place in _COUNTED else value for place, value in enumerate(values)))

    def add_unchanged(self, *values: Any) -> None:
        """The same of a file that was not read, given as the first fields of a result up to `change`."""
        self._add(values)

    def _add(self, values: tuple[Any, ...]) -> None:
        self._number += 1
        self._held.append(values)
        if len(self._held) == HELD:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  (it is read after the run)
            weakref.finalize(self, self._file.close)
        text = pickle.dumps(self._held, pickle.HIGHEST_PROTOCOL)
        self._file.write(text)
        self._written.append(len(text))
        self._held = []

    def __iter__(self) -> Iterator[FileResult]:
        if self._load is not None:
            yield from self._load()
        at = 0
        for size in self._written:
            self._file.seek(at)
            lot = self._file.read(size)
            self._file.seek(0, 2)
            at += size
            yield from map(_result, pickle.loads(lot))  # our own, of this process
        yield from map(_result, list(self._held))


def _result(values: tuple[Any, ...]) -> FileResult:
    told = dict(zip(_TOLD, values, strict=False))
    rejects, ignored = told.pop("rejects", None), told.pop("ignored", None)
    first = told.pop("first_rejects", None)
    return FileResult(**told, rejects=Counter(rejects), ignored=Counter(ignored), first_rejects=dict(first or {}))
