"""The lake: four Delta tables under one folder, changed by whole commits only."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple, Self, TypeVar
from uuid import uuid4

import pyarrow as pa

from etl.card import card, restated
from etl.errors import LakeError, UsageError
from etl.identity import digest
from etl.lake.batch import Batch
from etl.lake.commit import Committing, commit_plan, commit_rows, try_again
from etl.lake.counts import RowCounts
from etl.lake.errors import one_line, reading
from etl.lake.forget import Conversation, Forgotten, forget
from etl.lake.history import Commit, batches_since, history
from etl.lake.known import KnownFile, known_files
from etl.lake.labels import Label, Masked, label_row
from etl.lake.log import LiveFile, Snapshot, create_table, snapshot
from etl.lake.lookup import Lookup
from etl.lake.migrate import Migrated, migrate_table
from etl.lake.partition import check_source
from etl.lake.place import STAGING, Place
from etl.lake.plan import plan_compaction
from etl.lake.precedence import decide_rollouts
from etl.lake.repair import drop_lost
from etl.lake.reports import read_reports, write_report
from etl.lake.rewrite import Change, Rewritten, rewrite
from etl.lake.staging import StagedFile
from etl.lake.sweep import Swept, sweep
from etl.lake.undo import Undone, files_of, undo
from etl.lake.upkeep import decide_events, decide_rejects, decide_sources
from etl.lake.verify import Finding, verify
from etl.permissions import folder_mode
from etl.schema import TABLES
from etl.shipped import schema_text

T = TypeVar("T")

_UNDO_ORDER = ("sources", "rejects", "rollouts", "events")
"""The reverse of the order in which a run commits: `sources` marks a file as done."""


class Migration(NamedTuple):
    """What a migration did, or would do."""

    tables: list[Migrated]
    findings: list[Finding]
    """What is wrong with the tables that were written anew."""


class Lake:
    """An open lake. Reading needs nothing more; a commit needs an open batch:

    with lake.batch(batch_id):
        writer = StagingWriter(lake.root, batch_id, "rollouts")
        writer.write(redacted)
        lake.commit_rollouts(writer.close())
    """

    def __init__(self, place: Place, clock: Callable[[], float]) -> None:
        """Use `Lake.open` or `Lake.create`."""
        self._place = place
        self._clock = clock
        self._batch: Batch | None = None
        self._older = False

    @classmethod
    def open(cls, root: str | os.PathLike[str], *, clock: Callable[[], float] = time.time, older: bool = False) -> Self:
        """The lake of that folder; LakeError where there is none, or one that this version cannot read or write.

        `clock` gives seconds since 1970; removals in the Delta log carry its time. `older`: a lake of an older version
        will do, which can be read and migrated, and not be written.
        """
        lake = cls(Place(root), clock)
        lake._older = older
        for table in TABLES:
            lake._snapshot(table)
        return lake

    @classmethod
    def create(cls, root: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> Self:
        """The lake of that folder, made where there is none and completed where its making was cut off."""
        place = Place(root)
        with one_line(f"create the lake {place.root}"):
            found = place.names()
            if found and not found & {*TABLES, STAGING}:
                raise LakeError(
                    f"{place.root} holds other files and no lake; choose an empty folder, or one that is not there yet"
                )
            if not place.is_remote:
                place.root.mkdir(mode=folder_mode(place.root), parents=True, exist_ok=True)
            for table in TABLES:
                create_table(place, table)
        lake = cls.open(root, clock=clock)
        with one_line(f"create the lake {place.root}"):
            lake._write_companions()
        return lake

    @staticmethod
    def begun(root: str | os.PathLike[str]) -> bool:
        """Whether anything lies in that folder, a lake or not."""
        place = Place(root)
        with one_line(f"read {place.root}"):
            return bool(place.names())

    def _write_companions(self) -> None:
        """The dataset card, which people may change, and the views of this version of the product."""
        texts = {} if (self._place.root / "README.md").exists() else {"README.md": card()}
        texts["views.sql"] = schema_text("views.sql")
        with contextlib.closing(Batch(self._place, f"create-{uuid4()}")) as batch:
            for name, text in texts.items():
                self._place.write_text(name, text, batch.folder)

    @property
    def id(self) -> str:
        """What the lake is known by wherever it is moved to."""
        return str(self._snapshot("rollouts").delta.metadata().id)

    @property
    def root(self) -> str:
        """Absolute path of the lake's folder."""
        return str(self._place.root)

    @contextlib.contextmanager
    def batch(self, batch_id: str) -> Iterator[Path]:
        """Opens the batch under which files are staged and committed; gives its folder, which goes at the end."""
        if self._batch is not None:
            raise LakeError(f"the batch {self._batch.id} is still open on this lake")
        self._check_present()
        self._batch = Batch(self._place, batch_id)
        try:
            yield self._batch.folder
            self._restate_card(self._batch.folder)
        except LakeError as error:
            if self._batch.folder.exists():
                raise
            raise LakeError(
                f"{self._place.root} was removed or moved while {batch_id} wrote to it: nothing of this run is in it "
                "that is not whole; run it again"
            ) from error
        finally:
            self._batch.close()
            self._batch = None

    def _restate_card(self, folder: Path) -> None:
        """Names the state of `rollouts` in the dataset card; a card that cannot be written is no reason to fail."""
        path = self._place.root / "README.md"
        with contextlib.suppress(OSError):
            if path.exists():
                state = digest("\n".join(file.path for file in self.live("rollouts")).encode())
                self._place.write_text("README.md", restated(path.read_text(encoding="utf-8"), state), folder)

    def live(self, table: str) -> list[LiveFile]:
        """The data files of the newest version, by path. Read them inside `reading`: a commit may remove them."""
        files = self._snapshot(table).files
        return [files[path] for path in sorted(files)]

    def version(self, table: str) -> int:
        """The newest version of a table."""
        return self._snapshot(table).version

    def commit_events(self, staged: Sequence[StagedFile]) -> int:
        """Appends the staged events that are not there yet and returns how many.

        An event is known by (source, conversation_key, record_key).
        """
        return self._commit("events", staged, decide_events) if staged else 0

    def commit_rollouts(
        self,
        staged: Sequence[StagedFile],
        *,
        conversations: Mapping[str, Set[str]] | None = None,
        still_current: Callable[[], bool] | None = None,
    ) -> RowCounts:
        """Commits rows by the precedence of DESIGN.md, also among the staged ones; unchanged rows are not written.

        `conversations` (source → conversation ids): the staged rows are the whole truth of these conversations, so
        their live rows that are not staged go, and staged ones replace live ones that say something else.
        `still_current` is asked in every try; when it says no, ConflictError is raised and the staged files stay.
        """
        whole = conversations or {}
        if not staged and not any(whole.values()):
            return RowCounts(0, 0, 0, 0)
        batch_id = self._committing().batch.id
        return self._commit("rollouts", staged, lambda lookup: decide_rollouts(lookup, whole, batch_id), still_current)

    def label(self, rollout_id: str, label: Label, masked: Masked | None = None) -> bool:
        """Gives a row a label, `masked`, in the place of the one of that name; false where the row says so already.

        Labels stay with the row when its source is read again. Needs an open batch; UsageError for an unknown id.
        """
        return label_row(self._committing(), rollout_id, label.name, label, masked)

    def take_back_label(self, rollout_id: str, name: str) -> bool:
        """Removes the label of that name; false where the row has none. Needs an open batch."""
        return label_row(self._committing(), rollout_id, name, None)

    def replace_rejects(
        self, staged: Sequence[StagedFile], files: Set[tuple[str, str]],
        after: Mapping[tuple[str, str], int] | None = None,
    ) -> dict[tuple[str, str], int]:  # fmt: skip
        """The rejects of these files (source, uri) are from now on the staged ones; those before byte `after` stay.
        Returns how many of each file are staged, copies aside.
        """
        if not staged and not (files and self.live("rejects")):
            return {}
        return self._commit("rejects", staged, lambda lookup: decide_rejects(lookup, files, after or {}))

    def upsert_sources(
        self, staged: Sequence[StagedFile], former: Set[tuple[str, str]] = frozenset(), *,
        still_current: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        """Says of each staged file (source, uri) what is known now, and nothing more of the `former` ones.
        `still_current` as in `commit_rollouts`.
        """
        if staged:
            self._commit("sources", staged, lambda lookup: decide_sources(lookup, former), still_current)

    def known_files(
        self, sources: Iterable[str] | None, uris: Sequence[str] | None = None
    ) -> dict[str, dict[str, KnownFile]]:
        """The files read before under these source names (None: under any), all of them or only those of some `uris`:
        source → uri → file.
        """
        wanted = None if sources is None else {check_source(source) for source in sources}
        with one_line(f"read what {self.root} knows of its sources"):
            return reading(lambda: known_files(self.live("sources"), wanted, uris))

    def write_report(self, text: str) -> None:
        """Keeps what the open batch did, as JSON."""
        write_report(self._place, self._committing().batch, text)

    def reports(self, newest: int = 500) -> list[str]:
        """The reports of the newest runs, as JSON, oldest first."""
        return read_reports(self._place, newest)

    def compact(self) -> int:
        """Merges the small files of every partition towards 128 MB and returns how many went. Needs an open batch."""
        return sum(self._compact(table) for table in TABLES)

    def undo(self, batch_id: str) -> list[Undone]:
        """Takes back what a batch did, table by table, `sources` first so that its files are read again.

        Needs an open batch. UsageError for a batch that the log does not know, LakeError where what it replaced is
        gone.
        """
        if not any(commit.batch_id == batch_id for table in TABLES for commit in history(self._place, table)):
            raise UsageError(f"no batch is called {batch_id!r} in the log of {self.root}; `etl changes` lists them")
        to = self._committing()
        unread = pa.concat_tables([files_of(to, table, batch_id) for table in ("rollouts", "events", "rejects")])
        done = [undo(to, table, batch_id, unread if table == "sources" else None) for table in _UNDO_ORDER]
        rows = next(of for of in done if of.table == "rollouts")
        counts = {"added": rows.restored, "replaced": 0, "removed": rows.removed}
        self.write_report(json.dumps({"batch_id": to.batch.id, "undone": batch_id, "rows": counts}, indent=1))
        return done

    def forget(self, conversations: Sequence[Conversation]) -> Forgotten:
        """Deletes conversations for good, with what the lake would read of them again. Needs an open batch."""
        return forget(self._committing(), conversations)

    def rewrite(
        self, table: str, change: Change, version: str, *, dry_run: bool = False, sources: Set[str] | None = None
    ) -> Rewritten:
        """Writes the data files (of these sources) anew that have not gone through the rules of that version. Needs an
        open batch.
        """
        return rewrite(self._committing(), table, change, version, dry_run=dry_run, sources=sources)

    def commits(self) -> list[Commit]:
        """The commits to `rollouts` that the log still holds, oldest first."""
        with one_line(f"read the log of {self.root}"):
            return history(self._place, "rollouts")

    def batches_since(self, batch_id: str) -> list[str]:
        """The batches that committed rollouts after that one did, oldest first; UsageError where the log lacks it."""
        with one_line(f"read the log of {self.root}"):
            found = batches_since(self._place, "rollouts", batch_id)
        if found is None:
            raise UsageError(
                f"no batch is called {batch_id!r} in the log of {self.root}, which goes back about 30 days; "
                "`etl changes` lists those there are"
            )
        return found

    @property
    def retain_ms(self) -> int:
        """How long replaced data files stay, in milliseconds."""
        with one_line(f"read the settings of {self.root}"):
            return self._place.retain_ms()

    def retain(self, milliseconds: int) -> None:
        """Keeps replaced data files so long from now on: for `undo`, and for reading older versions. Needs a batch."""
        with one_line(f"write the settings of {self.root}"):
            self._place.write_retain_ms(milliseconds, self._committing().batch.folder)

    def sweep(self) -> Swept:
        """Removes what runs that have ended left behind: staging folders, and data files that are not live."""
        return sweep(self._place, self._now_ms())

    def verify(self, *, repair: bool = False) -> list[Finding]:
        """What is wrong with the lake, as data. `repair` removes leftovers and takes files that are gone out of their
        tables, so that the next ingest reads their sources again; it never removes a row that can be read.
        """
        findings = verify(self._place, self._now_ms(), repair=repair)
        lost = [finding for finding in findings if finding.code == "missing_file"]
        if not repair or not lost:
            return findings
        with self.batch(f"repair-{uuid4()}"):
            for table in TABLES:
                folder = f"{self._place.table(table)}/"
                paths = [found.path.removeprefix(folder) for found in lost if found.table == table]
                drop_lost(self._committing(), table, paths)
        done = "it was gone and is out of the table; the next ingest reads its sources again"
        return [f._replace(message=done, repaired=True) if f.code == "missing_file" else f for f in findings]

    def migrate(self, *, dry_run: bool = False) -> Migration:
        """Brings a lake that was opened as `older` to the present version, and verifies what was written anew."""
        with contextlib.closing(Batch(self._place, f"migrate-{uuid4()}")) as batch:
            to = Committing(self._place, batch, self._clock)
            done = [migrate_table(to, table, dry_run=dry_run) for table in TABLES]
            if dry_run:
                return Migration(done, [])
            self._check_present()
            self._older = False
        self.sweep()
        self._write_companions()
        written = [of.table for of in done if of.files]
        return Migration(done, verify(self._place, self._now_ms(), repair=False, tables=written) if written else [])

    def _snapshot(self, table: str) -> Snapshot:
        return snapshot(self._place, table, older=self._older)

    def _check_present(self) -> None:
        """LakeError where the lake is of an older version."""
        if self._older:
            for table in TABLES:
                snapshot(self._place, table)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _commit(
        self,
        table: str,
        staged: Sequence[StagedFile],
        decide: Callable[[Lookup], T],
        still_current: Callable[[], bool] | None = None,
    ) -> T:
        foreign = sorted({file.table for file in staged} - {table})
        if foreign:
            raise LakeError(f"files staged for {', '.join(foreign)} cannot be committed to {table}")
        return commit_rows(self._committing(), table, staged, decide, still_current=still_current)

    def _compact(self, table: str) -> int:
        to = self._committing()

        def attempt() -> int:
            base = snapshot(self._place, table)
            planned = plan_compaction(base)
            if not planned.is_empty:
                commit_plan(to, base, planned, data_change=False)
            return len(planned.removed)

        return try_again(to, table, attempt)

    def _committing(self) -> Committing:
        if self._batch is None:
            raise LakeError("a commit needs an open batch: use `with lake.batch(batch_id):` around it")
        return Committing(self._place, self._batch, self._clock)
