"""Supervised fine-tuning with OpenRLHF."""

from __future__ import annotations

from typing import Any

from etl.exports.target import Example, Target
from etl.exports.targets._flat import flat_conversation


class OpenRlhf(Target):
    """`--data.input_key messages --data.multiturn`: it gives no tools to the template, so they stand in the text."""

    name = "openrlhf"
    about = "OpenRLHF SFT (--data.input_key messages, multiturn): JSON Lines; calls, results and tools as text"
    reasoning = False

    def record(self, example: Example) -> dict[str, Any]:
        """The whole conversation."""
        said = example.dialogue
        return {"messages": flat_conversation(said), "rollout_id": said.rollout_id}
