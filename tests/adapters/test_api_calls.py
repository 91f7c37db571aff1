"""Calls that repeat their history: which are one conversation, which a branch, which strangers."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.api_lines import API, agent, called, chat, events, rows, say, texts
from tests.examples import examples

SYSTEM, ASK = say("system", "Be brief."), say("user", "Where is the key?")
LOOK, FOUND = called("c1", place="shelf"), say("tool", "a key", tool_call_id="c1")
THERE = say("assistant", "On the shelf.")
THREE = [
    chat("r1", [SYSTEM, ASK], LOOK, at=0),
    chat("r2", [SYSTEM, ASK, LOOK, FOUND], THERE, at=5),
    chat("r3", [SYSTEM, ASK, LOOK, FOUND, THERE, say("user", "Thanks.")], say("assistant", "Any time."), at=60),
]


def test_calls_that_repeat_each_other_are_one_row() -> None:
    (row,) = rows(events(THREE))
    assert texts(row) == ["Be brief.", "Where is the key?", "", "a key", "On the shelf.", "Thanks.", "Any time."]
    assert (row["n_records"], row["n_steps"], row["status"], row["flags"]) == (3, 1, "completed", [])
    assert row["usage"]["input_tokens"] == 30
    assert [info["id"] for info in row["message_info"] if info["id"]] == ["r1", "r2", "r3"]


@examples(40)
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_the_set_of_calls_decides(seed: int, dice: random.Random) -> None:
    calls = agent(seed)
    whole = rows(events(calls))
    shuffled = [*calls, *dice.sample(calls, 2)]
    dice.shuffle(shuffled)
    cut = dice.randrange(len(shuffled))
    files = [events(part, uri=f"/logs/{n}.jsonl") for n, part in enumerate((shuffled[:cut], shuffled[cut:]))]
    dice.shuffle(files)
    again = rows([event for file in files for event in file])
    assert sorted(row["row_hash"] for row in again) == sorted(row["row_hash"] for row in whole)


@examples(40)
@given(st.integers(0, 10_000))
def test_nothing_is_trained_twice_and_nothing_is_lost(seed: int) -> None:
    calls = agent(seed)
    found = rows(events(calls))
    own = [
        info["id"]
        for row in found
        for message, info in zip(row["messages"], row["message_info"], strict=True)
        if message["role"] == "assistant" and not info["inherited"] and info["id"]
    ]
    answers = [call["response"]["id"] for call in calls for _ in call["response"].get("choices", ())]
    assert sorted(own) == sorted(answers)
    names = {row["rollout_id"] for row in found}
    assert len(names) == len(found)
    assert all(row["parent_id"] is None or row["parent_id"] in names for row in found)
    assert sum(row["usage"]["output_tokens"] for row in found if row["usage"]) == sum(
        "id" in c["response"] for c in calls
    )


def test_an_answer_given_again_is_a_branch_with_the_prefix_inherited() -> None:
    again = chat("r2b", THREE[1]["request"]["messages"], say("assistant", "Under it."), at=9)
    main, branch = sorted(rows(events([*THREE, again])), key=lambda row: -row["n_records"])
    assert texts(branch) == ["(Be brief.)", "(Where is the key?)", "()", "(a key)", "Under it."]
    assert branch["parent_id"] == main["rollout_id"]
    assert (branch["prompt_len"], branch["flags"]) == (4, ["abandoned"])
    assert branch["group_id"] == main["group_id"] is not None
    assert {branch["sample_index"], main["sample_index"]} == {0, 1}


def test_a_second_choice_that_is_gone_on_with() -> None:
    two = chat("n2", [ASK], say("assistant", "Shelf."), say("assistant", "Hook."), at=0)
    on = chat("n3", [ASK, say("assistant", "Hook."), say("user", "Right.")], say("assistant", "Good."), at=5)
    found = rows(events([two, on]))
    assert sorted(map(len, map(texts, found))) == [2, 4]
    main = max(found, key=lambda row: len(row["messages"]))
    assert texts(main) == ["Where is the key?", "Hook.", "Right.", "Good."]
    assert {row["sample_index"] for row in found} == {0, 1}
    assert sum(row["usage"]["output_tokens"] for row in found if row["usage"]) == 2


def test_an_answer_thrown_away_and_asked_for_again() -> None:
    bad, complaint = say("assistant", "Perhaps."), say("user", "Call a tool!")
    second = called("c2", place="hook")
    calls = [
        THREE[0],
        chat("bad", [SYSTEM, ASK, LOOK, FOUND], bad, at=5),
        chat("good", [SYSTEM, ASK, LOOK, FOUND, bad, complaint], second, at=8),
        chat("end", [SYSTEM, ASK, LOOK, FOUND, second, say("tool", "no", tool_call_id="c2")], THERE, at=12),
    ]
    for order in (calls, calls[::-1]):
        main, left = sorted(rows(events(order)), key=lambda row: "abandoned" in row["flags"])
        assert texts(main) == ["Be brief.", "Where is the key?", "", "a key", "", "no", "On the shelf."]
        assert (main["flags"], main["n_records"], main["usage"]["input_tokens"]) == (["reasked"], 3, 30)
        assert [info["id"] for info in main["message_info"] if info["id"]] == ["r1", "good", "end"]
        assert json.loads(main["message_info"][4]["extra"])["instead_of"] == "bad"
        assert texts(left)[4:] == ["Perhaps.", "Call a tool!"]
        assert (left["parent_id"], left["n_records"], left["prompt_len"]) == (main["rollout_id"], 1, 4)
        assert left["usage"]["input_tokens"] == 10


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("stripped", [True, False])
def test_a_first_answer_asked_for_again(timed: bool, stripped: bool) -> None:
    two = [*called("c0", place="shelf")["tool_calls"], *called("c9", place="hook")["tool_calls"]]
    bad = say("assistant", "", tool_calls=two) if stripped else say("assistant", "Perhaps.")
    shown, complaint, good = say("assistant", bad["content"]), say("user", "One tool!"), called("c1", place="hook")
    calls = [
        chat("bad", [SYSTEM, ASK], bad, at=0),
        chat("good", [SYSTEM, ASK, shown, complaint], good, at=2),
        chat("end", [SYSTEM, ASK, good, say("tool", "yes", tool_call_id="c1")], THERE, at=4),
    ]
    if not timed:
        for call in calls:
            del call["timestamp"]
    main, left = sorted(rows(events(calls)), key=lambda row: "abandoned" in row["flags"] or len(row["messages"]) == 4)
    assert texts(main) == ["Be brief.", "Where is the key?", "", "yes", "On the shelf."]
    assert (main["flags"], main["usage"]["input_tokens"], main["n_steps"]) == (["reasked"], 20, 1)
    assert texts(left)[2:] == [bad["content"], "One tool!"]
    assert (left["parent_id"], left["n_steps"]) == (main["rollout_id"], 2 * stripped)
    assert ("edited_history" in left["flags"]) is stripped


def test_several_complaints_about_one_turn() -> None:
    bad = [say("assistant", f"Perhaps {number}.") for number in range(2)]
    complaint, good = say("user", "Call a tool!"), called("c2", place="hook")
    start = [SYSTEM, ASK, LOOK, FOUND]
    end = chat("end", [*start, good, say("tool", "no", tool_call_id="c2")], THERE, at=30)
    begin = [THREE[0], chat("b0", start, bad[0], at=5), chat("b1", [*start, bad[0], complaint], bad[1], at=6)]
    kept = chat("good", [*start, bad[0], complaint, bad[1], complaint], good, at=8)
    main, left = sorted(rows(events([*begin, kept, end])), key=lambda row: "abandoned" in row["flags"])
    assert texts(main)[4:] == ["", "no", "On the shelf."]
    assert texts(left)[4:] == ["Perhaps 0.", "Call a tool!", "Perhaps 1.", "Call a tool!"]
    latest = chat("good", [*start, bad[1], complaint], good, at=8)
    main, *branches = sorted(rows(events([*begin, latest, end])), key=lambda row: "abandoned" in row["flags"])
    assert texts(main)[4:] == ["", "no", "On the shelf."]
    assert [texts(row)[4:] for row in branches] == [["Perhaps 0.", "Call a tool!"], ["Perhaps 1.", "Call a tool!"]]
    assert sum(row["usage"]["output_tokens"] for row in [main, *branches]) == 5


def test_an_edited_answer_is_the_one_that_was_given() -> None:
    thought = say("assistant", "<think>Shelf or hook?</think>It hangs there, I am sure of it.")
    shown = say("assistant", "It hangs there, I am sure of it.")
    calls = [chat("a", [ASK], thought, at=0), chat("b", [ASK, shown, say("user", "Where?")], THERE, at=5)]
    (row,) = rows(events(calls))
    assert (row["flags"], row["n_records"], texts(row)[1]) == ([], 2, thought["content"])
    cut = say("assistant", "On the shelf, I am sure of it. Shall I look again, or is that all for today?")
    calls = [THREE[0], chat("c", [SYSTEM, ASK, LOOK, FOUND], cut, at=5)]
    on = [SYSTEM, ASK, LOOK, FOUND, say("assistant", "On the shelf, I am sure of it."), say("user", "Good.")]
    (row,) = rows(events([*calls, chat("d", on, THERE, at=9)]))
    assert (row["flags"], row["n_records"], texts(row)[4]) == (["edited_history"], 3, cut["content"])


def test_demonstrations_are_no_answers_asked_for_again() -> None:
    shown = [
        SYSTEM,
        say("user", "Is a cup a thing?"),
        say("assistant", "yes"),
        say("user", "Is up?"),
        say("assistant", "no"),
    ]
    calls = [
        chat(f"d{n}", [*shown, say("user", f"Is {n} a thing?")], say("assistant", "yes" if n % 2 else "no"), at=n)
        for n in range(4)
    ]
    found = rows(events(calls))
    assert [(row["n_records"], row["parent_id"], row["flags"]) for row in found] == [(1, None, ["unlogged_turns"])] * 4


def _lines(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls as an agent's own log: a request line, then a response line."""
    found: list[dict[str, Any]] = []
    for call in calls:
        found.append({"type": "request", "timestamp": call["timestamp"], "request_params": call["request"]})
        found.append({"type": "response", "timestamp": call["timestamp"], "response": call["response"]})
    return found


