"""Messages of AutoGen: what its agents say to each other (AgentChat), and the context that a model client is given."""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import call as read_call
from etl.adapters._blocks import identifier, plain
from etl.adapters._records import left
from etl.adapters._rollouts import count, items, obj, text
from etl.conversation import Message

AUTOGEN = frozenset({
    "TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage",
    "ToolCallRequestEvent", "ToolCallExecutionEvent", "ThoughtEvent", "MemoryQueryEvent", "UserInputRequestedEvent",
    "UserMessage", "AssistantMessage", "FunctionExecutionResultMessage", "SelectSpeakerEvent", "SelectorEvent",
})  # fmt: skip
_HARNESS = ("HandoffMessage", "ToolCallSummaryMessage", "StopMessage", "SelectSpeakerEvent", "SelectorEvent")
"""What the framework says in an agent's name."""
_PEOPLE = ("user", "user_proxy", "userproxy", "human")
_HELD = ("type", "content", "source", "models_usage", "created_at", "id", "thought", "metadata")


def autogen_message(item: dict[str, Any]) -> list[Message] | str:
    """One message or event; an execution is a result for each call."""
    kind, content = item["type"].partition("[")[0], item.get("content")
    if kind == "ModelClientStreamingChunkEvent":
        return []  # a fragment of a message that comes whole
    if kind in ("ToolCallExecutionEvent", "FunctionExecutionResultMessage"):
        return [_result(found, item) for found in items(item, "content") if isinstance(found, dict)]
    source = text(item.get("source"))
    made = Message(_role(kind, source), name=source if source not in _PEOPLE else None, at=item.get("created_at"))
    made.id = identifier(item.get("id"))
    made.reasoning = text(item.get("thought"))
    made.synthetic = kind in _HARNESS or kind.startswith(("Memory", "UserInput"))
    usage = obj(item, "models_usage")
    made.input_tokens, made.output_tokens = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    made.extra = left(item, _HELD)
    if item.get("metadata"):
        made.extra = {**(made.extra or {}), "metadata": item["metadata"]}
    if kind == "ThoughtEvent":
        made.reasoning = plain(content)
        return [made]
    if isinstance(content, list):
        _take(content, made)
    else:
        made.content = plain(content)
    return [made]


def _role(kind: str, source: str | None) -> str:
    if kind == "SystemMessage":
        return "system"
    if kind == "UserMessage" or (source or "").lower() in _PEOPLE or kind.startswith(("Memory", "UserInput")):
        return "user"
    return "assistant"


def _take(content: list[Any], made: Message) -> None:
    """Calls, or texts and images."""
    texts: list[str] = []
    for block in content:
        found = read_call(block) if isinstance(block, dict) and "arguments" in block else None
        if found is not None:
            made.calls = [*(made.calls or ()), found]
        elif isinstance(block, str):
            texts.append(block)
        else:
            made.parts = [*(made.parts or ()), block]
    made.content = "\n".join(texts)


def _result(found: dict[str, Any], item: dict[str, Any]) -> Message:
    flag = found.get("is_error")
    return Message(
        "tool", plain(found.get("content")), call_id=identifier(found.get("call_id")), name=text(found.get("name")),
        at=item.get("created_at"), failed=flag if isinstance(flag, bool) else None,
        extra=left(found, ("content", "call_id", "name", "is_error")),
    )  # fmt: skip
