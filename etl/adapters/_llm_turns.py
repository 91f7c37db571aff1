"""What `llm` logs of responses and messages, as messages."""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import parsed
from etl.adapters._records import left
from etl.adapters._rollouts import items, text
from etl.adapters._session import real
from etl.adapters._usage import tokens
from etl.conversation import Message, Tokens, ToolCall

_RESPONSE = frozenset({
    "id", "model", "resolved_model", "prompt", "system", "response", "reasoning", "datetime_utc", "duration_ms",
    "conversation_id", "conversation_name", "conversation_model", "input_tokens", "output_tokens", "token_details",
    "tool_calls", "tool_results", "tools", "prompt_json", "response_json", "prompt_fragments", "system_fragments",
    "attachments", "options_json", "timestamp_utc", "chat_id", "reply_to_id",
})  # fmt: skip
_PART = frozenset({"type", "text", "position", "literal", "attachments", "tool_name"})
_CALL = frozenset({"name", "arguments", "tool_call_id", "server_executed", "id", "tool_id", "response_id", "output",
                   "exception", "instance_id", "attachments", "instance"})  # fmt: skip
_DETAILS = {"prompt_tokens_details": "input_tokens_details", "completion_tokens_details": "output_tokens_details"}
ROLES = frozenset({"user", "assistant", "system", "tool"})


def usage_of_turn(value: dict[str, Any]) -> Tokens | None:
    """What one response used; its details are the provider's own."""
    details = _json(value.get("token_details"))
    told = {_DETAILS.get(key, key): item for key, item in details.items()} if isinstance(details, dict) else {}
    return tokens({**told, "input_tokens": value.get("input_tokens"), "output_tokens": value.get("output_tokens")})


def definitions(tools: list[Any]) -> list[dict[str, Any]]:
    """Tools that were offered, in the usual form."""
    made = []
    for tool in tools:
        if isinstance(tool, dict) and text(tool.get("name")):
            function = {"name": tool["name"], "description": tool.get("description")}
            made.append({"type": "function", "function": {**function, "parameters": _json(tool.get("input_schema"))}})
    return made


def response(value: dict[str, Any], system: str | None) -> list[Message]:
    """One response with what was asked: a new system prompt, results of the calls before, the prompt, the answer."""
    at = value.get("datetime_utc") or value.get("timestamp_utc")
    made: list[Message] = []
    told = _with_fragments(value.get("system"), items(value, "system_fragments"), "\n\n")
    if told and told != system:
        made.append(Message("system", told))
    made += [_result(result) for result in items(value, "tool_results") if isinstance(result, dict)]
    asked = _with_fragments(value.get("prompt"), items(value, "prompt_fragments"), "\n")
    attached = [_attachment(each) for each in items(value, "attachments")]
    if asked or attached or not made:
        made.append(Message("user", asked, parts=attached or None))
    for message in made:
        message.at = at
    raw = _json(value.get("response_json"))
    answer = Message("assistant", plain(value.get("response")), text(value.get("reasoning")), at=at)
    answer.id, answer.model = identifier(value.get("id")), model_of(value)
    _calls(answer, items(value, "tool_calls"))
    used = usage_of_turn(value) or (tokens(raw.get("usage")) if isinstance(raw, dict) else None)
    if used is not None:
        answer.input_tokens, answer.output_tokens = used.input_tokens, used.output_tokens
    rest = left(value, _RESPONSE) or {}
    if isinstance(raw, dict):
        answer.finish_reason = text(raw.get("finish_reason"))
        raw = left(raw, ("content", "role", "usage", "finish_reason", "model", "object")) or {}
    rest |= {key: item for key, item in (("response_json", raw), ("options", _json(value.get("options_json")))) if item}
    if (took := real(value.get("duration_ms"))) is not None:
        rest["duration_ms"] = took
    answer.extra = {key: item for key, item in rest.items() if item not in (None, "", [], {})} or None
    return [*made, answer]


def _json(value: Any) -> Any:
    """A column of JSON, or what it holds already."""
    if not isinstance(value, str):
        return value
    found = parsed(value)
    return value if found is None and value else found


