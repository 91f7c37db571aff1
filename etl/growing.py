"""Files of lines that grow: what the next night has to know to read on where this one stopped.

Whether the beginning is still the one that was read is proven by its digest. That costs a pass over its bytes, at a
twentieth of what parsing them costs; size and time alone would take a file that was written anew for one that grew. The
same pass counts how often the new records occurred before, as a row's name depends on it.

What assembly says of a file's records (see `Families`) is said anew where the file holds few conversations: all of them
are put together again, as if the whole file had been read. Where it holds many, only those are that got something new;
such a file is read on as long as assembly ignores and rejects none of its records.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from etl.decode import encode
from etl.digest import Digest
from etl.lake import KnownFile
from etl.report import FileResult

if TYPE_CHECKING:
    from etl.settings import Settings
    from etl.walk import FoundFile

FEW = 64
"""So many conversations, and days of theirs, are remembered of a file."""


class Beginning(msgspec.Struct):
    """What the whole lines of a file gave, before assembly, and under which settings they were read."""

    settings: list[Any]
    records_in: int = 0
    records_used: int = 0
    rows: int = 0
    rejects: dict[str, int] = msgspec.field(default_factory=dict)
    ignored: dict[str, int] = msgspec.field(default_factory=dict)
    keys: list[str] | None = None
    """Its conversations, where assembly makes rows of them and they are few."""
    days: list[str] | None = None

    def begin(self, result: FileResult) -> None:
        """Count it into a result."""
        result.records_in += self.records_in
        result.records_used += self.records_used
        result.rows += self.rows
        result.rejects.update(self.rejects)
        result.ignored.update(self.ignored)


def told_by(settings: Settings) -> list[Any]:
    """The settings on which it depends what a file gives."""
    return [settings.redact, *settings.limits]


def counted(result: FileResult, settings: Settings) -> Beginning:
    """What a file has given so far."""
    few = result.spans and len(result.keys) <= FEW and len(result.days) <= FEW
    return Beginning(
        told_by(settings), result.records_used + result.rejects.total() + result.ignored.total(), result.records_used,
        result.rows, dict(result.rejects), dict(result.ignored),
        sorted(result.keys) if few else None, sorted(result.days) if few else None,
    )  # fmt: skip


def known_beginning(known: KnownFile | None, result: FileResult, settings: Settings) -> Beginning | None:
    """What is known of the beginning of a file, where it would give the same today."""
    if known is None or known.read_bytes is None or known.read_counts is None:
        return None
    if (known.adapter, known.adapter_version) != (result.adapter, result.adapter_version):
        return None
    try:
        found = msgspec.json.decode(known.read_counts, type=Beginning)
    except msgspec.DecodeError:
        return None
    return found if found.settings == json.loads(encode(told_by(settings))) else None


def before_growth(file: FoundFile, known: KnownFile | None) -> int:
    """How long a file was that may have grown; 0 where nothing tells."""
    return known.size if known is not None and known.sha256 is not None and file.size > known.size else 0


def grown_or_replaced(digest: Digest, known: KnownFile | None) -> str:
    """What became of a file that is longer than it was, by the digest of its beginning; of any other nothing is said
    here (`new`).
    """
    if known is None or known.sha256 is None or digest.size <= known.size:
        return "new"
    return "grown" if digest.begins_with(known.sha256) else "replaced"


def counts_text(result: FileResult) -> str | None:
    """`Beginning` as it is stored once the file is committed; None where the file must be read whole next time."""
    beginning = result.beginning
    if beginning is None or result.state == "failed":
        return None
    if result.spans:
        rejected, ignored = result.parsed
        if result.rejects.total() != rejected:
            return None
        if beginning.keys is None:
            if result.ignored.total() != ignored:
                return None
            beginning.rows = result.rows
    return msgspec.json.encode(beginning).decode()


def add(result: FileResult, other: FileResult) -> None:
    """Take in what a later part of the file gave."""
    result.records_in += other.records_in
    result.records_used += other.records_used
    result.rows += other.rows
    result.rejects += other.rejects
    result.ignored += other.ignored
    result.keys |= other.keys
    result.days |= other.days
    for reason, first in other.first_rejects.items():
        result.first_rejects.setdefault(reason, first)
    if other.state != "done" and result.state != "failed":
        result.state = other.state
    result.error = result.error or other.error


__all__ = [
    "Beginning",
    "add",
    "before_growth",
    "counted",
    "counts_text",
    "grown_or_replaced",
    "known_beginning",
    "told_by",
]
