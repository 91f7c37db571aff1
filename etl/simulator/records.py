"""Records of the fake world: how they are made, and what calls make of them."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random  # noqa: TID251  (seeded)
from typing import Any, TypeAlias

from etl.simulator.domain import Domain, Shape, field_value
from etl.simulator.meaning import Meaning, singular, words_of
from etl.simulator.people import Person

State: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""Plural of the entity → id as text → the record."""
_CONTENT = frozenset({"content", "contents", "text", "body", "file_text", "new_content"})


def copied(state: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> State:
    """The state, to be changed on its own (what lies inside a record is never changed in place)."""
    return {name: {key: dict(record) for key, record in records.items()} for name, records in state.items()}


def new_record(domain: Domain, shape: Shape, rng: Random, who: Person, status: str | None = None) -> dict[str, Any]:
    """A record."""
    reader = domain.reader_of(shape.entity)
    values = domain.results.get(reader) if reader else None
    record = {
        name: field_value(shape, name, schema, rng, who, values if schema else None)
        for name, schema in shape.fields.items()
    }
    if shape.status is not None:
        record[shape.status] = status or shape.statuses[int(rng.random() * len(shape.statuses))]
    record = with_id(shape, record, shape.new_id(rng, who))
    if shape.entity == "file" and "content" in record:
        record["content"] = f"# {str(record[shape.id_name]).rpartition('/')[2]}\n{record['content']}\n"
    return record


def with_id(shape: Shape, record: Mapping[str, Any], key: Any) -> dict[str, Any]:
    """The record under an id, in every field that holds it."""
    named = {shape.id_name: key, **{name: value for name, value in record.items() if name != shape.id_name}}
    for name in shape.fields:
        words = words_of(name)
        own = len(words) == 1 or set(map(singular, words[:-1])) == set(shape.entity.split())
        if own and words[-1] in ("id", "number", "key", "reference") and isinstance(named[name], type(key)):
            named[name] = key
    return named


def is_done(domain: Domain, meaning: Meaning, record: Mapping[str, Any]) -> bool:
    """Whether a record is already what an act would make of it."""
    shape = domain.shapes[meaning.entity]
    if shape.status is None:
        return bool(record.get(f"{meaning.done}_flag"))
    return record.get(shape.status) == done_word(shape, meaning)


def done_word(shape: Shape, meaning: Meaning) -> str:
    """What the status says of a record that an act was done to."""
    return next((word for word in shape.statuses if word.lower().startswith(meaning.verb[:4])), meaning.done)


def changed(
    domain: Domain,
    meaning: Meaning,
    record: Mapping[str, Any],
    arguments: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """The record after a write that worked."""
    shape = domain.shapes[meaning.entity]
    if meaning.entity == "file":
        return _edited(record, arguments)
    kept = {key: value for key, value in kept_of(arguments, parameters, shape.fields).items() if key != meaning.id_name}
    if meaning.kind == "act":
        return {
            **record,
            **kept,
            (shape.status or f"{meaning.done}_flag"): done_word(shape, meaning) if shape.status else True,
        }
    if meaning.kind == "send":
        return {**record, "last_sent": meaning.verb, **kept}
    return {**record, **kept}


_FREE = frozenset(
    [
        "reason",
        "note",
        "notes",
        "comment",
        "description",
        "summary",
        "message",
        "body",
        "text",
        "query",
        "title",
        "subject",
        "content",
    ]
)


def _edited(record: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A file after it was written to: one text replaced by another, or all of it."""
    content = str(record.get("content", ""))
    old, new = edits(arguments)
    whole = next((str(value) for key, value in arguments.items() if key in _CONTENT), None)
    if whole is not None:
        return {**record, "content": whole}
    return {**record, "content": content.replace(old, new, 1) if old else content + new}


def edits(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """The text that an edit replaces, and what comes in its place; empty where the call says neither."""
    old = next((value for key, value in arguments.items() if key.startswith("old") and isinstance(value, str)), "")
    new = next((value for key, value in arguments.items() if key.startswith("new") and isinstance(value, str)), "")
    return old, new


def kept_of(
    arguments: Mapping[str, Any], parameters: Mapping[str, Any], fields: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The arguments that a record keeps: prose is left out (but where it is a field),
    since two people who mean the same write it differently.
    """
    properties = parameters.get("properties") or {}
    kept = {}
    for key, value in arguments.items():
        schema = properties.get(key)
        closed = isinstance(schema, dict) and {"enum", "format", "pattern", "const"} & set(schema)
        own = fields is not None and key in fields
        if closed or own or not isinstance(value, str) or words_of(key)[-1] not in _FREE:
            kept[key] = value
    return kept
