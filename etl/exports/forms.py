"""Messages as the forms want them: chat messages with text or object arguments, and calls written out as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from etl.exports.dialogue import Call, Dialogue, Turn, fits_64_bits
from etl.exports.reasons import Dropped
from etl.schema import arrow_schema

MESSAGES: pa.DataType = arrow_schema("rollouts").field("messages").type
"""Messages with their calls, as the lake stores them."""
FLAT_MESSAGES: pa.DataType = pa.list_(pa.struct([pa.field("role", pa.string()), pa.field("content", pa.string())]))
"""Messages whose calls are text."""
ARGUMENTS = "tool_calls.function.arguments"

NEXT_RESULT = "\n</tool_response>\n<tool_response>\n"
"""Between two results in one message: what templates that wrap results write between two messages."""


def stored(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """Messages for a Parquet column of the type `MESSAGES`: every key there, arguments as text."""
    return [
        {
            "role": turn.role,
            "content": turn.content,
            "reasoning_content": turn.reasoning,
            "tool_calls": [_call(call, call.arguments) for call in turn.calls] or None,
            "tool_call_id": turn.call_id,
            "name": turn.name,
        }
        for turn in turns
    ]


def chat(turns: Iterable[Turn], *, objects: bool = False) -> list[dict[str, Any]]:
    """Messages for JSON: a key that says nothing is absent. Arguments are text, or with `objects` decoded."""
    made = []
    for turn in turns:
        message: dict[str, Any] = {"role": turn.role, "content": turn.content}
        if turn.reasoning:
            message["reasoning_content"] = turn.reasoning
        if turn.calls:
            message["tool_calls"] = [_call(call, call.value() if objects else call.arguments) for call in turn.calls]
        if turn.call_id is not None:
            message["tool_call_id"] = turn.call_id
        if turn.name is not None:
            message["name"] = turn.name
        made.append(message)
    return made


def checked(dialogue: Dialogue) -> Dialogue:
    """The dialogue, if the readers of JSON columns can hold its numbers."""
    if not fits_64_bits(dialogue.tools, *(call.arguments for turn in dialogue.turns for call in turn.calls)):
        raise Dropped("number_beyond_64_bits")
    return dialogue


def flat(turns: Sequence[Turn], repairs: set[str], tools: Sequence[Any] | None = None) -> list[dict[str, str]]:
    """Messages of role and content only: calls as text in the `<tool_call>` form that Qwen and Hermes templates write,
    results of one turn in one message, and tool definitions, where given, in the system message.
    """
    made: list[dict[str, str]] = []
    for turn in turns:
        if turn.reasoning:
            repairs.add("reasoning_left_out")
        if turn.role == "tool" and made and made[-1]["role"] == "tool":
            repairs.add("results_merged")
            made[-1]["content"] += NEXT_RESULT + turn.content
            continue
        parts = [turn.content] if turn.content else []
        parts += [f"<tool_call>\n{_as_text(call)}\n</tool_call>" for call in turn.calls]
        made.append({"role": turn.role, "content": "\n".join(parts)})
    if tools:
        if not made or made[0]["role"] != "system":
            made.insert(0, {"role": "system", "content": ""})
        made[0]["content"] = f"{made[0]['content']}\n\n{_tool_section(tools)}".lstrip("\n")
    return made


def dumped(value: Any) -> str:
    """JSON as chat templates write it: a blank after comma and colon, text as it is."""
    return json.dumps(value, ensure_ascii=False)


def _call(call: Call, arguments: Any) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _as_text(call: Call) -> str:
    return f'{{"name": {dumped(call.name)}, "arguments": {dumped(call.value())}}}'


def _tool_section(tools: Sequence[Any]) -> str:
    """The definitions in the words of the `<tools>` form; a model trained on it knows exactly these."""
    listed = "\n".join(dumped(tool) for tool in tools)
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        f"You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{listed}\n</tools>\n\n"
        "For each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n"
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )
