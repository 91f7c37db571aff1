"""OpenAI Responses: items in, items out; a history that lies at the provider is named by `previous_response_id`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etl.adapters._api_form import (
    Answered,
    Asked,
    Body,
    Choice,
    Codec,
    arr,
    error_text,
    kept,
    obj,
    piece,
    text,
    without,
)
from etl.adapters._api_openai import message as chat_message
from etl.adapters._blocks import identifier, plain
from etl.adapters._blocks import read as read_blocks
from etl.adapters._usage import tokens
from etl.conversation import Message, ToolCall

_CALLS = {
    "function_call": ("call_id", "arguments"), "custom_tool_call": ("call_id", "input"),
    "local_shell_call": ("call_id", "action"), "shell_call": ("call_id", "action"),
    "apply_patch_call": ("call_id", "operation"), "computer_call": ("call_id", "action"),
}  # fmt: skip
"""Items that ask the client for something → the keys of id and arguments."""
_NAMED = ("function_call", "custom_tool_call")
_RESULTS = frozenset({
    "function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output",
    "apply_patch_call_output", "computer_call_output",
})  # fmt: skip
_SERVER = {
    "web_search_call": ("action", ()), "file_search_call": ("queries", ("results",)),
    "code_interpreter_call": ("code", ("outputs",)), "image_generation_call": ("revised_prompt", ("result",)),
    "mcp_call": ("arguments", ("output", "error")), "tool_search_call": ("arguments", ()),
}  # fmt: skip
"""Items that ran at the provider → the keys of arguments and of results."""
_DONE = frozenset({"completed", "complete", "incomplete", "failed", "cancelled"})


def _asked(body: Body) -> Asked:
    """`{model, input: text | items, instructions, tools, previous_response_id, conversation}`."""
    given = body.get("input")
    items: list[Any] = [{"role": "user", "content": given}] if type(given) is str else list(arr(given))
    if body.get("instructions"):
        items.insert(0, {"role": "system", "content": body["instructions"]})
    thread = body.get("conversation")
    return Asked(
        items, body.get("tools") or None, text(body.get("model")), text(body.get("previous_response_id")),
        text(thread) or identifier(obj(thread).get("id")), text(body.get("user")),
        without(body, "input", "instructions", "tools", "model", "previous_response_id", "conversation"),
    )  # fmt: skip


def message(item: Any) -> list[Message]:
    """One item, of input or output, as the piece of a turn that it is."""
    if type(item) is not dict:
        return [Message("user", plain(item))]
    kind = text(item.get("type"))
    if kind == "reasoning":
        return [piece(_reasoning(item))]
    if kind in _CALLS and (kind not in _NAMED or text(item.get("name"))):
        return [piece(_call(item, kind))]
    if kind in _RESULTS:
        return [_result(item)]
    if kind in _SERVER:
        return [piece(each) if each.role == "assistant" else each for each in _server_call(item, kind)]
    if kind in (None, "message"):
        read = chat_message({key: value for key, value in item.items() if key != "type"})
        return [piece(each) if each.role == "assistant" else each for each in read]
    if kind == "mcp_approval_response":
        return [Message("user", parts=[item])]
    return [piece(Message("assistant", parts=[item]))]


def _reasoning(item: Body) -> Message:
    """Readable summaries and texts; encrypted reasoning stays a part."""
    blocks = read_blocks([*arr(item.get("summary")), *arr(item.get("content"))])
    said = "\n".join(each for each in (blocks.text, blocks.reasoning) if each)
    part = without(item, "summary", "content")
    return Message("assistant", reasoning=said or None, parts=[part] if len(part) > 1 else None)


def _call(item: Body, kind: str) -> Message:
    id_key, key = _CALLS[kind]
    call_id = identifier(item.get(id_key)) or identifier(item.get("id"))
    call = ToolCall(
        text(item.get("name")) or kind.removesuffix("_call"),
        item.get(key),
        call_id,
        free_form=kind == "custom_tool_call",
    )
    rest = without(item, "name", key, "call_id")
    if kind == "function_call":
        rest.pop("type", None)
    return kept(Message("assistant", calls=[call]), call=rest)


def _result(item: Body) -> Message:
    said, parts, failed = _output(item.get("output"))
    failed = failed or item.get("status") in ("failed", "incomplete")
    made = Message("tool", said, call_id=identifier(item.get("call_id")), parts=parts, failed=failed or None)
    return kept(made, result=without(item, "output", "call_id", "type"))


def _output(output: Any) -> tuple[str, list[Any] | None, bool]:
    """What a tool gave: its text, its other parts, and whether a command among them failed.

    A shell gives `{stdout, stderr, outcome}` a command, an interpreter `{logs}`, a search the `{text}`s it found.
    """
    if type(output) is str:
        return output, None, False
    if type(output) is dict and type(output.get("type")) is not str:
        return plain(output), None, False
    texts, parts, failed = [], [], False
    for item in output if type(output) is list else [output]:
        block = obj(item)
        if block.get("type") == "logs" or "stdout" in block or "stderr" in block:
            texts += [said for key in ("logs", "stdout", "stderr") if (said := text(block.get(key)))]
            ended = obj(block.get("outcome"))
            failed = failed or ended.get("type") == "timeout" or ended.get("exit_code") not in (None, 0)
            left = without(block, "logs", "stdout", "stderr")
            parts += [left] if left.keys() - {"type"} else []
            continue
        blocks = read_blocks([item])
        texts += [blocks.text] if blocks.text else []
        parts += blocks.parts or [without(obj(left), "type") for left in blocks.rest or ()]
    return "\n".join(texts), parts or None, failed


def _server_call(item: Body, kind: str) -> list[Message]:
    """A call that ran at the provider, and its result where the item has one."""
    key, results = _SERVER[kind]
    call_id = identifier(item.get("id"))
    name = text(item.get("name")) or kind.removesuffix("_call")
    given = item.get(key)
    arguments = given if type(given) is dict or kind == "mcp_call" else None if given is None else {key: given}
    call = ToolCall(name, arguments, call_id, actor="server")
    made = [kept(Message("assistant", calls=[call]), call=without(item, "name", "id", key, *results))]
    found = {name: item[name] for name in results if item.get(name) is not None}
    if found:
        failed = bool(found.get("error")) or item.get("status") == "failed"
        output = next((value for name, value in found.items() if name != "error"), None)
        said, parts, _ = ("", [{"type": kind, **found}], False) if kind == "image_generation_call" else _output(output)
        result = Message("tool", said, call_id=call_id, parts=parts, failed=failed or None)
        if failed and "error" in found:
            _fail(result, found["error"])
        made.append(result)
    return made


def _fail(result: Message, error: Any) -> None:
    """An error beside the output, or in its place."""
    told = read_blocks(obj(error).get("content")).text or error_text(error) or plain(error)
    result.error = told if result.content else None
    result.content = result.content or told
    if type(error) is dict:
        kept(result, error=error)


def _answered(body: Body) -> Answered:
    """`{id, created_at, status, output[items], usage, error, incomplete_details}`."""
    messages = [each for item in arr(body.get("output")) for each in message(item)]
    status = text(body.get("status"))
    finish = text(obj(body.get("incomplete_details")).get("reason")) or status
    failed = error_text(body["error"]) if body.get("error") is not None else None
    if failed is None and "output" not in body and status is None:
        failed = error_text(body)
    held = ("id", "model", "created_at", "output", "status", "error", "previous_response_id", "object", "output_text")
    rest = without(body, *held)
    return Answered(
        [Choice(messages, finish)] if messages else [], identifier(body.get("id")), text(body.get("model")),
        body.get("created_at"), tokens(body.get("usage")), failed, status is None or status in _DONE,
        text(body.get("previous_response_id")), rest,
    )  # fmt: skip


def _joined(events: Sequence[Any]) -> Body:
    """The response of the last event that carries one; where the stream broke off, its items as far as they came."""
    body: Body = {}
    items: dict[int, Body] = {}
    for event in map(obj, events):
        kind, index = text(event.get("type")) or "", event.get("output_index")
        if type(event.get("response")) is dict:
            body = {**body, **event["response"]}
        elif kind == "error":
            body["error"] = event.get("error") or without(event, "type", "sequence_number")
        elif kind in ("response.output_item.added", "response.output_item.done") and type(index) is int:
            items[index] = obj(event.get("item"))
        elif type(index) is int and type(event.get("delta")) is str:
            _grow(items.setdefault(index, _begun(kind)), kind, event)
    if items and not body.get("output"):
        body["output"] = [items[index] for index in sorted(items)]
    return body


def _begun(kind: str) -> Body:
    """An item whose beginning was lost: what the kind of its first fragment says of it."""
    if kind.startswith(("response.output_text", "response.refusal")):
        return {"type": "message", "role": "assistant"}
    if kind.startswith("response.reasoning"):
        return {"type": "reasoning"}
    return {"type": kind.removeprefix("response.").partition(".")[0].removesuffix("_arguments").removesuffix("_input")}


def _grow(item: Body, kind: str, event: Body) -> None:
    delta = event["delta"]
    if kind.endswith(("function_call_arguments.delta", "mcp_call_arguments.delta")):
        item["arguments"] = plain(item.get("arguments")) + delta
    elif kind.endswith("custom_tool_call_input.delta"):
        item["input"] = plain(item.get("input")) + delta
    elif kind.endswith("code.delta"):
        item["code"] = plain(item.get("code")) + delta
    elif kind.endswith(("output_text.delta", "refusal.delta", "reasoning_summary_text.delta", "reasoning_text.delta")):
        key, place = ("summary", "summary_index") if "summary" in kind else ("content", "content_index")
        parts = arr(item.get(key))
        number = event.get(place)
        while len(parts) <= (number if type(number) is int and 0 <= number < 1000 else 0):
            parts.append({"type": "summary_text" if key == "summary" else "output_text", "text": ""})
        part = obj(parts[number if type(number) is int and 0 <= number < 1000 else 0])
        part["text"] = plain(part.get("text")) + delta
        item[key] = parts


RESPONSES = Codec("openai_responses", "openai", _asked, message, _answered, _joined)
