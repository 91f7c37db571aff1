"""What a commit does to the files of a table: which are taken as they are, which are written anew, which go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from etl.lake.batch import Batch
from etl.lake.known import first_uri
from etl.lake.log import LiveFile, Snapshot
from etl.lake.lookup import SIDES, Lookup
from etl.lake.parquet import (
    MAX_FILE_BYTES,
    check_footer,
    gathered,
    open_writer,
    row_groups,
    with_partition,
    write_group,
)
from etl.lake.rules import note_rules, rules_of
from etl.lake.staging import StagedFile
from etl.schema import PARTITIONS

PILE = 8
"""As many files of about one size in a partition are merged into one. Sizes are told apart by factors of eight, so each
byte is rewritten a handful of times at most, however many commits there are."""

MERGED_BYTES = MAX_FILE_BYTES // 2
"""Files from this size on are left alone."""


class Part(NamedTuple):
    """An input of a rewrite: a file without the rows that go."""

    path: str
    without: pa.Array | None


class Rewrite(NamedTuple):
    """Files of one partition that are written anew, together."""

    partition: dict[str, str]
    parts: list[Part]


class Plan(NamedTuple):
    """The files of one commit."""

    taken: list[StagedFile]
    """Staged files that become data files as they are."""
    rewrites: list[Rewrite]
    removed: list[str]
    """Live files that go, relative to the table."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not (self.taken or self.rewrites or self.removed)


class _File(NamedTuple):
    """A staged or live file under consideration."""

    file: StagedFile | LiveFile
    live_path: str | None
    """Relative to the table; None for a staged one."""
    number: int
    dropped: int


def plan(base: Snapshot, lookup: Lookup) -> Plan:
    """From the dropped rows to files: one rewrite for each partition that needs it, with small files that pile up."""
    files: dict[tuple[str, ...], list[_File]] = defaultdict(list)
    live_paths = {file.path: path for path, file in base.files.items()}
    dropped = {side: lookup.dropped(side) for side in SIDES}
    keys = PARTITIONS[base.table]
    touched = {_key(file.partition, keys) for file in lookup.files["staged"]}
    touched |= {_key(lookup.files["live"][number].partition, keys) for number in dropped["live"]}
    for side in SIDES:
        for number, file in enumerate(lookup.files[side]):
            key = _key(file.partition, keys)
            if key in touched:
                files[key].append(_File(file, live_paths.get(file.path), number, dropped[side].get(number, 0)))
    made = Plan([], [], [])
    for key in sorted(files):
        _plan_partition(files[key], lookup, made)
    return made


def _key(partition: dict[str, str], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(partition[key] for key in keys)


def _plan_partition(files: list[_File], lookup: Lookup, made: Plan) -> None:
    whole = [item for item in files if not item.dropped]
    cut = [item for item in files if 0 < item.dropped < item.file.rows]
    if not any(item.dropped < item.file.rows if item.live_path is None else item.dropped for item in files):
        return  # nothing comes and nothing goes: the small files that are there stay as they are
    piled = _piled(whole) if not cut else _carried(whole, cut)
    rewritten = [*cut, *piled]
    if rewritten:
        parts = [Part(item.file.path, _positions(item, lookup)) for item in rewritten]
        made.rewrites.append(Rewrite(rewritten[0].file.partition, parts))
    gone = [item for item in files if item.dropped == item.file.rows]
    made.removed.extend(item.live_path for item in [*gone, *rewritten] if item.live_path is not None)
    for item in whole:
        if isinstance(item.file, StagedFile) and item not in piled:
            made.taken.append(item.file)


def _positions(item: _File, lookup: Lookup) -> pa.Array | None:
    if not item.dropped:
        return None
    return lookup.positions("dropped", "live" if item.live_path is not None else "staged", item.number)


def _piled(files: Sequence[_File]) -> list[_File]:
    """The small files that have piled up: all of a size class that has at least `PILE`."""
    classes: dict[int, list[_File]] = defaultdict(list)
    for item in files:
        if item.file.size < MERGED_BYTES:
            classes[item.file.size.bit_length() // 3].append(item)
    return [item for pile in classes.values() if len(pile) >= PILE for item in pile]


def _carried(whole: Sequence[_File], cut: Sequence[_File]) -> list[_File]:
    """Small files that join a rewrite which takes place anyway: those no larger than what is rewritten."""
    size = sum(item.file.size for item in cut)
    return [item for item in whole if item.file.size <= min(size, MERGED_BYTES)]


def write_rewrite(rewrite: Rewrite, table: str, batch: Batch) -> list[StagedFile]:
    """Writes the rows of a rewrite into the staging folder, in new row groups and files of the usual size."""
    made: list[StagedFile] = []
    rules = frozenset[str]().union(*(rules_of(part.path) for part in rewrite.parts))
    parts = sorted(rewrite.parts, key=lambda part: first_uri(part.path)) if table == "sources" else rewrite.parts
    pieces = (rows for part in parts for rows in row_groups(part.path, without=part.without))
    groups = gathered(pieces)
    group = next(groups, None)
    while group is not None:
        path = batch.new_path()
        with pa.OSFile(str(path), "wb") as sink, open_writer(sink, table) as writer:
            while group is not None and sink.tell() < MAX_FILE_BYTES:
                write_group(writer, with_partition(group, table, rewrite.partition))
                group = next(groups, None)
            note_rules(writer, rules)
        footer = check_footer(path, table)
        made.append(StagedFile(table, str(path), dict(rewrite.partition), footer.rows, footer.size))
    return made


def plan_compaction(base: Snapshot) -> Plan:
    """Merges, in every partition, the small files with one another; a single one stays as it is."""
    small: dict[tuple[str, ...], list[tuple[str, LiveFile]]] = defaultdict(list)
    for path, file in sorted(base.files.items()):
        if file.size < MERGED_BYTES:
            small[_key(file.partition, PARTITIONS[base.table])].append((path, file))
    made = Plan([], [], [])
    for files in small.values():
        if len(files) > 1:
            made.rewrites.append(Rewrite(files[0][1].partition, [Part(file.path, None) for _, file in files]))
            made.removed.extend(path for path, _ in files)
    return made
