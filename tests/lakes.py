"""What tests read a lake with: the live files of the Delta log and nothing of ours, so that they see what users see."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from etl.pool import ALSO
from etl.settings import PART_BYTES

REPO = Path(__file__).parent.parent
NOW = dt.datetime(2026, 4, 1, 2, 0, tzinfo=dt.UTC)
"""The night of the ingest."""

_ORDER = {"rollouts": "rollout_id", "rejects": "reject_id", "sources": "uri", "events": "record_key"}


def make_many(folder: Path) -> Path:
    """So many files without content that workers are started to read what lies beside them."""
    folder.mkdir()
    for number in range(PART_BYTES // ALSO):
        (folder / f"{number:03}.jsonl").touch()
    return folder


def table(lake: Path, name: str = "rollouts") -> pa.Table | None:
    """All live rows of a table as Arrow; None where the table has no file."""
    try:
        uris = DeltaTable(lake / name).file_uris()
    except TableNotFoundError:
        return None
    parts = [pq.ParquetFile(uri).read() for uri in sorted(uris)]
    return pa.concat_tables(parts) if parts else None


def rows(lake: Path, name: str = "rollouts") -> list[dict[str, Any]]:
    """All live rows of a table, in an order that does not depend on how they were written."""
    found = table(lake, name)
    return [] if found is None else sorted(found.to_pylist(), key=lambda row: str(row[_ORDER[name]]))


def by_id(lake: Path) -> dict[str, dict[str, Any]]:
    """The rollouts of a lake by the source's own id of the conversation."""
    found = rows(lake)
    named = {str(row["conversation_id"]): row for row in found}
    assert len(named) == len(found), "two rows have one conversation_id"
    return named


def said(lake: Path) -> list[str]:
    """What all rows say, wherever and whenever they were read."""
    return sorted(row["row_hash"] for row in rows(lake))
