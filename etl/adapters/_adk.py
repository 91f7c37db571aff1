"""Events and invocations of Google ADK as messages: contents of parts, in camel or snake case."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from etl.adapters._api_gemini import message, usage
from etl.adapters._rollouts import text
from etl.conversation import Message, Tokens

_HELD = frozenset(
    {"content", "author", "timestamp", "id", "partial", "usage_metadata", "usageMetadata", "model_version",
     "modelVersion", "finish_reason", "finishReason"}
)  # fmt: skip
_COUNTS = (
    "promptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
    "toolUsePromptTokenCount",
)


class Session(msgspec.Struct):
    """What the events of a session say together."""

    messages: list[Message]
    events: list[Any]
    """Events without a content."""
    usage: Tokens | None = None
    model: str | None = None
    finish_reason: str | None = None
    error: str | None = None


class Turn(msgspec.Struct):
    """What one invocation says, and what else it has."""

    messages: list[Message]
    rest: dict[str, Any]


@functools.lru_cache(1024)
def camel(name: str) -> str:
    """A key in the spelling of the REST API.

    >>> camel("app_name")
    'appName'
    """
    head, *tail = name.split("_")
    return head + "".join(word.title() for word in tail)


def either(value: Any, name: str) -> Any:
    """What an object has under a key in either spelling."""
    if not isinstance(value, dict):
        return None
    found = value.get(name)
    return value.get(camel(name)) if found is None else found


def listed(value: Any, name: str) -> list[Any]:
    """The list under a key in either spelling; an empty one where there is none."""
    found = either(value, name)
    return found if isinstance(found, list) else []


def told(value: dict[str, Any]) -> dict[str, Any]:
    """What an object says: dumped models are full of nulls and of objects that hold nothing else.

    >>> told({"a": None, "b": {"c": [], "d": {"e": ""}}, "f": {"g": 0}})
    {'f': {'g': 0}}
    """
    found = {key: told(item) if isinstance(item, dict) else item for key, item in value.items()}
    return {key: item for key, item in found.items() if item not in (None, "", [], {})}


def session(events: list[Any]) -> Session | str:
    """The messages of a session's events; the reason where one is no event."""
    found = Session([], [])
    for index, event in enumerate(events):
        if not isinstance(event, dict):
            return f"events[{index}] is no object"
        if event.get("partial") is True and _followed(event, events[index + 1 :]):
            continue
        _take(event, found)
    return found


def _followed(piece: dict[str, Any], later: list[Any]) -> bool:
    """Whether a whole event of the same turn and author comes after a piece of one."""
    turn = either(piece, "invocation_id")
    return any(
        isinstance(event, dict)
        and event.get("partial") is not True
        and event.get("author") == piece.get("author")
        and either(event, "invocation_id") == turn
        and event.get("content")
        for event in later
    )


def _take(event: dict[str, Any], found: Session) -> None:
    content, author = event.get("content"), text(event.get("author"))
    said = either(event, "error_message") or either(event, "error_code")
    if said is not None:
        found.error = text(said) or str(said)
    rest = told({key: item for key, item in event.items() if key not in _HELD})
    if not isinstance(content, dict) or not content.get("parts"):
        bare = {key: event[key] for key in ("id", "author", "timestamp") if event.get(key)}
        found.events.append({**bare, **rest})
        return
    role = content.get("role") or ("user" if author == "user" else "model")
    read = message({**content, "role": role})
    for made in read:
        made.at = event.get("timestamp")
        if made.role == "assistant":
            made.name = author
            made.model = text(either(event, "model_version"))
    last = read[-1]
    last.id = text(event.get("id"))
    used = usage(_counts(either(event, "usage_metadata")))
    if used is not None:
        last.input_tokens, last.output_tokens = used.input_tokens, used.output_tokens
        found.usage = _added(found.usage, used)
    last.finish_reason = text(either(event, "finish_reason"))
    found.finish_reason = last.finish_reason or found.finish_reason
    found.model = last.model or found.model
    if rest:
        last.extra = {**(last.extra or {}), **rest}
    found.messages += read


def _counts(logged: Any) -> dict[str, Any]:
    """Counts of tokens by their camel names."""
    snake = {camel(key): item for key, item in logged.items()} if isinstance(logged, dict) else {}
    return {key: snake[key] for key in _COUNTS if snake.get(key) is not None}


def _added(one: Tokens | None, other: Tokens) -> Tokens:
    if one is None:
        return other
    pairs = [(getattr(one, name), getattr(other, name)) for name in Tokens.__struct_fields__]
    return Tokens(*((a or 0) + (b or 0) if a is not None or b is not None else None for a, b in pairs))


def invocation(turn: dict[str, Any]) -> Turn:
    """What a person said, what the agent did about it, and its answer."""
    rest = {key: item for key, item in turn.items() if item not in (None, "", [], {})}
    at = _taken(rest, "creation_timestamp") or None
    asked, answer, between = (_taken(rest, key) for key in ("user_content", "final_response", "intermediate_data"))
    messages: list[Message] = []
    if isinstance(asked, dict):
        messages += message({**asked, "role": asked.get("role") or "user"})
    if isinstance(between, dict):
        messages += _between(between)
    if isinstance(answer, dict) and answer.get("parts"):
        messages += message({**answer, "role": "model"})
    for made in messages:
        made.at = at
    if messages:
        messages[0].id = text(_taken(rest, "invocation_id"))
    return Turn(messages, rest)


def _taken(rest: dict[str, Any], name: str) -> Any:
    return rest.pop(name, None) or rest.pop(camel(name), None)


def _between(data: dict[str, Any]) -> list[Message]:
    """Calls, their results, and what sub-agents said; or the events themselves."""
    messages: list[Message] = []
    for event in listed(data, "invocation_events"):
        content = event.get("content") if isinstance(event, dict) else None
        if isinstance(content, dict):
            read = message({**content, "role": content.get("role") or "model"})
            for made in read:
                made.name = made.name or (text(event.get("author")) if made.role == "assistant" else None)
            messages += read
    uses, answers = listed(data, "tool_uses"), listed(data, "tool_responses")
    if uses:
        messages += message({"role": "model", "parts": [{"functionCall": use} for use in uses]})
    if answers:
        messages += message({"role": "user", "parts": [{"functionResponse": given} for given in answers]})
    for pair in listed(data, "intermediate_responses"):
        if isinstance(pair, list) and len(pair) == 2:
            read = message({"role": "model", "parts": pair[1]})
            read[-1].name = text(pair[0])
            messages += read
    return messages
