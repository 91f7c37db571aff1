"""Messages as traces hold them, in every spelling, into `Message`s.

Role and parts (GenAI conventions, Gemini), role and content (OpenAI, Anthropic, Vercel), items of the Responses API,
LangChain's, OpenInference's wrapped ones. One message can become several: each result is a tool message of its own.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from etl.adapters._blocks import Result, call, identifier, join, plain, read, result
from etl.adapters._otlp_span import opened
from etl.conversation import Message, ToolCall

UNCAPTURED = "content_not_captured"
"""Key of `message_info.extra` (and flag of the row) where the log says that a message existed and not what it said."""

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "function": "tool",
    "aimessagechunk": "assistant",
}
_KNOWN = frozenset({"system", "developer", "user", "assistant", "tool"})
_REPEATED = re.compile(r"(system|developer|user|assistant|tool)\1+\Z")
_LANGCHAIN = {
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
}
_CONTENT = frozenset({"role", "parts", "content", "contents", "name", "id", "type", "finish_reason"})
_BESIDE = frozenset({"reasoning", "reasoning_content", "refusal"})
_CALLING = frozenset({"tool_calls", "toolCalls", "function_call", "tool_call_id", "toolCallId"})
_HELD = _CONTENT | _BESIDE | _CALLING
_BEDROCK = frozenset({"text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "cachePoint"})
_RESPONSES = frozenset({"tool_call_response", "function_call_output", "server_tool_call_response"})


def role_of(value: Any) -> tuple[str | None, str | None]:
    """The role, and the word in the log where it says something else.

    >>> role_of("human"), role_of("assistantassistant"), role_of("critic"), role_of(None)
    (('user', None), ('assistant', 'assistantassistant'), ('user', 'critic'), (None, None))
    """
    if not isinstance(value, str) or not value:
        return None, None
    word = value.strip().lower()
    if word in _KNOWN:
        return word, None
    if word in _ROLES:
        return _ROLES[word], None
    repeated = _REPEATED.match(word)
    return (repeated[1], value) if repeated else ("user", value)


def messages(value: Any, role: str = "user") -> list[Message]:
    """Every message that a value holds; text and what has no role of its own are of the role given.

    >>> [(m.role, m.content) for m in messages('[{"role":"user","parts":[{"type":"text","content":"Hi"}]}, "there"]')]
    [('user', 'Hi'), ('user', 'there')]
    """
    value = opened(value)
    if isinstance(value, dict):
        listed = value.get("messages")
        if "role" not in value and isinstance(listed, list):
            value = listed
    found: list[Message] = []
    for item in value if isinstance(value, list) else [value]:
        if type(item) is str:
            item = opened(item)
        for inner in item if isinstance(item, list) else [item]:
            if type(inner) is str:
                inner = opened(inner)
            made = _message(inner, role)
            if found and made and is_item(inner) and found[-1].role == made[0].role == "assistant":
                found[-1] = joined(found[-1], made.pop(0))
            found += made
    return found


def is_item(value: Any) -> bool:
    """An item of the Responses API: a piece of what one model response said."""
    return isinstance(value, dict) and "role" not in value and _type(value) in ("function_call", "reasoning")


def _type(value: dict[str, Any]) -> str | None:
    """The type that an object says it is of; empty where it says nonsense."""
    kind = value.get("type")
    return kind if kind is None or isinstance(kind, str) else ""


def joined(first: Message, second: Message) -> Message:
    """Two pieces of one answer as one message."""
    texts = [piece.content for piece in (first, second) if piece.content]
    thoughts = [piece.reasoning for piece in (first, second) if piece.reasoning]
    return msgspec.structs.replace(
        first,
        content="\n".join(texts),
        reasoning="\n".join(thoughts) or None,
        calls=[*(first.calls or ()), *(second.calls or ())] or None,
        parts=[*(first.parts or ()), *(second.parts or ())] or None,
        extra={**(second.extra or {}), **(first.extra or {})} or None,
        id=first.id or second.id,
        name=first.name or second.name,
        finish_reason=second.finish_reason or first.finish_reason,
    )


def _message(value: Any, role: str) -> list[Message]:
    if value is None:
        return []
    if not isinstance(value, dict):
        return [Message(role, plain(value))]
    quick = _quick(value)
    if quick is not None:
        return quick
    value = _unwrapped(value)
    kind = _type(value)
    if kind in ("function_call", "tool_call", "tool_use") and "role" not in value:
        value = {"role": "assistant", "parts": [value]}
    elif kind in _RESPONSES and "role" not in value:
        value = {"role": "tool", "parts": [value]}
    elif kind == "reasoning" and "role" not in value:
        value = {"role": "assistant", "parts": [value]}
    elif isinstance(kind, str) and "role" not in value and kind.lower() in _ROLES.keys() | _KNOWN:
        value = {**value, "role": kind}
    spoken, logged = role_of(value.get("role"))
    if (spoken or role) == "user" and identifier(value.get("tool_call_id")) and not value.get("tool_calls"):
        spoken, logged = "tool", "user"  # a result in the role that a provider gives it
    return _spoken(value, spoken or role, logged)


_QUICK = frozenset({"role", "parts", "finish_reason"})
_QUICK_CALL = frozenset({"type", "id", "name", "arguments"})


def _quick(value: dict[str, Any]) -> list[Message] | None:
    """The messages of an object with a role and plain parts, which most are, read quicker; None for any other."""
    role, parts, finish = value.get("role"), value.get("parts"), value.get("finish_reason")
    if not parts or type(parts) is not list or role not in ("system", "user", "assistant", "tool"):
        return None
    if not value.keys() <= _QUICK or not (finish is None or (type(finish) is str and finish)):
        return None
    texts: list[tuple[str, bool]] = []
    calls: list[ToolCall] = []
    answers: list[Message] = []
    for part in parts:
        if type(part) is not dict:
            return None
        kind, name = part.get("type"), part.get("id")
        if kind == "text" and len(part) == 2 and type(part.get("content")) is str:
            texts.append((part["content"], False))
        elif not (name is None or (type(name) is str and name and name == name.strip())):
            return None
        elif (
            kind == "tool_call" and role == "assistant" and part.keys() <= _QUICK_CALL and type(part.get("name")) is str
        ):
            calls.append(ToolCall(part["name"], part.get("arguments"), name))
        elif kind == "tool_call_response" and role == "tool" and len(part) == 3 and type(part.get("response")) is str:
            answers.append(Message("tool", part["response"], call_id=name))
        else:
            return None
    if role == "tool":
        return answers if answers and not texts else None
    return [Message(role, join(texts), calls=calls or None, finish_reason=finish)]


def _unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    """The message itself, out of what OpenInference, LangChain and choices wrap around it."""
    inner = value.get("message")
    if isinstance(inner, dict) and "role" not in value:
        return {**{key: item for key, item in value.items() if key not in ("message", "index", "logprobs")}, **inner}
    kwargs, names = value.get("kwargs"), value.get("id")
    if isinstance(kwargs, dict) and isinstance(names, list) and names:
        role = _LANGCHAIN.get(str(names[-1]))
        return {**kwargs, **({"role": role} if role else {})}
    return value


def _spoken(value: dict[str, Any], role: str, logged: str | None) -> list[Message]:
    """The messages of one object with a role."""
    content, uncaptured = _content(value)
    cut = _last_answer(content) if role == "assistant" else 0
    if cut:
        before = {**value, "parts": content[:cut], "finish_reason": None}
        after = {"parts": content[cut:], "finish_reason": value.get("finish_reason")}
        return [*_spoken(before, role, logged), *_spoken(after, role, logged)]
    blocks: list[Any] = []
    answers: list[Message] = []
    for block in content if isinstance(content, list) else [content]:
        made = _answer(block) if isinstance(block, dict) else None
        if made is not None:
            answers.append(made)
        else:
            blocks.append(_block(block) if isinstance(block, dict) else block)
    read_as = read(blocks)
    calls = [*(read_as.calls or ()), *_calls(value)]
    for each in calls:
        each.id = _trimmed(each.id)
    extra = {key: item for key, item in value.items() if key not in _HELD and item not in (None, "", [], {})}
    if read_as.rest:
        extra["blocks"] = read_as.rest
    if logged is not None:
        extra["role"] = logged
    answers += [_answered(found) for found in read_as.results or ()]
    reasoning = next(
        (value[key] for key in ("reasoning_content", "reasoning") if isinstance(value.get(key), str)), None
    )
    refusal = value.get("refusal")
    text = read_as.text or (refusal if isinstance(refusal, str) else "")
    if refusal and isinstance(refusal, str):
        extra["refusal"] = True
    finish = value.get("finish_reason")
    said = bool(text or calls or read_as.parts or read_as.reasoning or reasoning)
    if role == "tool" and not answers:
        return [_tool_message(value, read_as.text, read_as.parts, extra, uncaptured)]
    if answers and not said and role in ("tool", "user"):
        return answers
    if uncaptured and not said:
        extra[UNCAPTURED] = True
    made = Message(
        "user" if role == "tool" else role,
        text,
        reasoning=reasoning or read_as.reasoning,
        calls=calls or None,
        name=identifier(value.get("name")),
        id=identifier(value.get("id")),
        finish_reason=finish if isinstance(finish, str) and finish else None,
        parts=read_as.parts,
        extra=extra or None,
    )
    return [*answers, made] if role in ("tool", "user") else [made, *answers]


def _last_answer(content: Any) -> int:
    """Where what follows the last result begins, in content that goes on after it: a tool of the provider ran."""
    if not isinstance(content, list):
        return 0
    answers = [place for place, block in enumerate(content, 1) if isinstance(block, dict) and _is_answer(block)]
    return answers[-1] if answers and answers[-1] < len(content) else 0


def _is_answer(block: dict[str, Any]) -> bool:
    kind = _type(block)
    return kind is not None and (kind in _RESPONSES or kind == "tool-result")


def _answered(found: Result) -> Message:
    return Message(
        "tool",
        found.text,
        call_id=found.call_id,
        name=found.name,
        parts=found.parts,
        failed=found.failed,
        extra=found.rest,
    )


def _tool_message(
    value: dict[str, Any], text: str, parts: list[Any] | None, extra: dict[str, Any], uncaptured: bool
) -> Message:
    """A tool's answer that is a message and no part."""
    call_id = _trimmed(next((found for key in _IDS[1:3] + _IDS[:1] if (found := identifier(value.get(key)))), None))
    if uncaptured and not text and not parts:
        extra[UNCAPTURED] = True
    failed = True if extra.get("status") == "error" else None
    name = identifier(value.get("name"))
    return Message("tool", text, call_id=call_id, name=name, parts=parts, failed=failed, extra=extra or None)


