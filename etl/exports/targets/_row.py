"""What the interchange formats need of a row as it is stored: times, messages with their notes, JSON columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from etl.decode import decode

ROW_COLUMNS = (
    "conversation_id", "parent_id", "group_id", "sample_index", "prompt", "final_text", "status", "finish_reason",
    "error", "reward", "rewards", "model", "provider", "policy_version", "agent", "started_at", "ended_at", "usage",
    "scenario", "faults", "seed",
)  # fmt: skip
"""Columns that interchange reads beside those of every export; `extra` may hold hidden state and is in no file."""


def said(row: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every message with its `message_info`."""
    return zip(row["messages"], row["message_info"], strict=True)


def iso(at: dt.datetime | None) -> str | None:
    """ISO 8601 in UTC, to the microsecond.

    >>> iso(dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC))
    '2026-03-01T12:00:00.000000Z'
    """
    return None if at is None else at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def opened(text: str | None) -> Any:
    """The value of a JSON column."""
    return None if text is None else decode(text.encode()).value


def present(fields: dict[str, Any]) -> dict[str, Any]:
    """Without what is null or empty."""
    return {key: item for key, item in fields.items() if item not in (None, "", [], {})}
