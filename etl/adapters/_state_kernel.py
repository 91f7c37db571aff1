"""Chat histories of Semantic Kernel: `{role, items[{content_type}]}` in Python, `{Role, Items[{$type}]}` in .NET."""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import ROLES
from etl.adapters._records import left
from etl.adapters._rollouts import items, text
from etl.conversation import Message, ToolCall

_KINDS = {"TextContent": "text", "FunctionCallContent": "function_call", "FunctionResultContent": "function_result"}
_HELD = ("items", "role", "content_type", "finish_reason", "name", "ai_model_id", "encoding", "modelid", "authorname")


def _keys(item: dict[str, Any]) -> dict[str, Any]:
    """.NET's `PluginName` and Python's `plugin_name` alike."""
    return {key.replace("_", "").lower().removeprefix("$"): value for key, value in item.items()}


def _kind(block: dict[str, Any]) -> str | None:
    kind = block.get("contenttype", block.get("type"))
    return _KINDS.get(kind, kind) if isinstance(kind, str) else None


def _role(told: dict[str, Any]) -> str | None:
    role = told.get("role")
    role = role.get("Label") if isinstance(role, dict) else role
    return ROLES.get(role.lower()) if isinstance(role, str) else None


def is_kernel(item: dict[str, Any]) -> bool:
    """Whether it is one message of a chat history."""
    told = _keys(item)
    blocks = [_keys(block) for block in items(told, "items") if isinstance(block, dict)]
    typed = bool(blocks) and all("contenttype" in block for block in blocks[:4])
    return _role(told) is not None and (typed or _is_net(told))


def _is_net(told: dict[str, Any]) -> bool:
    return isinstance(told.get("role"), dict) and isinstance(told.get("items"), list)


def kernel_message(item: dict[str, Any]) -> list[Message] | str:
    """One message; results are messages of their own."""
    told = _keys(item)
    role = _role(told)
    if role is None:
        return "unknown_role"
    made = Message(role, name=text(told.get("name")) or text(told.get("authorname")))
    made.model = text(told.get("aimodelid")) or text(told.get("modelid"))
    made.finish_reason = text(told.get("finishreason"))
    made.extra = left({key: value for key, value in item.items() if value not in ({}, [])}, {
        key for key in item if key.replace("_", "").lower() in {held.replace("_", "") for held in _HELD}
    })  # fmt: skip
    texts: list[str] = []
    results: list[Message] = []
    for block in items(told, "items"):
        found = _keys(block) if isinstance(block, dict) else {}
        kind = _kind(found)
        if kind == "text":
            texts.append(plain(found.get("text")))
        elif kind == "function_call" and _named(found):
            call = ToolCall(_named(found) or "", found.get("arguments"), identifier(found.get("id")))
            made.calls = [*(made.calls or ()), call]
        elif kind == "function_result":
            call_id = identifier(found.get("callid")) or identifier(found.get("id"))
            results.append(Message("tool", plain(found.get("result")), call_id=call_id, name=_named(found)))
        else:
            made.parts = [*(made.parts or ()), block]
    made.content = "\n".join(texts)
    if results and not (made.content or made.calls or made.parts):
        results[-1].extra = made.extra
        return results
    return [*results, made] if role != "tool" or not results else results


def _named(found: dict[str, Any]) -> str | None:
    """The name of a function with its plugin's, as the model sees it."""
    function, plugin = text(found.get("functionname")), text(found.get("pluginname"))
    return text(found.get("name")) or ("-".join(filter(None, (plugin, function))) or None)
