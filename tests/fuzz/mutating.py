"""Mutations of bytes and of JSON records: values where they should not be, not only bytes that end the parse.

Everything is drawn from the `random.Random` given, so that a seed gives one input, with a fuzzing engine or without.
"""

from __future__ import annotations

import copy
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

Pool: TypeAlias = Sequence[bytes]
"""Other inputs of the target, to take parts from."""
Mutation: TypeAlias = Callable[[bytes, random.Random, Pool], bytes]

_NUMBERS = (0, 1, -1, 0.5, -0.0, 255, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 1e308,
            1e-320, 1700000000, 1700000000000, 1700000000000000000, 253402300800, 99999999999999999999)  # fmt: skip
_TEXTS = (
    "", " ", "\n", "\x00", "null", "None", "[]", "{}", "[[]]", '{"a":', "0", "-1", "1e999", "NaN", "true", "a" * 5000,
    "2026-04-01T02:00:00Z", "2026-13-45T99:99:99Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999+14:00", "1970",
    "user", "assistant", "tool", "system", "developer", "function", "model", "human", "text", "tool_use", "tool_result",
    "image", "error", "../../etc/passwd", "=1+1", "<script>", "\x1b[2J", "\u202e", "\ud800", "\udc80x", "\U0001f600",
    "data:image/png;base64,AAAA", "aGVsbG8=", "%s%n", "__class__", "$ref", "call_1", "id", "é" * 40, "\r\n", "\ufeff",
)  # fmt: skip
_RAW = ("NaN", "Infinity", "-Infinity", "1e999", "1" * 400, "9" * 5000, '"\\ud83d"', '"\\u0000"', "-0", "1E+2",
        '{"a":1,"a":[2]}', '{"":null}', "[" * 90 + "]" * 90, '{"a":' * 90 + "1" + "}" * 90)  # fmt: skip
_MARK = "\x1araw%d\x1a"
_INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


class _Raw(str):
    """JSON text to stand as it is."""

    __slots__ = ()


