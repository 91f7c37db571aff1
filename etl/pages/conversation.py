"""A row as a page shows it: what is known of it, then each turn, each call beside what came back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from etl.flags import FLAGS
from etl.pages import render
from etl.query import Kin
from etl.show import facts, pretty

SHOWN = 20_000
"""Characters of one text that a page holds; the browser gives the whole text at an address of its own."""
FOLDED_LINES = 14
FOLDED_CHARACTERS = 1_400
"""A text that is longer starts folded."""


class Passage(NamedTuple):
    """A text on a page."""

    text: str
    left_out: int
    """Characters beyond `SHOWN`."""
    folded: bool
    summary: str
    """Its beginning on one line, for the fold."""


class CallBlock(NamedTuple):
    """One call with what came back."""

    number: str
    """`2/3` where several calls are made at once, else empty."""
    step: Mapping[str, Any]
    arguments: Passage
    result: Passage | None
    failed: bool


class Turn(NamedTuple):
    """One message; results that answer a call stand with the call."""

    place: int
    """In `messages`, from 0."""
    role: str
    message: Mapping[str, Any]
    info: Mapping[str, Any]
    content: Passage | None
    reasoning: Passage | None
    calls: list[CallBlock]
    marks: list[str]
    parts: str
    """Types of the non-text content; empty where there is none."""


class Page(NamedTuple):
    """All of a conversation that a template needs."""

    row: Mapping[str, Any]
    facts: list[tuple[str, str]]
    flags: list[tuple[str, str]]
    """Name and meaning."""
    turns: list[Turn]
    first: int
    """Place of the first turn shown, in the list of turns."""
    total: int
    """Turns there are."""
    kin: Kin


def page(row: Mapping[str, Any], kin: Kin | None = None, *, first: int = 0, most: int = 400) -> Page:
    """The page of a row of `rollouts` (with or without `steps[].result`), from one of its turns on."""
    turns = list(_turns(row))
    flags = [(flag, FLAGS.get(flag, "")) for flag in row["flags"]]
    return Page(row, list(facts(row)), flags, turns[first : first + most], first, len(turns), kin or Kin())


def fragment(row: Mapping[str, Any]) -> str:
    """The row as a piece of HTML with a style of its own, for a notebook."""
    return render("rollout_fragment.html", page=page(row, most=100))


def passage(text: str) -> Passage:
    """A text cut for a page, and whether it starts folded."""
    kept = text[:SHOWN]
    folded = len(kept) > FOLDED_CHARACTERS or kept.count("\n") >= FOLDED_LINES
    return Passage(kept, len(text) - len(kept), folded, " ".join(kept[:600].split())[:160])


def _turns(row: Mapping[str, Any]) -> Iterator[Turn]:
    calls: dict[int, list[Mapping[str, Any]]] = {}
    answers: set[int] = set()
    for step in row["steps"]:
        calls.setdefault(step["message_index"], []).append(step)
        if step["result_index"] is not None:
            answers.add(step["result_index"])
    messages = row["messages"]
    for index, (message, info) in enumerate(zip(messages, row["message_info"], strict=True)):
        if index in answers:
            continue
        steps = calls.get(index, [])
        yield Turn(
            index,
            message["role"],
            message,
            info,
            passage(message["content"]) if message["content"] else None,
            passage(message["reasoning_content"]) if message["reasoning_content"] else None,
            [_call(step, messages, number, len(steps)) for number, step in enumerate(steps, 1)],
            list(_marks(message, info, row)),
            _kinds(info["parts"]),
        )


def _call(step: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], number: int, of: int) -> CallBlock:
    said = step["raw_arguments"] if step["raw_arguments"] is not None else pretty(step["arguments"])
    result = None if step["result_index"] is None else passage(pretty(messages[step["result_index"]]["content"]))
    failed = step["status"] in ("error", "missing")
    return CallBlock(f"{number}/{of}" if of > 1 else "", step, passage(said), result, failed)


def _marks(message: Mapping[str, Any], info: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    """Small words beside the role."""
    if message["name"]:
        yield message["name"]
    if message["role"] == "tool":
        yield "answers no call"
    if info["inherited"]:
        yield "inherited"
    if info["synthetic"]:
        yield "synthetic"
    if info["model"] and info["model"] != row["model"]:
        yield info["model"]
    if info["finish_reason"] and info["finish_reason"] not in ("stop", "tool_calls", "end_turn", "tool_use"):
        yield info["finish_reason"]


def _kinds(parts: str | None) -> str:
    """The types of the non-text parts of a message."""
    if not parts:
        return ""
    try:
        found = msgspec.json.decode(parts)
    except msgspec.DecodeError:
        return "parts"
    kinds = [str(part.get("type", "part")) if isinstance(part, dict) else "part" for part in found]
    return ", ".join(dict.fromkeys(kinds))
