"""Prompts for SkyRL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.forms import FLAT_MESSAGES, flat
from etl.exports.target import Example, Target
from etl.exports.targets._columns import TOOLS

_REWARD = pa.struct([pa.field("method", pa.string()), pa.field("ground_truth", pa.string())])
_EXTRA = pa.struct(
    [
        pa.field("task_id", pa.string()),
        pa.field("split", pa.string()),
        pa.field("index", pa.int64()),
        pa.field("rollout_id", pa.string()),
    ]
)


class SkyRl(Target):
    """`prompt` and `env_class`; what else there is goes to the environment. (SFT with SkyRL reads the target `sft`.)"""

    name = "skyrl"
    about = "SkyRL: Parquet of prompt, env_class (the source), reward_spec and extra_info, one row a task"
    unit = "task"
    imitates = False
    answers = True

    def schema(self) -> pa.Schema:
        """Structs, as its environments expect them."""
        return pa.schema(
            [
                pa.field("data_source", pa.string()),
                pa.field("prompt", FLAT_MESSAGES),
                pa.field("env_class", pa.string()),
                pa.field("reward_spec", _REWARD),
                pa.field("extra_info", _EXTRA),
                TOOLS,
            ]
        )

    def record(self, example: Example) -> dict[str, Any]:
        """The prompt of a task."""
        said = example.dialogue
        return {
            "data_source": said.row["source"],
            "prompt": flat(said.prompt(), said.repairs),
            "env_class": said.row["source"],
            "reward_spec": {"method": "rule", "ground_truth": example.ground_truth or ""},
            "extra_info": {
                "task_id": example.tally.task_id,
                "split": example.split,
                "index": example.position,
                "rollout_id": said.rollout_id,
            },
            "tools": said.tools,
        }
