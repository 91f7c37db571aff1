"""Pairs of attempts at one prompt, the better one first."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from etl.exports.forms import MESSAGES, checked, stored
from etl.exports.target import Example
from etl.exports.targets._columns import TOOLS

PAIR_FIELDS = [
    pa.field("prompt", MESSAGES),
    pa.field("chosen", MESSAGES),
    pa.field("rejected", MESSAGES),
    TOOLS,
    pa.field("margin", pa.float64()),
    pa.field("chosen_id", pa.string()),
    pa.field("rejected_id", pa.string()),
]


def pair(example: Example) -> dict[str, Any]:
    """The record of a pair; while rows are examined there is only one side."""
    chosen, rejected = (checked(said) for said in (example.dialogues[0], example.dialogues[-1]))
    high, low = example.scores[0], example.scores[-1]
    return {
        "prompt": stored(chosen.prompt()),
        "chosen": stored(chosen.completion()),
        "rejected": stored(rejected.completion()),
        "tools": chosen.tools,
        "margin": None if high is None or low is None else high - low,
        "chosen_id": chosen.rollout_id,
        "rejected_id": rejected.rollout_id,
    }
