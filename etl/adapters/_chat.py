"""One chat message in OpenAI form, in every spelling met in the wild: read alike for saved chats and for API calls."""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import call, identifier, plain, read, unheld
from etl.adapters._usage import tokens
from etl.conversation import Message, ToolCall
from etl.decode import JsonError, decode

ROLES = {
    "system": "system", "developer": "developer", "user": "user", "human": "user", "assistant": "assistant",
    "ai": "assistant", "model": "assistant", "tool": "tool", "function": "tool", "ipython": "tool",
}  # fmt: skip
_AT = ("timestamp", "created_at", "time", "ts", "at", "date")
_REASONING = ("reasoning_content", "reasoning", "thinking")


def parsed(text: str) -> Any:
    try:
        return decode(text.encode("utf-8", "surrogatepass")).value
    except JsonError:
        return None


def take_text(rest: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    """The first of these keys with a text or number, taken out of the rest."""
    for key in keys:
        if key in rest:
            found = rest[key]
            if type(found) is str:
                del rest[key]
                return found
            if type(found) is int:
                del rest[key]
                return str(found)
            if found is None:
                del rest[key]
    return None


def opened(item: Any) -> Any:
    """What is said by a message that was logged as JSON in a string; any other as it is."""
    return parsed(item) if type(item) is str and item[:1] == "{" else item


def chat_messages(item: Any) -> list[Message] | str:
    """The message (and the results in its blocks, as messages of their own), or the reason why it is none."""
    item = opened(item)
    if type(item) is not dict:
        return "bad_message"
    logged = item.get("role")
    role = ROLES.get(logged) or ROLES.get(logged.lower()) if type(logged) is str else None
    if role is None:
        return "unknown_role"
    message = Message(role)
    others: dict[str, Any] = {}
    for key, value in item.items():
        if key == "content" and (type(value) is str or value is None):
            message.content = value or ""
        elif key == "tool_calls" and type(value) is list:
            if value:
                _calls(value, message, others)
        elif key == "tool_call_id" and type(value) is str and role == "tool":
            message.call_id = value
        elif key == "name" and type(value) is str:
            message.name = value or None
        elif key == "role":
            if logged != role and value.lower() != role:
                others["role"] = logged
        elif value is not None:
            others[key] = value
    made = _rich(others, message) if others else [message]
    last = made[-1]
    if role == "tool" and last.call_id is None and last.content[:2] == "[{":
        return _several(last) or made
    return made


def _rich(rest: dict[str, Any], message: Message) -> list[Message]:
    """A message with more than role, text, calls and ids: `rest` has its other keys, and keeps what no field takes."""
    results: list[Message] = []
    if "content" in rest:
        _content(rest.pop("content"), message, results, rest)
    _reasoning(rest, message)
    if "tool_calls" in rest and not message.calls:
        listed = rest.pop("tool_calls")
        _calls(parsed(listed) if type(listed) is str and parsed(listed) else listed, message, rest)
    legacy = rest.get("function_call")
    if type(legacy) is dict and type(legacy.get("name")) is str:
        message.calls = [*(message.calls or ()), ToolCall(legacy["name"], legacy.get("arguments"))]
        del rest["function_call"]
    refusal = rest.get("refusal")
    if type(refusal) is str and refusal and not message.content:
        message.content = refusal
        rest["refusal"] = True
    if type(rest.get("audio")) is dict and any(rest["audio"].values()):
        _spoken(rest.pop("audio"), message)
    for key in _AT:
        if type(rest.get(key)) in (str, int, float):
            message.at = rest.pop(key)
            break
    message.id = take_text(rest, ("id",))
    if message.role == "tool":
        _result(rest, message)
    if type(rest.get("model")) is str:
        message.model = rest.pop("model")
    if type(rest.get("finish_reason")) is str:
        message.finish_reason = rest.pop("finish_reason")
    usage = tokens(rest.get("usage")) if "usage" in rest else None
    if usage is not None:
        message.input_tokens, message.output_tokens = usage.input_tokens, usage.output_tokens
    message.extra = rest or None
    if results and not (message.content or message.parts or message.calls or message.reasoning):
        return results
    return [*results, message]


def _spoken(audio: dict[str, Any], message: Message) -> None:
    """An answer that was spoken: its transcript is what it says, the sound a part."""
    transcript = audio.get("transcript")
    if type(transcript) is str and not message.content:
        message.content = transcript
        audio = {key: value for key, value in audio.items() if key != "transcript"}
    message.parts = [*(message.parts or ()), {"type": "audio", "audio": audio}]


def _several(message: Message) -> list[Message] | None:
    """The results of several calls that stand as a JSON list in the text of one message, each with the id of its call;
    None where the text is anything else.
    """
    listed = parsed(message.content)
    if not isinstance(listed, list) or not all(_names_its_call(item) for item in listed):
        return None
    made = [
        Message("tool", plain(item["content"]), call_id=item["tool_call_id"], name=item.get("name")) for item in listed
    ]
    for found, item in zip(made, listed, strict=True):
        found.at = message.at
        found.extra = {
            key: left for key, left in item.items() if key not in ("tool_call_id", "name", "content")
        } or None
    made[0].id, made[0].parts = message.id, message.parts
    made[0].extra = {**(message.extra or {}), **(made[0].extra or {})} or None
    return made


def _names_its_call(item: Any) -> bool:
    named = isinstance(item, dict) and isinstance(item.get("tool_call_id"), str) and "content" in item
    return named and isinstance(item.get("name"), (str, type(None)))


def _content(content: Any, message: Message, results: list[Message], rest: dict[str, Any]) -> None:
    """Content that is no string: blocks, or a bare value (its text is its JSON)."""
    if type(content) is dict and type(content.get("type")) is not str and type(content.get("text")) is not str:
        message.content = plain(content)
        return
    blocks = read(content)
    message.content, message.reasoning, message.parts = blocks.text, blocks.reasoning, blocks.parts
    message.calls = blocks.calls or message.calls
    if not isinstance(content, (list, dict)):
        rest["content"] = content
    if blocks.rest:
        rest["blocks"] = blocks.rest
    for found in blocks.results or ():
        if message.role == "tool" and len(blocks.results or ()) == 1 and not message.content:
            message.content, message.failed = found.text, found.failed
            message.call_id = message.call_id or found.call_id
            message.parts = [*(message.parts or ()), *(found.parts or ())] or None
            message.name = message.name or found.name
            if found.rest:
                rest["result"] = found.rest
        else:
            results.append(
                Message(
                    "tool",
                    found.text,
                    call_id=found.call_id,
                    name=found.name,
                    parts=found.parts,
                    failed=found.failed,
                    extra=found.rest,
                )
            )


def _reasoning(rest: dict[str, Any], message: Message) -> None:
    for key in _REASONING:
        found = rest.get(key)
        if type(found) is str and (message.reasoning is None or found in ("", message.reasoning)):
            message.reasoning = found or message.reasoning
            del rest[key]


def _calls(listed: Any, message: Message, rest: dict[str, Any]) -> None:
    """Calls in every spelling: objects or their JSON text, nested or flat; what is none stays in `rest`."""
    made: list[ToolCall] = []
    unread: list[Any] = []
    more: list[Any] = []
    for logged in listed if type(listed) is list else [] if listed == {} else [listed]:
        entry = parsed(logged) if type(logged) is str else logged
        if type(entry) is dict and len(entry) == 3 and entry.get("type") == "function":
            function, call_id = entry.get("function"), entry.get("id")
            if type(function) is dict and len(function) == 2 and type(call_id) is str and call_id:
                name = function.get("name")
                if type(name) is str and "arguments" in function:
                    made.append(ToolCall(name, function["arguments"], call_id))
                    continue
        found = _call(entry)
        if found is None:
            unread.append(logged)
            continue
        made.append(found)
        left = unheld(entry, found)
        if left:
            more.append(left)
    if made:
        message.calls = [*message.calls, *made] if message.calls else made
    if unread:
        rest["tool_calls"] = unread
    if more:
        rest["tool_call_keys"] = more


def _call(entry: Any) -> ToolCall | None:
    if type(entry) is not dict:
        return None
    custom = entry.get("custom")
    if type(custom) is dict and type(custom.get("name")) is str:
        return ToolCall(custom["name"], custom.get("input"), identifier(entry.get("id")), free_form=True)
    return call(entry)


def _result(rest: dict[str, Any], message: Message) -> None:
    """What only a tool message has: the call it answers, and whether that failed."""
    if message.call_id is None:
        message.call_id = take_text(rest, ("tool_call_id",))
    for key in ("is_error", "isError"):
        if type(rest.get(key)) is bool:
            message.failed = rest.pop(key)
    if message.failed is None and rest.get("status") in ("error", "success"):
        message.failed = rest["status"] == "error"
    if message.failed is None and type(rest.get("error")) is str and rest["error"]:
        message.failed = True
    for key in ("duration_ms", "latency_ms"):
        if type(rest.get(key)) in (int, float):
            message.duration_ms = float(rest.pop(key))
            break
