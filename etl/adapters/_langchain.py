"""LangChain's serialised messages as plain chat messages, wherever they stand in a value.

Four spellings: the constructor (`lc`, `id: [..., "HumanMessage"]`, `kwargs`), `{type, data}`, `{type, content, …}`, and
the text that Python prints for one. What repeats itself (`additional_kwargs.tool_calls`, token counts beside
`usage_metadata`) is left out; `usage` and `is_error` are for the caller to take off again.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

from etl.adapters._otlp_span import opened
from etl.decode import JsonError, decode

_TYPES = {
    "human": "user",
    "humanmessage": "user",
    "humanmessagechunk": "user",
    "ai": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "system": "system",
    "systemmessage": "system",
    "developer": "developer",
    "tool": "tool",
    "toolmessage": "tool",
    "toolmessagechunk": "tool",
    "function": "tool",
    "functionmessage": "tool",
    "remove": "system",
}
_WORDS = frozenset({"human", "user", "ai", "assistant", "system", "tool"})
_CHAT = frozenset({"chat", "chatmessage", "generic", "chatmessagechunk"})
_USAGE = ("usage_metadata", "token_usage", "tokenUsage", "usage", "estimatedTokenUsage")
_FINISH = ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason")
_DEFAULTS: dict[str, Any] = {"example": False, "type": None, "chunk_position": None}
_HELD = frozenset(
    {
        "content",
        "role",
        "additional_kwargs",
        "response_metadata",
        "tool_calls",
        "invalid_tool_calls",
        "tool_call_chunks",
    }
    | set(_USAGE)
)
_REPEATED = frozenset({"tool_calls", "function_call", "reasoning_content", "refusal"})
_LITERAL = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_PRINTED = re.compile(rf"\s*content=({_LITERAL})", re.DOTALL)
_PRINTED_FIELD = re.compile(rf"\b(name|id|tool_call_id|status)=({_LITERAL})")
MAX_DEPTH = 60
MAX_LITERAL = 1 << 20


def opened_all(value: Any) -> Any:
    """JSON text as its value, a JSON string included; Python's own notation of an object or a list, too.

    >>> opened_all('"Hi"'), opened_all("{'a': None}"), opened_all("plain"), opened_all('"{\\\\"a\\\\": 1}"')
    ('Hi', {'a': None}, 'plain', {'a': 1})
    """
    for _ in range(3):
        if not isinstance(value, str):
            break
        text = value.strip()
        if text == "null":
            return None
        if len(text) > 1 and text[0] == text[-1] == '"':
            inner = _json_string(text)
            if inner is None:
                break
            value = inner
            continue
        found = opened(text)
        value = found if isinstance(found, (dict, list)) else _literal(text, value)
        break
    return value


def _json_string(text: str) -> str | None:
    try:
        value = decode(text.encode("utf-8", "surrogatepass")).value
    except JsonError:
        return None
    return value if isinstance(value, str) else None


def _literal(text: str, otherwise: Any) -> Any:
    """What Python prints for plain objects and lists, as frameworks log it by mistake."""
    if text[:2] not in ("{'", "['", "[{", "[(", '{"') or len(text) > MAX_LITERAL or text[-1] not in "}]":
        return otherwise
    value = _evaluated(text)
    return _plain(value, MAX_DEPTH) if isinstance(value, (dict, list)) else otherwise


def _evaluated(text: str) -> Any:
    """A literal's value; None where it is none. What the compiler thinks of its escapes is nobody's concern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None


def _plain(value: Any, depth: int) -> Any:
    """A literal as JSON has it: no tuples, sets, bytes or keys that are no text."""
    if depth <= 0:
        return repr(value)
    if isinstance(value, dict):
        return {str(key): _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth - 1) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)


def chat_form(value: Any, depth: int = MAX_DEPTH, listed: bool = False) -> Any:
    """The value with every LangChain message in it as `{role, content, tool_calls, …}`.

    Messages in another form are left alone, with all that is in them. `listed`: the value is a list of messages, where
    a pair of role and text is one, too.

    >>> chat_form({"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "Hi"}})
    {'role': 'user', 'content': 'Hi'}
    >>> chat_form({"messages": [["human", "Hi"]]})
    {'messages': [{'role': 'user', 'content': 'Hi'}]}
    """
    if depth <= 0:
        return value
    if isinstance(value, list):
        return [_pair(item) if listed and is_pair(item) else chat_form(item, depth - 1, listed) for item in value]
    if not isinstance(value, dict):
        return value
    role, fields = message_of(value)
    if role is not None:
        return _message(role, fields)
    if "role" in value:
        return _spoken(value)
    return {
        key: chat_form(item, depth - 1, key == "messages") if isinstance(item, (dict, list)) else item
        for key, item in value.items()
    }


def _spoken(value: dict[str, Any]) -> dict[str, Any]:
    """A message in the usual form; its text may be under `text`, its calls the JSON text of its content (Koog)."""
    if isinstance(value.get("additional_kwargs"), dict):
        return _message(_role_word(value["role"]), value)
    content = value.get("content")
    if isinstance(content, list):
        return {**value, "content": [_block(block) for block in content]}
    if content is None and "parts" not in value and isinstance(value.get("text"), str):
        return {**{key: item for key, item in value.items() if key != "text"}, "content": value["text"]}
    if isinstance(content, str) and content.startswith('[{"') and '"function"' in content:
        calls = opened(content)
        if isinstance(calls, list) and all(isinstance(call, dict) and "function" in call for call in calls):
            role = "assistant" if value["role"] == "tool" else value["role"]
            return {**value, "role": role, "content": "", "tool_calls": calls}
    return value


