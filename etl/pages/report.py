"""The report of a lake: one HTML file that needs nothing else, with pictures, tables and conversations."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import duckdb

from etl.pages import charts, facts, render
from etl.pages.conversation import page
from etl.pages.grid import grid
from etl.query import find_kin, find_rollout

SAMPLES = 6
"""Conversations that a report holds."""
SAMPLE_TURNS = 60


class Section(NamedTuple):
    """Charts and a table under a heading."""

    anchor: str
    title: str
    note: str
    charts: list[charts.Chart]
    columns: list[tuple[str, str]]
    """Key and kind of each column: text, number, share."""
    rows: facts.Rows


def report(connection: duckdb.DuckDBPyConnection, lake: str, *, now: dt.datetime, samples: int = SAMPLES) -> str:
    """The report as HTML. MissingExtraError where the package that draws is not there."""
    totals = facts.totals(connection)
    sections = [
        _came_in(connection, totals),
        _rejected(connection, totals),
        _passes(connection),
        _tools(connection),
        _usage(connection),
        _lengths(connection),
    ]
    rows = [find_rollout(connection, rollout_id) for rollout_id in facts.samples(connection, most=samples)]
    pages = [page(row, find_kin(connection, row), most=SAMPLE_TURNS) for row in rows]
    shown = [section for section in sections if section.rows]
    return render("report.html", lake=lake, now=now, totals=totals, sections=shown, grid=grid(connection), pages=pages)


def _came_in(connection: duckdb.DuckDBPyConnection, totals: dict[str, Any]) -> Section:
    days = facts.by_day(connection)
    lacking = "conversation has no date and is" if totals["undated"] == 1 else "conversations have no date and are"
    undated = f"{totals['undated']:,} {lacking} not in the picture."
    pictures = []
    if days:
        best = max(days, key=lambda row: row["rollouts"])
        alt = (
            f"Conversations by day and source, {days[0]['day']} to {days[-1]['day']}; most, {best['rollouts']:,}, came "
            f"from {best['source']} on {best['day']}."
        )
        pictures.append(charts.stacked("Conversations by day and source", alt, days, "day", "rollouts", "source"))
    columns = [
        *_texts("source", "adapter", "model"),
        *_numbers("rollouts", "tool_calls", "completed", "cut_short", "scored", "mean_reward"),
    ]
    return Section(
        "came-in", "What came in", undated if totals["undated"] else "", pictures, columns, facts.by_kind(connection)
    )


def _rejected(connection: duckdb.DuckDBPyConnection, totals: dict[str, Any]) -> Section:
    rows = facts.rejected(connection)
    pictures = []
    if rows:
        alt = f"Rejected records by reason: {_leading(rows, 'reason', 'records')}."
        pictures.append(charts.bars("Rejected records by reason", alt, rows[: facts.MOST_DRAWN], "reason", "records"))
    of_them = "record" if totals["rejected"] == 1 else "records"
    note = f"{totals['rejected']:,} {of_them} could not be used; each keeps its bytes and its place."
    columns = [("reason", "text"), ("records", "number"), ("sources", "text"), ("for_example", "text")]
    return Section("rejects", "What could not be used, and why", note, pictures, columns, rows)


def _passes(connection: duckdb.DuckDBPyConnection) -> Section:
    rows = facts.passes(connection)
    pictures = []
    if rows:
        alt = "pass@1 with 95 % intervals: " + "; ".join(
            f"{row['label']} {row['pass_rate'] * 100:.0f} % of {row['tasks']} tasks" for row in rows[:5]
        )
        pictures.append(charts.intervals("pass@1 by model and source", alt, rows, "label", "pass_rate"))
    note = (
        "The picture has the mean over tasks with its bootstrap interval (none for a single task); the table the tasks "
        "with the most attempts, with Wilson intervals. An attempt passes with a reward of 1."
    )
    columns = [
        *_texts("task_id", "model", "source", "origin"),
        *_numbers("n", "unscored", "mean_reward"),
        *_shares("pass_rate", "low", "high"),
    ]
    return Section("passes", "How often tasks are solved", note, pictures, columns, facts.tasks(connection))


def _tools(connection: duckdb.DuckDBPyConnection) -> Section:
    rows = facts.tools(connection)
    pictures = []
    known = [
        {**row, "label": row["tool"] if row["actor"] == "agent" else f"{row['tool']} ({row['actor']})"}
        for row in rows
        if row["n"]
    ][: facts.MOST_DRAWN]
    if known:
        alt = "Failure rates of tools with 95 % intervals: " + "; ".join(
            f"{row['label']} {row['failed']:,} of {row['n']:,}" for row in known[:5]
        )
        pictures.append(
            charts.intervals("Share of calls that end in an error, by tool", alt, known, "label", "failure_rate")
        )
    columns = [
        *_texts("tool", "actor"),
        *_numbers("n", "failed"),
        *_shares("failure_rate", "low", "high"),
        *_numbers("missing", "cancelled", "median_ms"),
    ]
    note = (
        "Of traffic, by who called (a simulated user has tools too). n are the calls that ended well or in an error; "
        "missing are those whose result was never logged, which says nothing of the tool. Wilson intervals."
    )
    return Section("tools", "Tools that fail", note, pictures, columns, rows)


def _usage(connection: duckdb.DuckDBPyConnection) -> Section:
    rows = facts.usage(connection)
    pictures = []
    if rows:
        tokens = [
            {"day": row["day"], "kind": kind, "tokens": row[f"{kind}_tokens"] or 0}
            for row in rows
            for kind in ("input", "cached", "output")
        ]
        read = sum(row["input_tokens"] or 0 for row in rows)
        alt = f"Tokens by day, {rows[0]['day']} to {rows[-1]['day']}: {read:,} read in all."
        pictures.append(charts.lines("Tokens by day", alt, tokens, "day", "tokens", "kind"))
        money = [
            {"day": row["day"], "kind": "cost", "US dollars": row["cost_usd"]}
            for row in rows
            if row["cost_usd"] is not None
        ]
        if money:
            alt = f"Cost by day in US dollars, {sum(row['US dollars'] for row in money):,.4g} in all."
            pictures.append(charts.lines("Cost by day", alt, money, "day", "US dollars", "kind"))
    columns = [("day", "text"), *_numbers("rollouts", "input_tokens", "cached_tokens", "output_tokens", "cost_usd")]
    return Section("usage", "Tokens and money", "Only where logged.", pictures, columns, rows)


def _lengths(connection: duckdb.DuckDBPyConnection) -> Section:
    pictures, table = [], []
    for title, expression in (
        ("User turns", "n_turns"),
        ("Tool calls", "n_steps"),
        ("Messages", "len(message_info)"),
        ("Tokens", "usage.input_tokens + usage.output_tokens"),
    ):
        rows = facts.lengths(connection, expression)
        if rows:
            alt = f"{title} of a conversation: {_leading(rows, 'size', 'rollouts')}."
            pictures.append(charts.bars(f"{title} of a conversation", alt, rows, "size", "rollouts"))
            table += [{"of": title, **row} for row in rows]
    columns = [*_texts("of", "size"), *_numbers("rollouts")]
    return Section("lengths", "How long conversations are", "", pictures, columns, table)


def _leading(rows: facts.Rows, label: str, value: str) -> str:
    """The largest few in words."""
    largest = sorted(rows, key=lambda row: -row[value])[:4]
    return ", ".join(f"{row[value]:,} with {row[label]}" for row in largest)


def _texts(*names: str) -> list[tuple[str, str]]:
    return [(name, "text") for name in names]


def _numbers(*names: str) -> list[tuple[str, str]]:
    return [(name, "number") for name in names]


def _shares(*names: str) -> list[tuple[str, str]]:
    return [(name, "share") for name in names]
