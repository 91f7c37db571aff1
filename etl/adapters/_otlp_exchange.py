"""Provider requests and responses, as frameworks put them into attributes: OpenAI (chat, Responses, completions),
Anthropic, Gemini, LangChain, Vercel's prompt object, plain text."""

from __future__ import annotations

from typing import Any, NamedTuple

from etl.adapters._otlp_messages import messages
from etl.adapters._otlp_span import opened
from etl.conversation import Message

_SYSTEM = ("system", "instructions", "system_instruction", "systemInstruction", "system_prompt")
_HISTORY = ("messages", "input", "contents", "prompt", "chat_history", "kwargs", "query", "question")
_TEXTS = ("text", "output", "content", "response", "completion", "answer", "result")


class Request(NamedTuple):
    """The history a model was given, and the tools it was offered."""

    history: list[Message]
    tools: Any = None


def request(value: Any) -> Request:
    """Read a request, or a history alone, or plain text.

    >>> request('{"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}').history[0].content
    'Be brief.'
    """
    value = opened(value)
    if not isinstance(value, dict) or "role" in value:
        return Request(messages(value) if value is not None else [])
    config = value.get("config") if isinstance(value.get("config"), dict) else {}
    around = {**(config or {}), **value}
    found: list[Message] = []
    for key in _SYSTEM:
        if around.get(key):
            found += messages(_instruction(around[key]), "system")
            break
    for key in _HISTORY:
        if value.get(key):
            history = opened(value[key])
            found += (
                request(history).history if isinstance(history, dict) and "role" not in history else messages(history)
            )
            break
    return Request(found, around.get("tools") or around.get("functions"))


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
        listed = next(
            (value[key] for key in ("choices", "candidates", "generations") if isinstance(value.get(key), list)), None
        )
        if listed is not None:
            return [made for choice in listed if (made := _choice(choice))]
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
    if said is None:
        said = {"content": choice.get("text", "")}
    if said.get("role") == "user":
        said = {**said, "role": "assistant"}
    found = messages(said, "assistant")
    reason = choice.get("finish_reason", choice.get("finishReason"))
    if found and isinstance(reason, str):
        found[-1].finish_reason = found[-1].finish_reason or reason
    return found
