"""OpenCode: sessions joined over storage files, rows of the database, versions of one part, an undone end (B16)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.cases.reading import Given, Shared, agrees, given, read_in, told, told_by_id
from tests.lakes import rows, said

__all__ = ["given"]


def test_a_command_that_failed_though_it_is_completed(given: Given, lake: Path) -> None:
    read_in(lake, given(Shared("B16.opencode.json")))
    (row,) = rows(lake)
    agrees(
        told(row),
        {
            "prompt": "Run the linter.",
            "final_text": "The linter is not installed.",
            "model": "demo-7b",
            "steps": [
                ("bash", {"command": "lint --all"}, "", "error"),
                ("bash", {"command": "ls"}, "a.py\n", "ok"),
                ("read", {"filePath": "/nope"}, "file not found", "error"),
            ],
        },
    )
    assert [step["error"] for step in row["steps"]] == ["exit 127", None, "file not found"]
    assert (row["usage"]["input_tokens"], row["usage"]["cached_tokens"]) == (140, 10)
    assert (row["usage"]["output_tokens"], row["usage"]["reasoning_tokens"]) == (33, 5)
    assert (row["started_at"].isoformat(), row["ended_at"].isoformat()) == (
        "2026-02-14T10:00:00.100000+00:00",
        "2026-02-14T10:00:09+00:00",
    )


def _storage(folder: Path, lines: list[dict[str, Any]]) -> None:
    """The records as the storage has them: a file each."""
    for number, line in enumerate(lines):
        kind = "message" if "role" in line else "part" if "type" in line else "session"
        path = folder / "storage" / kind / str(line.get("messageID", line.get("sessionID", "p"))) / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(line), encoding="utf-8")


def _lines(samples: Path) -> list[dict[str, Any]]:
    text = (samples / "opencode" / "storage.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()[:-1]]


def test_files_of_a_storage_over_nights_give_the_rows_of_one(samples: Path, tmp_path: Path, lake: Path) -> None:
    lines = [line for line in _lines(samples) if "id" in line and "priority" not in line]
    for night in range(3):
        _storage(tmp_path / f"night{night}", lines[night::3])
        read_in(lake, tmp_path / f"night{night}")
    once = tmp_path / "once"
    read_in(once, samples / "opencode" / "storage.jsonl")
    assert said(lake) == said(once)


def test_a_sub_agent_names_its_parent_and_a_running_part_is_replaced(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "opencode" / "storage.jsonl")
    found = {row["conversation_id"]: row for row in rows(lake)}
    assert found["ses_mill03"]["parent_id"] == found["ses_mill02"]["rollout_id"]
    assert [(step["tool"], step["status"]) for step in found["ses_mill02"]["steps"]] == [("task", "ok")]
    assert found["ses_mill02"]["messages"][0]["role"] == "system"


def test_a_part_of_an_older_storage_is_joined_by_its_folder(tmp_path: Path, lake: Path) -> None:
    message = {"id": "m1", "sessionID": "s1", "role": "user", "time": {"created": 1774850400000}, "agent": "build"}
    part = {"id": "p1", "type": "text", "text": "Is it noon?", "time": {"start": 1774850400000}}
    for name, value in (("message/s1/m1.json", message), ("part/m1/001.json", part)):
        path = tmp_path / "storage" / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    read_in(lake, tmp_path / "storage")
    assert {name: row["prompt"] for name, row in told_by_id(lake).items()} == {"s1": "Is it noon?"}


def test_what_was_undone_is_a_row_of_its_own(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "opencode" / "export.json")
    left, live = sorted(rows(lake), key=lambda row: row["parent_id"] is None)
    assert (live["status"], live["usage"]["input_tokens"]) == ("aborted", 500)
    assert left["parent_id"] == live["rollout_id"]
    assert "abandoned" in left["flags"]
    assert [info["inherited"] for info in left["message_info"]] == [True] * len(live["messages"]) + [False, False]
    assert left["usage"]["input_tokens"] == 230


def test_the_database_and_the_files_are_one_session(samples: Path, tmp_path: Path, lake: Path) -> None:
    database = sqlite3.connect(samples / "opencode" / "opencode.db")
    lines: list[dict[str, Any]] = []
    for name, key in (("message", None), ("part", "message_id")):
        for row in database.execute(f"SELECT id, session_id, data{f', {key}' if key else ''} FROM {name}").fetchall():
            if row[0] != "prt_0399":
                ids = {"id": row[0], "sessionID": row[1], **({"messageID": row[3]} if key else {})}
                lines.append({**ids, **json.loads(row[2])})
    database.close()
    _storage(tmp_path, lines)
    read_in(lake, tmp_path / "storage", samples / "opencode" / "opencode.db")
    (row,) = rows(lake)
    read_in(tmp_path / "alone", samples / "opencode" / "opencode.db")
    (alone,) = rows(tmp_path / "alone")
    assert row["messages"] == alone["messages"]
    assert (row["usage"], row["final_text"]) == (alone["usage"], "The rye is ground.")


def test_a_database_that_is_cut_off_says_so_until_it_is_whole(samples: Path, tmp_path: Path, lake: Path) -> None:
    data = (samples / "opencode" / "opencode.db").read_bytes()
    path = tmp_path / "opencode.db"
    path.write_bytes(data[: len(data) // 2])
    report = read_in(lake, path)
    assert (report["rejects"], rows(lake)) == ({"torn_tail": 1}, [])
    path.write_bytes(data)
    read_in(lake, path)
    assert [row["final_text"] for row in rows(lake)] == ["The rye is ground."]


def test_views_and_generated_rows_of_a_hostile_database_are_not_run(tmp_path: Path, lake: Path) -> None:
    path = tmp_path / "opencode.db"
    database = sqlite3.connect(path)
    database.executescript(
        """
        CREATE TABLE message (id TEXT, session_id TEXT, message_id TEXT, data TEXT);
        CREATE VIEW part (id, message_id) AS
            WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x FROM n;
        CREATE TABLE session (id TEXT, title TEXT);
        INSERT INTO message VALUES ('m', 's', NULL, '{"role": "user", "time": {"created": 1774850400000}}');
        """
    )
    database.commit()
    database.close()
    report = read_in(lake, path)
    assert report["files"]["failed"] <= 1


def test_calls_that_failed_though_their_part_is_completed(tmp_path: Path, lake: Path) -> None:
    time = {"start": 1772400001000, "end": 1772400002000}
    late = "<bash_metadata>\nbash tool terminated command after exceeding timeout 120000 ms\n</bash_metadata>"
    states = [
        ("invalid", {"status": "completed", "input": {"tool": "reed"}, "output": "No such tool.", "metadata": {}}),
        ("bash", {"status": "completed", "input": {}, "output": late, "metadata": {"exit": None}}),
        ("bash", {"status": "error", "input": {}, "error": "Tool execution aborted"}),
        ("read", {"status": "completed", "input": {}, "output": "It says exceeding timeout.", "metadata": {}}),
    ]
    parts = [
        {"id": f"p{n}", "type": "tool", "callID": f"c{n}", "tool": tool, "state": {**state, "time": time}}
        for n, (tool, state) in enumerate(states)
    ]
    info = {"id": "ses_1", "directory": "/srv", "version": "1", "time": {"created": 1772400000000}}
    said = {"id": "m1", "role": "assistant", "sessionID": "ses_1", "time": {"created": 1772400000000}}
    path = tmp_path / "export.json"
    path.write_text(json.dumps({"info": info, "messages": [{"info": said, "parts": parts}]}), encoding="utf-8")
    read_in(lake, path)
    (row,) = rows(lake)
    assert [(step["status"], step["condition"]) for step in row["steps"]] == [
        ("error", "invalid_arguments"),
        ("error", "timeout"),
        ("cancelled", None),
        ("ok", None),
    ]


def test_a_fork_has_the_copies_that_it_begins_with_from_the_session_before(tmp_path: Path, lake: Path) -> None:
    def session(key: str, created: int, *said: tuple[str, int, str]) -> dict[str, Any]:
        messages = []
        for number, (role, at, text) in enumerate(said):
            tokens = {"tokens": {"input": at, "output": 1}} if role == "assistant" else {}
            info = {"id": f"msg_{key}{number}", "sessionID": key, "role": role, "time": {"created": at}, **tokens}
            part = {"id": f"prt_{key}{number}", "sessionID": key, "messageID": info["id"], "type": "text", "text": text}
            messages.append({"info": info, "parts": [part]})
        return {"info": {"id": key, "title": key, "time": {"created": created}}, "messages": messages}

    begun = (("user", 1_000, "Sow rye."), ("assistant", 2_000, "Sown."))
    first = session("ses_z", 900, *begun, ("user", 3_000, "Water it."), ("assistant", 4_000, "Wet."))
    fork = session("ses_a", 5_000, *begun, ("user", 6_000, "Reap it."), ("assistant", 7_000, "Too soon."))
    idle = session("ses_b", 8_000, *begun)
    stranger = session("ses_c", 9_000, ("user", 1_000, "Sow rye!"), ("assistant", 2_000, "Sown."))
    for each in (first, fork, idle, stranger):
        (tmp_path / f"{each['info']['id']}.json").write_text(json.dumps(each), encoding="utf-8")
    read_in(lake, tmp_path)
    by_key = {row["conversation_id"]: row for row in rows(lake)}
    assert {key: row["usage"]["input_tokens"] for key, row in by_key.items()} == {
        "ses_z": 6_000,
        "ses_a": 7_000,
        "ses_c": 2_000,
    }
    assert by_key["ses_a"]["parent_id"] == by_key["ses_z"]["rollout_id"]
    assert by_key["ses_a"]["prompt_len"] == 3
    assert [bool(info["inherited"]) for info in by_key["ses_a"]["message_info"]] == [True, True, False, False]


def test_the_second_form_of_the_database_is_read_and_what_stands_still_counts_once(tmp_path: Path, lake: Path) -> None:
    path = tmp_path / "opencode.db"
    at = 1_789_369_200_000
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            """
            CREATE TABLE session (id TEXT PRIMARY KEY, title TEXT, directory TEXT, time_created INTEGER);
            CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
            CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
            CREATE TABLE session_v2 (id TEXT PRIMARY KEY, parent_id TEXT, fork_session_id TEXT, title TEXT,
                directory TEXT, time_created INTEGER, time_updated INTEGER);
            CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER,
                time_created INTEGER, data TEXT);
            """
        )
        tokens = {"input": 30, "output": 5, "reasoning": 2, "cache": {"read": 10, "write": 0}}
        old = {"role": "assistant", "modelID": "demo", "tokens": tokens, "time": {"created": at + 1}}
        database.execute("INSERT INTO session VALUES ('s1', 'Rye', '/srv', ?)", (at,))
        for name, data in (("m1", {"role": "user", "time": {"created": at}}), ("m2", old)):
            database.execute("INSERT INTO message VALUES (?, 's1', ?, ?)", (name, at, json.dumps(data)))
        for name, message, text in (("p1", "m1", "Grind."), ("p2", "m2", "Ground.")):
            part = json.dumps({"type": "text", "text": text})
            database.execute("INSERT INTO part VALUES (?, ?, 's1', ?)", (name, message, part))
        called = {"status": "completed", "input": {"command": "grind"}, "content": [{"type": "text", "text": "dust"}]}
        failed = {"status": "error", "input": {"command": "sift"}, "error": {"type": "x", "message": "no sieve"}}
        answer: dict[str, Any] = {
            "agent": "build",
            "model": {"id": "demo", "providerID": "mill"},
            "tokens": tokens,
            "time": {"created": at + 1, "completed": at + 9},
            "content": [
                {"type": "reasoning", "text": "Slowly."},
                {"type": "tool", "id": "c1", "name": "shell", "state": called, "time": {"created": at + 2}},
                {"type": "tool", "id": "c2", "name": "shell", "state": failed},
                {"type": "text", "text": "Ground."},
            ],
        }
        told: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
            ("m1", "s1", "user", {"text": "Grind.", "time": {"created": at}}),
            ("m2", "s1", "assistant", answer),
            ("m3", "s1", "model-switched", {"model": {"id": "other"}}),
            ("m4", "s1", "user", {"text": "Once more.", "time": {"created": at + 20}}),
            ("n1", "s2", "user", {"text": "Grind.", "time": {"created": at}}),
            ("n2", "s2", "assistant", answer),
            ("n3", "s2", "synthetic", {"text": "The mill stands.", "time": {"created": at + 50}}),
            ("n4", "s2", "assistant", {**answer, "time": {"created": at + 60}, "content": answer["content"][-1:]}),
        )
        for seq, (name, session, kind, held) in enumerate(told):
            created = held.get("time", {}).get("created", at + 15)
            row = (name, session, kind, seq, created, json.dumps(held))
            database.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?)", row)
        database.execute("INSERT INTO session_v2 VALUES ('s1', NULL, NULL, 'Rye', '/srv', ?, ?)", (at, at + 20))
        database.execute("INSERT INTO session_v2 VALUES ('s2', NULL, 's1', 'Fork', '/srv', ?, ?)", (at + 40, at + 60))
        database.commit()
    report = read_in(lake, path)
    assert (report["rejects"], report["ignored"]) == ({}, {"switch": 1})
    by_key = {row["conversation_id"]: row for row in rows(lake)}
    first, fork = by_key["s1"], by_key["s2"]
    texts = [(message["role"], message["content"]) for message in first["messages"]]
    assert texts == [
        ("user", "Grind."),
        ("assistant", ""),
        ("tool", "dust"),
        ("tool", "no sieve"),
        ("assistant", "Ground."),
        ("user", "Once more."),
    ]
    assert [(step["tool"], step["status"]) for step in first["steps"]] == [("shell", "ok"), ("shell", "error")]
    assert (first["usage"]["input_tokens"], fork["usage"]["input_tokens"], first["model"]) == (40, 40, "demo")
    assert (fork["parent_id"], first["messages"][1]["reasoning_content"]) == (first["rollout_id"], "Slowly.")
    assert [message["content"] for message in fork["messages"]][-2:] == ["The mill stands.", "Ground."]
    assert [bool(info["inherited"]) for info in fork["message_info"]][-3:] == [True, False, False]
