"""Hook payloads of Claude Code: calls before and after they ran, sessions in which nothing happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cases.reading import read_in, told
from tests.lakes import rows


def _log(path: Path, *payloads: dict[str, Any]) -> Path:
    named = [{"session_id": "s", "cwd": "/srv/forge", **payload} for payload in payloads]
    path.write_text("".join(json.dumps(payload) + "\n" for payload in named), encoding="utf-8")
    return path


def _tool(event: str, command: str, **more: Any) -> dict[str, Any]:
    return {"hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": command}, **more}


def test_a_call_told_before_and_after_is_one(tmp_path: Path, lake: Path) -> None:
    before = [_tool("PreToolUse", "heat"), _tool("PermissionRequest", "heat"), _tool("PreToolUse", "cool")]
    after = [_tool("PostToolUse", "cool", tool_response="cold"), _tool("PostToolUse", "heat", tool_response="hot")]
    read_in(lake, _log(tmp_path / "hooks.jsonl", *before, *after, {"hook_event_name": "SessionEnd", "reason": "exit"}))
    (row,) = rows(lake)
    assert told(row)["steps"] == [
        ("Bash", {"command": "heat"}, "hot", "ok"),
        ("Bash", {"command": "cool"}, "cold", "ok"),
    ]
    assert row["flags"] == ["content_not_captured"]


def test_a_session_in_which_nothing_happens_is_left_out_by_name(tmp_path: Path, lake: Path) -> None:
    start = {"hook_event_name": "SessionStart", "source": "startup"}
    report = read_in(lake, _log(tmp_path / "hooks.jsonl", start, {"hook_event_name": "SessionEnd", "reason": "exit"}))
    assert (report["ignored"], rows(lake)) == ({"silent_session": 2}, [])


def test_a_sub_agent_is_a_row_with_its_parent(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "claude_hooks" / "forge.jsonl")
    main, other = sorted(rows(lake), key=lambda row: row["parent_id"] is not None)
    assert (main["prompt"], main["final_text"], main["model"]) == (
        "Is the forge hot?",
        "Yes, 900 degrees.",
        "claude-demo-5",
    )
    assert (other["parent_id"], other["agent"], other["final_text"]) == (
        main["rollout_id"],
        "counter",
        "Three hammers.",
    )
    assert [step["status"] for step in main["steps"]] == ["ok", "error", "missing"]
