"""Cases: a log, and what its rows must say.

Each kind is tested with the log behind a public bug report, where the shared folder lies beside the repository, and
with one of ours, which always is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from etl import ingest
from tests.contract.harness import check_row
from tests.lakes import NOW, rows


class Shared(NamedTuple):
    """A file or folder of the shared cases."""

    name: str


class Ours(NamedTuple):
    """A log written here: a name, and its lines."""

    name: str
    lines: tuple[str, ...]


Given: TypeAlias = Callable[[Shared | Ours], Path]


@pytest.fixture
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Given:
    """Where the log of a case lies; skips a shared one that is not there."""

    def place(log: Shared | Ours) -> Path:
        if isinstance(log, Shared):
            shared: Path = request.getfixturevalue("shared")
            return shared / "cases" / log.name
        path = tmp_path / log.name
        path.write_bytes("".join(f"{line}\n" for line in log.lines).encode("utf-8", "surrogatepass"))
        return path

    return place


def read_in(lake: Path, *paths: Path, source: str | None = None, redact: str = "secrets") -> dict[str, Any]:
    """Ingest into a lake; what the run says of itself."""
    report = ingest(paths, lake=lake, now=NOW, source=source, redact=redact, strict=True).to_json()
    for row in rows(lake):
        check_row(row)
    return report


def told(row: dict[str, Any]) -> dict[str, Any]:
    """A row as an expectation speaks of it."""
    messages = row["messages"]
    return {
        **{name: row[name] for name in ("prompt", "final_text", "model", "reward", "error", "status", "flags", "day")},
        "messages": [(message["role"], message["content"]) for message in messages],
        "calls": [_calls(message) for message in messages if message["tool_calls"]],
        "steps": [
            (
                step["tool"],
                json.loads(step["arguments"]),
                None if step["result_index"] is None else messages[step["result_index"]]["content"],
                step["status"],
            )
            for step in row["steps"]
        ],
        "extra": json.loads(row["extra"] or "{}"),
        "usage": {name: value for name, value in (row["usage"] or {}).items() if value is not None},
    }


def _calls(message: dict[str, Any]) -> list[str]:
    return [call["id"] for call in message["tool_calls"]]


def told_by_id(lake: Path) -> dict[str, dict[str, Any]]:
    """All rows by conversation, as an expectation speaks of them."""
    return {str(row["conversation_id"]): told(row) for row in rows(lake)}


def agrees(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """What is expected is there; other keys are not looked at."""
    assert {key: found[key] for key in expected} == expected
