"""Turn items of newer Codex files (`item_completed`), each as the event that older files tell the same with.

Files with paginated history write what was said and run as items of a turn, with their own ids, beside the items of the
Responses API; a command that ran inside a program of the model (`exec`) is told there alone.
"""

from __future__ import annotations

from typing import Any

from etl.adapters._session import dict_of, list_of, text_of, without
from etl.conversation import ToolCall

DONE = "item_completed"
_ENVELOPE = ("type", "thread_id", "turn_id", "item", "started_at_ms", "completed_at_ms")


def event_of(payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(type, payload) of the event that an `item_completed` stands for; the item itself where there is none.

    >>> event_of({"type": "item_completed", "item": {"type": "AgentMessage", "content": [{"text": "Done."}]}})
    ('agent_message', {'message': 'Done.'})
    """
    item = dict_of(payload, "item")
    kind = text_of(item, "type") or DONE
    more = {**without(item, "type", "id"), **without(payload, *_ENVELOPE)}
    if kind == "UserMessage":
        return "user_message", _asked(item)
    if kind == "AgentMessage":
        return "agent_message", {"message": _texts(list_of(item, "content")), **without(more, "content")}
    if kind == "Reasoning":
        summary, raw = list_of(item, "summary_text"), list_of(item, "raw_content")
        said = {"text": _texts(summary or raw), "raw_content": raw if summary else None}
        return "agent_reasoning", without({**said, **without(more, "summary_text", "raw_content")})
    if kind == "ContextCompaction":
        return "context_compacted", more
    told = {"call_id": item.get("id"), **more}
    if duration := _duration(payload):
        told.setdefault("duration", duration)
    if kind == "CommandExecution":
        same = ("stdout", "formatted_output") if item.get("aggregated_output") else ()
        return "exec_command_end", without(told, *(k for k in same if item.get(k) == item["aggregated_output"]))
    if kind == "McpToolCall":
        invocation = {key: item[key] for key in ("server", "tool", "arguments") if key in item}
        error = item.get("error")
        failed = error is not None or item.get("status") == "failed"
        result = {"Err": text_of(error, "message") or error or ""} if failed else {"Ok": item.get("result")}
        rest = without(told, *invocation, "result", "error", "status")
        return "mcp_tool_call_end", {**rest, "invocation": invocation, "result": result}
    if kind == "FileChange":
        status = text_of(item, "status")
        return "patch_apply_end", without({**told, "success": None if status is None else status == "completed"})
    if kind == "WebSearch":
        return "web_search_end", told
    return kind, {**without(item, "type"), **without(payload, *_ENVELOPE)}


def call_of(kind: str, event: dict[str, Any]) -> tuple[ToolCall, list[str]] | None:
    """(call, keys of the event that it holds) that a turn item tells of, where no item of the model calls it.

    Its tool has the name that the stream of `codex exec` has for it. None for what a person ran.
    """
    if kind == "exec_command_end" and event.get("source") not in ("user_shell", "unified_exec_interaction"):
        tool, keys = "command_execution", ["command", "cwd"]
    elif kind == "patch_apply_end":
        tool, keys = "file_change", ["changes"]
    elif kind == "web_search_end":
        tool, keys = "web_search", ["query", "action"]
    else:
        return None
    actor = "server" if tool == "web_search" else "agent"
    arguments = {key: event[key] for key in keys if key in event}
    return ToolCall(tool, arguments, text_of(event, "call_id"), actor=actor), keys


def _asked(item: dict[str, Any]) -> dict[str, Any]:
    """What a person said: texts as one, pictures by their addresses or places, the rest as it is."""
    told: dict[str, list[Any]] = {"images": [], "local_images": [], "content": []}
    texts = []
    for block in list_of(item, "content"):
        if (text := text_of(block, "text")) is not None:
            texts.append(text)
        elif address := text_of(block, "image_url", "url"):
            told["images"].append(address)
        elif text_of(block, "type") == "local_image" and (place := text_of(block, "path")):
            told["local_images"].append(place)
        else:
            told["content"].append(block)
    return {"message": "".join(texts), **without(told), **without(item, "type", "id", "content")}


def _texts(pieces: list[Any]) -> str:
    found = (piece if isinstance(piece, str) else text_of(piece, "text") for piece in pieces)
    return "\n".join(text for text in found if text)


def _duration(payload: dict[str, Any]) -> dict[str, int] | None:
    """How long the item took, by the times around it."""
    start, end = payload.get("started_at_ms"), payload.get("completed_at_ms")
    if type(start) is not int or type(end) is not int or not 0 < start <= end:
        return None
    return {"secs": 0, "nanos": (end - start) * 1_000_000}
