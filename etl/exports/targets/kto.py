"""Kahneman-Tversky optimisation: single answers, each good or bad."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.forms import MESSAGES, checked, stored
from etl.exports.target import Example, Target
from etl.exports.targets._columns import ROLLOUT_ID, TOOLS, json_columns


class Kto(Target):
    """`prompt`, `completion`, and whether the score is at least `--pass-at`. KTO trains tool results too: it has no
    mask.
    """

    name = "kto"
    about = "TRL KTO: Parquet of prompt, completion, label (the score is at least --pass-at) and tools"
    imitates = False
    scored = True
    json_columns = json_columns("prompt", "completion")

    def schema(self) -> pa.Schema:
        """Two lists of messages and a boolean."""
        return pa.schema(
            [
                pa.field("prompt", MESSAGES),
                pa.field("completion", MESSAGES),
                pa.field("label", pa.bool_()),
                TOOLS,
                ROLLOUT_ID,
            ]
        )

    def record(self, example: Example) -> dict[str, Any]:
        """One answer with its label."""
        said = checked(example.dialogue)
        score = example.scores[0]
        return {
            "prompt": stored(said.prompt()),
            "completion": stored(said.completion()),
            "label": score is not None and score >= example.pass_at,
            "tools": said.tools,
            "rollout_id": said.rollout_id,
        }
