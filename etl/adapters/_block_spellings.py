"""Blocks whose wrapping tells what they are (Haystack, the AI SDK, Amp, code that ran at a provider), as plain ones."""

from __future__ import annotations

from typing import Any

_TOLD = frozenset({"text", "json", "content", "error-text", "error-json", "execution-denied"})
"""How the AI SDK types the output of a tool in a model message: `{type, value}`, or a `reason` where it was denied."""


def named_by_key(block: dict[str, Any]) -> dict[str, Any]:
    """A block of Haystack, whose one key says what it is, as a block with a type; any other as it is.

    >>> named_by_key({"tool_call": {"tool_name": "ls", "arguments": {}, "id": "c1"}})
    {'type': 'tool_call', 'tool_name': 'ls', 'arguments': {}, 'id': 'c1'}
    """
    ((key, inner),) = block.items()
    if not isinstance(inner, dict):
        return block
    if key == "tool_call" and isinstance(inner.get("tool_name"), str):
        return {**inner, "type": "tool_call"} if "type" in inner else {"type": "tool_call", **inner}
    if key == "tool_call_result" and isinstance(inner.get("origin"), dict):
        origin = inner["origin"]
        rest = {name: value for name, value in inner.items() if name not in ("result", "error", "origin", "type")}
        told = {"call_id": origin.get("id"), "tool_name": origin.get("tool_name"), "is_error": inner.get("error")}
        return {"type": "tool_result", "result": inner.get("result"), **told, **rest}
    if key == "reasoning" and isinstance(inner.get("reasoning_text"), str):
        return {"type": "reasoning", "text": inner["reasoning_text"], "extra": inner.get("extra") or None}
    return block


def untold(block: dict[str, Any]) -> dict[str, Any]:
    """A result whose output says its type (AI SDK), or stands in a `run` (Amp), by the usual keys.

    >>> untold({"type": "tool-result", "toolCallId": "c1", "output": {"type": "error-text", "value": "down"}})
    {'type': 'tool-result', 'toolCallId': 'c1', 'output': 'down', 'is_error': True}
    """
    output, run = block.get("output"), block.get("run")
    told = output.get("type") if isinstance(output, dict) else None
    if isinstance(output, dict) and isinstance(told, str) and told in _TOLD and output.keys() & {"value", "reason"}:
        said = output.get("value", output.get("reason"))
        more = {key: value for key, value in output.items() if key not in ("type", "value", "reason")}
        typed = {"output": said, **({"output_keys": more} if more else {})}
        failed = told.startswith(("error", "execution"))
        return {**block, **typed, "is_error": True} if failed else {**block, **typed}
    if isinstance(run, dict) and "toolUseID" in block and "content" not in block:
        error = run.get("error")
        said = run.get("result") if run.get("result") is not None else error
        more = {key: value for key, value in run.items() if key not in ("result", "error") or value is not said}
        rest = {key: value for key, value in block.items() if key != "run"}
        failed = run.get("status") == "error"
        return {**rest, "result": said, "run": more, **({"is_error": True} if failed else {})}
    return block


def printed(ran: dict[str, Any]) -> tuple[str, list[Any] | None, bool]:
    """What code that ran at the provider printed, its files, and whether it failed.

    >>> printed({"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []})
    ('1', None, False)
    """
    texts = [ran[key] for key in ("stdout", "stderr") if isinstance(ran.get(key), str) and ran[key]]
    more = {
        key: value for key, value in ran.items() if key not in ("stdout", "stderr", "type") and value not in ([], 0)
    }
    return "\n".join(texts), [{"type": ran.get("type"), **more}] if more else None, ran["return_code"] not in (None, 0)
