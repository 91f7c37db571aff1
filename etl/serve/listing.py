"""The list of rows: filters as SQL, a page of ids from the narrow columns, then those rows alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_args
from urllib.parse import urlencode

import duckdb

from etl.errors import UsageError
from etl.pages.facts import Rows, ask
from etl.schema import Condition

PER_PAGE = 50

_EQUAL = ("source", "adapter", "model", "status", "origin", "task_id", "group_id", "agent")
_OUTCOMES = {
    "passed": "reward >= 1",
    "failed": "reward < 1",
    "unscored": "reward IS NULL",
    "planted": "len(seeded) > 0",
    "call failed": "list_bool_or(list_transform(steps, lambda s: s.status = 'error'))",
    "call without result": "list_bool_or(list_transform(steps, lambda s: s.status = 'missing'))",
    "labelled": "list_bool_or(list_transform(judgments, lambda j: j.kind = 'human'))",
}
NAMES = ("text", *_EQUAL, "day_from", "day_to", "tool", "condition", "outcome", "flag")
"""Every filter there is."""


class Filters(NamedTuple):
    """What is asked for, by name; empty ones are left out."""

    wanted: Mapping[str, str]
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filters:
        """From the query of an address; UsageError for a filter or a value that there is none of."""
        if unknown := sorted(query.keys() - {*NAMES, "page"}):
            raise UsageError(f"there is no filter {unknown[0]!r}; filters: {', '.join(NAMES)}")
        wanted = {name: query[name].strip() for name in NAMES if query.get(name, "").strip()}
        for name, value in wanted.items():
            _check(name, value)
        page = query.get("page", "1")
        if not (page.isascii() and page.isdigit()):
            raise UsageError(f"{page!r} is no number of a page")
        return cls(wanted, max(1, min(int(page[:20]), 1_000_000)))

    def address(self, page: int) -> str:
        """The address of another page of the same list."""
        return "/rollouts?" + urlencode({**self.wanted, "page": page})

    def conditions(self) -> Iterator[tuple[str, list[Any]]]:
        """Each as SQL over the stored columns, with its values."""
        for name, value in self.wanted.items():
            if name in _EQUAL:
                yield f"{name} = ?", [value]
            elif name == "day_from":
                yield "day >= ? AND day <> 'unknown'", [value]
            elif name == "day_to":
                yield "day <= ? AND day <> 'unknown'", [value]
            elif name == "outcome":
                yield _OUTCOMES[value], []
            elif name == "flag":
                yield "list_contains(flags, ?)", [value]
            elif name == "text":
                yield "list_bool_or(list_transform(messages, lambda m: contains(lower(m.content), lower(?))))", [value]
        yield from self._steps()

    def _steps(self) -> Iterator[tuple[str, list[Any]]]:
        """A tool and a condition are asked of the same call, in the row that it counts for."""
        met = "etl_met(struct_pack(status := status, condition := condition))"
        tool, condition = self.wanted.get("tool"), self.wanted.get("condition")
        parts, values = [], []
        if tool:
            parts.append("tool = ?")
            values.append(tool)
        if condition == "unclassified":
            parts.append(f"{met} IS NULL")
        elif condition == "failed":
            parts.append("status = 'error'")
        elif condition == "no result":
            parts.append("status = 'missing'")
        elif condition:
            parts.append(f"{met} = ?")
            values.append(condition)
        if parts:
            own = f"SELECT rollout_id FROM steps WHERE NOT inherited AND {' AND '.join(parts)}"
            yield f"rollout_id IN ({own})", values


def _check(name: str, value: str) -> None:
    """UsageError for a value that a filter does not have."""
    if name in ("day_from", "day_to"):
        try:
            day_is_real = dt.date.fromisoformat(value).isoformat() == value
        except ValueError:
            day_is_real = False
        if not day_is_real:
            raise UsageError(f"{value!r} is no day; give one as 2026-04-01")
    known = {
        "outcome": tuple(_OUTCOMES),
        "condition": (*get_args(Condition), "failed", "no result", "unclassified"),
    }.get(name)
    if known is not None and value not in known:
        raise UsageError(f"the filter {name} has no {value!r}; it has: {', '.join(known)}")


class Listed(NamedTuple):
    """One page of the list."""

    rows: Rows
    more: bool
    total: int | None
    """How many there are; None where counting would read texts."""


def listed(connection: duckdb.DuckDBPyConnection, filters: Filters) -> Listed:
    """A page of rows, the newest first."""
    conditions = list(filters.conditions())
    where = " AND ".join(f"({condition})" for condition, _ in conditions) or "true"
    values = [value for _, given in conditions for value in given]
    keys = ask(
        connection,
        f"""
        SELECT rollout_id, source, day FROM rollouts_stored WHERE {where}
        ORDER BY started_at DESC NULLS LAST, rollout_id LIMIT {PER_PAGE + 1} OFFSET {(filters.page - 1) * PER_PAGE}
        """,
        values,
    )
    total = None
    if "text" not in filters.wanted:
        total = ask(connection, f"SELECT count(*) AS n FROM rollouts_stored WHERE {where}", values)[0]["n"]
    found = keys[:PER_PAGE]
    by_id = {row["rollout_id"]: row for row in _shown(connection, found)}
    return Listed([by_id[key["rollout_id"]] for key in found], len(keys) > PER_PAGE, total)


def _shown(connection: duckdb.DuckDBPyConnection, keys: Rows) -> Rows:
    """What the list says of some rows: only their partitions are opened."""
    if not keys:
        return []
    names = ("rollout_id", "source", "day")
    return ask(
        connection,
        """
        SELECT rollout_id, source, adapter, model, agent, status, reward, n_turns, n_steps, started_at, task_id, seeded,
            left(prompt, 300) AS prompt, left(final_text, 300) AS final_text,
            len(list_filter(steps, lambda s: s.status = 'error')) AS n_failed, flags,
            list_transform(
                list_filter(judgments, lambda j: j.kind = 'human'), lambda j: j.name || ': ' || coalesce(j.label, '')
            ) AS labels
        FROM rollouts_stored
        WHERE rollout_id IN (SELECT unnest(?)) AND source IN (SELECT unnest(?)) AND day IN (SELECT unnest(?))
        """,
        [sorted({row[name] for row in keys}) for name in names],
    )


def choices(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """What a filter can be set to, the most frequent first."""
    found: dict[str, list[str]] = {"outcome": list(_OUTCOMES)}
    for name in ("source", "model", "status", "origin"):
        rows = ask(
            connection,
            f"""
            SELECT {name} AS value FROM rollouts_stored WHERE {name} IS NOT NULL
            GROUP BY {name} ORDER BY count(*) DESC, value LIMIT 200
            """,
        )
        found[name] = [row["value"] for row in rows]
    return found
