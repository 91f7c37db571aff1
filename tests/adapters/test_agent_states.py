"""States of agent frameworks: what is one conversation, what names it, and what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl.adapter import adapter_named
from etl.detection import detect
from etl.errors import SourceError
from tests.contract.harness import Reading, read

FORMAT = adapter_named("agent_states")
UUID = "0c9d1e2f-1f2a-4b3c-8d4e-5f6a7b8c9d0e"
HI = {"type": "human", "content": "Hi", "id": UUID}
YO = {"type": "ai", "content": "Yo", "usage_metadata": {"input_tokens": 9, "output_tokens": 1}}


def _read(*values: Any) -> Reading:
    return read("".join(json.dumps(value) + "\n" for value in values).encode(), FORMAT)


def _talk(reading: Reading) -> list[list[tuple[str, str]]]:
    return [[(message["role"], message["content"]) for message in row["messages"]] for row in reading.rows]


def test_a_state_that_has_grown_is_the_same_conversation() -> None:
    before, after = _read({"messages": [HI]}), _read({"messages": [HI, YO, {"type": "human", "content": "More"}]})
    assert before.keys() == after.keys()


def test_two_threads_of_one_name_without_ids_are_two() -> None:
    config = {"configurable": {"thread_id": "1"}}
    one, other = ({"values": {"messages": [{"type": "human", "content": text}]}, "config": config} for text in "ab")
    assert not set(_read(one).keys()) & set(_read(other).keys())


def test_of_several_states_of_a_thread_the_one_that_says_most_counts() -> None:
    states = [
        {"values": {"messages": listed}, "config": {"configurable": {"thread_id": "t"}}}
        for listed in ([HI, YO], [HI], [HI, YO])
    ]
    reading = _read(*states)
    assert _talk(reading) == [[("user", "Hi"), ("assistant", "Yo")]]
    assert reading.ignored == {"earlier_state": 2}


def test_usage_counts_what_was_cached_too() -> None:
    cached = {"input_tokens": 9, "output_tokens": 1, "input_token_details": {"cache_read": 4}}
    (row,) = _read({"messages": [HI, {**YO, "usage_metadata": cached}, YO]}).rows
    assert (row["usage"]["input_tokens"], row["usage"]["cached_tokens"]) == (18, 4)


def test_junk_among_messages_that_stand_alone_is_rejected_by_itself() -> None:
    reading = _read(HI, None, {"type": "purple"}, YO)
    assert _talk(reading) == [[("user", "Hi"), ("assistant", "Yo")]]
    assert reading.rejects == {"unknown_message": 2}


def test_agents_of_a_file_are_rows_of_their_own() -> None:
    agents = [{"id": f"agent-{n}", "messages": [{"id": "message-0", "role": "user", "content": f"{n}"}]} for n in "ab"]
    assert _talk(_read({"agents": agents, "blocks": []})) == [[("user", "a")], [("user", "b")]]


@pytest.mark.parametrize(
    "value",
    [
        {
            "message": {"role": "user", "content": [{"text": "Hi"}]},
            "message_id": 0,
            "created_at": "2026-05-01T08:00:00Z",
        },
        {"items": [{"type": "pencil", "price": 3}], "id": "order-1"},
        {"messages": [{"type": "warning", "content": "disk full"}]},
        [{"type": "system", "content": "boot"}, {"type": "system", "content": "halt"}],
    ],
)
def test_what_is_no_conversation_of_a_framework_is_not_taken_for_one(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(SourceError):
        detect(path)
