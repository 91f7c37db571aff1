"""Codex rollouts and exec streams: said twice, five spellings of a call, compressed, running totals (B19–B21, B23,
B24)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.adapters.codex_rollouts import Rollout
from tests.cases.reading import Given, Ours, Shared, agrees, given, read_in, told, told_by_id
from tests.lakes import rows

__all__ = ["given"]


def _log(name: str, rollout: Rollout) -> Ours:
    return Ours(name, tuple(rollout.lines))


def _twice(dual: bool) -> Rollout:
    rollout = Rollout("twice", dual=dual)
    rollout.item(
        "message", role="developer", content=[{"type": "input_text", "text": "<permissions>none</permissions>"}]
    )
    rollout.said("user", "# AGENTS.md instructions\n\n<INSTRUCTIONS>Be kind.</INSTRUCTIONS>", dual=False)
    rollout.said("user", "<environment_context><cwd>/srv/loom</cwd></environment_context>", dual=False)
    for answer in ("Red.", "Still red."):
        rollout.said("user", "Which thread?")
        rollout.thought("Look at the loom.")
        rollout.said("assistant", answer)
    return rollout


@pytest.mark.parametrize(
    ("log", "question", "answers"),
    [
        (Shared("B19/rollout-old-dual.jsonl"), "What is 3+3?", ("6", "Still 6.")),
        (Shared("B19/rollout-new-single.jsonl"), "What is 3+3?", ("6", "Still 6.")),
        (_log("dual.jsonl", _twice(True)), "Which thread?", ("Red.", "Still red.")),
        (_log("single.jsonl", _twice(False)), "Which thread?", ("Red.", "Still red.")),
    ],
    ids=["B19 dual", "B19 single", "ours dual", "ours single"],
)
def test_what_is_recorded_twice_is_read_once(
    log: Shared | Ours, question: str, answers: tuple[str, str], given: Given, lake: Path
) -> None:
    read_in(lake, given(log))
    (row,) = rows(lake)
    said = [
        (message["role"], message["content"])
        for message, info in zip(row["messages"], row["message_info"], strict=True)
        if not info["synthetic"] and message["role"] != "developer"
    ]
    assert said == [("user", question), ("assistant", answers[0]), ("user", question), ("assistant", answers[1])]
    assert (row["prompt"], row["final_text"], row["n_turns"]) == (question, answers[1], 2)
    assert [message["reasoning_content"] for message in row["messages"]].count(None) < len(row["messages"])
    assert "AAAA" not in json.dumps(row["messages"])


def _spellings() -> Rollout:
    rollout = Rollout("spellings")
    rollout.said("user", "Mend the loom.")
    rollout.item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="c1")
    rollout.item(
        "function_call_output",
        call_id="c1",
        output='{"output":"shuttle\\n","metadata":{"exit_code":0,"duration_seconds":0.2}}',
    )
    rollout.item("custom_tool_call", status="completed", callId="c2", name="apply_patch", input="*** Begin Patch\n+a")
    rollout.item("custom_tool_call_output", callId="c2", output={"type": "input_text", "text": "Done"})
    rollout.item("local_shell_call", call_id="c3", action={"type": "exec", "command": ["weave"]})
    rollout.item("function_call_output", call_id="c3", output="Exit code: 9\nWall time: 0.5 seconds\nOutput:\nsnapped")
    rollout.item("web_search_call", status="completed", action={"type": "search", "query": "warp"})
    rollout.line("a_new_record", {"hello": 1})
    rollout.said("assistant", "Mended, one thread snapped.")
    return rollout


@pytest.mark.parametrize(
    ("log", "prompt", "steps"),
    [
        (
            Shared("B20.jsonl"),
            "Bump the version.",
            [
                ("shell", {"command": ["cat", "VERSION"]}, "1.0\n", "ok"),
                (
                    "apply_patch",
                    {"input": "*** Begin Patch\n*** Update File: VERSION\n-1.0\n+1.1\n*** End Patch"},
                    "Success. Updated VERSION",
                    "ok",
                ),
                ("local_shell", {"command": ["bash", "-lc", "make check"], "timeout_ms": 1000}, "1 failed\n", "error"),
                ("web_search", {"query": "semver rules"}, None, "ok"),
            ],
        ),
        (
            _log("spellings.jsonl", _spellings()),
            "Mend the loom.",
            [
                ("shell", {"command": ["ls"]}, "shuttle\n", "ok"),
                ("apply_patch", {"input": "*** Begin Patch\n+a"}, "Done", "ok"),
                (
                    "local_shell",
                    {"command": ["weave"]},
                    "Exit code: 9\nWall time: 0.5 seconds\nOutput:\nsnapped",
                    "error",
                ),
                ("web_search", {"query": "warp"}, None, "ok"),
            ],
        ),
    ],
    ids=["B20", "ours"],
)
def test_every_spelling_of_a_call(log: Shared | Ours, prompt: str, steps: list[Any], given: Given, lake: Path) -> None:
    report = read_in(lake, given(log))
    (row,) = rows(lake)
    agrees(told(row), {"prompt": prompt, "steps": steps, "status": "completed"})
    assert "missing_result" not in row["flags"]
    assert sum(n for rule, n in report["ignored"].items() if rule.startswith("unknown_type:")) == 1
    assert report["rejects"] == {}


def _totals() -> Rollout:
    rollout = Rollout("totals", model="loom-a")
    rollout.event("token_count", info=None)
    rollout.said("user", "One.")
    rollout.said("assistant", "1")
    rollout.used((1000, 200, 300, 250))
    rollout.used((1000, 200, 300, 250))
    rollout.turn("loom-b")
    rollout.said("user", "Two.")
    rollout.said("assistant", "Done 2.")
    rollout.used((2100, 900, 400, 300))
    return rollout


@pytest.mark.parametrize(
    ("log", "models"),
    [
        (Shared("B23.jsonl"), ["demo-codex-a", "demo-codex-b"]),
        (_log("totals.jsonl", _totals()), ["loom-a", "loom-b"]),
    ],
    ids=["B23", "ours"],
)
def test_a_running_total_counts_each_response_once(
    log: Shared | Ours, models: list[str], given: Given, lake: Path
) -> None:
    read_in(lake, given(log))
    (row,) = rows(lake)
    assert told(row)["usage"] == {
        "input_tokens": 2100,
        "output_tokens": 400,
        "cached_tokens": 900,
        "reasoning_tokens": 300,
    }
    assert [info["model"] for info in row["message_info"] if info["model"]] == models
    assert (row["model"], row["final_text"]) == (models[1], "Done 2.")
    assert sum(info["output_tokens"] or 0 for info in row["message_info"]) == 400


def test_compressed_sessions_are_read_and_a_broken_one_is_named(tmp_path: Path, shared: Path, lake: Path) -> None:
    report = read_in(lake, shared / "cases" / "B21")
    assert {(row["prompt"], row["final_text"]) for row in rows(lake)} == {
        ("Old question?", "Old answer."),
        ("Only compressed?", "Yes."),
    }
    assert report["files"]["failed"] == 1
    (failed,) = [file for file in rows(lake, "sources") if file["state"] == "failed"]
    assert "truncated" in failed["error"]


def test_a_session_beside_its_compressed_copy_is_one_row(tmp_path: Path, lake: Path) -> None:
    rollout = Rollout("both")
    rollout.said("user", "Old?")
    rollout.said("assistant", "Old.")
    plain = tmp_path / "rollout-both.jsonl"
    plain.write_text("\n".join(rollout.lines) + "\n", encoding="utf-8")
    compressed = tmp_path / "rollout-both.jsonl.zst"
    compressed.write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    cut = tmp_path / "rollout-cut.jsonl.zst"
    cut.write_bytes(compressed.read_bytes()[:40])
    report = read_in(lake, tmp_path)
    assert [row["conversation_id"] for row in rows(lake)] == ["both"]
    assert report["files"]["failed"] == 1


def test_an_exec_stream_has_no_prompt_and_foreign_lines_are_no_session(shared: Path, lake: Path) -> None:
    report = read_in(lake, shared / "cases" / "B24")
    found = told_by_id(lake)
    stream = found["0199bbbb-0000-7000-8000-000000000001"]
    agrees(
        stream,
        {
            "prompt": None,
            "final_text": "One file.",
            "flags": ["content_not_captured"],
            "steps": [("command_execution", {"command": "bash -lc 'ls src'"}, "a.py\n", "ok")],
            "usage": {"input_tokens": 500, "cached_tokens": 100, "output_tokens": 20},
        },
    )
    assert len(found) == 2
    failed = {Path(file["uri"]).name: file["error"] for file in rows(lake, "sources") if file["state"] == "failed"}
    assert list(failed) == ["crm-dump.jsonl"]
    assert "no known conversation format" in failed["crm-dump.jsonl"]
    assert report["files"]["failed"] == 1