def mutated_bytes(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """A few changes of bytes: flips, numbers, blocks copied, moved or cut."""
    text = bytearray(data or b"\x00")
    for _ in range(1 << rng.randrange(4)):
        near = min(len(text), 256)
        region = rng.choice((len(text), len(text), near))
        place = rng.randrange(region) if rng.random() < 0.7 else len(text) - 1 - rng.randrange(near)
        length = min(1 << rng.randrange(10), len(text) - place)
        kind = rng.randrange(8)
        if kind == 0:
            text[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            text[place] = rng.randrange(256)
        elif kind == 2:
            size = rng.choice((1, 2, 4, 8))
            number = rng.choice(_INTERESTING) % (1 << 8 * size)
            text[place : place + size] = number.to_bytes(size, rng.choice(("big", "little")))
        elif kind == 3:
            del text[place : place + length]
        elif kind == 4:
            text[place:place] = text[place : place + length] * rng.choice((1, 2, 8))
        elif kind == 5:
            other = rng.choice(pool) if pool else bytes(text)
            start = rng.randrange(len(other) or 1)
            text[place : place + length] = other[start : start + length]
        elif kind == 6:
            text[place:place] = rng.randbytes(rng.randrange(1, 17))
        else:
            del text[len(text) - 1 - rng.randrange(near) :]
        if not text:
            text = bytearray(b"\x00")
    return bytes(text)


def mutated_json(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """JSON of any layout with some values changed; bytes where it is none."""
    records, joint = _records(data)
    if not any(not isinstance(record, bytes) for record in records):
        return mutated_bytes(data, rng, pool)
    for _ in range(1 + rng.randrange(4)):
        if rng.random() < 0.2 and len(records) > 1:
            _whole_record(records, rng)
        else:
            number = rng.randrange(len(records))
            if not isinstance(records[number], bytes):
                records[number] = mutated_value(records[number], rng, _values_of(rng.choice(pool)) if pool else [])
    return joint.join(_encoded(record) for record in records) + (b"\n" if joint else b"")


def _records(data: bytes) -> tuple[list[Any], bytes]:
    """The records and what stands between them; what is no JSON stays bytes."""
    try:
        return [json.loads(data)], b""
    except (ValueError, RecursionError):
        pass
    records: list[Any] = []
    for line in data.split(b"\n"):
        try:
            records.append(json.loads(line))
        except (ValueError, RecursionError):
            records.append(line)
    return records, b"\n"


def _values_of(data: bytes) -> list[Any]:
    return [record for record in _records(data)[0] if not isinstance(record, bytes)]


def _whole_record(records: list[Any], rng: random.Random) -> None:
    one, other = rng.randrange(len(records)), rng.randrange(len(records))
    kind = rng.randrange(5)
    if kind == 0:
        del records[one]
    elif kind == 1:
        records.insert(other, copy.deepcopy(records[one]))
    elif kind == 2:
        records[one], records[other] = records[other], records[one]
    elif kind == 3:
        text = _encoded(records[one])
        records[one] = text[: rng.randrange(len(text) + 1)]
    else:
        records[one] = _encoded(records[one]) + _encoded(records[other])


def mutated_value(value: Any, rng: random.Random, others: Sequence[Any]) -> Any:
    """The value with one field changed, taken away, renamed or repeated."""
    value = copy.deepcopy(value)
    places: defaultdict[str, list[tuple[Any, Any]]] = defaultdict(list)
    for number, (shape, holder, key) in enumerate(_walk(value)):
        places[shape].append((holder, key))
        if number > 4000:
            break
    if not places:
        return _junk(rng)
    # By shape first: a long list of messages is not to outweigh the few fields beside it.
    holder, key = rng.choice(places[rng.choice(list(places))])
    current = holder[key]
    kind = rng.randrange(10)
    if kind == 0:
        del holder[key]
    elif kind <= 2:
        holder[key] = _junk(rng)
    elif kind <= 4:
        holder[key] = _other_type(current, rng)
    elif kind == 5:
        holder[key] = _part(others or [value], rng)
    elif kind == 6 and isinstance(holder, dict):
        names = sorted({name for shape in places for name in shape.split(".")[-1:] if name and "[" not in name})
        holder[rng.choice(names or ["a"])] = holder.pop(key) if rng.random() < 0.5 else copy.deepcopy(current)
    elif kind == 7 and isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(current) for _ in range(rng.choice((1, 1, 2, 40)))]
    elif kind == 8 and isinstance(current, list):
        rng.shuffle(current)
    else:
        holder[key] = _changed(current, rng)
    return value


def _walk(value: Any, shape: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{shape}.{key}", value, key
            yield from _walk(item, f"{shape}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield f"{shape}[]", value, index
            yield from _walk(item, f"{shape}[]")


def _junk(rng: random.Random) -> Any:
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(_NUMBERS)
    if kind <= 2:
        return rng.choice(_TEXTS)
    if kind == 3:
        return _Raw(rng.choice(_RAW))
    return copy.deepcopy(
        rng.choice(
            (None, True, False, [], {}, [None], [[]], [{}], {"": 1}, {"type": "text"}, [1, "a", {}], {"a": [{}]})
        )
    )


def _other_type(value: Any, rng: random.Random) -> Any:
    """What somebody else might have written in the place of a value."""
    choices: list[Any] = [
        [value],
        {"text": value},
        {"value": value},
        [value, value],
        json.dumps(value, default=str),
        None,
    ]
    if isinstance(value, dict):
        choices += [list(value.values()), list(value), [{"key": k, "value": v} for k, v in value.items()]]
    elif isinstance(value, list):
        choices += [value[0] if value else None, dict(enumerate(value)), {str(i): v for i, v in enumerate(value)}]
    elif isinstance(value, str):
        choices += [list(value[:20]), len(value), {value[:50]: value[:50]}, value.encode("utf-8", "replace").hex()]
    else:
        choices += [str(value), [str(value)], bool(value)]
    return rng.choice(choices)


def _part(others: Sequence[Any], rng: random.Random) -> Any:
    """Some value of another record."""
    other = rng.choice(others)
    for _ in range(rng.randrange(5)):
        inner = list(other.values()) if isinstance(other, dict) else other if isinstance(other, list) else []
        if not inner:
            break
        other = rng.choice(inner)
    return copy.deepcopy(other)


def _changed(value: Any, rng: random.Random) -> Any:
    """A value of the same type that says something else."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return rng.choice((-value, value * 1000, value / 3, rng.choice(_NUMBERS)))
    if isinstance(value, str):
        if value[:1] in ("{", "[") and rng.random() < 0.8:
            try:
                return json.dumps(mutated_value(json.loads(value), rng, []), default=str)
            except (ValueError, RecursionError):
                pass
        place = rng.randrange(len(value) + 1)
        more = rng.choice(_TEXTS)
        return rng.choice(
            (value[:place], value[place:], value[:place] + more + value[place:], value * 3, value.upper())
        )
    if isinstance(value, list):
        return value[: rng.randrange(len(value) + 1)] * rng.choice((1, 1, 2, 30))
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if rng.random() < 0.6}
    return _junk(rng)


def _encoded(record: Any) -> bytes:
    if isinstance(record, bytes):
        return record
    raw: list[str] = []
    text = json.dumps(_marked(record, raw), ensure_ascii=False, separators=(",", ":"))
    for number, token in enumerate(raw):
        text = text.replace(json.dumps(_MARK % number), token)
    return text.encode("utf-8", "surrogatepass")


def _marked(value: Any, raw: list[str]) -> Any:
    if isinstance(value, _Raw):
        raw.append(str(value))
        return _MARK % (len(raw) - 1)
    if isinstance(value, dict):
        return {key: _marked(item, raw) for key, item in value.items()}
    return [_marked(item, raw) for item in value] if isinstance(value, list) else value
