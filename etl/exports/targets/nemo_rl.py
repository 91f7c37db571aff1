"""Supervised fine-tuning with NeMo-RL."""

from __future__ import annotations

from typing import Any

from etl.exports.forms import chat
from etl.exports.target import Example, Target


class NemoRl(Target):
    """`OpenAIFormatDataset(use_preserving_dataset=True)`: objects as they are, the agent has the last word."""

    name = "nemo-rl"
    about = (
        "NeMo-RL OpenAIFormatDataset (use_preserving_dataset): JSON Lines of messages and tools, arguments as objects"
    )

    def record(self, example: Example) -> dict[str, Any]:
        """The whole conversation, up to the last turn of the agent."""
        said = example.dialogue
        turns = said.unmasked()
        while turns[-1].role != "assistant":
            said.repairs.add("last_results_cut")
            turns.pop()
        tools = said.tool_list()
        messages = chat(turns, objects=True)
        return {"messages": messages} if tools is None else {"messages": messages, "tools": tools}
