"""Rows for exports: a conversation written short, its notes and steps filled in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from etl.lake import Lake
from tests.lake.rows import put, rollout

Message = dict[str, Any]


def system(content: str = "Be brief.") -> Message:
    return {"role": "system", "content": content}


def user(content: str, **more: Any) -> Message:
    return {"role": "user", "content": content, **more}


def agent(content: str = "", *calls: tuple[str, str, Any], **more: Any) -> Message:
    """A turn of the agent; a call is (id, tool, arguments)."""
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": content, "tool_calls": made or None, **more}


def tool(call_id: str | None, content: str = "ok", **more: Any) -> Message:
    return {"role": "tool", "content": content, "tool_call_id": call_id, **more}


def row(rollout_id: str, *messages: Message, **values: Any) -> dict[str, Any]:
    """A row of these messages. Keys of `message_info` (inherited, synthetic, parts) may stand in them."""
    noted = ("inherited", "synthetic", "parts")
    info = [{"inherited": False, "synthetic": False, **{k: m[k] for k in noted if k in m}} for m in messages]
    said = [{key: item for key, item in message.items() if key not in noted} for message in messages]
    answered = {message.get("tool_call_id"): place for place, message in enumerate(said) if message["role"] == "tool"}
    steps = [
        {
            "call_id": call["id"],
            "tool": call["function"]["name"],
            "actor": "user" if message["role"] == "user" else "agent",
            "arguments": call["function"]["arguments"],
            "message_index": place,
            "result_index": answered.get(call["id"]),
            "status": "ok" if call["id"] in answered else "missing",
        }
        for place, message in enumerate(said)
        for call in message.get("tool_calls") or ()
    ]
    asked = next((message["content"] for message in said if message["role"] == "user"), None)
    final = next((message["content"] for message in reversed(said) if message["role"] == "assistant"), None)
    whole = {
        "final_text": final,
        "messages": said,
        "message_info": info,
        "steps": steps,
        "n_steps": len(steps),
        "prompt": asked,
    }
    return rollout(rollout_id, **{**whole, "task_id": f"task {asked}", **values})


def ask(rollout_id: str, question: str, answer: str, **values: Any) -> dict[str, Any]:
    """A question and its answer."""
    return row(rollout_id, user(question), agent(answer), **values)


def lake_of(folder: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """A lake of these rows."""
    lake = Lake.create(folder)
    put(lake, list(rows))
    return folder


def records(folder: Path) -> Callable[[str], list[dict[str, Any]]]:
    """Reads the records of a split, in order."""
    import pyarrow.parquet as pq

    def of(split: str = "train") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for path in sorted(folder.glob(f"{split}-*")):
            if path.suffix == ".parquet":
                found += pq.ParquetFile(path).read().to_pylist()
            else:
                found += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return found

    return of
