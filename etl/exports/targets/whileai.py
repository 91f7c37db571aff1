"""Rows of whileai, version 1."""

from __future__ import annotations

from typing import Any

from etl.exports.target import Example, Target
from etl.exports.targets._row import ROW_COLUMNS, iso, opened, present, said

_FINISHES = {"completed": "stop", "truncated": "length", "error": "error"}


class WhileaiRows(Target):
    """The row that its tools load: prompt, messages, steps, final text, cell, faults and what was planted."""

    name = "whileai"
    about = "whileai rows (schema 1): JSON Lines with prompt, messages, steps, final_text, reward, seeded, faults"
    imitates = False
    whole = True
    columns = ROW_COLUMNS

    def record(self, example: Example) -> dict[str, Any]:
        """The row, with the keys of version 1."""
        row = example.dialogue.row
        told = {
            "conversation_id": row["conversation_id"],
            "scenario_id": row["task_id"],
            "rollout_index": row["sample_index"],
            "group_id": row["group_id"],
            "reward": row["reward"],
            "model_version": row["model"],
            "policy_version": row["policy_version"],
            "finish_reason": row["finish_reason"] or _FINISHES.get(row["status"]),
            "tools": opened(row["tools"]),
            "ts": iso(row["started_at"]),
            "usage": present(row["usage"] or {}),
            "scenario_dimensions": present(row["scenario"] or {}),
            "faults": opened(row["faults"]),
            "seed": row["seed"],
        }
        return {
            "schema_version": "1",
            "prompt": row["prompt"] or "",
            "messages": [_message(message) for message, _ in said(row)],
            "steps": [_step(step, row["messages"]) for step in row["steps"]],
            "final_text": row["final_text"] or "",
            **present(told),
            **({} if row["seeded"] is None else {"seeded": row["seeded"]}),
        }


def _message(message: dict[str, Any]) -> dict[str, Any]:
    kept = present({key: message[key] for key in ("reasoning_content", "tool_calls", "tool_call_id", "name")})
    return {"role": message["role"], "content": message["content"], **kept}


def _step(step: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    answered = step["result_index"]
    return {
        "tool": step["tool"],
        "arguments": opened(step["arguments"]),
        **({} if answered is None else {"result": messages[answered]["content"]}),
    }
