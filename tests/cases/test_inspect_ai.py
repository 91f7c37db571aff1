"""An Inspect log with scores that are no numbers, epochs, and errors in two spellings (B45)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import Given, Ours, Shared, given, read_in
from tests.lakes import by_id

__all__ = ["given"]

_CALLS = [
    {"id": "r1", "function": "shell", "arguments": {"run": "a"}, "type": "function"},
    {"id": "r2", "function": "shell", "arguments": {"run": "b"}, "parse_error": "bad json"},
]
_RESULTS = [
    {"role": "tool", "tool_call_id": "r1", "content": "", "error": {"type": "timeout", "message": "Took too long."}},
    {"role": "tool", "tool_call_id": "r2", "content": "attachment://3c", "tool_error": "older text"},
]
_ANSWER = [{"type": "reasoning", "reasoning": "count"}, {"type": "text", "text": "6"}]
_SAMPLES: list[dict[str, Any]] = [
    {"id": 5, "epoch": 1, "messages": [{"role": "user", "content": "3+3?"}, {"role": "assistant", "content": _ANSWER}],
     "scores": {"exact": {"value": "C"}}},
    {"id": 5, "epoch": 2, "messages": [{"role": "user", "content": "3+3?"}, {"role": "assistant", "content": "7"}],
     "scores": {"exact": {"value": "I"}, "taste": {"value": float("nan")}}},
    {"id": "b", "epoch": 1, "scores": {"exact": {"value": None}, "parts": {"value": [float("nan"), 1.0]}},
     "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls": _CALLS},
                  *_RESULTS],
     "attachments": {"3c": "what it printed"}, "error": {"message": "limit"}},
    {"id": "c", "epoch": 1, "messages": [], "scores": {"exact": {"value": float("-inf")}}},
]  # fmt: skip
_RUN = {"eval_id": "EvB", "created": "2026-02-26T09:00:00+01:00", "task": "more-sums", "model": "demo/j"}
_LOG = {"version": 2, "eval": _RUN, "samples": [{"input": "?", "target": "6", **sample} for sample in _SAMPLES]}
OURS = Ours("scores.json", (json.dumps(_LOG),))


@pytest.mark.parametrize(
    ("log", "ids", "texts", "calls"),
    [
        (
            Shared("B45.json"),
            ["EvA/1/1", "EvA/1/2", "EvA/two/1", "EvA/three/1"],
            ("4", "5"),
            [('{"cmd":"x"}', "timeout: Command timed out."), ('{"cmd":"y"}', "old style error text")],
        ),
        (
            OURS,
            ["EvB/5/1", "EvB/5/2", "EvB/b/1", "EvB/c/1"],
            ("6", "7"),
            [('{"run":"a"}', "timeout: Took too long."), ('{"run":"b"}', "older text")],
        ),
    ],
    ids=["B45", "ours"],
)
def test_scores_errors_and_epochs(
    log: Shared | Ours,
    ids: list[str],
    texts: tuple[str, str],
    calls: list[tuple[str, str]],
    given: Given,
    tmp_path: Path,
) -> None:
    read_in(tmp_path / "lake", given(log))
    found = by_id(tmp_path / "lake")
    assert sorted(found) == sorted(ids)
    first, second, third, fourth = (found[key] for key in ids)
    assert [row["reward"] for row in (first, second, third, fourth)] == [1.0, 0.0, None, None]
    assert "unreadable_value" in fourth["flags"]
    assert "-Infinity" in fourth["rewards"]
    assert "NaN" in second["rewards"]
    assert (first["final_text"], second["final_text"]) == texts
    assert first["messages"][-1]["reasoning_content"]
    assert [(step["arguments"], step["error"]) for step in third["steps"]] == calls
    assert third["messages"][-1]["content"] != ""
    assert "parse_error" in third["message_info"][1]["extra"]
    assert (third["status"], third["error"]) == ("error", "limit")
    assert fourth["messages"] == []
    assert fourth["started_at"].isoformat() == "2026-02-26T08:00:00+00:00"