def _with_fragments(said: Any, fragments: list[Any], glue: str) -> str:
    """What was sent: the fragments before the text, where it does not have them already."""
    spoken = plain(said)
    before = glue.join(plain(each.get("content")) for each in fragments if isinstance(each, dict))
    if not before or spoken.startswith(before):
        return spoken
    return f"{before}{glue}{spoken}" if spoken else before


def _attachment(each: Any) -> Any:
    """An attachment as a part; its type is that of its content."""
    return {**each, "media_type": each.get("type"), "type": "attachment"} if isinstance(each, dict) else each


def _calls(message: Message, calls: list[Any]) -> None:
    for call in calls:
        if not isinstance(call, dict):
            continue
        actor = "server" if call.get("server_executed") in (True, 1) else "agent"
        made = ToolCall(plain(call.get("name")), call.get("arguments"), identifier(call.get("tool_call_id")), actor)
        message.calls = [*(message.calls or ()), made]
        if rest := left(call, _CALL | _PART):
            message.extra = {**(message.extra or {}), f"call:{made.id or made.name}": rest}


def _result(result: dict[str, Any]) -> Message:
    """What came back from a call; an exception where it failed."""
    message = Message("tool", plain(result.get("output")), call_id=identifier(result.get("tool_call_id")))
    message.name = text(result.get("name"))
    failed = text(result.get("exception"))
    message.failed, message.error = (True, failed) if failed is not None else (None, None)
    message.parts = [_attachment(each) for each in items(result, "attachments")] or None
    message.extra = left(result, _CALL | _PART)
    return message


def stored(value: dict[str, Any]) -> list[Message] | str:
    """A message of the store: its parts in order; results of several calls are a message each."""
    role = value.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return f"its role {plain(role)[:60]!r} is not known"
    message = Message(role, id=identifier(value.get("hash")))
    results: list[Message] = []
    for part in items(value, "parts"):
        if isinstance(part, dict):
            _take(part, message, results)
    if value.get("provider_metadata") is not None:
        message.extra = {**(message.extra or {}), "provider_metadata": _json(value["provider_metadata"])}
    empty = not (message.content or message.reasoning or message.calls or message.parts)
    return results if results and empty else [message, *results] if role == "assistant" else [*results, message]


def _take(part: dict[str, Any], message: Message, results: list[Message]) -> None:
    kind, said = part.get("type"), part.get("text")
    if kind == "tool_call":
        _calls(message, [part])
        return
    if kind == "tool_result":
        results.append(_result(part))
        return
    rest = left(part, _PART)
    if kind == "text" and isinstance(said, str):
        message.content = f"{message.content}{said}"
    elif kind == "reasoning" and isinstance(said, str):
        message.reasoning = "\n".join(filter(None, (message.reasoning, said))) or None
    elif kind != "attachment":
        rest = part
    parts = [_attachment(each) for each in items(part, "attachments")] if kind == "attachment" else []
    parts += [{"type": kind, **rest}] if rest else []
    if parts:
        message.parts = [*(message.parts or ()), *parts]


def typed(value: dict[str, Any]) -> str | None:
    """What a person typed of a message to which fragments were added; None where that is all of it."""
    literals = [part["literal"] for part in items(value, "parts") if isinstance(part, dict) and "literal" in part]
    said = "".join(literal for literal in literals if isinstance(literal, str)).strip()
    return said or None


def about_turn(turn: dict[str, Any]) -> dict[str, Any]:
    """What a turn says that no field holds."""
    rest = {key: turn[key] for key in ("duration_ms", "schema_json", "response_json") if turn.get(key) is not None}
    rest = {key: _json(item) for key, item in rest.items()}
    options = _json(turn.get("options_json"))
    return {**rest, **({"options": options} if options else {})}


def model_of(value: dict[str, Any]) -> str | None:
    """The model that answered: what an alias stood for, where that is known."""
    return text(value.get("resolved_model")) or text(value.get("model"))
