"""Gemini CLI chats and streams: changes, rewinds, sub-agents, copies, runs in one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.adapters._gemini_parts import read_parts
from tests.cases.reading import read_in, told
from tests.lakes import rows, said

_HEADER = {"sessionId": "bread", "projectHash": "ab" * 32, "startTime": "2026-04-01T06:00:00.000Z", "kind": "main"}


def _message(name: str, kind: str, content: Any, minute: int, **more: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": f"2026-04-01T06:{minute:02}:00.000Z", "type": kind, "content": content, **more}


def _tokens(read: int, written: int, thought: int = 0) -> dict[str, int]:
    return {"input": read, "output": written, "cached": 0, "thoughts": thought, "tool": 0}


CHAT = [
    _message("u1", "user", [{"text": "Rye or wheat?"}], 1),
    _message("g1", "gemini", "Rye.", 2, model="demo", tokens=_tokens(10, 2, 3)),
    _message("u2", "user", "How much?", 3),
    _message("g2", "gemini", "A ton.", 4, model="demo", tokens=_tokens(20, 3)),
]


def _log(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def _texts(row: dict[str, Any]) -> list[str]:
    return [message["content"] for message in row["messages"]]


def test_a_rewind_leaves_a_branch(tmp_path: Path, lake: Path) -> None:
    again = [
        _message("u3", "user", "How much, in kilos?", 5),
        _message("g3", "gemini", "1000.", 6, tokens=_tokens(7, 1)),
    ]
    read_in(lake, _log(tmp_path / "a.jsonl", _HEADER, *CHAT, {"$rewindTo": "u2"}, *again))
    main, left = sorted(rows(lake), key=lambda row: row["parent_id"] is not None)
    assert _texts(main) == ["Rye or wheat?", "Rye.", "How much, in kilos?", "1000."]
    assert _texts(left) == ["Rye or wheat?", "Rye.", "How much?", "A ton."]
    assert [info["inherited"] for info in left["message_info"]] == [True, True, False, False]
    assert (left["parent_id"], left["flags"]) == (main["rollout_id"], ["abandoned"])
    assert [(row["usage"]["input_tokens"], row["usage"]["output_tokens"]) for row in (main, left)] == [(17, 6), (20, 3)]


def test_a_message_that_is_written_again_is_one(tmp_path: Path, lake: Path) -> None:
    grown = {**CHAT[1], "content": "Rye, of course.", "tokens": _tokens(10, 5)}
    read_in(lake, _log(tmp_path / "a.jsonl", _HEADER, *CHAT[:2], grown))
    (row,) = rows(lake)
    assert _texts(row) == ["Rye or wheat?", "Rye, of course."]
    assert (row["usage"]["output_tokens"], row["n_records"]) == (5, 4)


def test_a_chat_as_one_object_and_its_log_are_one_session(tmp_path: Path, lake: Path) -> None:
    whole = tmp_path / "chat.json"
    updated = "2026-04-01T06:02:30.000Z"
    whole.write_text(json.dumps({**_HEADER, "lastUpdated": updated, "messages": CHAT[:2]}, indent=1), encoding="utf-8")
    log = _log(tmp_path / "chat.jsonl", _HEADER, *CHAT)
    read_in(lake, whole, log)
    (row,) = rows(lake)
    assert _texts(row) == ["Rye or wheat?", "Rye.", "How much?", "A ton."]
    again = tmp_path / "again"
    read_in(again, log)
    read_in(again, whole)
    assert said(again) == said(lake)


def test_a_sub_agent_is_found_by_the_call_that_names_it(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "gemini_cli")
    by_kind = {json.loads(row["extra"] or "{}").get("kind"): row for row in rows(lake)}
    assert by_kind["subagent"]["parent_id"] == by_kind["main"]["rollout_id"]


def test_runs_in_one_file_are_rows_of_one_session(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "gemini_stream")
    first, second = sorted(rows(lake), key=lambda row: str(row["started_at"]))
    assert first["conversation_id"] == second["conversation_id"]
    assert told(first)["messages"][1] == ("assistant", "I will look into the oven.")
    assert (first["status"], first["usage"]["input_tokens"]) == ("completed", 2000)
    assert (second["status"], second["steps"][0]["status"]) == ("unknown", "missing")


@given(st.lists(st.text(max_size=8), max_size=6), st.lists(st.text(min_size=1, max_size=8), max_size=3))
def test_parts_keep_all_that_is_said(texts: list[str], thoughts: list[str]) -> None:
    found = read_parts([*({"text": text} for text in texts), *({"text": text, "thought": True} for text in thoughts)])
    assert found.text == "".join(texts)
    assert (found.reasoning or "") == "\n".join(thoughts)
    assert found.other is None
