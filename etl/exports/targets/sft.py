"""Supervised fine-tuning on whole conversations."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.forms import MESSAGES, checked, stored
from etl.exports.target import Example, Target
from etl.exports.targets._columns import ROLLOUT_ID, TOOLS, json_columns


class Sft(Target):
    """`messages` and `tools`, as `SFTTrainer(assistant_only_loss=True)` takes them."""

    name = "sft"
    about = "TRL SFT, Unsloth, SkyRL SFT, prime-rl SFT, ms-swift: Parquet of messages and tools, a conversation a row"
    json_columns = json_columns("messages")

    def schema(self) -> pa.Schema:
        """Messages as in the lake, tools as JSON text."""
        return pa.schema([pa.field("messages", MESSAGES), TOOLS, ROLLOUT_ID])

    def record(self, example: Example) -> dict[str, Any]:
        """The whole conversation; every turn of the agent in it is trained."""
        said = checked(example.dialogue)
        return {"messages": stored(said.unmasked()), "tools": said.tools, "rollout_id": said.rollout_id}
