"""The coverage grid as a page draws it: tools down, conditions across, each cell covered or missing."""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb

from etl.pages.facts import Rows, ask

MIN_SUPPORT = 5
"""Distinct tasks from which on a situation counts as covered by traffic."""
UNCLASSIFIED = "unclassified"
"""The column of steps that nobody could classify: it is no condition, and never a gap."""
MOST_TOOLS = 40


class Cell(NamedTuple):
    """One situation: a tool under a condition."""

    tool: str
    condition: str
    kind: str
    """traffic (enough of it), thin (some), simulated (no traffic), missing, or unknown (unclassified)."""
    traffic: int
    """Distinct tasks of traffic that show it."""
    simulated: int
    """Distinct tasks of the simulation that show it."""


class Grid(NamedTuple):
    """The cells, with what is to be said of them."""

    conditions: list[str]
    rows: list[list[Cell]]
    """One list for each tool, in the order of `conditions`."""
    gaps: Rows
    note: str


def grid(connection: duckdb.DuckDBPyConnection) -> Grid:
    """The grid of a lake. A task is what `task_id` says, else the conversation by itself."""
    found = ask(
        connection,
        f"""
        WITH seen AS (
            SELECT tool, coalesce(condition, '{UNCLASSIFIED}') AS condition,
                origin, count(DISTINCT coalesce(task_id, rollout_id)) AS tasks, count(*) AS calls
            FROM steps GROUP BY ALL
        )
        SELECT tool, condition, coalesce(sum(tasks) FILTER (origin = 'traffic'), 0)::BIGINT AS traffic,
            coalesce(sum(tasks) FILTER (origin = 'simulation'), 0)::BIGINT AS simulated, sum(calls)::BIGINT AS calls
        FROM seen GROUP BY tool, condition
        """,
    )
    calls: dict[str, int] = {}
    cells: dict[tuple[str, str], dict[str, Any]] = {}
    for row in found:
        calls[row["tool"]] = calls.get(row["tool"], 0) + row["calls"]
        cells[row["tool"], row["condition"]] = row
    conditions = sorted({row["condition"] for row in found} | {"success"}, key=_place)
    tools = sorted(calls, key=lambda tool: (-calls[tool], tool))
    rows = [
        [_cell(tool, condition, cells.get((tool, condition))) for condition in conditions]
        for tool in tools[:MOST_TOOLS]
    ]
    note = f"The {MOST_TOOLS} tools with the most calls of {len(tools):,}." if len(tools) > MOST_TOOLS else ""
    return Grid(conditions if rows else [], rows, [], note)


def _cell(tool: str, condition: str, row: dict[str, Any] | None) -> Cell:
    traffic, simulated = (row["traffic"], row["simulated"]) if row else (0, 0)
    if condition == UNCLASSIFIED:
        kind = "unknown"
    elif traffic:
        kind = "traffic" if traffic >= MIN_SUPPORT else "thin"
    else:
        kind = "simulated" if simulated else "missing"
    return Cell(tool, condition, kind, traffic, simulated)


def _place(condition: str) -> tuple[int, str]:
    return ({"success": 0, UNCLASSIFIED: 2}.get(condition, 1), condition)
