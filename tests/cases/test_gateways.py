"""Calls that a gateway logged, with placeholders, missing counts and two ways to write times (B44)."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import Given, Ours, Shared, given, read_in
from tests.lakes import rows

__all__ = ["given"]


def _line(name: str, messages: Any, response: Any, **more: Any) -> str:
    times = {"startTime": 1772010000.25, "endTime": 1772010002.75}
    counts = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    value = {"id": name, "call_type": "acompletion", "model": "demo", "status": "success", **times, **counts, **more}
    return json.dumps({**value, "messages": messages, "response": response})


def _said(content: str, finish: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "tool_calls": None}
    return {"id": "cc", "choices": [{"index": 0, "finish_reason": finish, "message": message}]}


def _user(content: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


_ADD = [
    *_user("Sum 2 and 3"),
    {"type": "function_call", "call_id": "fc1", "name": "add", "arguments": '{"a":2,"b":3}'},
    {"type": "function_call_output", "call_id": "fc1", "output": "5"},
]
_SUM = {
    "id": "r1",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 5."}]}],
}
_NO_SPLIT = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 50}
_NAIVE = {"startTime": "2026-02-25 09:00:00.250000", "endTime": "2026-02-25 09:00:02.750000", "cache_hit": "None"}
GATEWAY = Ours(
    "gateway.jsonl",
    (
        _line("ok", _user("hello"), _said("hi")),
        _line("placeholder", _user("default-message-value"), _said("A real answer.")),
        _line("redacted", _user("redacted-by-litellm"), {"text": "redacted-by-litellm"}),
        _line("responses", _ADD, _SUM, call_type="aresponses", **_NO_SPLIT),
        _line("naive", "hello as text", _said("cut he", "length"), **_NAIVE),
    ),
)


@pytest.mark.parametrize("log", [Shared("B44.jsonl"), GATEWAY], ids=["shared", "ours"])
def test_b44_placeholders_counts_and_times(log: Shared | Ours, given: Given, lake: Path) -> None:
    read_in(lake, given(log))
    found = {row["final_text"]: row for row in rows(lake)}
    start = dt.datetime(2026, 2, 25, 9, 0, 0, 250_000, dt.UTC)
    assert {row["started_at"] for row in found.values()} == {start}
    assert {row["ended_at"] for row in found.values()} == {start + dt.timedelta(seconds=2.5)}
    ok = found["hi"]
    assert (ok["prompt"], ok["usage"]["input_tokens"], ok["usage"]["output_tokens"], ok["flags"]) == ("hello", 9, 2, [])
    for hidden in (found["A real answer."], found[None]):
        assert hidden["prompt"] is None
        assert "content_not_captured" in hidden["flags"]
        assert hidden["model"] is not None
        assert hidden["usage"]["input_tokens"] in (9, 900)
    assert "redacted-by-litellm" in found[None]["extra"]
    summed = found["It is 5."]
    assert [message["content"] for message in summed["messages"]] == ["Sum 2 and 3", "", "5", "It is 5."]
    assert [(step["call_id"], step["status"]) for step in summed["steps"]] == [("fc1", "ok")]
    assert (summed["usage"], "usage_partial" in summed["flags"]) == (None, True)
    cut = found["cut he"]
    assert (cut["prompt"], cut["status"], cut["finish_reason"]) == ("hello as text", "truncated", "length")
    assert "naive_time" in cut["flags"]
    assert "cache_hit" not in str([cut["extra"], cut["message_info"]])
