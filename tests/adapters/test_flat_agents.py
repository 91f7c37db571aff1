"""Logs of agents that tell everything as flat lines: Droid, Grok CLI, Amp and Antigravity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import agrees, read_in, told
from tests.lakes import rows, said


def _row(lake: Path) -> dict[str, Any]:
    (row,) = rows(lake)
    return row


def test_a_droid_stream_ends_in_words_that_only_the_end_tells(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "droid" / "pump.jsonl")
    agrees(
        told(_row(lake)),
        {
            "prompt": "Start the pump.",
            "final_text": "The pump has no fuel.",
            "steps": [("Execute", {"command": "pump start", "riskLevel": "low"}, "pump: no fuel", "error")],
        },
    )
    assert _row(lake)["usage"]["input_tokens"] == 100


def test_a_droid_reminder_is_not_the_prompt(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "droid" / "dyke.jsonl")
    row = _row(lake)
    assert row["prompt"] == "Where does the dyke leak?"
    assert [step["status"] for step in row["steps"]] == ["ok", "error", "missing"]
    assert "compacted" in row["flags"]


def test_a_grok_history_keeps_its_name_as_it_grows(samples: Path, tmp_path: Path, lake: Path) -> None:
    lines = (samples / "grok_cli" / "tide.jsonl").read_bytes().splitlines(keepends=True)
    path, once = tmp_path / "chat_history.jsonl", tmp_path / "once"
    for end in (5, 8, len(lines)):
        path.write_bytes(b"".join(lines[:end]))
        read_in(lake, path)
    read_in(once, path)
    assert said(lake) == said(once)
    row = _row(lake)
    assert (row["prompt"], row["n_turns"]) == ("When is high tide?", 2)
    assert [step["actor"] for step in row["steps"]] == ["agent", "agent", "server", "agent"]


def test_a_droid_command_says_how_it_exited(tmp_path: Path, lake: Path) -> None:
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "Execute", "input": {}} for n in range(3)]
    told_back = [
        "fine\n\n[Process exited with code 0]",
        "no\n\n[Process exited with code 3]",
        "Error: Request cancelled by user",
    ]
    results = [
        {"type": "tool_result", "tool_use_id": f"t{n}", "content": text, **({"is_error": True} if n == 2 else {})}
        for n, text in enumerate(told_back)
    ]
    lines: list[Any] = [{"type": "session_start", "id": "dyke", "title": "", "owner": "", "cwd": "/srv"}]
    for n, (role, content) in enumerate((("user", "Pump."), ("assistant", calls), ("user", results))):
        at = f"2026-03-01T10:00:0{n}.000Z"
        lines.append({"type": "message", "id": f"m{n}", "timestamp": at, "message": {"role": role, "content": content}})
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    read_in(lake, path)
    assert [step["status"] for step in _row(lake)["steps"]] == ["ok", "error", "cancelled"]


def test_an_amp_run_says_itself_whether_it_failed(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "amp" / "thread.json")
    row = _row(lake)
    assert [(step["tool"], step["actor"], step["status"], step["error"]) for step in row["steps"]] == [
        ("Bash", "agent", "error", "exit 2"),
        ("Read", "agent", "ok", None),
        ("edit_file", "agent", "error", "old_str is not in the file"),
        ("Bash", "agent", "error", "Not on a Sunday."),
        ("Task", "agent", "cancelled", None),
        ("Grep", "agent", "ok", None),
        ("Bash", "user", "ok", None),
    ]
    assert (row["usage"]["input_tokens"], row["usage"]["cached_tokens"], row["usage"]["output_tokens"]) == (
        2310 + 2315 + 70,
        4310,
        107,
    )
    assert (row["prompt"], row["n_turns"], row["flags"]) == ("Why does the sluice stick?", 1, ["compacted"])


def test_an_amp_thread_names_the_one_that_it_was_handed_off_from(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "amp" / "thread.json", samples / "amp" / "handed-off.json")
    child, parent = sorted(rows(lake), key=lambda row: row["parent_id"] is None)
    assert child["parent_id"] == parent["rollout_id"]
    assert (child["status"], child["n_turns"], child["steps"][0]["status"]) == ("aborted", 1, "missing")


def test_antigravity_results_answer_calls_in_order(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "antigravity")
    row = _row(lake)
    assert (row["prompt"], row["n_turns"]) == ("Which kite is torn?", 2)
    assert [(step["tool"], step["status"]) for step in row["steps"]] == [
        ("list_dir", "ok"),
        ("run_command", "error"),
        ("run_command", "missing"),
    ]
    assert {"orphan_result", "truncated_source", "compacted"} < set(row["flags"])


def test_antigravity_steps_stand_by_their_index(tmp_path: Path, lake: Path) -> None:
    def step(index: int, kind: str, status: str = "DONE", **more: Any) -> dict[str, Any]:
        source = "USER_EXPLICIT" if kind == "USER_INPUT" else "MODEL"
        return {"step_index": index, "source": source, "type": kind, "status": status, **more}

    steps = [
        step(0, "USER_INPUT", content="Fly it."),
        step(4, "PLANNER_RESPONSE", content="It fell."),
        step(1, "PLANNER_RESPONSE", tool_calls=[{"name": "run_command", "args": {"CommandLine": "fly"}}]),
        step(2, "RUN_COMMAND", "RUNNING"),
        step(2, "RUN_COMMAND", content="The command failed with exit code: 3\nOutput:\nno wind"),
    ]
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in steps), encoding="utf-8")
    read_in(lake, path)
    row = _row(lake)
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [(step["status"], step["error"]) for step in row["steps"]] == [("error", "exit 3")]


@pytest.mark.parametrize(
    "name", ["droid", *(pytest.param(name, marks=pytest.mark.slow) for name in ("grok_cli", "antigravity", "kimi_cli"))]
)
def test_a_copy_under_another_name_changes_nothing(name: str, samples: Path, tmp_path: Path, lake: Path) -> None:
    read_in(lake, samples / name)
    before = said(lake)
    for path in sorted((samples / name).glob("*.jsonl")):
        (tmp_path / f"copy-of-{path.name}").write_bytes(path.read_bytes())
    read_in(lake, tmp_path)
    assert said(lake) == before


def test_the_settings_of_a_droid_session_say_what_it_used(tmp_path: Path, lake: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"type": "session_start", "id": "weir", "title": "Weir", "cwd": "/srv/weir"},
        {"type": "message", "id": "m1", "message": {"role": "user", "content": "Is it shut?"}},
        {"type": "message", "id": "m2", "message": {"role": "assistant", "content": "It is."}},
    ]
    used = {"inputTokens": 10, "outputTokens": 4, "cacheCreationTokens": 5, "cacheReadTokens": 60, "thinkingTokens": 1}
    settings = {"assistantActiveTimeMs": 900, "model": "demo-d", "providerLock": "demo", "tokenUsage": used}
    (tmp_path / "weir.settings.json").write_text(json.dumps(settings), encoding="utf-8")
    assert read_in(lake, tmp_path)["ignored"] == {"settings_without_session": 1}
    (tmp_path / "weir.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    read_in(lake, tmp_path)
    (row,) = rows(lake)
    usage = row["usage"]
    assert (row["model"], usage["input_tokens"], usage["cached_tokens"], usage["output_tokens"]) == (
        "demo-d",
        75,
        60,
        4,
    )
