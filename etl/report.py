"""What a run did: per file, and summed as `etl ingest --json` prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from itertools import islice
from operator import add
from typing import TYPE_CHECKING, Any

from etl.lake.counts import RowCounts
from etl.results import FileResult, Place, Reached, Results

if TYPE_CHECKING:
    from etl.changes import Change
    from etl.runs import Drift


UNDETECTED = "unknown"
"""Source name of files that no adapter reads, where the user named none."""


STATES = ("new", "grown", "replaced", "moved", "unchanged", "skipped", "failed")
"""What may have become of a file that was found. One that `moved` is new in its place, and lay in another before."""


@dataclass(slots=True)
class Sums:
    """Of the files that were read of one source by one adapter."""

    files: int = 0
    records_in: int = 0
    records_used: int = 0
    rows: int = 0
    rejects: int = 0
    ignored: int = 0
    failed: int = 0

    def add(self, other: Sums) -> None:
        """Take in those of other files."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Report:
    """One run of `ingest`."""

    batch_id: str
    rows: RowCounts = field(default_factory=lambda: RowCounts(0, 0, 0, 0))
    seconds: float = 0.0
    bytes_read: int = 0
    assembled: Counter[str] = field(default_factory=Counter)
    """Rows put together from events, by adapter: some begin in files of earlier runs."""
    closed: Counter[str] = field(default_factory=Counter)
    """Rows that each had a record of their own, by adapter."""
    vanished: int = 0
    """Files that were known below the folders that were read, and lie there no more; their rows stay."""
    dry_run: bool = False
    drift: list[Drift] = field(default_factory=list)
    """What its sources do differently from their runs before."""
    looked_at: set[str] = field(default_factory=set, repr=False)
    """Sources of which something was looked for, and those of files that were unchanged."""
    results: Results = field(default_factory=Results, repr=False, compare=False)
    """One a file, in no order."""
    sums: dict[tuple[str, str | None], Sums] = field(default_factory=dict, repr=False)
    """By source and adapter."""
    unread: dict[str, tuple[int, str, str]] = field(default_factory=dict, repr=False)
    """By source, of files that are new or changed and no conversation logs: how many, the first, and why it is none."""
    _states: Counter[str] = field(default_factory=Counter, repr=False)
    _rejects: Counter[str] = field(default_factory=Counter, repr=False)
    _ignored: Counter[str] = field(default_factory=Counter, repr=False)
    _first: dict[str, Place] = field(default_factory=dict, repr=False)

    @property
    def files(self) -> list[FileResult]:
        """The result of every file, by uri: made when it is asked for, as it takes a kilobyte a file."""
        return sorted(self.results, key=lambda result: result.uri)

    def add(self, result: FileResult) -> None:
        """Take in a file that was read."""
        self.results.add(result)
        failed = result.state == "failed"
        self._states[result.state if failed or result.state == "skipped" else result.change] += 1
        rejects, ignored = result.rejects.total(), result.ignored.total()
        sums = self.sums.setdefault((result.source, result.adapter), Sums())
        sums.files += 1
        sums.records_in += result.records_in
        sums.records_used += result.records_used
        sums.rows += result.rows
        sums.rejects += rejects
        sums.ignored += ignored
        sums.failed += failed
        if result.state == "skipped" and result.is_news and result.is_first:
            count, first, why = self.unread.get(result.source, (0, result.uri, ""))
            said = (result.uri, result.error or "") if result.uri <= first else (first, why)
            self.unread[result.source] = (count + 1, *said)
        if rejects:
            self._rejects.update(result.rejects)
        if ignored:
            self._ignored.update(result.ignored)
        for reason, (place, _message) in result.first_rejects.items():
            if reason not in self._first or place.uri < self._first[reason].uri:
                self._first[reason] = place
        if result.sha256 is not None:
            self.bytes_read += result.size

    def add_unchanged(self, change: Change) -> None:
        """Take in a file that is as it was."""
        file, known = change.file, change.known
        assert known is not None
        self._states["unchanged"] += 1
        if change.source is not None:
            self.looked_at.add(change.source)
        self.results.add_unchanged(
            file.uri, change.source or "", file.size, file.modified_ns, known.sha256, known.adapter,
            known.adapter_version, known.state, "unchanged",
        )  # fmt: skip

    def add_all_unchanged(self, count: int, sources: Iterable[str], results: Results) -> None:
        """Take in that so many files, all that were found, are as they were."""
        self._states["unchanged"] += count
        self.looked_at.update(sources)
        self.results = results

    def count(self, rows: RowCounts, assembled: Counter[str] | None = None) -> None:
        """Take in what a commit did to the rows, and how many were put together from events, by adapter."""
        self.rows = RowCounts(*map(add, self.rows, rows))
        self.assembled.update(assembled or {})

    def count_moved(self, digests: Set[str | None]) -> None:
        """Files with these digests lay in another place before: those that are new have moved."""
        if digests:
            moved = sum(file.change == "new" and file.sha256 in digests for file in self.results)
            self._states.update({"moved": moved, "new": -moved})

    def state_counts(self) -> dict[str, int]:
        """Files by what became of them."""
        counts = {kind: self._states[kind] for kind in STATES}
        return {"seen": len(self.results), **counts, "vanished": self.vanished}

    def rejects(self) -> Counter[str]:
        """Rejects by reason."""
        return self._rejects

    def ignored(self) -> Counter[str]:
        """Records left out, by rule."""
        return self._ignored

    def first_rejects(self) -> dict[str, Place]:
        """Where the first reject of each reason lies."""
        return self._first

    def has_failed(self) -> bool:
        """Whether a file could not be read, or not to its end."""
        return self._states["failed"] > 0

    def failed(self, most: int | None = None) -> list[FileResult]:
        """Files that could not be read, or not to their end, by uri; of more than `most` those that came first."""
        failed = (result for result in self.results if result.state == "failed") if self.has_failed() else iter(())
        return sorted(islice(failed, most), key=lambda result: result.uri)

    def to_json(self) -> dict[str, Any]:
        """The object of `etl ingest --json`."""
        by_adapter: dict[str, Sums] = {}
        for (_source, adapter), sums in self.sums.items():
            if adapter is not None:
                by_adapter.setdefault(adapter, Sums()).add(sums)
        for adapter, rows in self.assembled.items():
            by_adapter[adapter].rows = self.closed[adapter] + rows
        shown = ("files", "records_in", "records_used", "rows", "rejects", "ignored")
        counts = self.rows._asdict()
        left_out = {name: count for name in ("superseded", "copies") if (count := counts.pop(name))}
        return {
            "batch_id": self.batch_id,
            "files": self.state_counts(),
            "records_in": sum(sums.records_in for sums in self.sums.values()),
            "records_used": sum(sums.records_used for sums in self.sums.values()),
            "rows": counts,
            "rejects": dict(sorted(self.rejects().items())),
            "ignored": dict(sorted(self.ignored().items())),
            "by_adapter": {
                name: {kind: getattr(sums, kind) for kind in shown} for name, sums in sorted(by_adapter.items())
            },
            "seconds": round(self.seconds, 3),
            "bytes_read": self.bytes_read,
            **left_out,
        }


__all__ = ["UNDETECTED", "FileResult", "Place", "Reached", "Report", "Sums"]
