"""A night without news, told without opening a table: most nights most sources are as they were.

A run at whose end the lake knows every file that was found leaves a note beside the tables: what it was asked for, a
digest of the names, sizes and times of the files, and the state of the lake. Where all of this is the same the next
night, a comparison with `sources` would say the same again, and nothing has to be loaded that makes one. Where anything
differs, or cannot be told, files are compared one by one (`etl/running.py`). A note that is lost costs half a second.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from etl.discover import find
from etl.lake.batch import Batch
from etl.lake.place import Place
from etl.lake.reports import read_reports, write_report
from etl.lake.state import is_all_of, is_in_state, state_of
from etl.remote import is_remote
from etl.report import Report
from etl.results import Results
from etl.runs import keep_report
from etl.tables import PARTITIONS
from etl.walk import FoundFile, absolute, is_recent

if TYPE_CHECKING:
    from etl.changes import Change
    from etl.lake import Lake
    from etl.results import FileResult
    from etl.settings import Settings

NOTE = ".quiet.json"
_FORM = 1
"""Raised when a note of before would be understood in another way, or files are compared in another way."""
_LOT = 1_000
"""So many files are taken into the digest together."""


class Asked(NamedTuple):
    """What a run is asked to read, and how."""

    settings: Settings
    roots: Sequence[str]
    exclude: Sequence[str] = ()

    def files(self) -> Iterator[FoundFile]:
        """The files that are there now."""
        return find(self.roots, self.exclude)

    def key(self) -> str:
        """The same for every run that is asked for the same."""
        settings = self.settings
        mapping = settings.mapping and [settings.mapping.name, settings.mapping.adapter_version]
        how = [settings.source, settings.format, settings.redact, mapping, list(self.exclude)]
        where = [root if is_remote(root) else absolute(root) for root in self.roots]
        return _digest([json.dumps([_FORM, how, where]).encode()])


class _Listing:
    """The digest of what is found, made while it goes by."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)

    def passing(self, files: Iterable[FoundFile]) -> Iterator[FoundFile]:
        lines: list[str] = []
        for file in files:
            lines.append(f"{file.place}\0{file.size}\0{file.modified_ns}\0")
            if len(lines) == _LOT:
                self._digest.update(os.fsencode("".join(lines)))
                lines.clear()
            yield file
        self._digest.update(os.fsencode("".join(lines)))

    def told(self) -> str:
        return self._digest.hexdigest()


def quiet_night(asked: Asked) -> Report | None:
    """The report of a run that finds what the run before left, by its note; None where files have to be compared."""
    began = time.monotonic()
    settings = asked.settings
    if is_remote(settings.lake):
        return None
    place = Place(settings.lake)
    told = _note(place)
    try:
        noted = told["runs"][asked.key()]
        if not is_in_state(place, told["lake"]):
            return None
        found, files, sources, vanished = (noted[name] for name in ("found", "files", "sources", "vanished"))
    except (LookupError, TypeError, ValueError, OSError):
        return None
    listing = _Listing()
    for _ in listing.passing(asked.files()):
        pass
    if listing.told() != found:
        return None
    report = Report(settings.batch_id, dry_run=settings.dry_run, vanished=vanished)
    report.add_all_unchanged(files, sources, Results(load=lambda: _looked_up(asked), count=files))
    with contextlib.closing(Batch(place, settings.batch_id)) as batch:
        report.seconds = time.monotonic() - began
        if not settings.dry_run:
            keep_report(report, settings, lambda text: write_report(place, batch, text), lambda: read_reports(place))
    return report


def _looked_up(asked: Asked) -> Iterator[FileResult]:
    """The result of each file, for who asks for them."""
    from etl.starting import unchanged

    return unchanged(asked)


class Noting:
    """Sees to it, while a run goes on, whether the next one may be quiet; leaves the note where it may."""

    def __init__(self, lake: Lake, asked: Asked, again: Callable[[Sequence[FoundFile]], Sequence[Change]]) -> None:
        """`again` compares files with what the lake knows of them by then."""
        self._lake = lake
        self._asked = asked
        self._again = again
        self._listing = _Listing()
        self._sources: set[str] = set()
        self._began_ns = time.time_ns()
        self._is_quiet = not (asked.settings.dry_run or is_remote(asked.settings.lake))
        self._since = _versions(lake) if self._is_quiet else {}

    def found(self, files: Iterable[FoundFile]) -> Iterator[FoundFile]:
        """The same files, which were found."""
        return self._listing.passing(files)

    def compared(self, changes: Sequence[Change]) -> Sequence[Change]:
        """The same, of which some are to be read."""
        self._take((change for change in changes if not change.is_read), self._began_ns)
        return changes

    def committed(self, files: Sequence[FoundFile]) -> None:
        """These were read, and what came of them is in the lake: are they known now?"""
        if self._is_quiet:
            now_ns = time.time_ns()
            self._take(self._again(files), now_ns)

    def _take(self, changes: Iterable[Change], now_ns: int) -> None:
        for change in changes:
            if not self._is_quiet:
                return
            file = change.file
            self._is_quiet = (
                not change.is_read
                and not change.former
                and file.uri == file.own_name
                and change.source is not None
                and not is_recent(file.modified_ns, now_ns)
            )
            self._sources.add(change.source or "")

    def leave(self, report: Report, *, is_certain: bool) -> None:
        """Write the note; `is_certain`: whoever finds the same files finds that so many have vanished.

        One that cannot be written is no reason to fail.
        """
        if self._is_quiet and is_certain:
            with contextlib.suppress(OSError):
                self._leave(Place(self._lake.root), report)

    def _leave(self, place: Place, report: Report) -> None:
        batch_id, until = self._asked.settings.batch_id, _versions(self._lake)
        live = {table: [file.path for file in self._lake.live(table)] for table in PARTITIONS}
        names = {
            table: [path.removeprefix(f"{place.table(table)}/") for path in paths] for table, paths in live.items()
        }
        state = state_of(place, until, names)
        if state is None or not is_all_of(place, batch_id, self._since, until):
            return
        told = _note(place)
        runs = told["runs"] if told.get("lake") == state and isinstance(told.get("runs"), dict) else {}
        counts = {"files": report.state_counts()["seen"], "vanished": report.vanished}
        runs[self._asked.key()] = {"found": self._listing.told(), "sources": sorted(self._sources), **counts}
        place.write_text(NOTE, json.dumps({"lake": state, "runs": runs}), place.staging / batch_id)


def _versions(lake: Lake) -> dict[str, int]:
    return {table: lake.version(table) for table in PARTITIONS}


def _note(place: Place) -> Mapping[str, Any]:
    """What is noted of a lake; nothing where that cannot be read."""
    try:
        told = json.loads((place.root / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _digest(texts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(text)
    return digest.hexdigest()
