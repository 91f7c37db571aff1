"""Cursor: transcripts without results, blobs that a root lists, bubbles in the order of their headers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from etl.adapters._cursor_store import _blob
from etl.framing import LIMITS
from tests.cases.reading import agrees, read_in, told
from tests.lakes import rows, said


def _row(lake: Path) -> dict[str, Any]:
    (row,) = rows(lake)
    return row


def test_a_transcript_has_calls_whose_results_nobody_wrote_down(samples: Path, tmp_path: Path, lake: Path) -> None:
    lines = (samples / "cursor" / "transcript.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "0c0ffee0.jsonl"
    for end in (2, 3):
        path.write_bytes(b"".join(lines[:end]))
        read_in(lake, path)
    row = _row(lake)
    assert (row["prompt"], row["n_turns"]) == ("Where is the key?", 1)
    assert [step["status"] for step in row["steps"]] == ["missing"]
    assert "content_not_captured" in row["flags"]


def test_a_stream_says_its_pieces_once(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "cursor" / "stream.jsonl")
    row = _row(lake)
    said_by_model = [message["content"] for message in row["messages"] if message["role"] == "assistant"]
    assert [text for text in said_by_model if text] == ["I oil it.", "It moves."]
    assert row["messages"][1]["reasoning_content"] == "Oil first."
    assert [(step["tool"], step["status"]) for step in row["steps"]] == [
        ("shell", "ok"),
        ("read", "error"),
        ("draw", "missing"),
    ]
    assert (row["usage"]["input_tokens"], row["usage"]["cached_tokens"], row["status"]) == (50, 20, "completed")


def test_the_latest_root_says_what_the_chat_is(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "cursor" / "store.db")
    row = _row(lake)
    agrees(
        told(row),
        {
            "prompt": "Open the lock.",
            "final_text": "It is rusty.",
            "model": "demo-lock-1",
            "steps": [
                ("Shell", {"command": "lock --show"}, "rusty\nLOCK_API_KEY=<SECRET_api_key>", "ok"),
                ("Read", {"path": "lock.txt"}, None, "missing"),
            ],
        },
    )
    assert "A first try." in row["extra"]
    assert row["started_at"].isoformat() == "2026-03-30T06:00:00+00:00"


def test_bubbles_stand_in_the_order_of_their_headers(samples: Path, lake: Path) -> None:
    report = read_in(lake, samples / "cursor" / "state.vscdb")
    assert report["rejects"] == {"not_json": 1}
    found = {row["prompt"]: row for row in rows(lake)}
    row = found["Open the door."]
    assert [message["role"] for message in row["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [(step["tool"], step["status"]) for step in row["steps"]] == [
        ("run_terminal_cmd", "ok"),
        ("edit_file", "cancelled"),
    ]
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (220, 15)
    assert found["What squeaks?"]["final_text"] == "The hinge."


def test_the_database_moved_and_read_again_changes_nothing(samples: Path, tmp_path: Path, lake: Path) -> None:
    read_in(lake, samples / "cursor" / "store.db")
    before = said(lake)
    copy = tmp_path / "elsewhere.db"
    copy.write_bytes((samples / "cursor" / "store.db").read_bytes())
    read_in(lake, copy)
    assert said(lake) == before


def test_messages_of_older_blobs_are_found_in_their_protobuf() -> None:
    message = json.dumps({"role": "user", "content": "Hi"}).encode()
    raw = b"\x12\x02id\x22" + bytes([len(message)]) + message
    made = _blob({"id": "x", "data": raw}, LIMITS)
    assert made is not None
    assert made.value["value"] == {"role": "user", "content": "Hi"}
    plain = _blob({"id": "y", "data": b"\x0a\x04\x0a\x02Ho\x1a\x00"}, LIMITS)
    assert plain is not None
    assert plain.value["value"] == {"role": "assistant", "content": "Ho"}
    junk = _blob({"id": "z", "data": b"\xff\xff\xff"}, LIMITS)
    assert junk is not None
    assert "value" not in junk.value


def test_a_transcript_as_text_has_calls_and_results(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "cursor" / "older.txt")
    (row,) = rows(lake)
    assert (row["prompt"], row["final_text"], row["n_turns"]) == ("Which key fits the gate?", "The brass key fits.", 2)
    assert [message["role"] for message in row["messages"]] == [
        *("user", "user", "assistant", "tool", "assistant", "assistant", "user")
    ]
    assert row["messages"][2]["reasoning_content"] == "Look at the board,\nthen at the gate."
    assert [(step["tool"], json.loads(step["arguments"]), step["status"]) for step in row["steps"]] == [
        ("Shell", {"command": "ls keys", "description": "List the keys"}, "ok"),
        ("ApplyPatch", {"patch": "@@ -1,1 +1,1 @@\n-iron\n+brass", "path": "gate.txt"}, "missing"),
    ]


def test_how_a_turn_ended_is_no_reject(samples: Path, tmp_path: Path, lake: Path) -> None:
    lines = (samples / "cursor" / "transcript.jsonl").read_bytes().splitlines(keepends=True)[:3]
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"".join([*lines, b'{"type":"turn_ended","status":"error","error":"out of keys"}\n']))
    report = read_in(lake, path)
    (row,) = rows(lake)
    assert (report["rejects"], row["status"], row["error"], row["n_records"]) == ({}, "error", "out of keys", 4)


def test_every_turn_says_how_it_ended_and_the_last_counts(samples: Path, tmp_path: Path, lake: Path) -> None:
    lines = (samples / "cursor" / "transcript.jsonl").read_bytes().splitlines(keepends=True)[:3]
    path = tmp_path / "transcript.jsonl"
    failed, fine = (
        b'{"type":"turn_ended","status":"error","error":"e"}\n',
        b'{"type":"turn_ended","status":"success"}\n',
    )
    path.write_bytes(b"".join([*lines, failed, lines[0], lines[2], fine]))
    report = read_in(lake, path)
    (row,) = rows(lake)
    assert (report["records_in"], report["records_used"], report["rejects"]) == (7, 7, {})
    assert (row["status"], row["error"], row["n_records"]) == ("completed", None, 7)
    told = [{"status": "error", "error": "e"}, {"status": "success"}]
    assert json.loads(row["extra"])["turn_ended"] == told