def _content(value: dict[str, Any]) -> tuple[Any, bool]:
    """What a message says, and whether it says that there was something of which nothing is here."""
    parts = value.get("parts")
    if isinstance(parts, list) and parts:
        return parts, False
    content = value.get("contents") if isinstance(value.get("contents"), list) else value.get("content")
    if isinstance(content, list) and content:
        return [_unwrapped_block(block) for block in content], False
    if isinstance(content, str):
        blocks = opened(content)
        if isinstance(blocks, list) and blocks and all(map(_is_block, blocks)):
            return blocks, False
        return content, False
    if isinstance(content, dict) and content:
        return [content] if "type" in content else plain(content), False
    calls = any(value.get(key) for key in ("tool_calls", "toolCalls", "function_call", "refusal", "reasoning_content"))
    return "", parts == [] or not (calls or "content" in value or "contents" in value)


def _is_block(block: Any) -> bool:
    """A block of content, as JSON text among them has it: typed, or Bedrock's with one key that says what it is."""
    return isinstance(block, dict) and ("type" in block or (len(block) == 1 and next(iter(block)) in _BEDROCK))


def _unwrapped_block(block: Any) -> Any:
    """OpenInference keeps a block under `message_content`, an image of it under `image.image.url`."""
    inner = block.get("message_content") if isinstance(block, dict) else None
    return inner if isinstance(inner, dict) else block


