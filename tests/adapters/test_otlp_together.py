"""Calls that one answer made together, and a later request tells one after the other: one conversation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.traces import asks, chat, gives, rows_of, text

A, B = asks("a", "greet", who="Bob"), asks("b", "part", who="Bob")
BOTH = {"role": "assistant", "parts": [*A["parts"], *B["parts"]]}
ASKED, DONE = text("user", "Greet Bob and say goodbye."), text("assistant", "Hello and bye!", "stop")


@pytest.mark.parametrize(
    "later",
    [
        [A, gives("a", "Hello"), B, gives("b", "Bye")],
        [A, gives(None, "Hello"), B, gives(None, "Bye")],
        [B, gives("b", "Bye"), A, gives("a", "Hello")],
        [A, B, gives("a", "Hello"), gives("b", "Bye")],
        [BOTH, gives("a", "Hello"), gives("b", "Bye")],
    ],
)
def test_calls_told_apart_are_those_of_the_answer(later: list[dict[str, Any]]) -> None:
    (row,) = rows_of(chat(2, 0, 1, [ASKED], [BOTH]), chat(3, 2, 3, [ASKED, *later], [DONE]))
    assert [message.role for message in row.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert {call.name for call in row.messages[1].calls or ()} == {"greet", "part"}
    results = {message.call_id: message.content for message in row.messages if message.role == "tool"}
    assert results == {"a": "Hello", "b": "Bye"}


def test_a_turn_in_between_stays_where_it_was() -> None:
    told = [A, gives("a", "Hello"), text("user", "Go on."), B, gives("b", "Bye")]
    rows = rows_of(chat(2, 0, 1, [ASKED], [BOTH]), chat(3, 2, 3, [ASKED, *told], [DONE]))
    assert [message.content for message in rows[-1].messages if message.role == "user"][-1] == "Go on."
