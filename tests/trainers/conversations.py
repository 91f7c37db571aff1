"""Conversations with everything that trainers stumble over, in their native form: objects, no key that says nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Conversation = dict[str, Any]


def tool(name: str, **parameters: dict[str, Any]) -> dict[str, Any]:
    """A tool definition in OpenAI form."""
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": f"Runs {name}.", "parameters": schema}}


def call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A call in OpenAI form, its arguments an object."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


LOOK = tool("look_up_berth", berth={"type": "string"}, tide={"type": ["string", "null"]})
BOOK = tool("book_berth", berth={"type": "string"}, nights={"type": "integer"}, extras={"type": "object"})
NOW = tool("now")

_SYSTEM = {"role": "system", "content": "You run the harbour desk. Be brief."}

ONE_CALL: Conversation = {
    "id": "one-call",
    "tools": [LOOK, NOW],
    "messages": [
        _SYSTEM,
        {"role": "user", "content": "Is berth 7 free?"},
        {"role": "assistant", "content": "", "tool_calls": [call("c1", "look_up_berth", {"berth": "7", "tide": None})]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"free": true, "depth": 2.50}'},
        {"role": "assistant", "content": "Yes, berth 7 is free: 2.5 m deep."},
    ],
}
"""A real null among the arguments, and a result that is JSON text."""

PARALLEL: Conversation = {
    "id": "parallel",
    "tools": [LOOK, BOOK, NOW],
    "messages": [
        _SYSTEM,
        {"role": "user", "content": "Compare berths 3 and 4 — für zwei Nächte."},
        {
            "role": "assistant",
            "content": "I look at both.",
            "tool_calls": [
                call("c1", "look_up_berth", {"berth": "3"}),
                call("c2", "look_up_berth", {"berth": "4", "tide": "low"}),
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "free"},
        {"role": "tool", "tool_call_id": "c2", "content": "taken"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                call("c3", "book_berth", {"berth": "3", "nights": 2, "extras": {"power": [1, "two", None]}})
            ],
        },
        {"role": "tool", "tool_call_id": "c3", "content": "booked"},
        {"role": "assistant", "content": "Berth 3 is yours for two nights."},
        {"role": "user", "content": "Thanks!"},
        {"role": "assistant", "content": "See you."},
    ],
}
"""Parallel calls, the same tool with other keys, nested arguments, two turns."""

NO_ARGUMENTS: Conversation = {
    "id": "no-arguments",
    "tools": [NOW],
    "messages": [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": "", "tool_calls": [call("c1", "now", {})]},
        {"role": "tool", "tool_call_id": "c1", "content": "09:30"},
        {"role": "assistant", "content": "Half past nine."},
    ],
}
"""Empty arguments, a tool without parameters, no system prompt."""

PLAIN: Conversation = {
    "id": "plain",
    "messages": [
        _SYSTEM,
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Good morning. What can I do for you?"},
    ],
}
"""No tools at all."""

ALL = (ONE_CALL, PARALLEL, NO_ARGUMENTS, PLAIN)


def attempts(task: int, rewards: tuple[float, ...]) -> list[Conversation]:
    """Scored attempts at one task, as `tau_bench` results hold them: the same ask, other answers."""
    made = []
    for trial, reward in enumerate(rewards):
        trajectory: list[dict[str, Any]] = [
            _SYSTEM,
            {"role": "user", "content": f"Book berth {task} for me."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call("c1", "book_berth", {"berth": str(task), "nights": trial})],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "book_berth", "content": f"booked for {trial} nights"},
            {"role": "assistant", "content": f"Berth {task} is yours for {trial} nights."},
        ]
        for message in trajectory:
            for made_call in message.get("tool_calls") or ():
                made_call["function"]["arguments"] = json.dumps(made_call["function"]["arguments"])
        made.append({"task_id": task, "reward": reward, "info": {}, "trial": trial, "traj": trajectory})
    return made


def write_logs(folder: Path) -> None:
    """The conversations as logs: chat lines, and results of a benchmark with its attempts."""
    folder.mkdir()
    lines = "".join(json.dumps(conversation) + "\n" for conversation in ALL)
    (folder / "chats.jsonl").write_text(lines, encoding="utf-8")
    results = [row for task in range(1, 5) for row in attempts(task, (1.0, 0.0, 0.5))]
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
