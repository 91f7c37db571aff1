"""The fine-tuning format of OpenAI, which many services take unchanged."""

from __future__ import annotations

from typing import Any

from etl.exports.forms import chat
from etl.exports.target import Example, Target


class OpenAI(Target):
    """`messages` and `tools` a line: arguments as text, no key that says nothing, `weight` 0 on what is masked."""

    name = "openai"
    about = "OpenAI, Fireworks, Together, tinker, ART: JSON Lines of messages and tools; arguments as text, weights"
    templated = False
    reasoning = False

    def record(self, example: Example) -> dict[str, Any]:
        """The conversation; turns that must not be trained carry `weight` 0."""
        said = example.dialogue
        messages = chat(said.turns)
        if said.masked():
            for message, turn in zip(messages, said.turns, strict=True):
                if turn.role == "assistant":
                    message["weight"] = int(turn.trained)
        for message in messages:
            if message["role"] == "tool":
                message.pop("name", None)
        tools = said.tool_list()
        return {"messages": messages} if tools is None else {"messages": messages, "tools": tools}
