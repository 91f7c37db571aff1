"""Supervised fine-tuning on what follows the prompt."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.forms import MESSAGES, checked, stored
from etl.exports.target import Example, Target
from etl.exports.targets._columns import ROLLOUT_ID, TOOLS, json_columns


class SftPromptCompletion(Target):
    """`prompt` and `completion`: inherited turns stand in the prompt, which is not trained.

    TRL trains tool results of a completion too unless `assistant_only_loss=True`.
    """

    name = "sft-pc"
    about = "TRL SFT on completions: Parquet of prompt, completion and tools; inherited turns lie in the prompt"
    json_columns = json_columns("prompt", "completion")

    def schema(self) -> pa.Schema:
        """Two lists of messages, tools as JSON text."""
        return pa.schema([pa.field("prompt", MESSAGES), pa.field("completion", MESSAGES), TOOLS, ROLLOUT_ID])

    def record(self, example: Example) -> dict[str, Any]:
        """The conversation, cut before the first turn of the agent that this row owns."""
        said = checked(example.dialogue)
        prompt, completion = said.prompt(), said.completion()
        if any(turn.role == "assistant" for turn in prompt):
            said.masked()
        return {
            "prompt": stored(prompt),
            "completion": stored(completion),
            "tools": said.tools,
            "rollout_id": said.rollout_id,
        }
