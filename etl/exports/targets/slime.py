"""Supervised fine-tuning with slime."""

from __future__ import annotations

from typing import Any

from etl.exports.forms import chat
from etl.exports.target import Example, Target


class Slime(Target):
    """`--input-key messages --tool-key tools --metadata-key metadata`; every message says whether it is trained, since
    a null would mask it, and `tools` is always a list.
    """

    name = "slime"
    about = "slime SFT (--input-key messages --tool-key tools): JSON Lines, arguments as objects, step_loss_mask"

    def record(self, example: Example) -> dict[str, Any]:
        """The whole conversation with a mask per message."""
        said = example.dialogue
        said.masked()
        messages = chat(said.turns, objects=True)
        for message, turn in zip(messages, said.turns, strict=True):
            message["step_loss_mask"] = int(turn.trained)
        metadata = {"rollout_id": said.rollout_id, "task_id": example.tally.task_id, "split": example.split}
        return {"messages": messages, "tools": said.tool_list() or [], "metadata": metadata}
