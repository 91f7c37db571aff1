"""What is assembled is a function of the set of lines: not of files, nights, copies or the order of reading."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.adapter import FileContext
from etl.conversation import Record
from tests.adapters.claude_sessions import CLAUDE, Session, call, events, rows_of, text


@st.composite
def sessions(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The lines of a session with turns, calls, branches, sub-agents, queue operations and lines that have grown."""
    session = Session()
    agent = Session(agent="a1", minute=1)
    places: list[str] = []
    for number in range(draw(st.integers(1, 12))):
        kind = draw(
            st.sampled_from(["user", "answer", "calls", "back", "agent", "queue", "grown", "progress", "compact"])
        )
        if kind == "user":
            session.user(draw(st.sampled_from(["Go.", "On <system-reminder>r</system-reminder>", "/x"])) + str(number))
        elif kind == "answer":
            session.assistant(text(f"Answer {number}."), tokens=number)
        elif kind == "calls":
            session.assistant(*(call(f"t{number}-{each}") for each in range(draw(st.integers(1, 3)))))
            session.result(f"t{number}-0", f"result {number}")
        elif kind == "back" and places:
            session.user(f"Again {number}.", parent=draw(st.sampled_from(places)))
        elif kind == "agent":
            agent.user(f"Task {number}.")
            agent.assistant(text(f"Report {number}."))
        elif kind == "queue":
            operation = draw(st.sampled_from(["enqueue", "remove"]))
            session.line("queue-operation", operation=operation, content=f"Queued {number % 3}.")
        elif kind == "grown":
            line = session.assistant(text(f"Half {number}"), tokens=2)
            session.lines.append({**line, "message": {**line["message"], "content": [text(f"Half {number} and all")]}})
        elif kind == "progress":
            session.line("progress", data={"type": "bash_progress", "output": "x" * number})
        elif kind == "compact":
            session.line("system", parent=None, logicalParentUuid=session.last, subtype="compact_boundary", content="c")
        if session.last is not None:
            places.append(session.last)
    return [*session.lines, *agent.lines]


def _told(files: dict[str, list[Any]]) -> list[tuple[str, str]]:
    return sorted((row["rollout_id"], row["row_hash"]) for row in rows_of(events(files)))


@given(sessions(), st.randoms(use_true_random=False))
def test_files_nights_copies_and_order_change_nothing(lines: list[dict[str, Any]], chance: random.Random) -> None:
    whole = _told({"/one.jsonl": lines})
    shuffled = chance.sample(lines, len(lines))
    scattered: dict[str, list[Any]] = {f"/{number}.jsonl": [] for number in range(4)}
    for line in shuffled:
        for name in chance.sample(sorted(scattered), chance.choice((1, 1, 2))):
            scattered[name].append(line)
    assert _told(scattered) == whole
    assert _told(dict(reversed(scattered.items()))) == whole


@given(sessions(), st.data())
def test_resuming_copies_count_once(lines: list[dict[str, Any]], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(lines)))
    later = Session("s-2", minute=30)
    later.lines = [{**line, "sessionId": "s-2"} for line in lines[:cut]]
    later.user("And then?", parent=lines[cut - 1]["uuid"] if cut else None)
    later.assistant(text("Then this."), tokens=50)
    alone = rows_of(events({"/one.jsonl": lines}))
    both = rows_of(events({"/one.jsonl": lines, "/two.jsonl": later.lines}))
    assert _output(both) == _output(alone) + 50
    swapped = rows_of(events({"/two.jsonl": later.lines, "/one.jsonl": lines}))
    assert sorted(row["row_hash"] for row in swapped) == sorted(row["row_hash"] for row in both)


def _output(rows: list[dict[str, Any]]) -> int:
    return sum((row["usage"] or {}).get("output_tokens") or 0 for row in rows)


@given(sessions())
def test_a_session_that_grows_only_adds(lines: list[dict[str, Any]]) -> None:
    known: set[str] = set()
    for end in range(1, len(lines) + 1):
        now = {row["rollout_id"] for row in rows_of(events({"/one.jsonl": lines[:end]}))}
        assert known <= now
        known = now


_WORDS = [
    "user", "assistant", "tool_result", "tool_use", "text", "progress", "agent_progress", "s-1", "s-1-0",
    "remove",
]  # fmt: skip
_INNER = [
    "type", "text", "content", "id", "tool_use_id", "input", "name", "agentId", "message", "uuid", "role", "data",
    "prompt",
]  # fmt: skip
_OUTER = [
    "type", "uuid", "parentUuid", "sessionId", "message", "isSidechain", "agentId", "timestamp", "toolUseResult",
    "data", "attachment", "content", "operation", "origin", "compactMetadata", "logicalParentUuid",
    "sourceToolUseID", "mcpMeta", "isMeta", "loglines", "forkedFrom", "parentToolUseID", "cwd", "usage",
    "subtype", "lastPrompt", "agentSetting",
]  # fmt: skip
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_JUNK = st.recursive(
    _SCALARS | st.text(max_size=8) | st.sampled_from(_WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_INNER), inner, max_size=4),
    max_leaves=8,
)
_SPOILED = st.tuples(st.integers(0, 100), st.sampled_from(_OUTER), _JUNK)


@given(sessions(), st.lists(_SPOILED, max_size=6), st.lists(_JUNK, max_size=3))
def test_junk_anywhere_raises_nothing(
    lines: list[dict[str, Any]], spoiled: list[tuple[int, str, Any]], more: list[Any]
) -> None:
    lines = [dict(line) for line in lines]
    for place, key, junk in spoiled if lines else ():
        lines[place % len(lines)][key] = junk
    everything = [*lines, *more]
    records = [Record(line, json.dumps(line).encode(), number, number) for number, line in enumerate(everything)]
    assert len(list(CLAUDE.parse(iter(records), FileContext("/a.jsonl")))) == len(everything)
    for row in rows_of(events({"/a.jsonl": everything})):
        assert len(row["messages"]) == len(row["message_info"]) > 0
