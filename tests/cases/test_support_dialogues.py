"""Support dialogues: service calls are steps before the reply, whatever a set puts them into."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cases.reading import read_in, told
from tests.lakes import REPO, rows

_SAMPLES = REPO / "sample_logs"


def _told(lake: Path, *paths: Path) -> list[dict[str, Any]]:
    read_in(lake, *paths)
    return [told(row) for row in sorted(rows(lake), key=lambda row: (row["source_offset"], row["rollout_id"]))]


def test_frames_of_sgd(tmp_path: Path) -> None:
    first, second, last = _told(tmp_path / "lake", _SAMPLES / "sgd")
    assert first["messages"][2:] == [("tool", '[{"plant":"leek","price":"2"}]'), ("assistant", "Yes, at two pounds.")]
    assert first["steps"] == [("FindSeed", {"plant": "leek"}, '[{"plant":"leek","price":"2"}]', "ok")]
    assert [(step[0], step[3]) for step in second["steps"]] == [("Order", "ok"), ("Send", "missing")]
    assert last["final_text"] == "Hello, what do you need?"
    assert {row["conversation_id"] for row in rows(tmp_path / "lake")} == {"1_00000", "1_00002"}


def test_calls_of_taskmaster(tmp_path: Path) -> None:
    first, *_ = _told(tmp_path / "lake", _SAMPLES / "taskmaster" / "dialogues.json")
    assert [(step[0], step[2], step[3]) for step in first["steps"]] == [
        ("find_seed", '{"stock":"7"}', "ok"),
        ("price", None, "missing"),
    ]
    assert first["final_text"] == "They are in stock."


def test_scored_answers_of_taskmaster(tmp_path: Path) -> None:
    good, bad = _told(tmp_path / "lake", _SAMPLES / "taskmaster" / "scored.json")
    assert (good["reward"], good["final_text"], good["prompt"]) == (1.0, "Seven packets are left.", "Leeks.")
    assert (bad["reward"], [step[3] for step in bad["steps"]]) == (0.0, ["ok", "missing"])
    assert [row["prompt_len"] for row in rows(tmp_path / "lake")] == [4, 4]
    assert [reject["reason"] for reject in rows(tmp_path / "lake", "rejects")] == ["bad_message"]


def test_sessions_of_rasa_and_what_was_undone(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", _SAMPLES / "rasa_tracker" / "events.jsonl")
    found = {row["prompt"]: row for row in rows(tmp_path / "lake")}
    first, second = found["When is the last frost?"], found["Order leeks."]
    assert [(step["tool"], step["status"]) for step in first["steps"]] == [
        ("action_frost", "ok"),
        ("action_mail", "error"),
    ]
    assert [message["content"] for message in first["messages"] if message["role"] == "assistant"][1] == "On 20 April."
    assert (second["messages"][0]["content"], second["flags"]) == ("Order leeks.", ["incomplete", "missing_result"])
    assert (found["frost?"]["flags"], found["frost?"]["parent_id"]) == (["abandoned"], first["rollout_id"])
    (restarted,) = (row for prompt, row in found.items() if prompt.startswith("My key"))
    assert (restarted["parent_id"], restarted["final_text"]) == (second["rollout_id"], "Thank you.")


def test_a_tracker_that_comes_event_by_event_is_the_same_row(tmp_path: Path) -> None:
    lines = (_SAMPLES / "rasa_tracker" / "events.jsonl").read_bytes().splitlines(keepends=True)
    whole, nights = tmp_path / "whole", tmp_path / "nights"
    read_in(whole, _SAMPLES / "rasa_tracker" / "events.jsonl")
    for number, part in enumerate((lines[:11], lines[9:])):
        (tmp_path / f"{number}.jsonl").write_bytes(b"".join(part))
        read_in(nights, tmp_path / f"{number}.jsonl")
    one, other = (sorted((row["rollout_id"], row["content_hash"]) for row in rows(lake)) for lake in (whole, nights))
    assert one == other


def test_actions_of_abcd(tmp_path: Path) -> None:
    first, second, *_ = _told(tmp_path / "lake", _SAMPLES / "abcd" / "sample.json")
    result = "Account has been pulled up for demo person."
    assert first["steps"] == [("pull-up-account", {"values": ["demo person"]}, result, "ok")]
    assert (first["prompt"], first["final_text"]) == ("My order is late.", "It leaves tomorrow.")
    assert second["steps"] == [("action", {}, None, "missing")]
    read_in(tmp_path / "parts", _SAMPLES / "abcd" / "parts.json")
    assert sorted(row["conversation_id"] for row in rows(tmp_path / "parts")) == ["3005", "3006"]


def test_a_slack_thread_over_two_days(tmp_path: Path) -> None:
    first, second = (_SAMPLES / "slack_export" / f"2026-02-{day}.json" for day in (26, 27))
    read_in(tmp_path / "lake", second)
    report = read_in(tmp_path / "lake", first)
    assert report["ignored"] == {"channel_event": 1}
    found = {row["conversation_id"]: row for row in rows(tmp_path / "lake")}
    thread = found["1772100001.000200"]
    assert [(message["role"], message["name"]) for message in thread["messages"]] == [
        ("user", "U01"),
        ("assistant", "U09"),
        ("user", "U01"),
    ]
    assert (thread["final_text"], thread["n_records"], thread["day"]) == ("On 20 April.", 3, "2026-02-26")
    broadcast = found["1772000000.000100"]
    assert [message["content"] for message in broadcast["messages"]] == ["Who has seed?", "I have."]


def test_notes_of_a_ticket_are_no_messages(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", _SAMPLES / "zendesk")
    found = {row["conversation_id"]: told(row) for row in rows(tmp_path / "lake")}
    assert [role for role, _ in found["71"]["messages"]] == ["user", "assistant"]
    assert found["71"]["final_text"] == "It leaves today."
    assert [note["body"] for note in found["71"]["extra"]["internal_notes"]] == ["Packed twice, check shelf 4."]
    assert (found["72"]["messages"], found["72"]["flags"]) == ([], ["content_not_captured", "incomplete"])
    assert found["76"]["messages"] == [("user", "Open on Sunday?"), ("assistant", "From ten.")]


def test_a_ticket_that_grew_is_the_same_row(tmp_path: Path) -> None:
    (ticket,) = json.loads((_SAMPLES / "zendesk" / "beside.json").read_bytes())
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    after.write_text(json.dumps([ticket]))
    ticket["comments"] = ticket["comments"][:1]
    before.write_text(json.dumps([ticket]))
    read_in(tmp_path / "lake", before)
    assert read_in(tmp_path / "lake", after)["rows"]["replaced"] == 1
    read_in(tmp_path / "lake", before)
    assert [row["final_text"] for row in rows(tmp_path / "lake")] == ["From ten."]


def test_the_schema_beside_dialogues_is_no_log(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps([{"service_name": "Seeds_1", "slots": [], "intents": []}] * 2, indent=1))
    report = read_in(tmp_path / "lake", schema)
    assert (report["ignored"], report["files"]["failed"]) == ({"service_schema": 2}, 0)