def test_lines_of_agents_at_once_and_of_requests_that_failed() -> None:
    one, two = chat("r1", [say("user", "One?")], THERE, at=0), chat("r2", [say("user", "Two?")], LOOK, at=0)
    asked1, answered1, asked2, answered2 = _lines([one, two])
    found = rows(events([asked1, asked2, answered1, answered2]))
    assert sorted((texts(row)[0], row["message_info"][1]["id"]) for row in found) == [("One?", "r1"), ("Two?", "r2")]
    assert all("ambiguous_parent" in row["flags"] for row in found)
    found = rows(events([asked1, asked2, answered2]))
    assert sorted((texts(row)[0], len(row["messages"])) for row in found) == [("One?", 1), ("Two?", 2)]


def test_lines_of_a_log_that_grows_between_request_and_response() -> None:
    lines = _lines(THREE)
    (row,) = rows(events(lines))
    assert (row["n_records"], row["source_line"], row["flags"]) == (6, 1, [])
    for cut in range(1, 6):
        grown = rows([*events(lines[:cut]), *events(lines)])
        assert [each["row_hash"] for each in grown] == [row["row_hash"]], cut


def test_two_runs_with_the_same_words_stay_two() -> None:
    again = [chat(f"s{n}", call["request"]["messages"], _answer(call), at=600 + 5 * n) for n, call in enumerate(THREE)]
    found = rows(events([*THREE, *again]))
    assert [row["n_records"] for row in found] == [3, 3]
    assert all(row["parent_id"] is None and row["group_id"] is None for row in found)


