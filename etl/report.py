"""What a run did: per file, and summed as `etl ingest --json` prints it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from etl.events import Touched
from etl.lake import RowCounts

if TYPE_CHECKING:
    from etl.growing import Beginning
    from etl.runs import Drift


UNDETECTED = "unknown"
"""Source name of files that no adapter reads, where the user named none."""


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


_NOTHING = Touched()
"""What most files touch, one for all: a night may see a million files."""


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
    """new, grown or unchanged, against what the lake knew."""
    error: str | None = None
    records_in: int = 0
    records_used: int = 0
    rows: int = 0
    rejects: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    touched: Touched = field(default_factory=lambda: _NOTHING)
    """The conversations that its events belong to."""
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
    again: bool = False
    """Whether it turned out that the file cannot be read in parts."""

    def balance(self) -> int:
        """Records that nothing accounts for; anything but 0 is a fault of the adapter."""
        return self.records_in - self.records_used - self.rejects.total() - self.ignored.total()


@dataclass
class Report:
    """One run of `ingest`."""

    batch_id: str
    files: list[FileResult] = field(default_factory=list)
    rows: RowCounts = field(default_factory=lambda: RowCounts(0, 0, 0, 0))
    seconds: float = 0.0
    bytes_read: int = 0
    assembled: Counter[str] = field(default_factory=Counter)
    """Rows put together from events, by adapter."""
    dry_run: bool = False
    drift: list[Drift] = field(default_factory=list)
    """What its sources do differently from their runs before."""

    def state_counts(self) -> dict[str, int]:
        """Files by what became of them."""
        counts = Counter(_kind(result) for result in self.files)
        return {
            "seen": len(self.files),
            **{kind: counts[kind] for kind in ("new", "grown", "unchanged", "skipped", "failed")},
        }

    def rejects(self) -> Counter[str]:
        """Rejects by reason."""
        return _summed(result.rejects for result in self.files)

    def ignored(self) -> Counter[str]:
        """Records left out, by rule."""
        return _summed(result.ignored for result in self.files)

    def failed(self) -> list[FileResult]:
        """Files that could not be read, or not to their end."""
        return [result for result in self.files if result.state == "failed"]

    def to_json(self) -> dict[str, Any]:
        """The object of `etl ingest --json`."""
        by_adapter: dict[str, dict[str, int]] = {}
        for result in self.files:
            if result.adapter is not None and result.change != "unchanged":
                sums = by_adapter.setdefault(
                    result.adapter,
                    {"files": 0, "records_in": 0, "records_used": 0, "rows": 0, "rejects": 0, "ignored": 0},
                )
                sums["files"] += 1
                sums["records_in"] += result.records_in
                sums["records_used"] += result.records_used
                sums["rows"] += result.rows
                sums["rejects"] += result.rejects.total()
                sums["ignored"] += result.ignored.total()
        for adapter, rows in self.assembled.items():
            by_adapter[adapter]["rows"] = rows
        return {
            "batch_id": self.batch_id,
            "files": self.state_counts(),
            "records_in": sum(result.records_in for result in self.files),
            "records_used": sum(result.records_used for result in self.files),
            "rows": self.rows._asdict(),
            "rejects": dict(sorted(self.rejects().items())),
            "ignored": dict(sorted(self.ignored().items())),
            "by_adapter": dict(sorted(by_adapter.items())),
            "seconds": round(self.seconds, 3),
            "bytes_read": self.bytes_read,
        }


def _kind(result: FileResult) -> str:
    return result.state if result.state in ("skipped", "failed") and result.change != "unchanged" else result.change


def _summed(counters: Any) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total
