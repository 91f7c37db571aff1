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


def test_a_compressed_chat_keeps_what_was_said(tmp_path: Path, lake: Path) -> None:
    memory = [
        _message("s1", "user", [{"text": "<state_snapshot>Rye is asked for.</state_snapshot>"}], 5),
        _message("s2", "gemini", [{"text": "Got it. Thanks for the additional context!"}], 5),
        _message("c1", "user", [{"text": "How much?"}], 5),
        _message("c2", "gemini", [{"text": "A ton."}], 5),
    ]
    more = [_message("u3", "user", "Today?", 6), _message("g3", "gemini", "No.", 7, tokens=_tokens(5, 1))]
    read_in(lake, _log(tmp_path / "a.jsonl", _HEADER, *CHAT, {"$set": {"messages": memory}}, *more))
    (row,) = rows(lake)
    assert _texts(row) == [
        *("Rye or wheat?", "Rye.", "How much?", "A ton."),
        *(memory[0]["content"][0]["text"], memory[1]["content"][0]["text"], "Today?", "No."),
    ]
    assert [info["synthetic"] for info in row["message_info"]] == [False] * 4 + [True] * 2 + [False] * 2
    assert (row["prompt"], row["flags"], row["usage"]["input_tokens"]) == ("Rye or wheat?", ["compacted"], 35)
    assert row["ended_at"].minute == 7


def test_a_request_taken_back_before_any_answer_stays(tmp_path: Path, lake: Path) -> None:
    cancelled = _message("i1", "info", "Request cancelled.", 2)
    read_in(lake, _log(tmp_path / "a.jsonl", _HEADER, CHAT[0], cancelled, {"$set": {"messages": []}}))
    (row,) = rows(lake)
    assert (_texts(row), row["status"], row["flags"]) == (["Rye or wheat?"], "aborted", ["interrupted"])


def test_a_memory_that_was_emptied_after_an_answer_is_left(tmp_path: Path, lake: Path) -> None:
    more = [_message("u3", "user", "Barley?", 6), _message("g3", "gemini", "No.", 7)]
    read_in(lake, _log(tmp_path / "a.jsonl", _HEADER, *CHAT, {"$set": {"messages": []}}, *more))
    main, left = sorted(rows(lake), key=lambda row: row["parent_id"] is not None)
    assert (_texts(main), len(_texts(left)), left["flags"]) == (["Barley?", "No."], 4, ["abandoned"])


def test_a_chat_of_which_all_was_taken_back_is_a_branch(tmp_path: Path, lake: Path) -> None:
    report = read_in(lake, _log(tmp_path / "a.jsonl", _HEADER, *CHAT, {"$rewindTo": "u1"}))
    assert report["rejects"] == {}
    assert sorted(len(row["messages"]) for row in rows(lake)) == [0, 4]


def test_the_prompt_is_what_was_typed(tmp_path: Path, lake: Path) -> None:
    pasted = _message("u1", "user", [{"text": "Read @a.txt"}, {"text": "--- Content ---"}, {"text": "oats"}], 2)
    pasted["content"].append({"text": "<hook_context>It is Sunday.</hook_context>"})
    pasted["displayContent"] = [{"text": "Read @a.txt"}]
    command = _message("u0", "user", "/model pro", 1)
    read_in(lake, _log(tmp_path / "a.jsonl", _HEADER, command, pasted, CHAT[1]))
    (row,) = rows(lake)
    assert (row["prompt"], row["n_turns"]) == ("Read @a.txt", 1)
    assert [info["synthetic"] for info in row["message_info"]] == [True, False, True, False]


def test_a_call_told_among_the_parts_too_is_one(tmp_path: Path, lake: Path) -> None:
    told = {"id": "c1", "name": "ls", "args": {}, "status": "success", "result": [_response("a\nb")]}
    call = _message("g1", "gemini", [{"functionCall": {"id": "c1", "name": "ls", "args": {}}}], 2, toolCalls=[told])
    read_in(lake, _log(tmp_path / "a.jsonl", _HEADER, CHAT[0], call, _message("r", "user", [_response("a")], 3)))
    (row,) = rows(lake)
    assert [(step["tool"], step["status"], step["result_index"]) for step in row["steps"]] == [("ls", "ok", 2)]
    assert _texts(row) == ["Rye or wheat?", "", "a\nb"]


def _response(output: str) -> dict[str, Any]:
    return {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": output}}}


def test_a_chat_saved_by_hand_is_the_same_as_an_object_and_as_a_list(samples: Path, tmp_path: Path, lake: Path) -> None:
    saved = samples / "gemini_cli" / "checkpoint.json"
    bare = tmp_path / "checkpoint-old.json"
    bare.write_text(json.dumps(json.loads(saved.read_text("utf-8"))["history"]), encoding="utf-8")
    read_in(lake, saved, bare)
    one, other = rows(lake)
    assert one["messages"] == other["messages"]
    assert (one["prompt"], one["final_text"], one["n_turns"]) == ("Is the oven hot?", "It is cold.", 1)
    assert [(step["tool"], step["status"]) for step in one["steps"]] == [
        ("read_file", "ok"),
        ("run_shell_command", "error"),
    ]
    assert [info["synthetic"] for info in one["message_info"]][:3] == [True, True, False]
