"""The labelled cases of redaction: texts and JSON values in pieces, read into whole ones with their spans."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

SEEN = Path(__file__).with_name("seen.jsonl")
PARTS = tuple(Path(__file__).with_name(f"{name}.jsonl") for name in ("seen", "unseen", "third", "fourth", "fifth"))
"""What rules may be made with."""
BLIND = Path(__file__).with_name("sixth.jsonl")
"""For measuring alone: who changes rules does not look into it."""
WINDOW = 20  # characters of a long secret that may not be left together


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one string: `path` leads to the string in the value, `start` and `end` are characters of it."""

    text: str
    kind: str
    path: tuple[str | int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled case; `value` is a str for a text, else JSON. Of a negative, all of it must survive."""

    id: str
    family: Literal["secret", "personal", "name_address", "neither"]
    kind: str
    label: Literal["positive", "negative"]
    shape: str
    place: str
    wrapper: str
    template: str
    value: Any
    spans: tuple[Span, ...]  # must go (positive), must survive (negative)
    allowed: tuple[Span, ...]  # may go or stay: the rest of a URL, the frame of a key


def read(path: Path = SEEN) -> Iterator[Case]:
    """Every case of a half, in the file's order."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield _case(json.loads(line))


def strings(value: Any) -> Iterator[str]:
    """Every string in a value, keys too, and every number as its digits."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def leaked(case: Case, output: Any) -> tuple[Span, ...]:
    """The spans of which the output still holds the whole, or WINDOW characters together when they are longer."""
    texts = list(strings(output))
    return tuple(span for span in case.spans if any(_holds(text, span.text) for text in texts))


def _holds(text: str, secret: str) -> bool:
    if len(secret) <= WINDOW * 2:
        return secret in text
    return any(secret[at : at + WINDOW] in text for at in range(0, len(secret) - WINDOW + 1, WINDOW // 4))


def _case(row: dict[str, Any]) -> Case:
    spans: list[Span] = []
    allowed: list[Span] = []
    body = {"$text": row["text"]} if "text" in row else row["value"]
    value = _joined(body, (), spans, allowed)
    known = {key: row[key] for key in ("id", "family", "kind", "label", "shape", "place", "wrapper", "template")}
    return Case(**known, value=value, spans=tuple(spans), allowed=tuple(allowed))


def _joined(node: Any, path: tuple[str | int, ...], spans: list[Span], allowed: list[Span]) -> Any:
    if isinstance(node, list):
        return [_joined(item, (*path, at), spans, allowed) for at, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    if "$text" in node:
        return _text(node["$text"], path, spans, allowed)
    if "$number" in node:
        return int(_text(node["$number"], path, spans, allowed))
    return {key: _joined(item, (*path, key), spans, allowed) for key, item in node.items()}


def _text(
    segments: list[str | dict[str, Any]], path: tuple[str | int, ...], spans: list[Span], allowed: list[Span]
) -> str:
    whole = ""
    for segment in segments:
        if isinstance(segment, str):
            whole += segment
            continue
        piece = "".join(segment["span"] if "span" in segment else segment["may"])
        found = Span(piece, segment["kind"], path, len(whole), len(whole) + len(piece))
        (spans if "span" in segment else allowed).append(found)
        whole += piece
    return whole