def _block(part: dict[str, Any]) -> dict[str, Any]:
    """A part of the GenAI conventions (or of Gemini) as a block that `_blocks.read` knows."""
    kind = _type(part)
    if kind == "text" and isinstance(part.get("content"), str) and "text" not in part:
        return {**{key: item for key, item in part.items() if key != "content"}, "text": part["content"]}
    if kind == "refusal" and isinstance(part.get("content"), str):
        return {"type": "refusal", "refusal": part["content"]}
    if kind == "server_tool_call" and isinstance(part.get("server_tool_call"), dict):
        return {**part, "type": "server_tool_use", "input": part["server_tool_call"]}
    if kind is None and len(part) == 1:
        use, thought = part.get("toolUse"), part.get("reasoningContent")
        if isinstance(use, dict):
            more = {key: item for key, item in use.items() if key not in ("toolUseId", "name", "input")}
            named = {"id": use.get("toolUseId"), "name": use.get("name"), "input": use.get("input")}
            return {"type": "tool_use", **named, **more}
        told = thought.get("reasoningText") if isinstance(thought, dict) else None
        if isinstance(told, dict) and isinstance(told.get("text"), str):
            return {"type": "reasoning", **told}
    if kind is None:
        made = part.get("function_call", part.get("functionCall"))
        if isinstance(made, dict):
            return {"type": "function_call", **made}
        if part.get("thought") is True and isinstance(part.get("text"), str):
            return {"type": "reasoning", "text": part["text"]}
    if kind == "function" and isinstance(part.get("function"), dict):
        return {**part, "type": "tool_call"}
    return part


