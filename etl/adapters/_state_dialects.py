"""Messages as agent frameworks keep them, one function each, told by keys that only that framework writes.

A list is of a dialect where every item fits it and one is sure to be of it. The order decides between two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from etl.adapters._api_converse import message as converse_message
from etl.adapters._api_responses import RESPONSES
from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import ROLES, chat_messages, parsed
from etl.adapters._langchain import chat_form, message_of
from etl.adapters._otlp_facts import summed
from etl.adapters._records import left
from etl.adapters._rollouts import items, obj, text
from etl.adapters._run_usage import usage_of
from etl.adapters._state_autogen import AUTOGEN, autogen_message
from etl.adapters._state_kernel import is_kernel, kernel_message
from etl.adapters._state_steps import is_step, smol_messages
from etl.conversation import Message, Tokens, ToolCall

_SAMPLE = 12
_ITEMS = frozenset({
    "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "computer_call",
    "computer_call_output", "web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "shell_call",
    "shell_call_output", "local_shell_call", "local_shell_call_output", "image_generation_call", "reasoning",
    "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "message", "agent_handoff", "apply_patch_call",
    "apply_patch_call_output", "item_reference", "tool_search_call",
})  # fmt: skip
_WRAPPED = ("user_message", "heartbeat", "login", "system_alert", "package_message")
"""What Letta puts a user's turn into: JSON text of one of these types."""


def counted(messages: Sequence[Message]) -> Tokens | None:
    """The tokens of all answers that tell theirs."""
    found: list[Tokens] = []
    for message in messages:
        told = usage_of((message.extra or {}).get("usage"))
        if told is None and (message.input_tokens is not None or message.output_tokens is not None):
            told = Tokens(message.input_tokens, message.output_tokens)
        found += [told] if told is not None else []
    return summed(found)


class Dialect(NamedTuple):
    """How one framework writes a message."""

    name: str
    sure: Callable[[dict[str, Any]], bool]
    fits: Callable[[dict[str, Any]], bool]
    read: Callable[[dict[str, Any]], list[Message] | str]


def dialect_of(listed: Sequence[Any], sure: bool = True) -> Dialect | None:
    """The dialect of a list of messages; None where it is no such list. Not `sure`: where it may be (a cut file)."""
    head = listed[:_SAMPLE]
    if not head or not all(isinstance(item, dict) for item in head):
        return None
    fitting = (each for each in DIALECTS if all(map(each.fits, head)))
    found = next((each for each in fitting if not sure or any(map(each.sure, head))), None)
    alone = found is not None and found.name == "strands" and len(head) == 1
    return None if alone else found  # Strands keeps each message in a file of its own, which is no conversation


def _has_role(item: dict[str, Any]) -> bool:
    role = item.get("role")
    return isinstance(role, str) and role in ROLES


def _is_langchain(item: dict[str, Any]) -> bool:
    return message_of(item)[0] in ("user", "assistant") and (
        item.get("type") != "ai" or "content" in item or "data" in item
    )


def _fits_langchain(item: dict[str, Any]) -> bool:
    return message_of(item)[0] is not None


def langchain_message(item: dict[str, Any]) -> list[Message] | str:
    """A message that LangChain serialised, or the reason why it is none."""
    made = chat_form(item)
    about = obj(made, "response_metadata") if isinstance(made, dict) else {}
    read = chat_messages(made)
    if not isinstance(read, str) and read[-1].role == "assistant":
        read[-1].model = read[-1].model or text(about.get("model_name")) or text(about.get("model"))
    return read


