"""What a lake's traffic says of the agents in it: their tools, prompts, result shapes and the make of their ids.

Shapes are learnt, never values: traffic may be the test set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import duckdb

from etl.errors import UsageError
from etl.simulator.domain import Domain, UnusableToolError
from etl.simulator.meaning import meaning
from etl.simulator.shapes import as_list, as_object, make_of, mended, returned, shape_of
from etl.simulator.spec import DomainSpec
from etl.simulator.tools import Tool, as_tools

SAMPLES = 40
"""Calls of each tool that are looked at."""
PROMPTS = 12
"""System prompts of one log stream that are agents of their own, the most frequent ones; the rest counts as one."""

_AGENTS = f"""
CREATE OR REPLACE TEMP TABLE etl_agents AS
WITH prompted AS (
    SELECT rollout_id, source, coalesce(system_prompt, '') AS prompt, tools FROM rollouts
    WHERE origin = 'traffic' AND ($1 IS NULL OR source = $1)
), ranked AS (
    SELECT source, prompt, row_number() OVER (PARTITION BY source ORDER BY n DESC, prompt) AS place
    FROM (SELECT source, prompt, count(*) AS n FROM prompted GROUP BY source, prompt)
)
SELECT rollout_id, source || '#' || least(place, {PROMPTS + 1}) AS agent, prompt, tools
FROM prompted JOIN ranked USING (source, prompt)"""


class Mined(NamedTuple):
    """The agents of a lake."""

    domains: dict[str, DomainSpec]
    """Log stream and number of the system prompt there → tools and prompt."""
    unusable: dict[str, str]
    """Tool → why nothing can be simulated with it."""
    home: dict[str, str]
    """Tool → the agent that calls (or is offered) it most."""


def mined(connection: duckdb.DuckDBPyConnection, source: str | None = None) -> Mined:
    """What traffic says; of one log stream, or of all."""
    connection.execute(_AGENTS, [source])
    calls = connection.execute(
        """SELECT agent, tool, arguments, result, status, condition FROM (
               SELECT agent, tool, arguments, result, status, condition,
                      count(*) OVER (PARTITION BY agent, tool) AS calls,
                      row_number() OVER (PARTITION BY agent, tool ORDER BY rollout_id, step_index) AS place
               FROM steps JOIN etl_agents USING (rollout_id) WHERE actor = 'agent' AND NOT inherited
           ) WHERE place <= $1 ORDER BY calls DESC, agent, tool, place""",
        [SAMPLES],
    ).fetchall()
    offered = connection.execute(
        """SELECT agent, tools, count(*) AS n FROM etl_agents WHERE tools IS NOT NULL
           GROUP BY ALL ORDER BY n DESC, agent, tools"""
    ).fetchall()
    prompts = connection.execute(
        """SELECT agent, arg_max(prompt, (n, prompt))
           FROM (SELECT agent, prompt, count(*) AS n FROM etl_agents GROUP BY ALL) GROUP BY agent"""
    ).fetchall()
    return _put_together(calls, offered, dict(prompts))


def traffic_asks(connection: duckdb.DuckDBPyConnection) -> Iterable[str]:
    """Everything that people asked in traffic, each text once."""
    cursor = connection.execute(
        "SELECT DISTINCT prompt FROM rollouts_stored WHERE origin = 'traffic' AND prompt IS NOT NULL ORDER BY prompt"
    )
    while rows := cursor.fetchmany(2048):
        yield from (text for (text,) in rows)


def _put_together(calls: list[tuple[Any, ...]], offered: list[tuple[Any, ...]], prompts: dict[str, str]) -> Mined:
    definitions: dict[str, dict[str, Any]] = {}
    seen: dict[str, dict[str, list[tuple[Any, ...]]]] = {}
    wanted: dict[str, str] = {}
    for agent, tool, *rest in calls:  # the agent that calls a tool most comes first
        seen.setdefault(agent, {}).setdefault(tool, []).append(tuple(rest))
        wanted.setdefault(tool, agent)
    for agent, text, _n in offered:
        known = definitions.setdefault(agent, {})
        for item in as_list(text):
            function = item.get("function", item) if isinstance(item, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            if isinstance(name, str) and name:
                known.setdefault(name, item)
                wanted.setdefault(name, agent)
    domains: dict[str, DomainSpec] = {}
    unusable: dict[str, str] = {}
    for agent in dict.fromkeys([*seen, *definitions]):  # the busiest first
        tools, examples = _tools(definitions.get(agent, {}), seen.get(agent, {}), unusable)
        tools = _usable(tools, examples, unusable)
        if tools:
            domains[agent] = DomainSpec(tuple(tools), prompts.get(agent) or "", examples)
    usable = {tool.name for domain in domains.values() for tool in domain.tools}
    return Mined(domains, {name: why for name, why in unusable.items() if name not in usable}, wanted)


def _usable(tools: list[Tool], examples: Mapping[str, str], unusable: dict[str, str]) -> list[Tool]:
    """The tools that can be called in each other's company: ids of one are arguments of another."""
    while tools:
        try:
            Domain(tools, "", examples)
        except UnusableToolError as error:
            unusable.setdefault(error.tool, error.why)
            tools = [tool for tool in tools if tool.name != error.tool]
        else:
            break
    return tools


def _tools(
    defined: Mapping[str, Any], seen: Mapping[str, list[tuple[Any, ...]]], unusable: dict[str, str]
) -> tuple[list[Tool], dict[str, str]]:
    """The tools of one log stream, each with the shape of its results; and an example for the make of each id."""
    tools: list[Tool] = []
    examples: dict[str, str] = {}
    for name in sorted({*defined, *seen}):
        samples = seen.get(name, [])
        arguments = [value for value in (as_object(row[0]) for row in samples) if value is not None]
        parameters = shape_of(arguments, closed=False) if arguments else {"type": "object", "properties": {}}
        try:
            made = as_tools([mended(defined[name])])[0] if name in defined else Tool(name, "", parameters)
            if not made.parameters.get("properties") and arguments and any(arguments):
                made = Tool(made.name, made.description, parameters, made.returns)
            if made.returns is None:
                made = Tool(made.name, made.description, made.parameters, returned(samples))
            as_tools([made])
            Domain([made], "")
        except UsageError as error:
            unusable.setdefault(name, error.why if isinstance(error, UnusableToolError) else str(error))
            continue
        tools.append(made)
        means = meaning(made)
        ids = [
            value[means.id_name] for value in arguments if means.id_name and isinstance(value.get(means.id_name), str)
        ]
        told = ids and means.entity not in ("file", "page") and any(char.isdigit() for char in ids[0])
        if told and means.id_name and len(ids[0]) <= 40:
            examples.setdefault(means.id_name, make_of(ids))
    return tools, examples
