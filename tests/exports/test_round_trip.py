"""What was exported for other programs is read back as the same conversation."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import etl
from tests.exports.talk import Message, agent, lake_of, row, system, tool, user
from tests.lakes import rows

_WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), _WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_WORDS, inner, max_size=3)),
    max_leaves=6,
)
_ARGUMENTS = st.dictionaries(_WORDS, _JSON, max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """A person asks, the agent calls tools (in parallel, too) and answers; some turns of it."""
    said: list[Message] = [system(draw(_WORDS))] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 3))):
        said.append(user(draw(_WORDS)))
        for round_ in range(draw(st.integers(0, 2))):
            calls = [(f"c{turn}{round_}{n}", f"tool_{n}", draw(_ARGUMENTS)) for n in range(draw(st.integers(1, 2)))]
            said.append(agent(draw(st.sampled_from(["", "Let me see."])), *calls))
            said += [tool(call_id, draw(_WORDS)) for call_id, _, _ in calls]
        said.append(agent(draw(_WORDS), reasoning_content=draw(st.sampled_from([None, "First I think."]))))
    return said


def told(messages: list[dict[str, Any]]) -> str:
    """What a conversation says: roles, texts, calls with their values, and which call each result answers."""
    owner: dict[str | None, list[int]] = {}
    said: list[Any] = []
    for place, message in enumerate(messages):
        calls = message["tool_calls"] or ()
        owner.update({call["id"]: [place, number] for number, call in enumerate(calls)})
        made = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]
        said.append(
            (
                message["role"],
                message["content"],
                message["reasoning_content"],
                made,
                owner.get(message["tool_call_id"]),
            )
        )
    return json.dumps(said, sort_keys=True)


@pytest.mark.parametrize(
    "target",
    ["openai", *(pytest.param(target, marks=pytest.mark.slow) for target in ("sft", "atif", "otlp", "whileai"))],
)
@given(talks=st.lists(conversations(), min_size=8, max_size=8, unique_by=lambda said: json.dumps(said)))
@settings(
    max_examples=2,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.large_base_example],
)
def test_read_back_it_is_the_same_conversation(target: str, talks: list[list[Message]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        definitions = json.dumps(
            [{"type": "function", "function": {"name": "tool_0", "parameters": {"type": "object"}}}]
        )
        lake = lake_of(folder / "lake", [row(f"r_{n:032x}", *said, tools=definitions) for n, said in enumerate(talks)])
        report = etl.export(target, folder / "out", lake=lake, reasoning=True, keep_duplicates=True)
        assert report.records == len(talks)
        read = etl.ingest([folder / "out"], lake=folder / "back", strict=True)
        assert not read.failed()
        assert not read.rejects()
        before, after = rows(lake), rows(folder / "back")
        assert Counter(told(found["messages"]) for found in after) == Counter(
            told(found["messages"]) for found in before
        )
        assert {found["tools"] and json.loads(found["tools"])[0]["function"]["name"] for found in after} == {"tool_0"}
