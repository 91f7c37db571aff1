"""Supervised fine-tuning with Axolotl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from etl.exports.forms import chat
from etl.exports.target import Example, File, Target


class Axolotl(Target):
    """`type: chat_template` with a boolean per message; arguments and tools are JSON text, which Axolotl decodes."""

    name = "axolotl"
    about = (
        "Axolotl chat_template: JSON Lines with a train flag per message, and axolotl.yaml with the datasets section"
    )

    def record(self, example: Example) -> dict[str, Any]:
        """The whole conversation; `train` is true on the turns that this row owns."""
        said = example.dialogue
        said.masked()
        messages = chat(said.turns)
        for message, turn in zip(messages, said.turns, strict=True):
            message["train"] = turn.trained
        return {"messages": messages, "tools": said.tools}

    def companions(self, files: Sequence[File]) -> dict[str, str]:
        """The sections `datasets` and `test_datasets` of a configuration."""
        sections: dict[str, list[dict[str, Any]]] = {}
        for file in files:
            section = "test_datasets" if file.split in ("test", "validation", "val", "eval") else "datasets"
            sections.setdefault(section, []).append(_dataset(file.name))
        return {"axolotl.yaml": yaml.safe_dump(sections, sort_keys=False)}


def _dataset(name: str) -> dict[str, Any]:
    return {
        "path": name,
        "ds_type": "json",
        "type": "chat_template",
        "field_messages": "messages",
        "field_tools": "tools",
        "message_property_mappings": {"role": "role", "content": "content"},
        "message_field_training": "train",
        "roles_to_train": [],
        "train_on_eos": "turn",
    }
