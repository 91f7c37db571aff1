"""Traces into transcripts: told once, in order, with branches and sub-agents as rows of their own."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.adapters.otlp import Otlp
from etl.conversation import Conversation
from etl.normalise import FileMemory, Stream, normalise
from tests.adapters.traces import (
    TRACE,
    asks,
    batch,
    chat,
    gives,
    log,
    logs,
    parsed,
    rows_of,
    span,
    spoken,
    stored,
    text,
    tool,
)

HI, AGENT = text("user", "Hi"), {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Desk"}
LOOK = asks("k1", "look", x=1)


def _flags(row: Conversation) -> set[str]:
    assert row.flags is not None
    return row.flags


def test_a_history_that_every_call_repeats_is_told_once() -> None:
    first = chat(2, 1, 2, [HI], [{**LOOK, "finish_reason": "tool_call"}])
    second = chat(3, 3, 4, [HI, LOOK, gives("k1", "found")], [text("assistant", "Here.", "stop")])
    third = chat(
        4,
        5,
        6,
        [HI, LOOK, gives("k1", "found"), text("assistant", "Here. "), text("user", "yes")],
        [text("assistant", "Ok.")],
    )
    fourth_history = [HI, LOOK, gives("k1", "found"), text("assistant", "Here."), text("user", "yes")]
    fourth_history += [text("assistant", "Ok."), text("user", "yes")]
    fourth = chat(5, 7, 8, fourth_history, [text("assistant", "Ok.")])
    (row,) = rows_of(batch([third, first]), batch([fourth, second]))
    assert spoken(row) == [
        ("user", "Hi"),
        ("assistant", 'look({"x": 1})'),
        ("tool", "found"),
        ("assistant", "Here."),
        ("user", "yes"),
        ("assistant", "Ok."),
        ("user", "yes"),
        ("assistant", "Ok."),
    ]
    assert row.usage is not None
    assert (row.usage.input_tokens, row.usage.output_tokens) == (40, 8)
    assert [message.finish_reason for message in row.messages] == [
        None,
        "tool_call",
        None,
        "stop",
        None,
        None,
        None,
        None,
    ]
    assert row.branch == ""


def test_an_answer_seen_only_in_the_next_history_belongs_to_its_call() -> None:
    silent = chat(2, 1, 2, [HI], None, gen_ai__response__id="resp_1")
    after = chat(3, 3, 4, [HI, text("assistant", "Hello."), text("user", "Bye")], [text("assistant", "Bye.")])
    (row,) = rows_of(batch([silent, after]))
    assert [text for _, text in spoken(row)] == ["Hi", "Hello.", "Bye", "Bye."]
    assert row.messages[1].id == "resp_1"
    assert row.messages[1].input_tokens == 10
    assert "content_not_captured" not in _flags(row)


def test_turns_that_no_call_gave_are_told_of() -> None:
    history = [HI, text("assistant", "Hello."), text("user", "Bye")]
    after = chat(3, 3, 4, history, [text("assistant", "Bye.")])
    (alone,) = rows_of(batch([after]))
    assert "unlogged_turns" in _flags(alone)
    (whole,) = rows_of(batch([after, chat(2, 1, 2, [HI], [text("assistant", "Hello.")])]))
    (silent,) = rows_of(batch([after, chat(2, 1, 2, [HI], None)]))
    heir = chat(4, 5, 6, history, [text("assistant", "Farewell.")])
    owner, branch = rows_of(batch([after, chat(2, 1, 2, [HI], [text("assistant", "Hello.")]), heir]))
    assert not any("unlogged_turns" in _flags(row) for row in (whole, silent, owner, branch))


def test_an_agent_that_was_handed_a_call_did_not_make_it() -> None:
    handed = asks("k1", "transfer_to_boats")
    first = chat(2, 1, 2, [text("system", "Be a guide."), HI], [handed])
    second = chat(
        3, 3, 4, [text("system", "Know boats."), HI, handed, gives("k1", "boats")], [text("assistant", "Hi.")]
    )
    one, other = rows_of(batch([first, second]))
    assert "unlogged_turns" not in _flags(one)
    assert "unlogged_turns" in _flags(other)


def test_another_answer_to_the_same_history_is_a_branch() -> None:
    first = chat(2, 1, 2, [HI], [text("assistant", "Hello.")])
    again = chat(3, 3, 4, [HI], [text("assistant", "Welcome!")])
    on = chat(4, 5, 6, [HI, text("assistant", "Welcome!"), text("user", "Bye")], [text("assistant", "Bye.")])
    left, kept = rows_of(batch([on, again, first]))
    assert [text for _, text in spoken(left)] == ["Hi", "Hello."]
    assert [text for _, text in spoken(kept)] == ["Hi", "Welcome!", "Bye", "Bye."]
    assert "abandoned" in _flags(left)
    assert "abandoned" not in _flags(kept)
    assert left.group == kept.group is not None
    assert (left.sample_index, kept.sample_index) == (0, 1)
    assert [message.inherited for message in kept.messages] == [True, False, False, False]
    assert kept.parent is not None
    assert (kept.parent.key, kept.parent.branch) == (TRACE, "")
    assert left.usage is not None
    assert left.usage.input_tokens == 10


def test_a_run_repeated_in_one_trace_goes_on_from_its_own_calls() -> None:
    """One question run three times, with answers that read alike: after one another, told apart by time; at once,
    told apart by the ids of calls where there are any, and else no call is left without what came back.
    """
    for ids, starts in (
        (("k1", "k2", "k3"), ((1, 2), (3, 4), (5, 6))),
        (("k1", "k2", "k3"), ((1, 4), (2, 6), (3, 5))),
        ((None, None, None), ((1, 2), (3, 4), (5, 6))),
        ((None, None, None), ((1, 4), (2, 5), (3, 6))),
    ):
        spans = []
        for number, (call_id, (first, then)) in enumerate(zip(ids, starts, strict=True)):
            asked, history = asks(call_id, "look", x=1), [HI, asks(call_id, "look", x=1), gives(call_id, "found")]
            spans.append(chat(10 + number, first, first + 0.5, [HI], [asked]))
            spans.append(chat(20 + number, then, then + 0.5, history, [text("assistant", "Here.")]))
        random.Random(7).shuffle(spans)
        rows = rows_of(batch(spans))
        assert [[message.role for message in row.messages] for row in rows] == [
            ["user", "assistant", "tool", "assistant"]
        ] * 3
        assert len({row.group for row in rows}) == 1
        if ids[0] is not None:
            assert sorted(str(row.messages[1].calls[0].id) for row in rows if row.messages[1].calls) == [
                "k1",
                "k2",
                "k3",
            ]
            assert all(row.messages[1].calls and row.messages[1].calls[0].id == row.messages[2].call_id for row in rows)


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({}, "unknown"),
        ({"gen_ai.usage.input_tokens": 9}, "unknown"),
        ({"gen_ai.usage.output_tokens": 3}, "completed"),
        ({"gen_ai.response.id": "resp_1"}, "completed"),
        ({"gen_ai.response.finish_reasons": ["stop"]}, "completed"),
        ({"gen_ai.response.finish_reasons": ["length"]}, "truncated"),
    ],
)
def test_a_call_is_complete_where_something_says_that_an_answer_came(told: dict[str, Any], status: str) -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "m", **told}
    (row,) = rows_of(batch([span(2, 1, 2, attributes)]))
    assert "content_not_captured" in _flags(row)
    made = normalise(row, Stream("s", "otlp", 1, "/x"), FileMemory())
    assert (made.status, "incomplete" in made.flags) == (status, status == "unknown")


def test_choices_are_branches_and_their_usage_counts_once() -> None:
    choices = [text("assistant", "One.", "stop"), text("assistant", "Two.", "stop")]
    first, second = rows_of(batch([chat(2, 1, 2, [HI], choices)]))
    assert [spoken(row)[-1][1] for row in (first, second)] == ["One.", "Two."]
    assert (first.sample_index, second.sample_index) == (0, 1)
    assert first.usage is not None
    assert second.usage is None
    assert "abandoned" not in _flags(first)


def test_a_call_that_failed_and_was_made_again_is_no_turn() -> None:
    failed = chat(2, 1, 1.5, [HI], None, usage=None, error="429: slow down")
    (row,) = rows_of(batch([failed, chat(3, 2, 3, [HI], [text("assistant", "Hello.")])]))
    assert spoken(row) == [("user", "Hi"), ("assistant", "Hello.")]
    assert row.error is None
    assert row.messages[0].extra is not None
    assert row.messages[0].extra["attempts"][0]["error"] == "429: slow down"
    (alone,) = rows_of(batch([failed]))
    assert (alone.status, alone.error, spoken(alone)) == ("error", "429: slow down", [("user", "Hi")])


def test_other_instructions_are_another_conversation() -> None:
    spans = [
        chat(2, 1, 2, [text("system", "Sell."), HI], [text("assistant", "Buy!")]),
        chat(3, 1.5, 2.5, [text("system", "Guard."), HI], [text("assistant", "Safe.")]),
    ]
    main, other = rows_of(batch(spans))
    assert (spoken(main)[0][1], spoken(other)[0][1]) == ("Sell.", "Guard.")
    assert main.branch == ""
    assert other.branch
    assert other.parent is None
    assert not any(message.inherited for message in other.messages)


def test_a_sub_agent_is_a_row_below_the_call_that_sent_it() -> None:
    spans = [
        span(1, 0, 9, AGENT),
        chat(2, 1, 2, [HI], [LOOK]),
        tool(3, 2.1, 5, "look", call_id="k1", result="rain"),
        span(4, 2.2, 4.9, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Weather"}, 3),
        chat(5, 2.3, 4.8, [text("user", "Weather?")], [text("assistant", "rain")], parent=4),
        chat(6, 6, 8, [HI, LOOK, gives("k1", "rain")], [text("assistant", "Stay in.")]),
    ]
    main, sub = rows_of(batch(spans[::-1]))
    assert (main.agent, sub.agent) == ("Desk", "Weather")
    assert sub.parent is not None
    assert sub.parent.branch == main.branch == ""
    assert spoken(main)[-1] == ("assistant", "Stay in.")
    assert spoken(sub) == [("user", "Weather?"), ("assistant", "rain")]


def test_a_parent_that_sums_its_children_is_not_added_to_them() -> None:
    total = {**AGENT, "gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 4}
    outer = chat(2, 0.5, 4.5, [HI], [text("assistant", "Hello.")], usage=(20, 4))
    inner = chat(3, 1, 2, [HI], [text("assistant", "Hello.")], parent=2, usage=(20, 4))
    (row,) = rows_of(batch([span(1, 0, 5, total), outer, inner]))
    assert row.usage is not None
    assert (row.usage.input_tokens, row.usage.output_tokens) == (20, 4)
    assert spoken(row) == [("user", "Hi"), ("assistant", "Hello.")]


def test_two_spans_of_one_response_count_once() -> None:
    answer = [text("assistant", "Hello.")]
    by_id = [chat(n, n, n + 1, [HI], answer, gen_ai__response__id="resp_1") for n in (2, 3)]
    by_time = [chat(2, 1, 4, [HI], answer), chat(3, 2, 3, [HI], answer)]
    for spans in (by_id, by_time):
        (row,) = rows_of(batch(spans))
        assert row.usage is not None
        assert row.usage.input_tokens == 10
    apart = [chat(2, 1, 2, [HI], answer), chat(3, 3, 4, [HI], answer)]
    assert len(rows_of(batch(apart))) == 2


def test_a_session_spans_traces_and_a_trace_that_half_names_it_stays_whole() -> None:
    other = "6a2d1b4cae3f5d809b7c2e1f304b5c6d"
    spans = [
        chat(2, 1, 2, [HI], [LOOK], gen_ai__conversation__id="visit"),
        tool(3, 2.1, 2.2, "look", call_id="k1", result="found"),
        chat(4, 3, 4, [HI, LOOK, gives("k1", "found")], [text("assistant", "Here.")]),
        chat(
            5,
            60,
            61,
            [HI, LOOK, gives("k1", "found"), text("assistant", "Here."), text("user", "Thanks")],
            [text("assistant", "Bye.")],
            trace=other,
            gen_ai__conversation__id="visit",
        ),
    ]
    keys = {event.key for event in stored(parsed(batch(spans)))}
    assert keys == {"visit", TRACE}
    (row,) = rows_of(batch(spans))
    assert row.native_id == "visit"
    assert [text for _, text in spoken(row)][-3:] == ["Here.", "Thanks", "Bye."]


def test_an_unfinished_copy_of_a_span_gives_way_to_the_whole_one() -> None:
    whole = chat(2, 1, 2, [HI], [text("assistant", "Hello.")], parent=None)
    begun = {key: value for key, value in whole.items() if key != "endTimeUnixNano"} | {"attributes": []}
    (row,) = rows_of(batch([begun, whole]))
    assert spoken(row) == [("user", "Hi"), ("assistant", "Hello.")]
    assert len(row.records) == 2


def test_evaluations_become_judgments_and_unknown_attributes_are_kept() -> None:
    evaluation = {
        "name": "gen_ai.evaluation.result",
        "attributes": [
            {"key": "gen_ai.evaluation.name", "value": {"stringValue": "kind"}},
            {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 0.5}},
        ],
    }
    asked = chat(2, 1, 2, [HI], [text("assistant", "Hello.")], shop__floor="third floor, left")
    (row,) = rows_of(batch([{**asked, "events": [evaluation], "oddKey": [1]}]))
    assert row.judgments is not None
    assert [(verdict.name, verdict.value) for verdict in row.judgments] == [("kind", 0.5)]
    extra = row.messages[1].extra
    assert extra is not None
    assert extra["attributes"] == {"shop.floor": "third floor, left"}
    assert extra["oddKey"] == [1]
    assert extra["resource"] == {"service.name": "desk"}


def test_messages_as_log_records_join_their_span_or_stand_alone() -> None:
    records = [
        log(2, 1.0, "gen_ai.user.message", {"content": "Hi"}),
        log(2, 2.0, "gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "Hello."}}),
    ]
    (alone,) = rows_of(logs(records[::-1]))
    (joined,) = rows_of(batch([chat(2, 1, 2, None, None, parent=None)]), logs(records))
    assert spoken(alone) == spoken(joined) == [("user", "Hi"), ("assistant", "Hello.")]
    assert (alone.model, joined.model) == (None, "m-1")
    assert len(joined.records) == 3


_HISTORIES = [
    ([HI], text("assistant", "A")),
    ([HI], text("assistant", "B")),
    ([HI, text("assistant", "A"), text("user", "more")], text("assistant", "C")),
    ([HI, text("assistant", "X"), text("user", "more")], LOOK),
    ([HI, text("assistant", "A"), text("user", "more"), text("assistant", "C"), HI], text("assistant", "A")),
    ([text("system", "s"), HI], LOOK),
    ([text("system", "s"), HI, LOOK, gives("k1", "r")], text("assistant", "D")),
    ([], text("assistant", "E")),
    ([HI], None),
]


@given(
    st.lists(st.tuples(st.integers(0, len(_HISTORIES) - 1), st.integers(0, 6), st.booleans()), min_size=1, max_size=9),
    st.randoms(use_true_random=False),
)
def test_rows_depend_on_the_set_of_spans_alone(calls: list[tuple[int, int, bool]], shuffle: random.Random) -> None:
    spans = [span(1, 0, 20, AGENT)]
    for number, (which, begin, fails) in enumerate(calls, 2):
        history, answer = _HISTORIES[which]
        spans.append(
            chat(number, begin, begin + 1, history, None if answer is None else [answer], error="no" if fails else None)
        )
        spans.append(tool(number + 100, begin + 1, begin + 2, "look", call_id="k1", result="r"))
    events = stored(parsed(batch(spans)))
    once, again = _said(events), list(events)
    shuffle.shuffle(again)
    assert _said(again) == once
    names = [name for name, _ in once]
    assert len(set(names)) == len(names)
    assert sum(usage for _, (_, usage) in once) <= 10 * len(calls)


def _said(events: list[Any]) -> list[tuple[str, tuple[str, int]]]:
    rows = []
    for outcome in Otlp().assemble(events):
        if isinstance(outcome, Conversation):
            row = normalise(outcome, Stream("s", "otlp", 1, "/a"), FileMemory())
            rows.append((row.rollout_id, (row.row_hash, int((row.usage or (0,))[0] or 0))))
    return sorted(rows)


def test_a_branch_keeps_its_name_when_earlier_spans_arrive() -> None:
    spans = [
        chat(2, 1, 2, [HI], [LOOK]),
        chat(3, 3, 4, [HI, LOOK, gives("k1", "r")], [text("assistant", "Done.")]),
        chat(4, 1.5, 2.5, [text("system", "s"), HI], [text("assistant", "1")], parent=9),
        chat(5, 5, 6, [text("system", "s"), HI, text("assistant", "1"), HI], [text("assistant", "2")], parent=9),
    ]
    whole = {(row.native_id, row.branch) for row in rows_of(batch(spans))}
    for part in itertools.combinations(spans, 3):
        if part[0] is spans[0]:
            assert {(row.native_id, row.branch) for row in rows_of(batch(part))} <= whole
