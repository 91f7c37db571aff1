"""Supervised fine-tuning with LLaMA-Factory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from etl.exports.dialogue import Dialogue, Turn
from etl.exports.forms import NEXT_RESULT, dumped
from etl.exports.reasons import Dropped
from etl.exports.target import Example, File, Target


class LlamaFactory(Target):
    """ShareGPT turns in strict alternation, system prompt and tools beside them as text."""

    name = "llamafactory"
    about = "LLaMA-Factory: JSON Lines of ShareGPT turns (function_call, observation), string tools, dataset_info.json"
    reasoning = False

    def record(self, example: Example) -> dict[str, Any]:
        """The conversation; user and agent must take turns, since LLaMA-Factory skips the row otherwise."""
        said = example.dialogue
        turns = said.unmasked()
        while turns[-1].role == "tool":
            said.repairs.add("last_results_cut")
            turns.pop()
        system = turns.pop(0).content if turns[0].role == "system" else ""
        conversations = _conversations(turns, said)
        for place, turn in enumerate(conversations):
            if (turn["from"] in ("human", "observation")) != (place % 2 == 0):
                raise Dropped("no_alternation")
        return {"conversations": conversations, "system": system, "tools": said.tools or ""}

    def companions(self, files: Sequence[File]) -> dict[str, str]:
        """`dataset_info.json`: a data set for each file, named after it."""
        columns = {"messages": "conversations", "system": "system", "tools": "tools"}
        described = {
            f"rollouts_{file.name.removesuffix('.jsonl').replace('-', '_')}": {
                "file_name": file.name,
                "formatting": "sharegpt",
                "columns": columns,
            }
            for file in files
        }
        return {"dataset_info.json": json.dumps(described, indent=2) + "\n"}


def _conversations(turns: Sequence[Turn], said: Dialogue) -> list[dict[str, str]]:
    made: list[dict[str, str]] = []
    for turn in turns:
        if turn.calls:
            if turn.content:
                said.repairs.add("text_beside_calls_left_out")
            calls = [{"name": call.name, "arguments": call.value()} for call in turn.calls]
            made.append({"from": "function_call", "value": dumped(calls if len(calls) > 1 else calls[0])})
        elif turn.role == "tool" and made and made[-1]["from"] == "observation":
            said.repairs.add("results_merged")
            made[-1]["value"] += NEXT_RESULT + turn.content
        else:
            speaker = {"user": "human", "assistant": "gpt", "tool": "observation"}[turn.role]
            made.append({"from": speaker, "value": turn.content})
    return made