def _block(block: Any) -> Any:
    """A block whose text is an object with its value (the Assistants API), as one with a text."""
    text = block.get("text") if isinstance(block, dict) else None
    if not isinstance(text, dict) or not isinstance(text.get("value"), str):
        return block
    more = {key: item for key, item in text.items() if key != "value" and _says(item)}
    return {**block, "text": text["value"], **more}


def is_pair(item: Any) -> bool:
    """Whether an item of a list of messages is a pair of role and text."""
    return (
        isinstance(item, list)
        and len(item) == 2
        and isinstance(item[0], str)
        and item[0] in _WORDS
        and isinstance(item[1], (str, list))
    )


def _pair(item: list[Any]) -> dict[str, Any]:
    return {"role": _TYPES.get(item[0], item[0]), "content": item[1]}


def message_of(value: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The role and the fields of a message that LangChain serialised; no role for anything else."""
    kwargs, path, kind = value.get("kwargs"), value.get("id"), value.get("type")
    if isinstance(kwargs, dict) and isinstance(path, list) and path and isinstance(path[-1], str):
        word = path[-1].lower()
        role = _TYPES.get(word)
        if role is None and word in _CHAT:
            role = _role_word(kwargs.get("role"))
        return role, kwargs
    data = value.get("data")
    if isinstance(kind, str) and "role" not in value:
        if isinstance(data, dict) and "content" in data:
            return _TYPES.get(kind.lower()), data
        if "content" in value and kind.lower() in _TYPES:
            return _TYPES[kind.lower()], value
    if value.get("type") in ("ChatMessage", "chat") and "content" in value and isinstance(value.get("role"), str):
        return _role_word(value["role"]), value
    return None, value


def _role_word(word: Any) -> str:
    return _TYPES.get(word.lower(), word.lower()) if isinstance(word, str) else "user"


def _message(role: str, fields: dict[str, Any]) -> dict[str, Any]:
    """One message: the fields that chat messages have under their names, the rest as it is."""
    made: dict[str, Any] = {"role": role, "content": fields.get("content")}
    more = _object(fields.get("additional_kwargs"))
    about = _object(fields.get("response_metadata"))
    calls = _calls(fields, more)
    if calls:
        made["tool_calls"] = calls
    for key in ("reasoning_content", "refusal"):
        if isinstance(more.get(key), str) and more[key]:
            made[key] = more[key]
    finish = next((about[key] for key in _FINISH if isinstance(about.get(key), str)), None)
    if finish is not None and role == "assistant":
        made["finish_reason"] = finish
    usage = next(
        (holder[key] for key in _USAGE for holder in (fields, about) if isinstance(holder.get(key), dict)), None
    )
    if isinstance(usage, dict) and role == "assistant":
        made["usage"] = usage
    if role == "tool" and fields.get("status") in ("error", "success"):
        made["is_error"] = fields["status"] == "error"
    held = {*_HELD, *(("status",) if "is_error" in made else ())}
    made.update(
        {key: item for key, item in fields.items() if key not in held and _says(item) and not _is_default(key, item)}
    )
    left = {key: item for key, item in about.items() if key not in (*_USAGE, *_FINISH) and _says(item)}
    if left:
        made["response_metadata"] = left
    left = {key: item for key, item in more.items() if key not in _REPEATED and _says(item)}
    if left:
        made["additional_kwargs"] = left
    return made


def _says(item: Any) -> bool:
    return item not in (None, "", [], {})


def _is_default(key: str, item: Any) -> bool:
    """Whether a field says nothing: the type again, or what it says in every message."""
    return key in _DEFAULTS and (_DEFAULTS[key] is None or item == _DEFAULTS[key])


def _calls(fields: dict[str, Any], more: dict[str, Any]) -> list[Any]:
    """The calls: parsed ones with those that could not be parsed, else as the provider gave them."""
    listed = [*_list(fields.get("tool_calls")), *_list(fields.get("invalid_tool_calls"))]
    if listed:
        return listed
    if _list(more.get("tool_calls")):
        return _list(more["tool_calls"])
    return [more["function_call"]] if isinstance(more.get("function_call"), dict) else []


def printed_message(text: str) -> dict[str, Any] | None:
    """The message of which Python printed `content='…' name='…' tool_call_id='…'`; None for any other text.

    >>> printed_message("content='Oslo' name='search' tool_call_id='c1'")
    {'content': 'Oslo', 'name': 'search', 'tool_call_id': 'c1'}
    """
    start = _PRINTED.match(text)
    if start is None:
        return None
    fields: dict[str, Any] = {"content": _quoted(start[1])}
    for found in _PRINTED_FIELD.finditer(text, start.end()):
        fields.setdefault(found[1], _quoted(found[2]))
    return fields


def _quoted(literal: str) -> str:
    value = _evaluated(literal)
    return value if isinstance(value, str) else literal[1:-1]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
