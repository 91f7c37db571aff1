"""What `claude -p --output-format stream-json` prints: pieces and whole messages, counts, ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import read_in, told
from tests.lakes import rows

_SESSION = {"session_id": "hive", "parent_tool_use_id": None}


def _piece(event: dict[str, Any]) -> dict[str, Any]:
    return {"type": "stream_event", "event": event, **_SESSION}


def _whole(text: str) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 0}
    block = {"type": "text", "text": text}
    message = {
        "id": "m1",
        "model": "demo",
        "role": "assistant",
        "content": [block],
        "stop_reason": None,
        "usage": usage,
    }
    return {"type": "assistant", "message": message, **_SESSION}


PIECES = [
    _piece({"type": "message_start", "message": {**_whole("")["message"], "content": []}}),
    _piece({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    _piece({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Seven "}}),
    _piece({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "frames."}}),
]
COUNTS = _piece({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 40}})
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "Seven frames.",
    "total_cost_usd": 0.25,
    "usage": {"input_tokens": 5, "output_tokens": 40, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 0},
    "session_id": "hive",
}


def _row(tmp_path: Path, lake: Path, *events: dict[str, Any]) -> dict[str, Any]:
    path = tmp_path / "capture.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    read_in(lake, path)
    (row,) = rows(lake)
    return row


@pytest.mark.parametrize(
    ("events", "counted", "flags"),
    [
        ([*PIECES, _whole("Seven frames."), COUNTS, RESULT], 40, []),
        ([_whole("Seven frames."), RESULT], 40, []),
        ([*PIECES, _whole("Seven frames."), COUNTS], 40, ["incomplete"]),
        ([*PIECES], None, ["incomplete", "usage_partial"]),
        ([RESULT], 40, []),
    ],
    ids=["pieces", "whole", "no result", "cut off", "result alone"],
)
def test_a_message_is_said_once_and_its_true_counts_are_taken(
    events: list[dict[str, Any]], counted: int | None, flags: list[str], tmp_path: Path, lake: Path
) -> None:
    row = _row(tmp_path, lake, *events)
    assert told(row)["messages"] == [("assistant", "Seven frames.")]
    assert row["usage"]["output_tokens"] == counted
    assert row["usage"]["input_tokens"] == 12
    assert row["flags"] == sorted(["content_not_captured", *flags])


@pytest.mark.parametrize(
    ("result", "status", "error"),
    [
        ({}, "completed", None),
        ({"is_error": True, "result": "Not logged in"}, "error", "Not logged in"),
        ({"subtype": "error_max_turns", "is_error": True, "result": None}, "truncated", None),
        ({"subtype": "error_during_execution", "is_error": True, "result": None, "errors": ["boom"]}, "error", "boom"),
    ],
)
def test_how_a_run_ended(result: dict[str, Any], status: str, error: str | None, tmp_path: Path, lake: Path) -> None:
    row = _row(tmp_path, lake, _whole("Seven frames."), {**RESULT, **result})
    assert (row["status"], row["error"]) == (status, error)


def test_a_sub_agent_is_a_row_with_its_parent(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "claude_stream_json" / "honey.jsonl")
    by_agent = {row["agent"]: row for row in rows(lake)}
    assert by_agent["counter"]["parent_id"] == by_agent["claude-code"]["rollout_id"]
    assert by_agent["counter"]["prompt"] == "Count the frames of hive 2."
    assert by_agent["claude-code"]["prompt"] == "How many frames hold honey?"


def test_the_real_captures(shared: Path, lake: Path) -> None:
    read_in(lake, shared / "corpora" / "claude-code-stream-json")
    found = {row["status"]: row for row in rows(lake) if row["status"] != "completed"}
    assert found["truncated"]["finish_reason"] == "error_max_turns"
    assert "Not logged in" in found["error"]["error"]
    assert sorted(row["usage"]["output_tokens"] for row in rows(lake)) == [0, 173, 299, 457]
