"""Tool spans in transcripts, and what a row says where words were not captured."""

from __future__ import annotations

from typing import Any

import pytest

from etl.conversation import Conversation
from etl.normalise import FileMemory, Stream, normalise
from tests.adapters.traces import (
    asks,
    batch,
    chat,
    gives,
    ignored,
    rows_of,
    span,
    spoken,
    text,
    tool,
)

HI, AGENT = text("user", "Hi"), {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Desk"}
LOOK = asks("k1", "look", x=1)


def _flags(row: Conversation) -> set[str]:
    assert row.flags is not None
    return row.flags


def test_a_tool_span_gives_result_duration_and_error() -> None:
    answer = [
        {"role": "assistant", "parts": [*LOOK["parts"], *asks("k2", "book", n=2)["parts"], *asks("k3", "pay")["parts"]]}
    ]
    spans = [
        chat(2, 1, 2, [HI], answer),
        tool(3, 2.1, 2.6, "look", call_id="k1", result="found"),
        tool(4, 2.2, 2.3, "book", call_id="k2", error="full"),
    ]
    (row,) = rows_of(batch(spans[::-1]))
    assert spoken(row)[2:] == [("tool", "found"), ("tool", "full")]
    assert [(message.call_id, message.failed, message.duration_ms) for message in row.messages[2:]] == [
        ("k1", None, 500.0),
        ("k2", True, pytest.approx(100.0)),
    ]
    made = normalise(row, Stream("s", "otlp", 1, "/a"), FileMemory())
    assert [(step.status, step.duration_ms) for step in made.steps] == [
        ("ok", 500.0),
        ("error", pytest.approx(100.0)),
        ("missing", None),
    ]
    assert {"incomplete", "missing_result"} <= set(made.flags)


def test_tools_without_ids_are_told_by_name_and_arguments() -> None:
    answer = [{"role": "assistant", "parts": [*asks(None, "look", x=1)["parts"], *asks(None, "look", x=2)["parts"]]}]
    spans = [
        chat(2, 1, 2, [HI], answer),
        tool(3, 2.1, 2.2, "look", arguments={"x": 2}, result="two"),
        tool(4, 2.3, 2.4, "look", arguments={"x": 1}, result="one"),
    ]
    (row,) = rows_of(batch(spans))
    durations = {call.arguments["x"]: call.duration_ms for call in row.messages[1].calls or ()}
    assert durations == {1: pytest.approx(100.0), 2: pytest.approx(100.0)}
    assert {message.content for message in row.messages[2:]} == {"one", "two"}


def test_where_nothing_was_captured_the_row_says_so() -> None:
    spans = [
        span(1, 0, 9, AGENT),
        chat(2, 1, 2, None, None, gen_ai__response__finish_reasons=["tool_calls"]),
        tool(3, 2.1, 2.2, "look", call_id="k1"),
        chat(4, 3, 4, None, None, gen_ai__response__finish_reasons=["stop"]),
    ]
    (row,) = rows_of(batch(spans))
    assert spoken(row) == [("assistant", "look(null)"), ("tool", ""), ("assistant", "")]
    assert "content_not_captured" in _flags(row)
    assert row.usage is not None
    assert row.usage.input_tokens == 20
    made = normalise(row, Stream("s", "otlp", 1, "/a"), FileMemory())
    assert made.prompt is None
    assert [(step.tool, step.status) for step in made.steps] == [("look", "ok")]


def test_the_words_of_an_agent_go_to_its_silent_models() -> None:
    words = {
        "gen_ai.input.messages": f"[{_json(HI)}]",
        "gen_ai.output.messages": f"[{_json(text('assistant', 'Done.'))}]",
    }
    spans = [
        span(1, 0, 9, {**AGENT, **words}),
        chat(2, 1, 2, None, None),
        tool(3, 2.1, 2.2, "look", call_id="k1", arguments={"x": 1}, result="found"),
        chat(4, 3, 4, None, None),
    ]
    (row,) = rows_of(batch(spans))
    assert spoken(row) == [
        ("user", "Hi"),
        ("assistant", 'look({"x": 1})'),
        ("tool", "found"),
        ("assistant", "Done."),
    ]


def _json(value: Any) -> str:
    import json

    return json.dumps(value)


def test_tools_without_any_model_are_a_row_of_their_own() -> None:
    (row,) = rows_of(batch([tool(3, 2, 3, "look", call_id="k1", arguments={"x": 1}, result="found")]))
    assert spoken(row) == [("assistant", 'look("{\\"x\\": 1}")'), ("tool", "found")]
    assert {"content_not_captured", "ambiguous_parent"} <= _flags(row)


def test_spans_of_no_model_hold_the_tree_and_are_ignored_by_name() -> None:
    spans = [
        span(7, 0, 9, {"http.request.method": "POST"}),
        span(1, 0.1, 8.9, AGENT, 7),
        chat(2, 1, 2, [HI], [text("assistant", "Hello.")]),
        span(8, 1.1, 1.9, {"db.system": "demo"}, 2),
    ]
    (row,) = rows_of(batch(spans))
    assert "ambiguous_parent" not in _flags(row)
    assert ignored(batch(spans)) == {"not_a_model_span": 2}
    (orphan,) = rows_of(batch(spans[1:]))
    assert "ambiguous_parent" in _flags(orphan)
    assert orphan.extra is not None
    assert orphan.extra["missing_parents"] == ["0000000000000007"]


def test_a_tool_span_with_an_id_of_its_own_is_known_by_name_and_arguments() -> None:
    spans = [
        chat(2, 1, 2, [HI], [LOOK]),
        tool(3, 2.1, 2.2, "look", call_id="run-7", arguments={"x": 1}, result="found"),
    ]
    (row,) = rows_of(batch(spans))
    assert spoken(row) == [("user", "Hi"), ("assistant", 'look({"x": 1})'), ("tool", "found")]
    assert row.messages[2].call_id == "k1"
    others = [
        chat(2, 1, 2, [HI], [LOOK]),
        tool(3, 2.1, 2.2, "look", call_id="run-7", arguments={"x": 2}, result="found"),
    ]
    (row,) = rows_of(batch(others))
    assert [message.role for message in row.messages] == ["user", "assistant", "assistant", "tool"]


def test_an_agent_of_which_nothing_else_was_logged_is_a_row() -> None:
    (row,) = rows_of(batch([span(1, 0, 9, {**AGENT, "gen_ai.request.model": "m-1"})]))
    assert (row.agent, row.model, spoken(row)) == ("Desk", "m-1", [("assistant", "")])
    assert "content_not_captured" in _flags(row)
    chain = span(1, 0, 9, {"openinference.span.kind": "CHAIN"})
    assert rows_of(batch([chain])) == []


def test_an_exception_that_was_handled_is_no_error() -> None:
    handled = {"name": "exception", "attributes": [{"key": "exception.message", "value": {"stringValue": "retry me"}}]}
    asked = chat(2, 1, 2, [HI], [text("assistant", "Hello.")])
    (fine,) = rows_of(batch([{**asked, "events": [handled]}]))
    assert (fine.status, fine.error) == (None, None)
    (broken,) = rows_of(batch([{**asked, "events": [handled], "status": {"code": 2}}]))
    assert (broken.status, broken.error) == ("error", "retry me")


@pytest.mark.parametrize("given", [None, "raw-1"])
def test_results_come_under_the_ids_that_the_history_gives_to_calls(given: str | None) -> None:
    first = chat(2, 1, 2, [HI], [asks(given, "look", x=1)])
    second = chat(3, 3, 4, [HI, asks("renamed", "look", x=1), gives("renamed", "found")], [text("assistant", "Here.")])
    (row,) = rows_of(batch([first, second]))
    made = normalise(row, Stream("s", "otlp", 1, "/a"), FileMemory())
    assert [(step.call_id, step.status, step.result_index) for step in made.steps] == [(given or "renamed", "ok", 2)]
    assert not {"orphan_result", "missing_result"} & set(made.flags)


def test_results_of_calls_without_ids_stay_with_the_call_whose_arguments_they_had() -> None:
    answer = [{"role": "assistant", "parts": [*asks(None, "look", x=1)["parts"], *asks(None, "look", x=2)["parts"]]}]
    spans = [
        chat(2, 1, 2, [HI], answer),
        tool(3, 2, 3, "look", arguments={"x": 2}, result="two"),
        tool(4, 2.5, 3, "look", arguments={"x": 1}, result="one"),
    ]
    (row,) = rows_of(batch(spans))
    made = normalise(row, Stream("s", "otlp", 1, "/a"), FileMemory())
    results = [row.messages[step.result_index].content for step in made.steps if step.result_index is not None]
    assert [step.arguments for step in made.steps] == ['{"x":1}', '{"x":2}']
    assert results == ["one", "two"]


def test_tools_that_ran_before_a_model_stand_in_their_order_after_what_was_asked() -> None:
    ran = [tool(number, number, number + 0.5, f"t{number}", result="r") for number in (3, 4, 5)]
    asked, said = [text("system", "Be brief."), text("user", "Look.")], [text("assistant", "Done.", "stop")]
    (row,) = rows_of(*reversed(ran), chat(2, 9, 10, asked, said))
    assert [message.role for message in row.messages[:2]] == ["system", "user"]
    calls = [call.name for message in row.messages for call in message.calls or ()]
    assert calls == ["t3", "t4", "t5"]
    assert row.messages[-1].content == "Done."
