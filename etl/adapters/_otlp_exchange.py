"""Provider requests and responses, as frameworks put them into attributes: OpenAI (chat, Responses, completions),
Anthropic, Gemini, LangChain, Vercel's prompt object, plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from etl.adapters._otlp_messages import messages
from etl.adapters._otlp_span import opened
from etl.adapters._otlp_values import put
from etl.adapters._usage import tokens
from etl.conversation import Message

_SYSTEM = ("system", "instructions", "system_instruction", "systemInstruction", "system_prompt")
_HISTORY = ("messages", "input", "contents", "prompt", "chat_history", "kwargs", "query", "question")
_TEXTS = ("text", "output", "content", "response", "completion", "answer", "result", "output_text")
_LISTS = ("choices", "candidates", "generations")
_ASKED = frozenset({*_SYSTEM, *_HISTORY, "config", "tools", "functions", "model", "role"})
_ANSWERED = frozenset(
    {*_LISTS, *_TEXTS, "messages", "message", "role", "data", "parts", "type", "tool_calls", "reasoning_content"}
    | {"id", "model", "object", "usage", "usage_metadata", "finish_reason", "stop_reason", "name", "refusal"}
)
_OF_CHOICE = frozenset({"message", "content", "delta", "text", "index", "finish_reason", "finishReason", "type"})


class Request(NamedTuple):
    """The history a model was given, and the tools it was offered."""

    history: list[Message]
    tools: Any = None
    shaped: bool = True
    """Whether it has the form of a request (text, messages, a key that holds them), and is no function's arguments."""
    rest: Mapping[str, Any] = {}
    """What of it is neither history nor tools."""


def request(value: Any) -> Request:
    """Read a request, or a history alone, or plain text.

    >>> request('{"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}').history[0].content
    'Be brief.'
    """
    value = opened(value)
    if not isinstance(value, dict) or "role" in value:
        shaped = not isinstance(value, list) or any(_is_message(item) for item in value)
        return Request(messages(value) if value is not None else [], shaped=shaped and type(value) is not bool)
    config = value.get("config") if isinstance(value.get("config"), dict) else {}
    around = {**(config or {}), **value}
    found: list[Message] = []
    shaped = True
    for key in _SYSTEM:
        if around.get(key):
            found += messages(_instruction(around[key]), "system")
            break
    for key in _HISTORY:
        if value.get(key):
            history = opened(value[key])
            if isinstance(history, dict) and "role" not in history:
                inner = request(history)
                found, shaped = found + inner.history, inner.shaped
            else:
                found += messages(history)
            break
    else:
        shaped = False
    if not found:
        return Request(messages(value), shaped=False)
    rest = {key: item for key, item in value.items() if key not in _ASKED and item not in (None, "", [], {})}
    return Request(found, _offered(around.get("tools") or around.get("functions")), shaped, rest)


def _offered(tools: Any) -> Any:
    """Tool definitions, Gemini's groups of them opened."""
    if not isinstance(tools, list):
        return tools
    made: list[Any] = []
    for tool in tools:
        group = tool.get("function_declarations", tool.get("functionDeclarations")) if isinstance(tool, dict) else None
        made += group if isinstance(group, list) else [tool]
    return made


def beyond(history: list[Message], answers: list[list[Message]]) -> list[list[Message]]:
    """Answers without the history, where a graph gives back its whole state."""
    asked = [message for message in history if message.role not in ("system", "developer")]
    if not asked or len(answers) != 1:
        return answers
    given = [message for message in answers[0] if message.role not in ("system", "developer")]
    same = all(_alike(one, other) for one, other in zip(asked, given, strict=False))
    return [given[len(asked) :]] if same and len(given) > len(asked) else answers


def _alike(one: Message, other: Message) -> bool:
    calls = [[call.name for call in message.calls or ()] for message in (one, other)]
    return (one.role, one.content.strip(), calls[0]) == (other.role, other.content.strip(), calls[1])


def _is_message(item: Any) -> bool:
    """Whether an item of a list can be a message of a history: also one in a list of its own."""
    if isinstance(item, list):
        return any(_is_message(inner) for inner in item)
    return isinstance(item, dict) and bool(item.keys() & {"role", "parts", "content", "type", "kwargs", "message"})


def _instruction(value: Any) -> Any:
    """A system prompt as one message: text, blocks, or Gemini's content."""
    value = opened(value)
    if isinstance(value, dict):
        return {**value, "role": "system"} if "parts" in value or "content" in value else value.get("text", value)
    if isinstance(value, list) and all(isinstance(item, (str, dict)) and not _spoken(item) for item in value):
        return {"role": "system", "content": value}
    return value


def _spoken(item: Any) -> bool:
    return isinstance(item, dict) and "role" in item


def response(value: Any) -> list[list[Message]]:
    """The answers of a response, one list of messages for each choice.

    >>> response({"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]})[0][0].content
    'Yes.'
    """
    value = opened(value)
    if isinstance(value, dict):
        listed = next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)
        if listed is not None:
            return [made for choice in listed if (made := _choice(choice))]
        if isinstance(value.get("data"), list) and any(_is_image(item) for item in value["data"]):
            return [[Message("assistant", "", parts=[{"type": "image", **item} for item in map(dict, value["data"])])]]
        if isinstance(value.get("output"), list):
            return [messages(value["output"], "assistant")]
        if isinstance(value.get("messages"), list):
            return [messages(value["messages"], "assistant")]
        if isinstance(value.get("message"), dict):
            return [messages(value["message"], "assistant")]
        if "role" not in value and not any(isinstance(value.get(key), list) for key in ("content", "parts")):
            text = next((value[key] for key in _TEXTS if isinstance(value.get(key), (str, dict))), None)
            if isinstance(text, dict):
                return response(text)
            if text is not None:
                return [[Message("assistant", text)]]
    found = messages(value, "assistant") if value is not None else []
    return [found] if found else []


def _choice(choice: Any) -> list[Message]:
    """One choice of OpenAI, candidate of Gemini or generation of LangChain (a list of one)."""
    if isinstance(choice, list):
        choice = choice[0] if choice else None
    if not isinstance(choice, dict):
        return messages(choice, "assistant") if choice is not None else []
    said = next((choice[key] for key in ("message", "content", "delta") if isinstance(choice.get(key), dict)), None)
    said = {"content": choice.get("text", "")} if said is None else said
    if said.get("role") == "user":
        said = {**said, "role": "assistant"}
    found = messages(said, "assistant")
    reason = choice.get("finish_reason", choice.get("finishReason"))
    if found and isinstance(reason, str):
        found[-1].finish_reason = found[-1].finish_reason or reason
    left = {key: item for key, item in choice.items() if key not in _OF_CHOICE and item not in (None, "", [], {})}
    if found and left:
        found[-1].extra = {**left, **(found[-1].extra or {})}
    return found


def _is_image(item: Any) -> bool:
    return isinstance(item, dict) and ("url" in item or "b64_json" in item)


def about_response(value: Any) -> dict[str, Any]:
    """What a response says beside its answers: its id, why it ended, what nothing else holds."""
    value = opened(value)
    if not isinstance(value, dict):
        return {}
    made: dict[str, Any] = {}
    reason = value.get("finish_reason", value.get("stop_reason"))
    put(made, id=value.get("id") if isinstance(value.get("id"), str) else None)
    put(made, finish_reason=reason if isinstance(reason, str) else None, usage=tokens(value.get("usage")))
    rest: dict[str, Any] = {}
    put(rest, **{str(key): item for key, item in value.items() if key not in _ANSWERED})
    put(made, rest=rest)
    return made
