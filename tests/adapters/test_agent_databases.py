"""Databases in which agents keep what they said: Zed, LangGraph, the OpenAI Agents SDK, Google ADK, `llm`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from etl.adapters._langgraph_stored import framed
from etl.adapters._sqlite import stored_records
from etl.conversation import Record
from etl.detection import detect
from etl.framing import LIMITS, Broken
from tests.cases.reading import read_in
from tests.lakes import rows, said

STATE = "1f0a0000-0000-6000-8000-00000000000"


def _message(kind: str, name: str, content: str, **more: Any) -> msgspec.msgpack.Ext:
    """A message as LangGraph packs it: its class, and its fields."""
    fields = {"content": content, "id": name, "type": kind, "additional_kwargs": {}, "response_metadata": {}, **more}
    return msgspec.msgpack.Ext(
        5, msgspec.msgpack.encode(["langchain_core.messages", kind, fields, "model_validate_json"])
    )


def _saver(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.execute(
        "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT,"
        " type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))"
    )
    database.execute(
        "CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, idx INTEGER,"
        " channel TEXT, type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx))"
    )
    return database


def _state(database: sqlite3.Connection, number: int, above: int | None, *messages: msgspec.msgpack.Ext) -> None:
    held = {
        "id": f"{STATE}{number}",
        "ts": f"2026-03-09T08:00:0{number}+00:00",
        "channel_values": {"messages": messages},
    }
    parent = None if above is None else f"{STATE}{above}"
    database.execute(
        "INSERT INTO checkpoints VALUES ('t', '', ?, ?, 'msgpack', ?, '{}')",
        (f"{STATE}{number}", parent, msgspec.msgpack.encode(held)),
    )


def _blocks(path: Path) -> Iterator[bytes]:
    yield path.read_bytes()


def _saver_rows(path: Path) -> list[Record | Broken]:
    return list(stored_records(_blocks(path), LIMITS, lambda stored: framed(stored, LIMITS)))


def test_a_long_thread_costs_what_it_says_and_not_its_square(tmp_path: Path) -> None:
    said_once = [_message("human", f"m{n}", f"{n}" * 2000) for n in range(9)]
    with closing(_saver(tmp_path / "c.db")) as database:
        for n in range(9):
            _state(database, n, n - 1 if n else None, *said_once[: n + 1])
        database.commit()
    found = _saver_rows(tmp_path / "c.db")
    assert sum(len(record.raw) for record in found) < 2 * 9 * 2000


def test_what_a_thread_forgot_and_what_was_corrected_stays(tmp_path: Path, lake: Path) -> None:
    with closing(_saver(tmp_path / "c.db")) as database:
        _state(database, 1, None, _message("human", "h1", "Mend the nett."))
        _state(database, 2, 1, _message("human", "h1", "Mend the net."), _message("ai", "a1", "Mended."))
        _state(database, 3, 2, _message("ai", "a2", "I forgot what."))
        database.commit()
    read_in(lake, tmp_path / "c.db")
    (row,) = rows(lake)
    assert [message["content"] for message in row["messages"]] == ["Mend the net.", "Mended.", "I forgot what."]
    assert row["flags"] == ["compacted"]
    assert json.loads(row["message_info"][0]["extra"])["earlier_versions"][0]["content"] == "Mend the nett."
    assert [info["at"].second for info in row["message_info"]] == [1, 2, 3]


def test_what_a_task_wrote_before_another_failed_is_told(tmp_path: Path, lake: Path) -> None:
    call = {"name": "weigh", "args": {}, "id": "c1"}
    with closing(_saver(tmp_path / "c.db")) as database:
        _state(database, 1, None, _message("human", "h1", "Weigh it."), _message("ai", "a1", "", tool_calls=[call]))
        result = [_message("tool", "t1", "nine kilos", tool_call_id="c1", status="success")]
        for n, (channel, value) in enumerate((("messages", result), ("__error__", "OSError('wet')"))):
            database.execute(
                "INSERT INTO writes VALUES ('t', '', ?, ?, 0, ?, 'msgpack', ?)",
                (f"{STATE}1", f"task{n}", channel, msgspec.msgpack.encode(value)),
            )
        database.commit()
    read_in(lake, tmp_path / "c.db")
    (row,) = rows(lake)
    assert (row["status"], row["error"]) == ("error", "OSError('wet')")
    assert [(step["tool"], step["status"]) for step in row["steps"]] == [("weigh", "ok")]


@pytest.mark.parametrize(
    ("kind", "data"), [("pickle", b"\x80\x05N."), ("msgpack", b"\xc1"), ("msgpack", b"\xc7\x01\x05\xc7" * 900)]
)
def test_a_state_that_cannot_be_opened_is_a_reject_and_the_others_are_read(
    kind: str, data: bytes, tmp_path: Path, lake: Path
) -> None:
    with closing(_saver(tmp_path / "c.db")) as database:
        _state(database, 1, None, _message("human", "h1", "Weigh it."))
        database.execute("INSERT INTO checkpoints VALUES ('t', '', 'z', ?, ?, ?, '{}')", (f"{STATE}1", kind, data))
        database.commit()
    report = read_in(lake, tmp_path / "c.db")
    assert report["rejects"] == {"bad_state": 1}
    assert [row["prompt"] for row in rows(lake)] == ["Weigh it."]


def test_a_thread_that_is_taken_up_again_elsewhere_keeps_both_ways(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "langgraph_checkpoints" / "checkpoints.sqlite")
    market = [row for row in rows(lake) if row["conversation_id"] == "market"]
    main = next(row for row in market if row["parent_id"] is None)
    assert main["messages"][-1]["content"] == "Shall I?"
    assert json.loads(main["extra"])["interrupts"]
    left = next(row for row in market if "abandoned" in row["flags"])
    assert left["final_text"] == "Forgotten."
    assert {row["parent_id"] for row in market} == {None, main["rollout_id"]}


def test_an_unfinished_stream_of_a_thread_of_zed_is_a_reject(tmp_path: Path, lake: Path) -> None:
    thread = {
        "version": "0.3.0",
        "updated_at": "2026-03-08T10:00:00Z",
        "messages": [{"User": {"id": "u", "content": [{"Text": "Hi"}]}}],
    }
    packed = zstandard.ZstdCompressor(write_content_size=False).compress(json.dumps(thread).encode())
    with closing(sqlite3.connect(tmp_path / "threads.db")) as database:
        database.execute(
            "CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB)"
        )
        for name, data in (("a", packed), ("b", packed[:20])):
            database.execute("INSERT INTO threads VALUES (?, 's', '2026-03-08T10:00:00Z', 'zstd', ?)", (name, data))
        database.commit()
    report = read_in(lake, tmp_path / "threads.db")
    assert report["rejects"] == {"not_json": 1}
    assert [row["prompt"] for row in rows(lake)] == ["Hi"]


def test_a_sub_agent_of_zed_names_its_parent(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "zed" / "threads.db")
    by_prompt = {row["prompt"]: row for row in rows(lake)}
    assert by_prompt["Find fuel."]["parent_id"] == next(r["rollout_id"] for p, r in by_prompt.items() if "kiln" in p)


def test_a_session_of_the_agents_sdk_that_grows_in_its_log_is_one_row(
    samples: Path, tmp_path: Path, lake: Path
) -> None:
    path = tmp_path / "sessions.db"
    path.write_bytes((samples / "agents_sdk_sessions" / "branches.db").read_bytes())
    read_in(lake, path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        session = database.execute("SELECT session_id FROM agent_sessions").fetchone()[0]
        item = json.dumps({"role": "user", "content": "Thanks."})
        database.execute("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", (session, item))
        database.commit()
        read_in(lake, path)
    found = {row["messages"][-1]["content"]: row for row in rows(lake)}
    assert found.keys() == {"Thanks.", "Nine crowns."}
    assert found["Nine crowns."]["parent_id"] == found["Thanks."]["rollout_id"]


def test_events_of_adk_stand_by_their_time_and_a_torn_one_takes_no_other_with_it(samples: Path, lake: Path) -> None:
    report = read_in(lake, samples / "google_adk" / "sessions.db")
    assert report["rejects"] == {"not_json": 1}
    by_prompt = {row["prompt"]: row for row in rows(lake)}
    assert by_prompt["Is the crane free?"]["final_text"] == "It is."
    late = next(row for prompt, row in by_prompt.items() if "ship" in prompt)
    assert [(step["tool"], step["status"]) for step in late["steps"]] == [("ships", "ok"), ("tide", "missing")]


def test_a_session_of_adk_is_the_same_from_its_database_and_as_json(samples: Path, tmp_path: Path, lake: Path) -> None:
    with closing(sqlite3.connect(samples / "google_adk" / "sessions.db")) as database:
        app, user, name = database.execute("SELECT app_name, user_id, session_id FROM events LIMIT 1").fetchone()
        events = database.execute("SELECT event_data FROM events WHERE session_id = ? ORDER BY timestamp", (name,))
        session = {"id": name, "app_name": app, "user_id": user, "events": [json.loads(event) for (event,) in events]}
    dump = tmp_path / "session.json"
    dump.write_text(json.dumps(session), encoding="utf-8")
    read_in(lake, dump)
    (row,) = rows(lake)
    read_in(lake, samples / "google_adk" / "sessions.db")
    assert [each["rollout_id"] for each in rows(lake)].count(row["rollout_id"]) == 1


def test_strangers_who_say_the_same_to_llm_inherit_nothing(samples: Path, tmp_path: Path, lake: Path) -> None:
    path = tmp_path / "logs.db"
    path.write_bytes((samples / "llm_logs" / "logs.db").read_bytes())
    with closing(sqlite3.connect(path)) as database:
        thread, tip = database.execute("SELECT id, tip_message_hash FROM threads WHERE name = 'Hello'").fetchone()
        database.execute(
            "INSERT INTO threads (id, name, tip_message_hash) VALUES ('01m8pjn7f6wdj01qr9m5gsame1', 'same', ?)", (tip,)
        )
        database.commit()
    read_in(lake, path)
    by_name = {json.loads(row["extra"] or "{}").get("title"): row for row in rows(lake)}
    assert not any(info["inherited"] for info in by_name["same"]["message_info"])
    fork = by_name["Hello fork"]
    assert [info["inherited"] for info in fork["message_info"]] == [True, True, False, False]
    assert fork["parent_id"] == by_name["Hello"]["rollout_id"]
    assert thread == by_name["Hello"]["conversation_id"]


def test_what_llm_prints_of_its_log_and_the_log_itself_are_the_same_rows(
    samples: Path, tmp_path: Path, lake: Path
) -> None:
    listed = json.loads((samples / "llm_logs" / "export.json").read_text(encoding="utf-8"))
    backwards = tmp_path / "backwards.json"
    backwards.write_text(json.dumps(listed[::-1]), encoding="utf-8")
    read_in(lake, backwards)
    read_in(tmp_path / "other", samples / "llm_logs" / "export.json")
    assert said(lake) == said(tmp_path / "other")


def test_a_database_is_known_by_tables_that_were_made_late(tmp_path: Path) -> None:
    path = tmp_path / "late.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE notes (body TEXT)")
        spoken = "CREATE TABLE threads (id TEXT, summary TEXT, data_type TEXT)"
        database.executemany("INSERT INTO notes VALUES (?)", [("x" * 900 + spoken,)] * 100)
        for n in range(60):
            database.execute(f"CREATE TABLE filler_{n} (body TEXT, more TEXT, and_more TEXT)")
        database.execute("CREATE TABLE agent_messages (id INTEGER, session_id TEXT, message_data TEXT)")
        database.commit()
    assert path.read_bytes().find(b"CREATE TABLE agent_messages") > 65_536
    assert detect(path).scores["agents_sdk_sessions"] == 0.95


def test_a_young_database_whose_tables_lie_in_its_log_alone_is_read(tmp_path: Path, lake: Path) -> None:
    path = tmp_path / "c.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        with closing(_saver(path)) as saver:
            _state(saver, 1, None, _message("human", "h1", "In the log?"))
            saver.commit()
            assert b"CREATE TABLE" not in path.read_bytes()
            read_in(lake, path)
    assert [row["prompt"] for row in rows(lake)] == ["In the log?"]


def test_a_conversation_of_amazon_q_is_one_row_from_both_tables_and_as_it_was_saved(
    samples: Path, tmp_path: Path, lake: Path
) -> None:
    path = samples / "amazon_q" / "data.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        states = [state for (state,) in database.execute("SELECT value FROM conversations_v2 ORDER BY rowid")]
    saved = tmp_path / "saved.json"
    saved.write_text(states[0], encoding="utf-8")
    read_in(lake, saved)
    first = rows(lake)[0]["rollout_id"]
    read_in(lake, path)
    found = rows(lake)
    assert len(found) == 3
    assert [row["n_records"] for row in found if row["rollout_id"] == first] == [2]
    assert all("FAKE-never-read" not in str(row) for row in found)
    read_in(tmp_path / "once", path)
    assert said(lake) == said(tmp_path / "once")


def test_calls_that_a_prompt_cancelled_are_told_from_those_that_failed(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "amazon_q" / "data.sqlite3")
    steps = next(row["steps"] for row in rows(lake) if row["steps"])
    assert [(step["tool"], step["status"]) for step in steps] == [
        ("fs_read", "ok"),
        ("execute_bash", "error"),
        ("bell___weather", "ok"),
        ("execute_bash", "cancelled"),
    ]


def test_a_dump_of_the_saver_of_postgresql_is_its_threads(samples: Path, tmp_path: Path, lake: Path) -> None:
    whole = (samples / "langgraph_checkpoints" / "saver.sql").read_bytes()
    path = tmp_path / "saver.sql"
    path.write_bytes(whole[: whole.index(b"1f0b0000-0000-6000-8000-000000000002\t") + 400])
    assert read_in(lake, path)["rejects"].keys() >= {"torn_tail"}
    path.write_bytes(whole)
    report = read_in(lake, path)
    assert (report["rejects"], report["ignored"]) == ({"bad_state": 1}, {"applied_write": 1})
    (row,) = rows(lake)
    texts = [(message["role"], message["content"]) for message in row["messages"]]
    assert texts[0] == ("user", "Is the lock open?")
    assert texts[-1] == ("assistant", "The north gate is open.")
    assert [step["status"] for step in row["steps"]] == ["ok", "missing"]
    assert json.loads(row["extra"])["state"] == {"turn": 2, "note": "gate\tnorth"}
