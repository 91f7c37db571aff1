"""GitHub Copilot CLI sessions: calls told twice, line ends inside texts (B10), sub-agents, totals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import Given, Ours, Shared, agrees, given, read_in, told
from tests.lakes import rows

__all__ = ["given"]

_AT = "2026-02-10T09:00:{:02}.000Z"


def _session(*events: tuple[str, dict[str, Any]]) -> Ours:
    named = [("session.start", {"sessionId": "vines", "version": 1}), *events]
    lines = []
    for n, (kind, data) in enumerate(named):
        event: dict[str, Any] = {"type": kind, "data": data, "id": f"e{n}", "timestamp": _AT.format(n)}
        event["parentId"] = f"e{n - 1}" if n else None
        lines.append(json.dumps(event, ensure_ascii=False))
    return Ours("vines.jsonl", tuple(lines))


_CALL = {"toolCallId": "c1", "name": "view", "arguments": {"path": "rows.txt"}}
_STARTED = {"toolCallId": "c1", "toolName": "view", "arguments": {"path": "rows.txt"}}
ODD = "one\u2028two\u2029three\u0085four\x0bfive"
LOG = _session(
    ("user.message", {"content": "What do the rows say?", "attachments": []}),
    ("assistant.message", {"messageId": "m1", "content": "", "toolRequests": [_CALL]}),
    ("tool.execution_start", _STARTED),
    ("tool.execution_complete", {"toolCallId": "c1", "success": True, "result": {"content": ODD}}),
    ("assistant.message", {"messageId": "m2", "content": "Five lines.", "toolRequests": []}),
)


@pytest.mark.parametrize(
    ("log", "prompt", "path", "text", "final"),
    [
        (
            Shared("B10.events.jsonl"),
            "What does notes.txt say?",
            "notes.txt",
            "first\u2028second\u0085third\x0bfourth",
            "It has two lines.",
        ),
        (LOG, "What do the rows say?", "rows.txt", ODD, "Five lines."),
    ],
    ids=["B10", "ours"],
)
def test_line_ends_of_unicode_cut_no_line_and_a_call_told_twice_is_one(
    log: Shared | Ours, prompt: str, path: str, text: str, final: str, given: Given, lake: Path
) -> None:
    report = read_in(lake, given(log))
    (row,) = rows(lake)
    agrees(
        told(row),
        {
            "messages": [("user", prompt), ("assistant", ""), ("tool", text), ("assistant", final)],
            "steps": [("view", {"path": path}, text, "ok")],
            "error": None,
            "flags": [],
        },
    )
    assert (report["records_in"], report["records_used"], report["rejects"]) == (6, 6, {})


def test_a_call_that_only_starts_is_a_call(given: Given, lake: Path) -> None:
    log = _session(("user.message", {"content": "Look."}), ("tool.execution_start", _STARTED))
    read_in(lake, given(log))
    (row,) = rows(lake)
    assert [(step["tool"], step["status"]) for step in row["steps"]] == [("view", "missing")]


def test_the_total_of_a_session_is_shared_with_its_sub_agents(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "copilot_cli" / "rows.jsonl")
    main, other = sorted(rows(lake), key=lambda row: row["parent_id"] is not None)
    assert other["parent_id"] == main["rollout_id"]
    assert (main["usage"]["output_tokens"], other["usage"]["output_tokens"]) == (92, 15)
    assert (other["agent"], other["model"], other["final_text"]) == ("explore", "demo-gpt-5", "Row 7 is dry.")
    assert "Row 7 is dry." not in [m["content"] for m in main["messages"] if m["role"] == "assistant"]


@pytest.mark.parametrize(
    ("event", "status"), [(("abort", {"reason": "user"}), "aborted"), (("session.error", {"message": "down"}), "error")]
)
def test_how_a_session_ended(event: tuple[str, dict[str, Any]], status: str, given: Given, lake: Path) -> None:
    read_in(lake, given(_session(("user.message", {"content": "Look."}), event)))
    (row,) = rows(lake)
    assert row["status"] == status


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("no rule\n<exited with exit code 2>", "error"),
        ("done\n<exited with exit code 0>", "ok"),
        ("gone\n<command with shellId: 3 completed with exit code 127>", "error"),
        ("it says <exited with exit code 2> in the middle", "ok"),
    ],
)
def test_a_command_says_itself_how_it_exited(text: str, status: str, given: Given, lake: Path) -> None:
    call = {"toolCallId": "c1", "name": "bash", "arguments": {"command": "make"}}
    result = {"toolCallId": "c1", "success": True, "result": {"content": text}}
    message = {"messageId": "m1", "content": "", "toolRequests": [call]}
    read_in(lake, given(_session(("assistant.message", message), ("tool.execution_complete", result))))
    (row,) = rows(lake)
    assert [step["status"] for step in row["steps"]] == [status]


def test_what_comes_after_a_resume_counts_beside_the_totals(given: Given, lake: Path) -> None:
    usage = {"inputTokens": 300, "outputTokens": 55, "cacheReadTokens": 150, "cacheWriteTokens": 0}
    log = _session(
        ("user.message", {"content": "Prune."}),
        ("assistant.message", {"messageId": "m1", "content": "Done.", "outputTokens": 55}),
        ("session.shutdown", {"modelMetrics": {"demo": {"usage": usage}}}),
        ("session.resume", {"eventCount": 4}),
        ("tool.user_requested", {"toolCallId": "u1", "toolName": "bash", "arguments": {"command": "ls"}}),
        ("tool.execution_complete", {"toolCallId": "u1", "success": True, "result": "rows.txt"}),
        ("assistant.message", {"messageId": "m2", "content": "More.", "outputTokens": 3}),
    )
    read_in(lake, given(log))
    (row,) = rows(lake)
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (300, 58)
    assert row["flags"] == ["usage_partial"]
    assert [(step["tool"], step["actor"], step["status"]) for step in row["steps"]] == [("bash", "user", "ok")]