def _answer(call: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = call["response"]["choices"][0]["message"]
    return message


def test_requests_with_the_same_demonstrations_stay_apart() -> None:
    shown = [SYSTEM, say("user", "Where is the cup?"), say("assistant", "On the table.")]
    calls = [chat(f"d{n}", [*shown, say("user", f"Where is thing {n}?")], THERE, at=n) for n in range(3)]
    found = rows(events(calls))
    assert [row["n_records"] for row in found] == [1, 1, 1]
    assert all(row["parent_id"] is None and row["flags"] == ["unlogged_turns"] for row in found)


def test_users_are_never_one_conversation() -> None:
    calls = [{**call, "user_id": f"u{number % 2}"} for number, call in enumerate(THREE[:2])]
    assert [row["n_records"] for row in rows(events(calls))] == [1, 1]


def test_a_missing_middle_is_told() -> None:
    (first, last) = (
        rows(events([THREE[0], THREE[2]]))[:2] if len(rows(events([THREE[0], THREE[2]]))) == 2 else (None, None)
    )
    (row,) = [row for row in rows(events([THREE[0], THREE[2]])) if row["n_records"] == 2]
    assert first is last is None
    assert "unlogged_turns" in row["flags"]
    assert len(row["messages"]) == 7


def test_a_failure_is_a_row_and_the_next_call_goes_on() -> None:
    failed = chat("ignored", THREE[1]["request"]["messages"], at=3, status=529)
    main, error = sorted(rows(events([*THREE, failed])), key=lambda row: row["status"] == "error")
    assert (error["status"], error["error"], error["n_records"]) == ("error", "overloaded", 1)
    assert all(info["inherited"] for info in error["message_info"])
    assert (main["n_records"], main["flags"]) == (3, [])


def test_changed_details_do_not_part_calls() -> None:
    history = [
        say("system", "Be brief. It is 01:00."),
        say("user", "Where is the key? "),
        called("other", place="shelf"),
    ]
    call = chat("r2", [*history, say("tool", "a key", tool_call_id="other")], THERE, at=5)
    (row,) = rows(events([THREE[0], call]))
    assert row["n_records"] == 2
    assert json.loads(row["message_info"][4]["extra"])["system_texts"] == ["Be brief. It is 01:00."]


@pytest.mark.parametrize("poll_first", [False, True])
def test_a_background_response_polled_is_one(poll_first: bool) -> None:
    url = "https://api.openai.com/v1/responses"
    body = {"id": "resp_1", "object": "response", "model": "demo", "created_at": 1777000000, "output": []}
    said = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}]
    calls = [
        {"url": url, "request": {"model": "demo", "input": "Work."}, "response": {**body, "status": "queued"}},
        {"url": f"{url}/resp_1", "response": {**body, "status": "completed", "output": said}},
    ]
    (row,) = rows(events(calls[::-1] if poll_first else calls))
    assert (texts(row), row["n_records"], row["status"]) == (["Work.", "Done."], 2, "completed")


