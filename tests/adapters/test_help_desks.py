"""Help desks and dialogue sets: who is the user, what stays internal, and what is a step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from etl.adapter import Sample, adapter_named
from etl.adapters._html import text_of_html
from etl.pipeline import ingest
from tests.contract.harness import read
from tests.lakes import NOW, rows


def _read(adapter: str, *values: Any) -> list[dict[str, Any]]:
    return read("".join(json.dumps(value) + "\n" for value in values).encode(), adapter_named(adapter)).rows


def test_a_note_of_intercom_is_never_said() -> None:
    def part(number: int, kind: str, body: str | None, who: str) -> dict[str, Any]:
        return {
            "id": str(number),
            "part_type": kind,
            "body": body,
            "created_at": number,
            "author": {"type": who, "id": who},
        }

    parts = [part(4, "comment", "<p>b</p>", "admin"), part(3, "note_and_reopen", "<p>secret</p>", "admin"),
             part(5, "close", None, "bot"), part(6, "assignment", "c", "bot")]  # fmt: skip
    source = {"body": "a", "author": {"type": "lead", "id": "1"}}
    (row,) = _read(
        "intercom", {"type": "conversation", "id": "9", "created_at": 1, "source": source, "conversation_parts": parts}
    )
    assert [(m["role"], m["content"]) for m in row["messages"]] == [
        ("user", "a"),
        ("assistant", "b"),
        ("assistant", "c"),
    ]
    extra = json.loads(row["extra"])
    assert [note["body"] for note in extra["internal_notes"]] == ["<p>secret</p>"]
    assert [event["part_type"] for event in extra["events"]] == ["close"]


def test_html_says_its_text() -> None:
    assert text_of_html("<p>a &lt; b</p><ul><li>one</li></ul>")[0] == "a < b\n- one"
    assert text_of_html('<p>x<img src="https://e.org/i.png"></p>') == ("x", ["https://e.org/i.png"], True)
    assert text_of_html("if a<b and c>d") == ("if a<b and c>d", [], False)


def test_comments_of_a_ticket_are_put_together_over_files(tmp_path: Path) -> None:
    head = "id,ticket_id,public,user_id,body,created\n"
    (tmp_path / "b.csv").write_text(
        head + "2,7,TRUE,agent,Hello,2026-03-01 10:01:00\n3,7,FALSE,agent,note,2026-03-01 10:00:30\n"
    )
    (tmp_path / "a.csv").write_text(head + '1,7,TRUE,person,"Help, please",2026-03-01 10:00:00\n')
    ingest([tmp_path], lake=tmp_path / "lake", now=NOW, strict=True)
    (row,) = rows(tmp_path / "lake")
    assert [(m["role"], m["content"]) for m in row["messages"]] == [("user", "Help, please"), ("assistant", "Hello")]
    assert row["flags"] == ["naive_time", "roles_inferred"]
    assert json.loads(row["extra"])["internal_notes"][0]["body"] == "note"


def test_a_booking_of_multiwoz_is_one_step_however_often_it_is_told() -> None:
    booked = {"train": {"book": {"booked": [{"trainID": "TR1", "reference": "R"}], "people": "2"}, "semi": {}}}
    said = [("Hi", {}), ("Booked.", booked), ("Thanks", {}), ("Bye", booked)]
    log = [{"text": text, "metadata": metadata} for text, metadata in said]
    (row,) = _read("multiwoz", {"A.json": {"goal": {}, "log": log}})
    assert [(step["tool"], json.loads(step["arguments"])) for step in row["steps"]] == [("book_train", {"people": "2"})]
    assert [m["role"] for m in row["messages"]] == ["user", "assistant", "tool", "assistant", "user", "assistant"]


def test_few_shot_dialogues_of_agentbench_are_no_runs() -> None:
    shots = {"put": [{"role": "user", "content": "Put it."}, {"role": "agent", "content": "go to shelf 1"}]}
    assert adapter_named("agentbench").score(Sample("f", b"", [shots])) > 0.9
    found = read(json.dumps(shots).encode(), adapter_named("agentbench"))
    assert (found.parsed, dict(found.ignored)) == ([], {"demonstrations": 1})


def test_a_piece_of_a_stream_counts_where_no_whole_event_follows() -> None:
    def event(text: str, partial: bool, author: str = "bot") -> dict[str, Any]:
        return {"author": author, "invocationId": "i", "partial": partial, "content": {"parts": [{"text": text}]}}

    session = {"id": "s", "appName": "a", "userId": "u"}
    events = [event("Hi", False, "user"), event("I wa", True)]
    (cut,) = _read("google_adk", {**session, "events": events})
    (row,) = _read("google_adk", {**session, "events": [*events, event("I water.", False)]})
    assert [m["content"] for m in cut["messages"]] == ["Hi", "I wa"]
    assert [m["content"] for m in row["messages"]] == ["Hi", "I water."]
    assert cut["rollout_id"] == row["rollout_id"], "a session that grows stays one row"


def test_a_post_of_an_app_says_what_its_blocks_say(tmp_path: Path) -> None:
    section: dict[str, Any] = {"type": "section", "text": {"type": "mrkdwn", "text": "Order *7* is late."}}
    section["fields"] = [{"type": "mrkdwn", "text": "Carrier: snail"}]
    spoken: list[Any] = [
        {"type": "text", "text": "Ask "},
        {"type": "user", "user_id": "U1"},
        {"type": "emoji", "name": "wave"},
    ]
    rich = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": spoken}]}
    posts: list[dict[str, Any]] = [
        {"type": "message", "user": "U1", "text": "Where is 7?", "ts": "1772359201.000100"},
        {"type": "message", "subtype": "bot_message", "bot_id": "B1", "text": "", "blocks": [section, rich]},
        {"type": "message", "subtype": "bot_message", "bot_id": "B1", "text": "", "attachments": [{"text": "Late."}]},
    ]
    for number, post in enumerate(posts[1:], 2):
        post |= {"ts": f"177235920{number}.000100", "thread_ts": "1772359201.000100"}
    path, lake = tmp_path / "2026-03-01.json", tmp_path / "lake"
    path.write_text(json.dumps(posts), encoding="utf-8")
    ingest([path], lake=lake, now=NOW)
    (row,) = rows(lake)
    assert [message["content"] for message in row["messages"]] == [
        "Where is 7?",
        "Order *7* is late.\nCarrier: snail\nAsk <@U1>:wave:",
        "Late.",
    ]
