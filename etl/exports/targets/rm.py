"""Reward models."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.target import Example, Target
from etl.exports.targets._columns import json_columns
from etl.exports.targets._pairs import PAIR_FIELDS, pair


class RewardModel(Target):
    """As `dpo`, with the difference of the two rewards as `margin`."""

    name = "rm"
    about = "TRL RewardTrainer: Parquet of prompt, chosen, rejected, tools and margin (difference of the rewards)"
    unit = "pair"
    imitates = False
    scored = True
    json_columns = json_columns("prompt", "chosen", "rejected")

    def schema(self) -> pa.Schema:
        """Prompt and both sides as messages, and the margin."""
        return pa.schema(PAIR_FIELDS)

    def record(self, example: Example) -> dict[str, Any]:
        """One pair."""
        return pair(example)
