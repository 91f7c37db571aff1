"""Every field of a sample replaced by what should not be there, one at a time."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from etl.adapter import Adapter, FileContext
from etl.conversation import Conversation, Fragment
from tests.contract.harness import read, sample_logs, sample_of

KINDS: dict[str, bytes] = {
    "null": b"null",
    "number": b"-1.5",
    "text": b'"a\\u0000b"',
    "huge": b'"' + b"x" * 50_000 + b'"',
    "empty_text": b'""',
    "empty_list": b"[]",
    "object": b'{"type": [1], "content": {"text": 7}, "id": {}, "id": {"b": 2, "b": [null, true]}}',
    "deep": b'{"a":[' * 100 + b"1" + b"]}" * 100,
    "lone_surrogate": b'"half \\ud83d of one"',
    "nan": b"NaN",
    "infinity": b"-Infinity",
    "beyond_int64": b"1180591620717411303424",
}
"""Name of the junk → its JSON, or what passes for JSON."""

_HERE = "\x1ajunk\x1a"
_HERE_AS_JSON = json.dumps(_HERE).encode()


class Field(NamedTuple):
    """A place in a file: record number and keys, and the path of such places (list positions as `[]`)."""

    path: str
    record: int
    keys: tuple[str | int, ...]


@functools.cache
def fields(adapter: Adapter) -> dict[str, list[Field]]:
    """Every field that the samples of an adapter have, each path once, by the name of the first sample that has it."""
    seen: set[str] = set()
    found: dict[str, list[Field]] = {}
    for sample in sample_logs():
        if sample.adapter.name != adapter.name:
            continue
        found[sample.name] = []
        for number, value in enumerate(values(sample.name)):
            for path, keys in _walk(value):
                if path not in seen:
                    seen.add(path)
                    found[sample.name].append(Field(path, number, keys))
    return found


@functools.cache
def values(name: str) -> list[Any]:
    """The decoded records of a sample."""
    sample = sample_of(name)
    return [record.value for record in read(sample.data(), sample.adapter).records]


@functools.cache
def _companions(name: str) -> list[list[int]]:
    """For each record of a sample, the records that it makes conversations with, itself among them."""
    sample = sample_of(name)
    records = read(sample.data(), sample.adapter).records
    places = {(record.line, record.offset): number for number, record in enumerate(records)}
    groups: dict[Any, set[int]] = {}
    for outcome in sample.adapter.parse(iter(records), FileContext("/logs/file.json")):
        if isinstance(outcome, Conversation):
            groups[id(outcome), "conversation"] = {places.get((r.line, r.offset), -1) for r in outcome.records}
        elif isinstance(outcome, Fragment):
            place = places.get((outcome.record.line, outcome.record.offset), -1)
            groups.setdefault((outcome.key, "fragments"), set()).add(place)
    if any(-1 in group for group in groups.values()):
        return [list(range(len(records)))] * len(records)
    return [
        sorted({number}.union(*(group for group in groups.values() if number in group)))
        for number in range(len(records))
    ]


def _walk(value: Any, path: str = "", keys: tuple[str | int, ...] = ()) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    yield path, keys
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, f"{path}.{key}", (*keys, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[]", (*keys, index))


def spoiled(name: str, field: Field) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """A record of a sample with its companions as JSON Lines, made when asked for: for each kind of junk in the place
    of the field, and without the field.
    """
    for kind in KINDS:
        yield kind, functools.partial(_spoiled, name, field, kind)
    if field.keys:
        yield "absent", functools.partial(_spoiled, name, field, "absent")
    if field.keys and isinstance(field.keys[-1], str):
        yield "key_twice", functools.partial(_spoiled, name, field, "key_twice")


def _spoiled(name: str, field: Field, kind: str) -> bytes:
    before, marked, after = _around(name, field)
    if kind == "absent":
        line = json.dumps(_without(values(name)[field.record], field.keys)).encode()
    else:
        line = marked.replace(_HERE_AS_JSON, _junk(field, kind))
    return b"\n".join([*before, line, *after, b""])


@functools.lru_cache(maxsize=1)
def _around(name: str, field: Field) -> tuple[list[bytes], bytes, list[bytes]]:
    """The companions before the record, the record with the mark in the place of the field, the companions after it."""
    together = _companions(name)[field.record]
    lines = {number: json.dumps(values(name)[number], ensure_ascii=False).encode() for number in together}
    marked = json.dumps(_with(values(name)[field.record], field.keys), ensure_ascii=False).encode()
    before = [line for number, line in lines.items() if number < field.record]
    after = [line for number, line in lines.items() if number > field.record]
    return before, marked, after


def _junk(field: Field, kind: str) -> bytes:
    if kind == "key_twice":
        return b'"first", ' + json.dumps(field.keys[-1], ensure_ascii=False).encode() + b": [2]"
    return KINDS[kind]


def _with(value: Any, keys: tuple[str | int, ...]) -> Any:
    """The value with the mark in the place of one field."""
    if not keys:
        return _HERE
    first, *rest = keys
    if isinstance(value, dict):
        return {key: _with(item, tuple(rest)) if key == first else item for key, item in value.items()}
    return [_with(item, tuple(rest)) if index == first else item for index, item in enumerate(value)]


def _without(value: Any, keys: tuple[str | int, ...]) -> Any:
    """The value without one field."""
    first, *rest = keys
    items = value.items() if isinstance(value, dict) else enumerate(value)
    kept = [(key, _without(item, tuple(rest)) if key == first else item) for key, item in items if rest or key != first]
    return dict(kept) if isinstance(value, dict) else [item for _, item in kept]
