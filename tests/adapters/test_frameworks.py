"""Histories that agent frameworks and chat applications keep: the AI SDK, Pydantic AI, goose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cases.reading import read_in
from tests.lakes import rows


def _row(lake: Path) -> dict[str, Any]:
    (row,) = rows(lake)
    return row


def _steps(row: dict[str, Any]) -> list[tuple[str, str, str]]:
    messages = row["messages"]
    results = [None if step["result_index"] is None else messages[step["result_index"]] for step in row["steps"]]
    return [
        (step["tool"], step["status"], result["content"] if result else "")
        for step, result in zip(row["steps"], results, strict=True)
    ]


def test_a_stored_turn_of_the_ai_sdk_is_several_responses(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "ai_sdk_ui" / "chat.json")
    row = _row(lake)
    assert _steps(row) == [
        ("get-weather", "ok", '{"celsius":3}'),
        ("get-weather", "error", "station offline"),
        ("send_mail", "cancelled", "not now"),
        ("get-weather", "missing", ""),
    ]
    assert [len(message["tool_calls"] or ()) for message in row["messages"] if message["role"] == "assistant"] == [
        2,
        1,
        0,
        1,
    ]


def test_calls_that_the_ai_sdk_logs_twice_are_read_once(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "ai_sdk_ui" / "version-4.json")
    assert _steps(_row(lake)) == [("getWeather", "ok", '{"t":3}'), ("getRain", "ok", '{"mm":0}')]
    assert _row(lake)["final_text"] == "3 degrees, and dry."


def test_a_message_table_in_any_order_is_the_same_chats(samples: Path, tmp_path: Path) -> None:
    lines = (samples / "ai_sdk_ui" / "message-table.jsonl").read_text("utf-8").splitlines()[:4]
    found = []
    for name, order in (("a", lines), ("b", lines[::-1])):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(order) + "\n", "utf-8")
        read_in(tmp_path / name, path)
        found.append({row["rollout_id"]: row["content_hash"] for row in rows(tmp_path / name)})
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_a_prompt_to_try_again_is_the_failed_result_of_its_call(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "pydantic_ai" / "history.json")
    row = _row(lake)
    assert [(tool, status) for tool, status, _ in _steps(row)] == [
        ("weather", "error"),
        ("rain", "ok"),
        ("weather", "ok"),
        ("mail", "missing"),
        ("web_search", "ok"),
    ]
    assert (row["usage"]["input_tokens"], row["usage"]["cached_tokens"]) == (390, 140)
    assert row["n_turns"] == 1


def test_a_pydantic_ai_history_keeps_its_name_as_it_grows(samples: Path, tmp_path: Path, lake: Path) -> None:
    history = json.loads((samples / "pydantic_ai" / "history.json").read_text("utf-8"))
    path = tmp_path / "history.json"
    for end in (4, len(history)):
        path.write_text(json.dumps(history[:end]), "utf-8")
        read_in(lake, path)
    assert len(_row(lake)["steps"]) == 5


def test_results_of_goose_are_those_of_its_calls(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "goose" / "session.jsonl")
    row = _row(lake)
    assert [(status, said) for _, status, said in _steps(row)] == [
        ("ok", "a.py\nb.py"),
        ("error", "-32603: no such file"),
        ("error", "-32602: Could not interpret tool use parameters for id c3"),
        ("missing", ""),
    ]
    assert row["n_turns"] == 2
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (250, 50)


def test_the_database_of_goose_is_its_sessions(samples: Path, lake: Path) -> None:
    report = read_in(lake, samples / "goose" / "sessions.db")
    (row,) = rows(lake)
    assert (row["conversation_id"], row["prompt"], row["final_text"]) == (
        "20260301_1",
        "How deep is the pond?",
        "Two metres.",
    )
    assert [(step["call_id"], step["status"]) for step in row["steps"]] == [("t1", "ok"), ("t2", "error")]
    assert (row["usage"]["input_tokens"], row["model"], row["flags"]) == (300, "goose-demo", [])
    assert report["ignored"] == {"metadata": 1}


def test_what_goose_shows_to_a_person_alone_is_no_result(tmp_path: Path, lake: Path) -> None:
    blocks = [
        {"type": "text", "text": "a.py", "annotations": {"audience": ["assistant"]}},
        {"type": "text", "text": "a.py", "annotations": {"audience": ["user"], "priority": 0.0}},
        {"type": "text", "text": "1 file", "annotations": {"audience": ["user"]}},
    ]
    call = {"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}}
    conversation = [
        {"role": "user", "created": 1, "content": [{"type": "text", "text": "List."}]},
        {"role": "assistant", "created": 2, "content": [{"type": "toolRequest", "id": "t1", "toolCall": call}]},
        {
            "role": "user",
            "created": 3,
            "content": [{"type": "toolResponse", "id": "t1", "toolResult": {"status": "success", "value": blocks}}],
        },
    ]
    session = {"id": "1", "working_dir": "/srv", "message_count": 3, "conversation": conversation}
    (tmp_path / "g.json").write_text(json.dumps(session), encoding="utf-8")
    read_in(lake, tmp_path / "g.json")
    (row,) = rows(lake)
    assert row["messages"][2]["content"] == "a.py"
    assert [block["text"] for block in json.loads(row["message_info"][2]["extra"])["shown"]] == ["1 file"]