_OUTPUTS = ("response", "output", "result", "content", "server_tool_call_response")
_IDS = ("id", "tool_call_id", "toolCallId", "call_id")
_OF_ANSWER = frozenset({"type", "name", "toolName", *_OUTPUTS, *_IDS})


def _trimmed(name: str | None) -> str | None:
    """An id without the blanks around it, which the conventions' own example has."""
    return name.strip() or None if name is not None else None


def _answer(part: dict[str, Any]) -> Message | None:
    """The tool message of a part that is a call's result; None for any other."""
    kind = _type(part)
    gemini = part.get("function_response", part.get("functionResponse")) if kind is None else None
    if isinstance(gemini, dict):
        part = {"name": gemini.get("name"), "id": gemini.get("id"), "response": gemini.get("response")}
    elif kind is None and isinstance(part.get("toolResult"), dict):
        part = _bedrock_result(part["toolResult"])
    elif kind not in _RESPONSES and kind != "tool-result":
        return None
    output = next((part[key] for key in _OUTPUTS if part.get(key) is not None), None)
    if isinstance(output, dict) and output.keys() == {"type", "value"}:
        output = output["value"]
    call_id = _trimmed(next((found for key in _IDS if (found := identifier(part.get(key)))), None))
    made = result({"type": "tool_result", "tool_use_id": call_id, "content": output})
    extra = {key: item for key, item in part.items() if key not in _OF_ANSWER and item is not None}
    failed = next((extra.pop(key) for key in ("is_error", "isError") if isinstance(extra.get(key), bool)), None)
    name = identifier(part.get("name")) or identifier(part.get("toolName"))
    if output is None:
        extra[UNCAPTURED] = True
    return Message("tool", made.text, call_id=call_id, name=name, parts=made.parts, failed=failed, extra=extra or None)


def _bedrock_result(result: dict[str, Any]) -> dict[str, Any]:
    """Bedrock's result as a response part; its text alone where it is one text."""
    content = result.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict) and len(content[0]) == 1:
        content = content[0].get("text", content[0].get("json", content))
    made = {"id": result.get("toolUseId"), "response": content}
    if isinstance(result.get("status"), str):
        made["is_error"] = result["status"] == "error"
    return made


def _calls(value: dict[str, Any]) -> list[ToolCall]:
    """The calls that stand beside the content."""
    listed = value.get("tool_calls", value.get("toolCalls"))
    listed = opened(listed)
    items = listed if isinstance(listed, list) else [listed] if isinstance(listed, dict) else []
    if isinstance(value.get("function_call"), dict):
        items = [*items, value["function_call"]]
    return [made for item in items if (made := tool_call(item)) is not None]


def tool_call(item: Any) -> ToolCall | None:
    """One call in any spelling, also wrapped in `tool_call`; None where it names no tool."""
    if isinstance(item, dict) and isinstance(item.get("tool_call"), dict):
        item = item["tool_call"]
    return call(item) if isinstance(item, dict) else None


__all__ = ["UNCAPTURED", "is_item", "joined", "messages", "role_of", "tool_call"]
