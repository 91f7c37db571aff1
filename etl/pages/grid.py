"""The coverage grid as a page draws it, from the views `coverage` and `gaps`: tools down, conditions across."""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb

from etl.pages.facts import Rows, ask

MOST_TOOLS = 40
MOST_GAPS = 25
GAP_COLUMNS = [
    ("rank", "number"), ("situation", "text"), ("support", "number"), ("simulated", "number"), ("missing", "number"),
    ("share", "share"),
]  # fmt: skip


class Cell(NamedTuple):
    """One situation: a tool under a condition."""

    tool: str
    condition: str
    kind: str
    """traffic (enough of it), thin (some), simulated (no traffic), missing, or unwanted (the tool cannot meet it)."""
    traffic: int
    """Distinct tasks of traffic that show it."""
    simulated: int
    """Distinct tasks of the simulation that show it."""


class ToolRow(NamedTuple):
    """A tool with its cells, in the order of the conditions."""

    tool: str
    cells: list[Cell]
    unclassified: int
    """Tasks of traffic in which a call of it met nobody knows what: no condition, and never a gap."""


class Grid(NamedTuple):
    """The cells, with what is to be said of them."""

    conditions: list[str]
    rows: list[ToolRow]
    gaps: Rows
    """What traffic shows too rarely, first what the simulation has not filled; the columns are `gap_columns`."""
    gaps_in_all: int
    note: str
    gap_columns: list[tuple[str, str]] = GAP_COLUMNS


def grid(connection: duckdb.DuckDBPyConnection) -> Grid:
    """The grid of a lake."""
    gaps = ask(connection, "FROM gaps ORDER BY missing = 0, rank")
    wanted = {_key(row): row for row in gaps if _is_tool_and_condition(row)}
    seen: dict[tuple[str, str], dict[str, int]] = {}
    times: dict[str, int] = {}
    for row in ask(connection, "FROM coverage WHERE axis_1 = 'tool' AND axis_2 = 'condition'"):
        seen.setdefault(_key(row), {})[row["origin"]] = row["support"]
        times[row["value_1"]] = times.get(row["value_1"], 0) + row["times"]
    unclassified: dict[str, int] = {}
    for row in ask(
        connection,
        """
        SELECT tool, count(*) AS calls, count(DISTINCT task) FILTER (origin = 'traffic') AS tasks
        FROM etl_positions WHERE condition IS NULL GROUP BY tool
        """,
    ):
        unclassified[row["tool"]] = row["tasks"]
        times[row["tool"]] = times.get(row["tool"], 0) + row["calls"]
    for tool, _condition in wanted:
        times.setdefault(tool, 0)
    conditions = sorted(
        {condition for _tool, condition in [*seen, *wanted]}, key=lambda name: (name != "success", name)
    )
    tools = sorted(times, key=lambda tool: (-times[tool], tool))
    rows = [
        ToolRow(tool, [_cell(tool, name, seen, wanted) for name in conditions], unclassified.get(tool, 0))
        for tool in tools[:MOST_TOOLS]
    ]
    note = f"The {MOST_TOOLS} tools with the most calls of {len(tools):,}." if len(tools) > MOST_TOOLS else ""
    return Grid(conditions, rows, [_situation(row) for row in gaps[:MOST_GAPS]], len(gaps), note)


def _cell(
    tool: str, condition: str, seen: dict[tuple[str, str], dict[str, int]], wanted: dict[tuple[str, str], Any]
) -> Cell:
    support = seen.get((tool, condition), {})
    traffic, simulated = support.get("traffic", 0), support.get("simulation", 0)
    if traffic:
        kind = "thin" if (tool, condition) in wanted else "traffic"
    elif simulated:
        kind = "simulated"
    else:
        kind = "missing" if (tool, condition) in wanted else "unwanted"
    return Cell(tool, condition, kind, traffic, simulated)


def _key(row: dict[str, Any]) -> tuple[str, str]:
    return row["value_1"], row["value_2"]


def _is_tool_and_condition(row: dict[str, Any]) -> bool:
    return bool(row["axis_1"] == "tool" and row["axis_2"] == "condition")


def _situation(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "situation": f"{row['axis_1']} {row['value_1']} × {row['axis_2']} {row['value_2']}"}
