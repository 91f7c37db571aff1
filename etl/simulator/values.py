"""Values that fit a JSON Schema and their names: arguments that validate, and results of a declared shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from random import Random  # noqa: TID251  (seeded)
from typing import Any

import jsonschema_rs

from etl.simulator.meaning import words_of
from etl.simulator.naming import FILLER, described_text, named_text
from etl.simulator.people import Person

TRIES = 40
"""How often a value is drawn again where a schema says more than its parts (`not`, `if`, `dependentRequired`)."""
_DEEP = 6

Schema = Any
Draw = Callable[[Random, Person], Any]


class UnmakeableError(ValueError):
    """No value could be made that the schema allows."""


class Values:
    """Draws values for one root schema."""

    def __init__(self, root: Mapping[str, Any], hints: Mapping[str, Draw] | None = None) -> None:
        self._root = root
        self._hints = hints or {}
        self._validator = jsonschema_rs.validator_for(dict(root), validate_formats=True)

    def draw(self, rng: Random, who: Person, fixed: Mapping[str, Any] | None = None, *, full: bool = False) -> Any:
        """A value that validates; with `fixed` members where it is an object, and every optional one where `full`.

        UnmakeableError after TRIES draws.
        """
        for attempt in range(TRIES):
            value = self._of(self._root, "", rng, who, 0, full or attempt % 2 == 1)
            if fixed and isinstance(value, dict):
                value = {**value, **fixed}
            if self._validator.is_valid(value):
                return value
        last = next(iter(self._validator.iter_errors(value)), None)
        raise UnmakeableError(str(last).splitlines()[0] if last else "nothing fits")

    def fitted(self, drawn: Any, known: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] = ()) -> Any:
        """A drawn value with what is known in the members of the same name, as far as it still validates."""
        if isinstance(drawn, dict):
            told = {name: known[name] for name in drawn if name in known}
            lists = [name for name, value in drawn.items() if rows and isinstance(value, list) and name not in told]
            if lists:
                told[lists[0]] = [_overlaid(drawn[lists[0]], row) for row in rows]
            counts = [name for name in drawn if name in ("count", "total", "n") and rows]
            told |= {name: len(rows) for name in counts}
            whole = {**drawn, **told}
            if self._validator.is_valid(whole):
                return whole
            for name, value in told.items():
                if self._validator.is_valid({**drawn, name: value}):
                    drawn = {**drawn, name: value}
            return drawn
        if isinstance(drawn, list) and rows:
            whole_list = [_overlaid(drawn, row) for row in rows]
            return whole_list if self._validator.is_valid(whole_list) else drawn
        return drawn

    def one(self, name: str, schema: Schema, rng: Random, who: Person) -> Any:
        """A value for one named part of the schema, unchecked."""
        return self._of(schema, name, rng, who, 1, False)

    def _of(self, schema: Schema, name: str, rng: Random, who: Person, depth: int, full: bool) -> Any:
        if not isinstance(schema, dict) or not schema:
            return named_text(name, rng, who)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            options = schema["enum"]
            plain = [option for option in options if option is not None]
            return (plain or options)[int(rng.random() * len(plain or options))]
        if "$ref" in schema:
            target = self._resolved(schema["$ref"])
            return self._of({**target, **{k: v for k, v in schema.items() if k != "$ref"}}, name, rng, who, depth, full)
        for word in ("oneOf", "anyOf"):
            if schema.get(word):
                options = [option for option in schema[word] if not _is_null(option)] or schema[word]
                chosen = options[int(rng.random() * len(options))] if full or len(options) < 3 else options[0]
                rest = {key: value for key, value in schema.items() if key != word}
                return self._of(self._merged(rest, chosen), name, rng, who, depth, full)
        if schema.get("allOf"):
            whole = {key: value for key, value in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                whole = self._merged(whole, part)
            return self._of(whole, name, rng, who, depth, full)
        return self._typed(schema, name, rng, who, depth, full)

    def _typed(self, schema: dict[str, Any], name: str, rng: Random, who: Person, depth: int, full: bool) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((option for option in kind if option != "null"), "null")
        if kind is None:
            kind = _implied(schema)
        if kind == "object":
            return self._object(schema, rng, who, depth, full)
        if kind == "array":
            return self._array(schema, name, rng, who, depth, full)
        if kind in ("string", "integer", "number"):
            hint = self._hints.get(name)
            hinted = hint(rng, who) if hint and "pattern" not in schema else None
            if isinstance(hinted, str if kind == "string" else int):  # another tool may know the name in another type
                return hinted
            return (
                text(schema, name, rng, who) if kind == "string" else number(schema, name, rng, whole=kind == "integer")
            )
        if kind == "boolean":
            good = words_of(name)[-1:] and words_of(name)[-1] in ("ok", "success", "valid", "found", "available")
            return bool(good) or rng.random() < 0.5
        return None

    def _object(self, schema: dict[str, Any], rng: Random, who: Person, depth: int, full: bool) -> dict[str, Any]:
        properties = schema.get("properties") or {}
        required = set(schema.get("required") or ())
        made: dict[str, Any] = {}
        for name, part in properties.items():
            if name in required or (depth < _DEEP and (full or rng.random() < 0.45)):
                made[name] = self._of(part, name, rng, who, depth + 1, full and depth < 3)
        for name in sorted(required - set(properties)):
            made[name] = named_text(name, rng, who)
        extra = schema.get("additionalProperties")
        for number_of in range(len(made), schema.get("minProperties", 1 if extra and not properties else 0)):
            key = f"{_pick(rng, ('color', 'size', 'note', 'kind', 'origin'))}{number_of or ''}"
            made[key] = self._of(extra if isinstance(extra, dict) else {}, key, rng, who, depth + 1, full)
        return made

    def _array(self, schema: dict[str, Any], name: str, rng: Random, who: Person, depth: int, full: bool) -> list[Any]:
        first = schema.get("prefixItems") or []
        least = max(int(schema.get("minItems", 1 if depth < _DEEP else 0)), len(first))
        most = min(int(schema.get("maxItems", max(least, 2))), max(least, 3))
        items = schema.get("items", {})
        made = [self._of(part, name, rng, who, depth + 1, full) for part in first]
        wanted = least + int(rng.random() * (max(most, least) - least + 1))
        for _ in range(4 * wanted):
            if len(made) >= wanted or items is False:
                break
            item = self._of(items, _singular_name(name), rng, who, depth + 1, full)
            if not schema.get("uniqueItems") or item not in made:
                made.append(item)
        return made

    def _resolved(self, reference: str) -> dict[str, Any]:
        part: Any = self._root
        for step in reference.removeprefix("#").split("/"):
            if step and isinstance(part, dict):
                part = part.get(step.replace("~1", "/").replace("~0", "~"))
        if not isinstance(part, dict):
            raise UnmakeableError(f"{reference} leads nowhere")
        return part

    def _merged(self, one: dict[str, Any], other: Any) -> dict[str, Any]:
        if not isinstance(other, dict):
            return one
        if "$ref" in other:
            other = {**self._resolved(other["$ref"]), **{k: v for k, v in other.items() if k != "$ref"}}
        both = {**one, **other}
        if isinstance(one.get("properties"), dict) and isinstance(other.get("properties"), dict):
            both["properties"] = {**one["properties"], **other["properties"]}
        if one.get("required") and other.get("required"):
            both["required"] = [*one["required"], *other["required"]]
        return both


def _overlaid(drawn: Sequence[Any], row: Mapping[str, Any]) -> Any:
    """A row in the shape of the first drawn one."""
    if not drawn or not isinstance(drawn[0], dict):
        return dict(row)
    return {name: row.get(name, value) for name, value in drawn[0].items()}


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _implied(schema: dict[str, Any]) -> str:
    """The type of a schema that does not say it."""
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    return "number" if {"minimum", "maximum", "exclusiveMinimum", "multipleOf"} & set(schema) else "string"


def _pick(rng: Random, options: tuple[Any, ...] | list[Any]) -> Any:
    return options[int(rng.random() * len(options))]


def _singular_name(name: str) -> str:
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def number(schema: dict[str, Any], name: str, rng: Random, *, whole: bool) -> int | float:
    """A number within the bounds of its schema, in the range its name suggests."""
    low, high = _range(name)
    least, most = schema.get("minimum"), schema.get("maximum")
    over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf")
    grain = step or (1 if whole else 0.01)
    if isinstance(over, int | float) and not isinstance(over, bool):
        least = over + grain if least is None else max(least, over + grain)
    if isinstance(under, int | float) and not isinstance(under, bool):
        most = under - grain if most is None else min(most, under - grain)
    if least is not None and (low < least or (most is None and high < least)):
        low, high = least, max(high, least + (high - low))
    if most is not None and high > most:
        low, high = min(low, most) if least is None else least, most
        if least is None and low == high:
            low = high - 10 * grain
    steps = int((high - low) / grain + 1e-9)
    first = low if not step else -(-low // step) * step
    value = first + grain * int(rng.random() * (max(steps, 0) + 1))
    if most is not None and value > most:
        value = first
    if whole:
        return int(value)
    digits = 2 if step is None else len(str(step).partition(".")[2])
    return round(float(value), digits)


_RANGES: tuple[tuple[str, float, float], ...] = (
    ("latitude|lat", -60, 65), ("longitude|lng|lon", -120, 150), ("year", 2024, 2027), ("month", 1, 12),
    ("day|days", 1, 28), ("hour|hours", 1, 23), ("minute|minutes|seconds|timeout|duration", 5, 90), ("age", 19, 84),
    ("amount|price|total|cost|fee|balance|refund|value", 5, 480), ("percent|percentage|discount|confidence", 5, 95),
    ("rating|stars|score|priority|severity", 1, 5), ("quantity|count|passengers|guests|bags|baggages|seats|rooms", 1,
                                                     6),
    ("limit|size|max|top|offset|page", 1, 40), ("weight|length|width|height|distance|temperature", 2, 60),
    ("line|lines|start|end|index", 1, 220), ("number|id|code", 10_000, 99_999),
)  # fmt: skip
_RANGE_OF = {word: (low, high) for words, low, high in _RANGES for word in words.split("|")}


def _range(name: str) -> tuple[float, float]:
    return next((_RANGE_OF[word] for word in reversed(words_of(name)) if word in _RANGE_OF), (1, 100))


def text(schema: dict[str, Any], name: str, rng: Random, who: Person) -> str:
    """A string of the schema's format, pattern and length, in words that suit its name."""
    made = _formatted(schema.get("format"), rng, who)
    if made is None and isinstance(schema.get("pattern"), str):
        import rstr

        made = str(rstr.Rstr(rng).xeger(schema["pattern"]))
    if made is None:
        examples = schema.get("examples")
        made = _pick(rng, examples) if examples and rng.random() < 0.5 else None
        if not isinstance(made, str):
            made = described_text(name, schema.get("description"), rng, who)
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    while len(made) < least:
        made += ("-" if " " not in made else " ") + _pick(rng, FILLER)
    cut: str = str(made[:most])
    return cut.rstrip() if len(cut.rstrip()) >= least else cut


