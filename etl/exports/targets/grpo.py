"""Prompts for reinforcement learning from rewards."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.forms import MESSAGES, checked, stored
from etl.exports.target import Example, Target
from etl.exports.targets._columns import ROLLOUT_ID, TOOLS, json_columns


class Grpo(Target):
    """One row a task: the trainer repeats it `num_generations` times, and gives the other columns to the rewards."""

    name = "grpo"
    aliases = ("rl",)
    about = "TRL GRPO, RLOO and other online RL: Parquet of prompts, one row a task, with its pass rate and n"
    unit = "task"
    imitates = False
    answers = True
    json_columns = json_columns("prompt")

    def schema(self) -> pa.Schema:
        """The prompt, and columns that reward functions get by name."""
        return pa.schema(
            [
                pa.field("prompt", MESSAGES),
                TOOLS,
                pa.field("task_id", pa.string()),
                pa.field("ground_truth", pa.string()),
                pa.field("n", pa.int64()),
                pa.field("pass_rate", pa.float64()),
                pa.field("mean_reward", pa.float64()),
                ROLLOUT_ID,
            ]
        )

    def record(self, example: Example) -> dict[str, Any]:
        """The prompt of a task."""
        said, tally = checked(example.dialogue), example.tally
        return {
            "prompt": stored(said.prompt()),
            "tools": said.tools,
            "task_id": tally.task_id,
            "ground_truth": example.ground_truth,
            "n": tally.n,
            "pass_rate": tally.passed / tally.n if tally.n else None,
            "mean_reward": tally.mean_reward,
            "rollout_id": said.rollout_id,
        }
