"""What the Delta log of a table still tells: which batch committed what, and which files a retention keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from etl.lake.place import Place


class Removed(NamedTuple):
    """A data file that a commit took out of a table."""

    path: str
    """Relative to the table, as it is on disk."""
    partition: dict[str, str]
    at_ms: int
    """When, in milliseconds since 1970."""


class Commit(NamedTuple):
    """One version of a table."""

    version: int
    at_ms: int
    batch_id: str | None
    added: dict[str, int]
    """Path → rows."""
    removed: list[Removed]


def history(place: Place, table: str) -> list[Commit]:
    """The commits that the log still holds, oldest first. Checkpoints sum up what is older than 30 days."""
    return [commit_of(version, text) for version, text in place.log_texts(table)]


def commit_of(version: int, text: str) -> Commit:
    """What the log entry of a version tells."""
    info: dict[str, object] = {}
    added: dict[str, int] = {}
    removed: list[Removed] = []
    for line in text.splitlines():
        action = json.loads(line)
        if "commitInfo" in action:
            info = action["commitInfo"]
        elif "add" in action:
            stats = json.loads(action["add"].get("stats") or "{}")
            added[unquote(action["add"]["path"])] = int(stats.get("numRecords", 0))
        elif "remove" in action:
            gone = action["remove"]
            at = int(gone.get("deletionTimestamp") or 0)
            removed.append(Removed(unquote(gone["path"]), dict(gone.get("partitionValues") or {}), at))
    batch_id, at_ms = info.get("batch_id"), info.get("timestamp")
    return Commit(
        version,
        at_ms if isinstance(at_ms, int) else 0,
        batch_id if isinstance(batch_id, str) else None,
        added,
        removed,
    )


def retained(place: Place, table: str, now_ms: int) -> set[str]:
    """Removed data files that the lake's retention still keeps; none where nothing is retained."""
    keep_ms = place.retain_ms()
    if not keep_ms:
        return set()
    return {gone.path for commit in history(place, table) for gone in commit.removed if gone.at_ms > now_ms - keep_ms}


def batches_since(place: Place, table: str, batch_id: str) -> list[str] | None:
    """The batches that committed to a table after that one did, oldest first; None where the log does not know it."""
    commits = history(place, table)
    last = max((commit.version for commit in commits if commit.batch_id == batch_id), default=None)
    return None if last is None else list(_after(commits, last))


def _after(commits: list[Commit], version: int) -> Iterator[str]:
    seen: set[str] = set()
    for commit in commits:
        if commit.version > version and commit.batch_id is not None and commit.batch_id not in seen:
            seen.add(commit.batch_id)
            yield commit.batch_id