def _formatted(kind: Any, rng: Random, who: Person) -> str | None:
    day = who.today + timedelta(days=1 + int(rng.random() * 45))
    if kind == "date":
        return day.isoformat()
    if kind == "date-time":
        return f"{day.isoformat()}T{int(rng.random() * 12) + 8:02d}:{15 * int(rng.random() * 4):02d}:00Z"
    if kind == "time":
        return f"{int(rng.random() * 12) + 8:02d}:{15 * int(rng.random() * 4):02d}:00Z"
    if kind in ("email", "idn-email"):
        return who.email
    if kind in ("uri", "url", "iri", "uri-reference"):
        return f"https://www.example.com/{_pick(rng, FILLER)}/{int(rng.random() * 9000) + 1000}"
    if kind == "uuid":
        digits = f"{rng.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
    if kind == "ipv4":
        return f"192.0.2.{int(rng.random() * 253) + 1}"
    if kind == "ipv6":
        return f"2001:db8::{int(rng.random() * 65000):x}"
    if kind in ("hostname", "idn-hostname"):
        return f"{_pick(rng, FILLER)}{int(rng.random() * 90)}.example.com"
    return f"P{int(rng.random() * 20) + 1}D" if kind == "duration" else None


def wrong(schema: Mapping[str, Any], right: dict[str, Any], valid: jsonschema_rs.Validator, rng: Random) -> Any:
    """The same arguments with one that the schema refuses; None where it refuses nothing of the kind."""
    properties = schema.get("properties") or {}
    names = sorted(name for name in right if name in properties)
    rng.shuffle(names)
    for name in names:
        for bad in _bad(right[name]):
            candidate = {**right, name: bad}
            if not valid.is_valid(candidate):
                return candidate
    for name in names:
        candidate = {key: value for key, value in right.items() if key != name}
        if not valid.is_valid(candidate):
            return candidate
    return None


def _bad(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, int | float):
        return [f"about {value}", str(value), -value]
    if isinstance(value, str):
        return [[value], "unknown-option", 12]
    return [json.dumps(value, ensure_ascii=False)]
