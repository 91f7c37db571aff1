"""Prompts for verl."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.forms import FLAT_MESSAGES, flat
from etl.exports.target import Example, Target
from etl.exports.targets._columns import TOOLS

_EXTRA = pa.struct(
    [
        pa.field("index", pa.int64()),
        pa.field("split", pa.string()),
        pa.field("task_id", pa.string()),
        pa.field("rollout_id", pa.string()),
        pa.field("need_tools_kwargs", pa.bool_()),
    ]
)
_REWARD = pa.struct([pa.field("style", pa.string()), pa.field("ground_truth", pa.string())])


class VerlRl(Target):
    """Rows of `RLHFDataset`. Tools are configured in verl; the column `tools` says which the traffic had."""

    name = "verl-rl"
    about = "verl RLHFDataset: Parquet of prompt, data_source, reward_model and extra_info, one row a task"
    unit = "task"
    imitates = False
    answers = True

    def schema(self) -> pa.Schema:
        """Structs, since verl asks them for members."""
        return pa.schema(
            [
                pa.field("data_source", pa.string()),
                pa.field("prompt", FLAT_MESSAGES),
                pa.field("ability", pa.string()),
                pa.field("reward_model", _REWARD),
                pa.field("extra_info", _EXTRA),
                TOOLS,
            ]
        )

    def record(self, example: Example) -> dict[str, Any]:
        """The prompt of a task, with what a reward is computed from."""
        said = example.dialogue
        return {
            "data_source": said.row["source"],
            "prompt": flat(said.prompt(), said.repairs),
            "ability": "agent" if said.tools else "chat",
            "reward_model": {"style": "rule", "ground_truth": example.ground_truth or ""},
            "extra_info": {
                "index": example.position,
                "split": example.split,
                "task_id": example.tally.task_id,
                "rollout_id": said.rollout_id,
                "need_tools_kwargs": False,
            },
            "tools": said.tools,
        }
