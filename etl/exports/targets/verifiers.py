"""Traces of verifiers and prime-rl."""

from __future__ import annotations

from typing import Any

from etl.exports.target import Example, Target
from etl.exports.targets._row import ROW_COLUMNS, opened, present, said


class VerifiersTraces(Target):
    """One episode a line with one trace: a chain of messages, `sampled` where the agent of this row said it."""

    name = "verifiers"
    aliases = ("prime-rl",)
    about = "verifiers 0.4, prime-rl: traces.jsonl, an episode a line, with rewards and what was sampled"
    imitates = False
    whole = True
    columns = ROW_COLUMNS
    stem = "traces"

    def record(self, example: Example) -> dict[str, Any]:
        """The row as an episode."""
        row = example.dialogue.row
        task = {
            "type": "Rollout",
            "data": present({"idx": row["sample_index"] or 0, "prompt": row["prompt"]}),
            "key": row["task_id"],
        }
        errors = [{"type": "Error", "message": row["error"]}] if row["error"] else []
        return {
            "id": row["rollout_id"],
            "env": {"id": row["source"]},
            "task": task,
            "group": None if row["group_id"] is None else {"id": row["group_id"]},
            "ok": row["status"] == "completed",
            "errors": errors,
            "traces": [_trace(row, task)],
        }


def _trace(row: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
    tools = _tools(row)
    nodes = [
        {"parent": place - 1 if place else None, **_node(message, info)}
        for place, (message, info) in enumerate(said(row))
    ]
    if nodes and tools:
        nodes[0]["tools"] = tools
    metrics = opened(row["rewards"]) or {}
    return {
        "version": 1,
        "id": row["rollout_id"],
        "verifiers": {"version": "0.4.0"},
        "task": task,
        "agent": {"config": {"model": row["model"] or ""}, "name": row["agent"] or "agent"},
        "tools": tools,
        "nodes": nodes,
        "rewards": {} if row["reward"] is None else {"reward": {"score": row["reward"], "weight": 1.0}},
        "metrics": {name: value for name, value in metrics.items() if type(value) in (int, float)},
        "info": present({key: row[key] for key in ("conversation_id", "sample_index", "finish_reason", "status")}),
    }


def _node(message: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    role = message["role"] if message["role"] != "developer" else "system"
    made: dict[str, Any] = {"role": role, "content": message["content"]}
    if role == "assistant":
        made["reasoning_content"] = message["reasoning_content"]
        made["tool_calls"] = [
            {"id": call["id"], "type": "function", **call["function"]} for call in message["tool_calls"] or ()
        ] or None
    elif role == "tool":
        made["tool_call_id"] = message["tool_call_id"] or ""
        made["name"] = message["name"]
    sampled = role == "assistant" and not info["inherited"] and not info["synthetic"]
    at = info["at"]
    return {
        "message": {key: item for key, item in made.items() if item is not None},
        "sampled": sampled,
        **({} if at is None else {"timestamp": at.timestamp()}),
    }


def _tools(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Definitions in the flat form of verifiers."""
    listed = opened(row["tools"]) or []
    flat = [tool.get("function", tool) for tool in listed if isinstance(tool, dict)]
    return [
        {
            "name": str(tool.get("name")),
            "description": str(tool.get("description") or ""),
            "parameters": tool["parameters"] if isinstance(tool.get("parameters"), dict) else {},
        }
        for tool in flat
    ]
