"""Supervised fine-tuning with verl."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.forms import FLAT_MESSAGES
from etl.exports.target import Example, Target
from etl.exports.targets._columns import ROLLOUT_ID
from etl.exports.targets._flat import flat_conversation


class VerlSft(Target):
    """Rows of `MultiTurnSFTDataset`, which renders turn by turn: calls are text, results of one turn are merged."""

    name = "verl-sft"
    about = "verl MultiTurnSFTDataset: Parquet of messages; calls, results and tools written out as text"
    reasoning = False

    def schema(self) -> pa.Schema:
        """Role and content."""
        return pa.schema([pa.field("messages", FLAT_MESSAGES), ROLLOUT_ID])

    def record(self, example: Example) -> dict[str, Any]:
        """The whole conversation."""
        said = example.dialogue
        return {"messages": flat_conversation(said), "rollout_id": said.rollout_id}
