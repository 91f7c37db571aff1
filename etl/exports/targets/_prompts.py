"""Prompts of tasks for frameworks that run the agent themselves: messages as text, and where they come from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.forms import FLAT_MESSAGES, flat
from etl.exports.target import Example
from etl.exports.targets._columns import TOOLS

PROMPT_FIELDS = [pa.field("data_source", pa.string()), pa.field("prompt", FLAT_MESSAGES), TOOLS]


def texts(*names: str) -> pa.StructType:
    """A struct of texts."""
    return pa.struct([pa.field(name, pa.string()) for name in names])


def prompt(example: Example) -> dict[str, Any]:
    """The columns `PROMPT_FIELDS`."""
    said = example.dialogue
    return {"data_source": said.row["source"], "prompt": flat(said.prompt(), said.repairs), "tools": said.tools}


def about(example: Example) -> dict[str, Any]:
    """Which task it is, and where in the file."""
    return {
        "index": example.position,
        "split": example.split,
        "task_id": example.tally.task_id,
        "rollout_id": example.dialogue.rollout_id,
    }