def test_histories_at_the_provider_are_joined_by_id() -> None:
    url = "https://api.openai.com/v1/responses"
    calls = []
    for number, previous in enumerate((None, "resp_0", "resp_1", "resp_lost")):
        said = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"A{number}"}]}]
        request = {"model": "demo", "input": f"Q{number}", "previous_response_id": previous}
        calls.append({"url": url, "request": request, "response": {"id": f"resp_{number}", "output": said}})
    joined, lost = rows(events(calls[::-1]))
    if len(joined["messages"]) == 2:
        joined, lost = lost, joined
    assert texts(joined) == ["Q0", "A0", "Q1", "A1", "Q2", "A2"]
    assert lost["flags"] == ["ambiguous_parent"]


def test_credentials_of_a_call_are_gone_before_anything_is_stored() -> None:
    call = {
        "url": "https://user:FAKE-pass@host.example/v1/chat/completions?api_key=FAKE-query",
        "headers": {"Authorization": "Bearer FAKE-head", "x-request-id": "req_1"},
        "request": {"model": "demo", "messages": [ASK], "api_key": "FAKE-body"},
        "response": {"id": "r", "choices": [{"message": THERE}]},
    }
    stored = b"".join(event.record.raw for event in events([call]))
    assert b"FAKE" not in stored
    assert b"req_1" in stored


def test_only_calls_are_claimed() -> None:
    from etl.adapter import Sample

    assert API.score(Sample("/a", b"", THREE)) > 0.9
    for value in (
        {"request": "walk the dog", "response": "done"},
        {"messages": [ASK, THERE]},
        {"prompt": "a", "response": "b"},
    ):
        assert API.score(Sample("/a", b"", [value])) < 0.3


def test_ids_tell_equal_words_apart_and_results_follow_their_calls() -> None:
    def run(name: str, call_id: str, at: int) -> list[dict[str, Any]]:
        history = [ASK, called(call_id, place="shelf"), say("tool", "a key", tool_call_id=call_id)]
        return [
            chat(f"{name}1", [ASK], called(call_id, place="shelf"), at=at),
            chat(f"{name}2", history, THERE, at=at + 9),
        ]

    found = rows(events([*run("x", "cx", 0), *run("y", "cy", 1), *run("z", "cz", 2)]))
    assert [[info["id"] for info in row["message_info"] if info["id"]] for row in found] == [
        ["x1", "x2"], ["y1", "y2"], ["z1", "z2"],
    ]  # fmt: skip
    assert all(row["flags"] == [] for row in found)
    (renamed,) = rows(events([run("x", "cx", 0)[0], run("y", "other", 5)[1]]))
    assert [(step["call_id"], step["result_index"]) for step in renamed["steps"]] == [("cx", 2)]
    assert renamed["flags"] == ["ambiguous_parent"]
    (prefixed,) = rows(events([run("x", "cx", 0)[0], run("y", "x1:cx", 5)[1]]))
    assert (prefixed["flags"], prefixed["steps"][0]["status"]) == ([], "ok")


def test_a_conversation_kept_at_the_provider_is_told_by_time() -> None:
    calls = []
    for second in (0, 7, 3):
        said = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"A{second}"}]}]
        request = {"model": "demo", "input": f"Q{second}", "conversation": {"id": "conv_1"}}
        response = {"id": f"resp_{second}", "output": said, "conversation": {"id": "conv_1"}}
        times = {"timestamp": f"2026-04-24T01:00:0{second}Z"}
        calls.append({"url": "https://api.openai.com/v1/responses", "request": request, "response": response, **times})
    (row,) = rows(events(calls))
    assert texts(row) == ["Q0", "A0", "Q3", "A3", "Q7", "A7"]
