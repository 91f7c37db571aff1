"""Shapes of values: JSON Schema from what was seen and from what other dialects declare, and the make of ids."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

_ENUM = 6
"""Values up to which a repeated word counts as one of a closed set."""
_ERROR_KEYS = frozenset({"error", "message", "status", "code", "detail", "ok", "success", "errors"})

_DIALECT = {
    "dict": "object", "map": "object", "float": "number", "double": "number", "int": "integer", "long": "integer",
    "str": "string", "list": "array", "tuple": "array", "bool": "boolean",
}  # fmt: skip
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


def mended(definition: Any) -> Any:
    """A definition with the type names of other dialects (Python's, Protobuf's) as JSON Schema has them."""
    if isinstance(definition, list):
        return [mended(item) for item in definition]
    if not isinstance(definition, dict):
        return definition
    whole = {key: mended(item) for key, item in definition.items()}
    named = whole.get("type")
    if isinstance(named, str) and named not in _TYPES:
        word = _DIALECT.get(named.lower(), named.lower())
        if word in _TYPES:
            whole["type"] = word
        elif word == "any":
            del whole["type"]
    return whole


def make_of(ids: list[str]) -> str:
    """The make of ids: what all have in common stays (of one alone a short beginning), other letters become X or x.

    >>> make_of(["#W1001", "#W2002"]), make_of(["M61IZO", "K22ABC"]), make_of(["mia_li_33"])
    ('#W1001', 'X61XXX', 'xxx_xx_33')
    """
    first = ids[0]
    same = [all(len(known) == len(first) and known[n] == first[n] for known in ids) for n in range(len(first))]
    short = next((n for n, char in enumerate(first) if not char.isupper() and char != "#"), 0) if len(ids) == 1 else 0
    kept = (len(ids) > 1, short if short <= 3 else 0)
    return "".join(
        char if not char.isalpha() or (kept[0] and same[n]) or n < kept[1] else "X" if char.isupper() else "x"
        for n, char in enumerate(first)
    )


def returned(samples: Iterable[tuple[Any, ...]]) -> dict[str, Any] | None:
    """The shape of the results of calls that worked: of JSON objects or arrays, else text."""
    texts = [row[1] for row in samples if row[2] == "ok" and row[3] in (None, "success") and row[1]]
    values = []
    for text in texts:
        try:
            values.append(json.loads(text))
        except ValueError:
            return {"type": "string"}
    values = [value for value in values if not _tells_an_error(value)] or values
    structured = [value for value in values if isinstance(value, dict | list)]
    if not texts:
        return None
    return shape_of(structured, closed=True) if len(structured) == len(values) else {"type": "string"}


def _tells_an_error(value: Any) -> bool:
    """Whether a result is an error that nobody marked as one."""
    return (
        isinstance(value, dict) and bool(value) and set(value) <= _ERROR_KEYS and bool({"error", "errors"} & set(value))
    )


def shape_of(values: list[Any], *, closed: bool, name: str = "") -> dict[str, Any]:
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
        properties = {key: shape_of(items, closed=closed, name=key) for key, items in members.items()}
        return {"type": "object", "properties": properties, "required": required}
    if kind == "array":
        items = [item for value in of_kind for item in value]
        return {"type": "array", "items": shape_of(items, closed=closed, name=name)} if items else {"type": "array"}
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


def as_list(text: str | None) -> list[Any]:
    try:
        value = json.loads(text or "[]")
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def as_object(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
