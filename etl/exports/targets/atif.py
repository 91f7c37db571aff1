"""Trajectories in the Agent Trajectory Interchange Format."""

from __future__ import annotations

from typing import Any

from etl.exports.target import Example, Target
from etl.exports.targets._row import ROW_COLUMNS, iso, opened, present, said

_SOURCES = {"system": "system", "developer": "system", "user": "user", "assistant": "agent"}


class AtifTrajectories(Target):
    """One trajectory a line: turns are steps, results are what the step that called observed."""

    name = "atif"
    about = "ATIF 1.6 (Harbor): JSON Lines, a trajectory a line, with times, tokens and copied context"
    imitates = False
    whole = True
    columns = ROW_COLUMNS

    def record(self, example: Example) -> dict[str, Any]:
        """The row as a trajectory; what it has no key for stands in `extra`."""
        row = example.dialogue.row
        usage = row["usage"] or {}
        return present(
            {
                "schema_version": "ATIF-v1.6",
                "session_id": row["rollout_id"],
                "agent": present(
                    {
                        "name": row["agent"] or row["source"],
                        "version": row["policy_version"] or "unknown",
                        "model_name": row["model"],
                        "tool_definitions": opened(row["tools"]),
                    }
                ),
                "steps": _steps(row),
                "final_metrics": present(
                    {
                        "total_prompt_tokens": usage.get("input_tokens"),
                        "total_completion_tokens": usage.get("output_tokens"),
                        "total_cached_tokens": usage.get("cached_tokens"),
                        "total_cost_usd": usage.get("cost_usd"),
                    }
                ),
                "extra": present(
                    {
                        key: row[key]
                        for key in (
                            "source",
                            "conversation_id",
                            "task_id",
                            "group_id",
                            "sample_index",
                            "status",
                            "reward",
                        )
                    }
                ),
            }
        )


def _steps(row: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    caller: dict[str, dict[str, Any]] = {}
    for place, (message, info) in enumerate(said(row)):
        if message["role"] == "tool":
            call_id = message["tool_call_id"] or f"unknown_{place}"
            step = caller.get(call_id) or (steps[-1] if steps else None)
            if step is None:
                step = {"step_id": 1, "source": "agent", "message": ""}
                steps.append(step)
            results = step.setdefault("observation", {"results": []})["results"]
            results.append({"source_call_id": call_id, "content": message["content"]})
            continue
        step = {"step_id": len(steps) + 1, **_step(message, info)}
        caller.update({call["id"]: step for call in message["tool_calls"] or ()})
        steps.append(step)
    return steps


def _step(message: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {
            "tool_call_id": call["id"],
            "function_name": call["function"]["name"],
            "arguments": opened(call["function"]["arguments"]),
        }
        for call in message["tool_calls"] or ()
    ]
    metrics = present({"prompt_tokens": info["input_tokens"], "completion_tokens": info["output_tokens"]})
    made = {
        "timestamp": iso(info["at"]),
        "source": _SOURCES[message["role"]],
        "model_name": info["model"],
        "reasoning_content": message["reasoning_content"],
        "tool_calls": calls,
        "metrics": metrics,
        "is_copied_context": info["inherited"] or None,
    }
    return {**present(made), "message": message["content"]}
