"""Prompts for SkyRL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.target import Example, Target
from etl.exports.targets._prompts import PROMPT_FIELDS, about, prompt, texts

_EXTRA = pa.struct([pa.field("index", pa.int64()), *texts("split", "task_id", "rollout_id")])


class SkyRl(Target):
    """`prompt` and `env_class`; what else there is goes to the environment. (SFT with SkyRL reads the target `sft`.)"""

    name = "skyrl"
    about = "SkyRL: Parquet of prompt, env_class (the source), reward_spec and extra_info, one row a task"
    unit = "task"
    imitates = False
    answers = True

    def schema(self) -> pa.Schema:
        """Structs, as its environments expect them."""
        own = [
            pa.field("env_class", pa.string()),
            pa.field("reward_spec", texts("method", "ground_truth")),
            pa.field("extra_info", _EXTRA),
        ]
        return pa.schema([*PROMPT_FIELDS, *own])

    def record(self, example: Example) -> dict[str, Any]:
        """The prompt of a task."""
        return {
            **prompt(example),
            "env_class": example.dialogue.row["source"],
            "reward_spec": {"method": "rule", "ground_truth": example.ground_truth or ""},
            "extra_info": about(example),
        }
