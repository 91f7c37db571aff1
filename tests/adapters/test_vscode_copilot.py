"""VS Code Copilot Chat: rounds of calls, logs of changes, replays of several prompts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl.adapters._vscode_rows import shown_text
from etl.adapters.vscode_copilot import _change
from tests.cases.reading import agrees, read_in, told
from tests.lakes import rows, said


def _row(lake: Path) -> dict[str, Any]:
    (row,) = rows(lake)
    return row


def test_rounds_say_what_was_called_and_what_came_back(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "vscode_copilot" / "session.json")
    row = _row(lake)
    agrees(
        told(row),
        {
            "prompt": "Why is the oven cold?",
            "status": "aborted",
            "steps": [
                ("run_in_terminal", {"command": "oven --log"}, "fuse blown\nOVEN_API_KEY=<SECRET_api_key>", "ok"),
                ("read_file", {"filePath": "/srv/oven.txt"}, None, "missing"),
                ("copilot_readFile", {}, None, "missing"),
            ],
        },
    )
    assert (row["usage"]["input_tokens"], row["usage"]["reasoning_tokens"], row["n_turns"]) == (400, 12, 2)
    assert [(verdict["name"], verdict["label"]) for verdict in row["judgments"]] == [("vote", "up")]


def test_a_log_of_changes_gives_what_it_leads_to_as_it_grows(samples: Path, tmp_path: Path, lake: Path) -> None:
    lines = (samples / "vscode_copilot" / "session.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "session.jsonl"
    for end in (3, 5, 9):
        path.write_bytes(b"".join(lines[:end]))
        read_in(lake, path)
    row = _row(lake)
    assert [(message["role"], message["content"]) for message in row["messages"]][-1] == ("assistant", "It is alive.")
    assert [(step["arguments"], step["status"]) for step in row["steps"]] == [('{"command":"yeast --check"}', "ok")]
    read_in(tmp_path / "once", path)
    assert said(lake) == said(tmp_path / "once")


def test_each_prompt_of_a_replay_is_a_row(samples: Path, tmp_path: Path, lake: Path) -> None:
    replay = json.loads((samples / "vscode_copilot" / "spec.chatreplay.json").read_text(encoding="utf-8"))
    replay["prompts"].append({"prompt": "And now?", "promptId": "second", "logs": []})
    (tmp_path / "two.json").write_text(json.dumps(replay), encoding="utf-8")
    report = read_in(lake, tmp_path / "two.json")
    assert report["rows"]["added"] == 2
    found = {row["prompt"]: row for row in rows(lake)}
    assert found["And now?"]["messages"][0]["content"] == "And now?"
    row = found["How hot is it?"]
    assert (row["final_text"], row["usage"]["input_tokens"], row["n_turns"]) == ("It is 200 degrees.", 205, 2)
    assert [info["inherited"] for info in row["message_info"]].count(True) == 2


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"kind": 1, "k": ["a", 0], "v": 9}, {"a": [9, 2]}),
        ({"kind": 1, "k": ["a", 2], "v": 3}, {"a": [1, 2, 3]}),
        ({"kind": 1, "k": ["a", 7], "v": 3}, {"a": [1, 2]}),
        ({"kind": 2, "k": ["a"], "v": [3], "i": 1}, {"a": [1, 3]}),
        ({"kind": 2, "k": ["b"], "v": [3]}, {"a": [1, 2], "b": [3]}),
        ({"kind": 3, "k": ["a"]}, {}),
        ({"kind": 1, "k": [], "v": 1}, {"a": [1, 2]}),
        ({"kind": 1, "k": ["x", "y"], "v": 1}, {"a": [1, 2]}),
    ],
)
def test_a_change_that_fits_nowhere_changes_nothing(change: dict[str, Any], state: dict[str, Any]) -> None:
    found: dict[str, Any] = {"a": [1, 2]}
    _change(found, change)
    assert found == state


def test_text_of_a_tree_stands_in_order() -> None:
    tree = {"node": {"children": [{"type": 2, "text": "a"}, {"children": [{"text": "b"}, {"text": "c"}]}]}}
    assert shown_text([{"value": tree}, {"value": "d"}]) == "abcd"


@pytest.mark.parametrize(
    ("confirmed", "status", "condition"),
    [
        ({"type": 0}, "error", "permission_denied"),
        (False, "error", "permission_denied"),
        ({"type": 5}, "cancelled", None),
    ],
)
def test_a_call_that_was_not_let_run_says_so(
    confirmed: Any, status: str, condition: str | None, tmp_path: Path, lake: Path
) -> None:
    invoked = {"kind": "toolInvocationSerialized", "toolId": "run", "toolCallId": "c1", "isConfirmed": confirmed}
    thought = {"kind": "thinking", "value": "Ask first."}
    told_back = {"c1": {"content": [{"value": "not now"}]}}
    rounds = [{"response": "I ask.", "toolCalls": [{"name": "run", "arguments": "{}", "id": "c1"}], "id": "r1"}]
    request = {
        "requestId": "q1",
        "message": {"text": "Run it."},
        "response": [thought, invoked],
        "result": {"metadata": {"toolCallRounds": rounds, "toolCallResults": told_back}},
        "timestamp": 1772400001000,
    }
    session = {"version": 3, "sessionId": "oven", "creationDate": 1772400000000, "requests": [request]}
    session |= {"requesterUsername": "ann", "responderUsername": "GitHub Copilot"}
    path = tmp_path / "session.json"
    path.write_text(json.dumps(session), encoding="utf-8")
    read_in(lake, path)
    row = _row(lake)
    assert [(step["status"], step["condition"]) for step in row["steps"]] == [(status, condition)]
    assert row["messages"][1]["reasoning_content"] == "Ask first."


@pytest.mark.parametrize("rounds", [True, False])
def test_what_a_command_printed_stands_with_its_part(rounds: bool, tmp_path: Path, lake: Path) -> None:
    terminal = {
        "kind": "terminal",
        "commandLine": {"original": "knead"},
        "terminalCommandState": {"exitCode": 1},
        "terminalCommandOutput": {"text": "too dry\n"},
    }
    part = {
        "kind": "toolInvocationSerialized",
        "toolCallId": "c1__vscode-1",
        "toolId": "run_in_terminal",
        "isComplete": {"type": 2},
        "toolSpecificData": terminal,
    }
    call = {"name": "run_in_terminal", "arguments": '{"command":"knead"}', "id": "c1__vscode-1"}
    metadata = {"toolCallRounds": [{"response": "", "toolCalls": [call]}]} if rounds else {}
    request = {
        "requestId": "r1",
        "timestamp": 1_789_369_200_000,
        "message": {"text": "Knead."},
        "response": [part],
        "result": {"metadata": metadata},
    }
    session = {"version": 3, "sessionId": "s1", "creationDate": 1_789_369_200_000, "requests": [request]}
    (tmp_path / "s.json").write_text(json.dumps(session), encoding="utf-8")
    read_in(lake, tmp_path / "s.json")
    agrees(told(_row(lake)), {"steps": [("run_in_terminal", {"command": "knead"}, "too dry\n", "error")]})
