"""What a lake's traffic says of the agents in it: their tools, prompts, result shapes and the make of their ids.

Shapes are learnt, never values: traffic may be the test set.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import duckdb

from etl.errors import UsageError
from etl.simulator.domain import Domain
from etl.simulator.meaning import meaning
from etl.simulator.spec import SOURCE, DomainSpec
from etl.simulator.tools import Tool, as_tools

SAMPLES = 40
"""Calls of each tool that are looked at."""
_ENUM = 6
"""Values up to which a repeated word counts as one of a closed set."""


class Mined(NamedTuple):
    """The domains of a lake."""

    domains: dict[str, DomainSpec]
    """Log stream → its tools and its system prompt."""
    unusable: dict[str, str]
    """Tool → why nothing can be simulated with it."""
    home: dict[str, str]
    """Tool → the log stream that calls (or offers) it most."""


def mined(connection: duckdb.DuckDBPyConnection, source: str | None = None) -> Mined:
    """What traffic says; of one log stream, or of all."""
    calls = connection.execute(
        """SELECT source, tool, arguments, result, status, condition FROM (
               SELECT source, tool, arguments, result, status, condition,
                      row_number() OVER (PARTITION BY source, tool ORDER BY rollout_id, step_index) AS place
               FROM steps WHERE origin = 'traffic' AND actor = 'agent' AND ($1 IS NULL OR source = $1)
           ) WHERE place <= $2 ORDER BY source, tool, place""",
        [source, SAMPLES],
    ).fetchall()
    counts = connection.execute(
        """SELECT tool, source, count(*) FROM steps WHERE origin = 'traffic' AND actor = 'agent'
           GROUP BY ALL ORDER BY 3 DESC, 2"""
    ).fetchall()
    offered = connection.execute(
        """SELECT source, tools, count(*) AS n FROM rollouts_stored
           WHERE origin = 'traffic' AND tools IS NOT NULL AND ($1 IS NULL OR source = $1)
           GROUP BY ALL ORDER BY source, n DESC, tools""",
        [source],
    ).fetchall()
    prompts = connection.execute(
        """SELECT source, arg_max(system_prompt, (n, system_prompt)) FROM (
               SELECT source, system_prompt, count(*) AS n FROM rollouts
               WHERE origin = 'traffic' AND system_prompt IS NOT NULL GROUP BY ALL
           ) GROUP BY source ORDER BY source"""
    ).fetchall()
    return _put_together(calls, counts, offered, dict(prompts))


def traffic_asks(connection: duckdb.DuckDBPyConnection) -> Iterable[str]:
    """Everything that people asked in traffic, each text once."""
    cursor = connection.execute(
        "SELECT DISTINCT prompt FROM rollouts_stored WHERE origin = 'traffic' AND prompt IS NOT NULL ORDER BY prompt"
    )
    while rows := cursor.fetchmany(2048):
        yield from (text for (text,) in rows)


def _put_together(
    calls: list[tuple[Any, ...]], counts: list[tuple[Any, ...]], offered: list[tuple[Any, ...]], prompts: dict[str, str]
) -> Mined:
    definitions: dict[str, dict[str, Any]] = {}
    for source, text, _n in offered:
        known = definitions.setdefault(source, {})
        for item in _list(text):
            function = item.get("function", item) if isinstance(item, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            if isinstance(name, str) and name:
                known.setdefault(name, item)
    seen: dict[str, dict[str, list[tuple[Any, ...]]]] = {}
    for source, tool, *rest in calls:
        seen.setdefault(source, {}).setdefault(tool, []).append(tuple(rest))
    domains: dict[str, DomainSpec] = {}
    unusable: dict[str, str] = {}
    home: dict[str, str] = {}
    for tool, source, _n in counts:
        home.setdefault(tool, source)
    for source in sorted({*definitions, *seen}):
        if source == SOURCE:
            continue
        tools, examples = _tools(definitions.get(source, {}), seen.get(source, {}), unusable)
        if tools:
            domains[source] = DomainSpec(tuple(tools), prompts.get(source) or "", examples)
            for tool in tools:
                home.setdefault(tool.name, source)
    return Mined(domains, {name: why for name, why in unusable.items() if not _usable(name, domains)}, home)


def _usable(name: str, domains: Mapping[str, DomainSpec]) -> bool:
    return any(tool.name == name for domain in domains.values() for tool in domain.tools)


def _tools(
    defined: Mapping[str, Any], seen: Mapping[str, list[tuple[Any, ...]]], unusable: dict[str, str]
) -> tuple[list[Tool], dict[str, str]]:
    """The tools of one log stream, each with the shape of its results; and an example for the make of each id."""
    tools: list[Tool] = []
    examples: dict[str, str] = {}
    for name in sorted({*defined, *seen}):
        samples = seen.get(name, [])
        arguments = [value for value in (_object(row[0]) for row in samples) if value is not None]
        parameters = _shape(arguments, closed=False) if arguments else {"type": "object", "properties": {}}
        try:
            made = as_tools([_mended(defined[name])])[0] if name in defined else Tool(name, "", parameters)
            if not made.parameters.get("properties") and arguments and any(arguments):
                made = Tool(made.name, made.description, parameters, made.returns)
            if made.returns is None:
                made = Tool(made.name, made.description, made.parameters, _returned(samples))
            as_tools([made])
            Domain([made], "")
        except UsageError as error:
            unusable.setdefault(name, str(error))
            continue
        tools.append(made)
        id_name = meaning(made).id_name
        ids = [value[id_name] for value in arguments if id_name and isinstance(value.get(id_name), str)]
        if ids and id_name and any(char.isdigit() for char in ids[0]) and len(ids[0]) <= 40:
            examples.setdefault(id_name, _anonymous(ids))
    return tools, examples


_DIALECT = {
    "dict": "object", "map": "object", "float": "number", "double": "number", "int": "integer", "long": "integer",
    "str": "string", "list": "array", "tuple": "array", "bool": "boolean",
}  # fmt: skip
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


def _mended(definition: Any) -> Any:
    """A definition with the type names of other dialects (Python's, Protobuf's) as JSON Schema has them."""
    if isinstance(definition, list):
        return [_mended(item) for item in definition]
    if not isinstance(definition, dict):
        return definition
    mended = {key: _mended(item) for key, item in definition.items()}
    named = mended.get("type")
    if isinstance(named, str) and named not in _TYPES:
        word = _DIALECT.get(named.lower(), named.lower())
        if word in _TYPES:
            mended["type"] = word
        elif word == "any":
            del mended["type"]
    return mended


def _anonymous(ids: list[str]) -> str:
    """The make of ids: what all have in common stays, other letters become x."""
    first = ids[0]
    same = [all(len(i) == len(first) and i[n] == first[n] for i in ids) for n in range(len(first))]
    kept = [
        char if (same[n] and len(ids) > 1) or not char.isalnum() or char.isdigit() or char.isupper() else "x"
        for n, char in enumerate(first)
    ]
    return "".join(kept)


def _returned(samples: Iterable[tuple[Any, ...]]) -> dict[str, Any] | None:
    """The shape of the results of calls that worked: of JSON objects or arrays, else text."""
    texts = [row[1] for row in samples if row[2] == "ok" and row[3] in (None, "success") and row[1]]
    values = []
    for text in texts:
        try:
            values.append(json.loads(text))
        except ValueError:
            return {"type": "string"}
    structured = [value for value in values if isinstance(value, dict | list)]
    if not texts:
        return None
    return _shape(structured, closed=True) if len(structured) == len(values) else {"type": "string"}


def _shape(values: list[Any], *, closed: bool, name: str = "") -> dict[str, Any]:
    """A JSON Schema that all values fit: types, members and closed sets of words, never other values."""
    kinds = Counter(_kind(value) for value in values)
    kinds.pop("null", None)
    if not kinds:
        return {}
    kind = kinds.most_common(1)[0][0]
    if len(kinds) > 1:
        if set(kinds) != {"integer", "number"}:
            return {"type": sorted(kinds)} if not {"object", "array"} & set(kinds) else {}
        kind = "number"
    of_kind = [value for value in values if value is not None]
    if kind == "object":
        members: dict[str, list[Any]] = {}
        for value in of_kind:
            for key, item in value.items():
                members.setdefault(key, []).append(item)
        if len(members) > 24:  # a table by id, not a record
            return {"type": "object"}
        required = [key for key, items in members.items() if len(items) == len(of_kind)]
        properties = {key: _shape(items, closed=closed, name=key) for key, items in members.items()}
        return {"type": "object", "properties": properties, "required": required}
    if kind == "array":
        items = [item for value in of_kind for item in value]
        return {"type": "array", "items": _shape(items, closed=closed, name=name)} if items else {"type": "array"}
    if kind == "string" and closed:
        words = Counter(of_kind)
        short = all(
            len(word) <= 24 and word.replace("_", "").replace("-", "").replace(" ", "").isalpha() for word in words
        )
        if short and len(words) <= _ENUM and len(of_kind) >= 3 * len(words):
            return {"type": "string", "enum": sorted(words)}
    return {"type": kind}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    named = {int: "integer", float: "number", str: "string", dict: "object", list: "array"}
    return named[type(value)]


def _list(text: str | None) -> list[Any]:
    try:
        value = json.loads(text or "[]")
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