def _is_item(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    if kind == "message":
        content = item.get("content")
        first = content[0] if isinstance(content, list) and content else None
        typed = isinstance(first, dict) and text(first.get("type")) in ("input_text", "output_text")
        return _has_role(item) and (typed or (isinstance(first, str) and "id" in item))
    if kind == "function_call":
        return isinstance(item.get("call_id"), str) and isinstance(item.get("name"), str)
    return isinstance(kind, str) and kind in _ITEMS and ("call_id" in item or kind.endswith("_call"))


def _fits_item(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    return kind in _ITEMS if isinstance(kind, str) else kind is None and _has_role(item) and "content" in item


def _item(item: dict[str, Any]) -> list[Message] | str:
    read = RESPONSES.message({key: value for key, value in item.items() if key not in ("is_error", "created_at")})
    if isinstance(item.get("is_error"), bool) and read[-1].role == "tool":
        read[-1].failed = item["is_error"]
    if read[0].at is None and isinstance(item.get("created_at"), (int, float, str)):
        read[0].at = item["created_at"]
    return read


def _is_converse(item: dict[str, Any]) -> bool:
    return any(isinstance(block, dict) and block.keys() & {"toolUse", "toolResult"} for block in items(item, "content"))


def _fits_converse(item: dict[str, Any]) -> bool:
    blocks = items(item, "content")
    return text(item.get("role")) in ("user", "assistant") and all(
        isinstance(each, dict) and "type" not in each for each in blocks
    )


def _is_strands(item: dict[str, Any]) -> bool:
    return "message_id" in item and isinstance(item.get("message"), dict) and _fits_converse(item["message"])


def _strands(item: dict[str, Any]) -> list[Message] | str:
    read = converse_message(item["message"])
    for message in read:
        message.at = item.get("created_at")
    read[0].id = identifier(item["message_id"])
    return read


def _is_smol(item: dict[str, Any]) -> bool:
    return is_step(item) or bool(item.keys() & {"system_prompt", "task", "plan", "output"})


def _is_llama(item: dict[str, Any]) -> bool:
    return any(isinstance(block, dict) and "block_type" in block for block in items(item, "blocks"))


def _fits_llama(item: dict[str, Any]) -> bool:
    return _has_role(item) and isinstance(item.get("blocks"), list)


def _llama(item: dict[str, Any]) -> list[Message] | str:
    """`{role, blocks[{block_type}], additional_kwargs}`."""
    more = obj(item, "additional_kwargs")
    blocks: list[Any] = []
    calls: list[ToolCall] = []
    for block in items(item, "blocks"):
        kind = block.get("block_type") if isinstance(block, dict) else None
        if kind == "tool_call" and text(block.get("tool_name")):
            calls.append(ToolCall(block["tool_name"], block.get("tool_kwargs"), identifier(block.get("tool_call_id"))))
        elif kind == "thinking":
            blocks.append({"type": "thinking", "thinking": block.get("content")})
        else:
            blocks.append({"type": kind, **(left(block, ("block_type",)) or {})} if kind else block)
    known = {key: more[key] for key in ("tool_calls", "tool_call_id", "name") if more.get(key) and not calls}
    known |= {key: more[key] for key in ("tool_call_id", "name") if more.get(key)}
    rest = left(more, ("tool_calls", "tool_call_id", "name"))
    read = chat_messages(
        {"role": item["role"], "content": blocks, **known, **({"additional_kwargs": rest} if rest else {})}
    )
    if not isinstance(read, str) and calls:
        read[-1].calls = calls
    return read


def _is_thread_message(item: dict[str, Any]) -> bool:
    return item.get("object") == "thread.message" and _has_role(item)


def _thread_message(item: dict[str, Any]) -> list[Message] | str:
    return chat_messages(chat_form({key: value for key, value in item.items() if key != "object"}))


def _is_query(item: dict[str, Any]) -> bool:
    return isinstance(item.get("query"), str) and "answer" in item and "conversation_id" in item


def _query(item: dict[str, Any]) -> list[Message] | str:
    """A turn of Dify: what was asked, and what was answered."""
    files = items(item, "message_files")
    asked = Message("user", item["query"], at=item.get("created_at"), parts=files or None)
    rest = left(item, ("query", "answer", "conversation_id", "id", "created_at", "message_files", "error", "status"))
    said = Message("assistant", plain(item["answer"]), id=identifier(item.get("id")), at=item.get("created_at"))
    said.extra = {key: value for key, value in (rest or {}).items() if value not in ([], {})} or None
    return [asked, said]


def _is_letta(item: dict[str, Any]) -> bool:
    named = isinstance(item.get("id"), str) and item["id"].startswith("message-")
    return _fits_letta(item) and (named or "tool_returns" in item)


def _fits_letta(item: dict[str, Any]) -> bool:
    return _has_role(item) and "content" in item


def _letta(item: dict[str, Any]) -> list[Message] | str:
    rest = {key: value for key, value in item.items() if value not in (None, [])}
    read = chat_messages(left(rest, ("updated_at", "group_id", "agent_id", "otid")) or {})
    if isinstance(read, str) or read[-1].role == "assistant":
        return read
    read[-1].model = None
    told = parsed(read[-1].content) if read[-1].role == "user" else None
    if isinstance(told, dict) and text(told.get("type")) in _WRAPPED and told.keys() & {"message", "reason"}:
        read[-1].content = plain(told.get("message", told.get("reason")))
        read[-1].synthetic = told["type"] != "user_message"
        read[-1].extra = {**(read[-1].extra or {}), "envelope": left(told, ("message", "reason"))}
    return read


def _is_autogen(item: dict[str, Any]) -> bool:
    kind = text(item.get("type"))
    return kind in AUTOGEN and ("source" in item or kind == "FunctionExecutionResultMessage")


def _fits_autogen(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and "content" in item and kind.partition("[")[0].endswith(("Message", "Event"))


DIALECTS = (
    Dialect("autogen", _is_autogen, _fits_autogen, autogen_message),
    Dialect("langchain", _is_langchain, _fits_langchain, langchain_message),
    Dialect("openai_items", _is_item, _fits_item, _item),
    Dialect("semantic_kernel", is_kernel, is_kernel, kernel_message),
    Dialect("llama_index", _is_llama, _fits_llama, _llama),
    Dialect("smolagents", is_step, _is_smol, smol_messages),
    Dialect("strands", _is_strands, _is_strands, _strands),
    Dialect("converse", _is_converse, _fits_converse, converse_message),
    Dialect("openai_thread", _is_thread_message, _is_thread_message, _thread_message),
    Dialect("letta", _is_letta, _fits_letta, _letta),
    Dialect("dify", _is_query, _is_query, _query),
)  # fmt: skip
"""All of them; the first that a list is of counts."""
