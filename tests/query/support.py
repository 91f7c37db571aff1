"""A small lake with everything in it that a view looks at."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from etl.lake import Lake
from tests.lake.rows import EPOCH, reject, rollout, source_file, stage


def message(role: str, content: str = "", **values: Any) -> dict[str, Any]:
    """One message."""
    return {"role": role, "content": content} | values


def call(name: str, call_id: str, arguments: str = "{}") -> dict[str, Any]:
    """One entry of `tool_calls`."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def step(
    tool: str, call_id: str, message_index: int, result_index: int | None, status: str, **values: Any
) -> dict[str, Any]:
    """One entry of `steps`."""
    return {
        "call_id": call_id,
        "tool": tool,
        "actor": "agent",
        "arguments": "{}",
        "message_index": message_index,
        "result_index": result_index,
        "status": status,
    } | values


def info(**values: Any) -> dict[str, Any]:
    """One entry of `message_info`."""
    return {"inherited": False, "synthetic": False} | values


def refund(rollout_id: str = "r_refund", **values: Any) -> dict[str, Any]:
    """A conversation with two parallel calls of which one got no result, then a call that failed."""
    messages = [
        message("system", "You sell shoes."),
        message("user", "Refund my order W1, please."),
        message(
            "assistant",
            "Let me look.",
            reasoning_content="The order first.",
            tool_calls=[call("get_order", "c1", '{"id":"W1"}'), call("get_user", "c2")],
        ),
        message("tool", '{"status":"delivered"}', tool_call_id="c1", name="get_order"),
        message("assistant", tool_calls=[call("refund", "c3")]),
        message("tool", "Error: not allowed", tool_call_id="c3", name="refund"),
        message("assistant", "I may not refund it."),
    ]
    steps = [
        step("get_order", "c1", 2, 3, "ok", arguments='{"id":"W1"}', duration_ms=120.0),
        step("get_user", "c2", 2, None, "missing"),
        step("refund", "c3", 4, 5, "error", condition="permission_denied", error="not allowed"),
    ]
    row = rollout(
        rollout_id,
        task_id="t_1",
        messages=messages,
        message_info=[
            info(),
            info(at=EPOCH, id="m1"),
            info(at=EPOCH + dt.timedelta(seconds=2), model="demo", input_tokens=100, output_tokens=20),
            info(),
            info(input_tokens=150, output_tokens=5, finish_reason="tool_calls"),
            info(),
            info(input_tokens=200, output_tokens=7, finish_reason="stop"),
        ],
        prompt="Refund my order W1, please.",
        prompt_len=2,
        steps=steps,
        final_text="I may not refund it.",
        ended_at=EPOCH + dt.timedelta(seconds=65),
        reward=0.0,
        usage={"input_tokens": 450, "output_tokens": 32, "cost_usd": 0.01},
        n_steps=3,
        flags=["missing_result"],
    )
    return row | values


def make_lake(folder: Path, *batches: Iterable[dict[str, Any]]) -> Lake:
    """A lake with one commit of rollouts for each batch of rows."""
    lake = Lake.create(folder)
    for number, rows in enumerate(batches):
        with lake.batch(f"b{number}"):
            lake.commit_rollouts(stage(lake, f"b{number}", "rollouts", rows))
    return lake


def add_files(lake: Lake, *uris: str) -> None:
    """Says that these files were read, and that the first had a bad record."""
    with lake.batch("files"):
        rejects = stage(lake, "files", "rejects", [reject("x1", source_uri=uris[0])])
        lake.replace_rejects(rejects, {("support", uris[0])})
        lake.upsert_sources(stage(lake, "files", "sources", [source_file(uri) for uri in uris]))


def attempts(
    rewards: Iterable[float | None], *, task: str, group: str | None = None, **values: Any
) -> list[dict[str, Any]]:
    """One rollout for each reward, all of one task."""
    return [
        rollout(f"r_{task}_{number}", task_id=task, group_id=group, sample_index=number, reward=reward, **values)
        for number, reward in enumerate(rewards)
    ]
