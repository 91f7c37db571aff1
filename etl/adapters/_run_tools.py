"""Runs of tools as Langfuse and LangSmith hold them: arguments, result and call id, as attributes of a tool span."""

from __future__ import annotations

from typing import Any

from etl.adapters._langchain import chat_form, opened_all, printed_message


def is_tool_output(value: Any) -> bool:
    """Whether an output is the message of a tool, so that the run was one, whatever it is called.

    >>> is_tool_output("content='Oslo' name='search' tool_call_id='c1'"), is_tool_output({"messages": []})
    (True, False)
    """
    if isinstance(value, str):
        if "tool_call_id" not in value:
            return False
        printed = printed_message(value)
        if printed is not None:
            return "tool_call_id" in printed
    found = chat_form(opened_all(value))
    return isinstance(found, dict) and found.get("role") == "tool" and isinstance(found.get("tool_call_id"), str)


def tool_words(given: Any, said: Any) -> dict[str, Any]:
    """Arguments, result and call id of a tool run, as the attributes of a tool span.

    >>> tool_words("{'q': 'Norway'}", {"output": "Oslo"})
    {'gen_ai.tool.call.arguments': {'q': 'Norway'}, 'gen_ai.tool.call.result': 'Oslo'}
    """
    made: dict[str, Any] = {}
    arguments = opened_all(given)
    if isinstance(arguments, dict) and arguments.keys() == {"input"}:
        inner = opened_all(arguments["input"])
        arguments = inner if isinstance(inner, dict) else arguments
    if isinstance(arguments, dict) and arguments.get("type") in ("tool_call", "tool_call_with_context"):
        call = arguments.get("tool_call", arguments)
        if isinstance(call, dict) and "args" in call:
            made["gen_ai.tool.call.id"], arguments = call.get("id"), call["args"]
    if arguments == {}:
        made["gen_ai.tool.call.arguments"] = "{}"
    elif arguments not in (None, ""):
        made["gen_ai.tool.call.arguments"] = arguments
    result = opened_all(said)
    if isinstance(result, dict) and result.keys() == {"output"}:
        result = opened_all(result["output"])
    if isinstance(result, str):
        printed = printed_message(result)
        result = {"role": "tool", **printed} if printed is not None else said if isinstance(said, str) else result
    result = chat_form(result)
    if isinstance(result, dict) and result.get("role") == "tool" and "content" in result:
        made["gen_ai.tool.call.id"] = result.get("tool_call_id") or made.get("gen_ai.tool.call.id")
        if result.get("is_error") or result.get("status") == "error":
            made["error.type"] = "tool_error"
        artifact = result.get("artifact")
        if artifact:
            made["artifact"] = artifact
        result = result["content"]
    if result not in (None, ""):
        made["gen_ai.tool.call.result"] = result
    return {name: value for name, value in made.items() if value is not None}
