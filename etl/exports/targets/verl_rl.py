"""Prompts for verl."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.target import Example, Target
from etl.exports.targets._prompts import PROMPT_FIELDS, about, prompt, texts

_EXTRA = pa.struct(
    [pa.field("index", pa.int64()), *texts("split", "task_id", "rollout_id"), pa.field("need_tools_kwargs", pa.bool_())]
)


class VerlRl(Target):
    """Rows of `RLHFDataset`. Tools are configured in verl; the column `tools` says which the traffic had."""

    name = "verl-rl"
    about = "verl RLHFDataset: Parquet of prompt, data_source, reward_model and extra_info, one row a task"
    unit = "task"
    imitates = False
    answers = True

    def schema(self) -> pa.Schema:
        """Structs, since verl asks them for members."""
        own = [
            pa.field("ability", pa.string()),
            pa.field("reward_model", texts("style", "ground_truth")),
            pa.field("extra_info", _EXTRA),
        ]
        return pa.schema([*PROMPT_FIELDS, *own])

    def record(self, example: Example) -> dict[str, Any]:
        """The prompt of a task, with what a reward is computed from."""
        return {
            **prompt(example),
            "ability": "agent" if example.dialogue.tools else "chat",
            "reward_model": {"style": "rule", "ground_truth": example.ground_truth or ""},
            "extra_info": {**about(example), "need_tools_kwargs": False},
        }
