"""Claude Code files: what is claimed, what is kept of lines that nobody says, and logs that are odd or damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from etl.adapter import FileContext, Sample
from etl.conversation import Fragment, Ignored, Record, Unusable
from tests.adapters.claude_sessions import CLAUDE, Session, assembled, call, events, rows, said, text


def test_titles_and_summaries_go_with_the_row() -> None:
    session = Session()
    session.lines.append({"type": "summary", "summary": "An older session", "leafUuid": "x"})
    session.user("Go on with it.")
    session.lines.append({"type": "ai-title", "aiTitle": "Going on", "sessionId": "s-1"})
    session.lines.append({"type": "agent-setting", "agentSetting": "retail-agent", "sessionId": "s-1"})
    session.lines.append({"type": "last-prompt", "lastPrompt": "Go on with…", "sessionId": "s-1"})
    session.lines.append({"type": "last-prompt", "lastPrompt": "Never said", "sessionId": "s-1"})
    (row,) = rows(session.lines)
    assert row["extra"]["summary"] == [{"summary": "An older session", "leafUuid": "x"}]
    assert row["extra"]["ai-title"] == [{"aiTitle": "Going on"}]
    assert row["extra"]["last-prompt"] == [{"lastPrompt": "Never said"}]
    assert row["agent"] == "retail-agent"


def test_keys_that_every_line_repeats_stand_where_they_change() -> None:
    session = Session()
    session.user("a", cwd="/one", version="2")
    session.assistant(text("b"), cwd="/one", version="2")
    session.user("c", cwd="/two", version="2")
    (row,) = rows(session.lines)
    assert [info["extra"].get("cwd") for info in row["message_info"]] == ["/one", None, "/two"]
    assert row["extra"] == {"cwd": "/one", "version": "2"}


def test_sessions_without_ids_are_put_in_order_by_their_file() -> None:
    lines = [
        {"type": "user", "message": {"role": "user", "content": "Add."}},
        {"type": "assistant", "message": {"role": "assistant", "content": [text("Added."), call("t1")]}},
        {
            "type": "user",
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
        },
        {"type": "user", "message": {"role": "user", "content": "Thanks."}},
    ]
    (plain,) = rows(lines)
    (wrapped,) = rows([{"loglines": lines}])
    assert said(plain) == [("user", "Add."), ("assistant", "Added."), ("tool", "ok"), ("user", "Thanks.")]
    assert said(wrapped) == said(plain)
    assert wrapped["conversation_id"] == plain["conversation_id"]
    (longer,) = rows([*lines, {"type": "user", "message": {"role": "user", "content": "More."}}])
    assert longer["rollout_id"] == plain["rollout_id"]


def test_an_export_that_has_grown_is_the_same_session() -> None:
    lines = [
        {"type": "user", "timestamp": f"2026-02-03T10:00:0{number}Z", "message": {"role": "user", "content": words}}
        for number, words in enumerate(["Yes.", "Yes.", "No."])
    ]
    lines[1]["timestamp"] = lines[0]["timestamp"]
    for files in ([lines[:2], lines], [lines, lines[:2]]):
        (row,) = rows([{"loglines": files[0]}], [{"loglines": files[1]}])
        assert [words for _, words in said(row)] == ["Yes.", "Yes.", "No."]


def test_every_line_is_accounted_for() -> None:
    lines: list[Any] = [
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "queue-operation", "operation": "dequeue", "sessionId": "s"},
        {"type": "brand-new", "sessionId": "s"},
        {"type": "brand-new", "sessionId": "s", "text": "It says something."},
        {"type": "brand-new", "sessionId": "s", "message": {"role": "user", "content": "Somebody speaks."}},
        {"type": "user", "sessionId": "s"},
        {"no": "type"},
        "a string",
        {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Hello."}},
    ]
    records = [Record(line, json.dumps(line).encode()) for line in lines]
    outcomes = list(CLAUDE.parse(iter(records), FileContext("/logs/a.jsonl")))
    assert len(outcomes) == len(lines)
    assert [outcome.rule for outcome in outcomes if isinstance(outcome, Ignored)] == [
        "file-history-snapshot",
        "queue-operation",
        "unknown_type:brand-new",
    ]
    assert [outcome.reason for outcome in outcomes if isinstance(outcome, Unusable)] == [
        "no_message",
        "no_type",
        "not_an_object",
    ]
    assert {outcome.key for outcome in outcomes if isinstance(outcome, Fragment)} == {"s"}
    (row,) = rows(lines)
    assert said(row) == [("program", "Somebody speaks."), ("user", "Hello.")]
    assert row["extra"]["brand-new"] == [{"text": "It says something."}]


def test_a_session_in_which_nobody_speaks_is_no_row() -> None:
    assert rows([{"type": "summary", "summary": "Only a title", "leafUuid": "x"}]) == []
    assert rows([]) == []


@pytest.mark.parametrize(
    ("values", "least", "most"),
    [
        ([Session().user("Hello.")], 0.9, 1.0),
        ([{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}, Session().user("Hello.")], 0.9, 1.0),
        ([{"type": "summary", "summary": "t", "leafUuid": "x"}], 0.3, 0.6),
        ([{"loglines": [{"type": "user", "timestamp": "t", "message": {"role": "user", "content": "Hi"}}]}], 0.5, 0.9),
        ([{"type": "user", "id": 7, "name": "row of some other system"}, {"type": "assistant", "id": 8}], 0.0, 0.0),
        ([{"type": "user", "uuid": "u", "sessionId": "s", "message": {"parts": [{"text": "Qwen"}]}}], 0.0, 0.0),
        ([{"type": "response_item", "payload": {"type": "message", "role": "user", "content": []}}], 0.0, 0.0),
        ([{"type": "system", "subtype": "init", "session_id": "s", "uuid": "u", "tools": []},
          {"type": "assistant", "session_id": "s", "uuid": "u", "message": {"content": []}}], 0.0, 0.0),
        ([{"role": "user", "content": "plain"}], 0.0, 0.0),
        ([{"display": "typed", "sessionId": "s", "project": "/x", "timestamp": 1}], 0.0, 0.0),
        ([{"hook_event_name": "Stop", "session_id": "s", "transcript_path": "/x"}], 0.0, 0.0),
        ([], 0.0, 0.0),
        ([1, "two", None], 0.0, 0.0),
    ],
)  # fmt: skip
def test_only_sessions_are_claimed(values: list[Any], least: float, most: float) -> None:
    assert least <= CLAUDE.score(Sample("/logs/a.jsonl", b"", values)) <= most


def test_a_very_long_session() -> None:
    session = Session()
    for number in range(3000):
        session.user(f"Question {number}.")
    (row,) = rows(session.lines)
    assert len(row["messages"]) == 3000


def test_a_chain_that_runs_in_a_circle_loses_nothing() -> None:
    session = Session()
    first = session.user("One.")
    session.user("Two.")
    third = session.user("Three.")
    first["parentUuid"] = third["uuid"]
    (row,) = rows(session.lines)
    assert [words for _, words in said(row)] == ["One.", "Two.", "Three."]
    assert "ambiguous_parent" in row["flags"]


def test_a_parent_that_is_not_there_is_flagged() -> None:
    session = Session()
    session.user("One.", parent="lost")
    session.assistant(text("Two."))
    (row,) = rows(session.lines)
    assert row["flags"] == ["ambiguous_parent"]
    assert row["message_info"][0]["extra"]["parentUuid"] == "lost"


def test_assembly_sees_records_and_gives_them_back() -> None:
    session = Session()
    session.user("One.")
    stored = events({"/a": session.lines})
    (conversation,) = assembled(stored)
    assert conversation.records[0] is stored[0].record
