"""Dialects of single frameworks: the Vercel AI SDK, Logfire and Pydantic AI, Sentry's SDKs."""

from __future__ import annotations

from typing import Any

from etl.adapters._blocks import plain
from etl.adapters._otlp_exchange import request, response
from etl.adapters._otlp_messages import messages
from etl.adapters._otlp_semconv import events
from etl.adapters._otlp_span import Log, Span, opened
from etl.adapters._otlp_turn import Reader, Turn
from etl.conversation import Message


def vercel(reader: Reader) -> Turn | None:
    """`ai.prompt.messages` (or `ai.prompt`), `ai.response.text`, `.toolCalls`, `.object`, `.reasoning`."""
    attributes = reader.span.attributes
    if not any(name.startswith(("ai.prompt", "ai.response.", "ai.result.")) for name in attributes):
        return None
    given = reader.take("ai.prompt.messages")
    made = request(given if given is not None else reader.take("ai.prompt"))
    answer: dict[str, Any] = {"role": "assistant"}
    text = reader.take("ai.response.text", "ai.result.text")
    if text is None:
        text = reader.take("ai.response.object", "ai.result.object")
    calls = reader.take("ai.response.toolCalls", "ai.result.toolCalls")
    thoughts = reader.take("ai.response.reasoning")
    content: list[Any] = [{"type": "reasoning", "text": thoughts}] if isinstance(thoughts, str) else []
    content += [{"type": "text", "text": _as_logged(attributes, text)}] if text is not None else []
    content += (
        [{**call, "type": "tool-call"} for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    )
    answer["content"] = content
    finish = reader.take("ai.response.finishReason", "ai.finishReason")
    if isinstance(finish, str):
        answer["finish_reason"] = finish
    return reader.turn(made.history, [messages(answer, "assistant")] if content else [], _tools(reader, made.tools))


def _as_logged(attributes: dict[str, Any], text: Any) -> str:
    """The text of an answer, untouched where it is JSON itself."""
    if isinstance(text, str):
        return text
    names = ("ai.response.text", "ai.result.text", "ai.response.object", "ai.result.object")
    return next((value for name in names if isinstance(value := attributes.get(name), str)), plain(text))


def _tools(reader: Reader, given: Any) -> Any:
    listed = reader.take("ai.prompt.tools")
    return [opened(tool) for tool in listed] if isinstance(listed, list) else given


def sentry(reader: Reader) -> Turn | None:
    """`gen_ai.request.messages`, and the answer as `gen_ai.response.text` (texts in a list) and `.tool_calls`."""
    history = reader.messages("gen_ai.request.messages")
    texts, calls = reader.take("gen_ai.response.text"), reader.take("gen_ai.response.tool_calls")
    spoken = [text for text in (texts if isinstance(texts, list) else [texts]) if text not in (None, "")]
    if not history and not spoken and not calls:
        return None
    answer: dict[str, Any] = {"role": "assistant", "content": "\n".join(map(plain, spoken)), "tool_calls": calls}
    said = [messages(answer, "assistant")] if spoken or calls else []
    return reader.turn(history, said, reader.take("gen_ai.request.available_tools"))


def logfire(reader: Reader) -> Turn | None:
    """`request_data` and `response_data`; Pydantic AI's `events` (messages as JSON) and `all_messages_events`."""
    logged = reader.take("events", "all_messages_events")
    if isinstance(logged, list) and any(isinstance(item, dict) and "event.name" in item for item in logged):
        return _from_events(reader, logged)
    whole = reader.take("pydantic_ai.all_messages")
    if whole is not None:
        found = messages(whole)
        end = len(found) - 1 if found and found[-1].role == "assistant" else len(found)
        return reader.turn(found[:end], [found[end:]])
    given, said = reader.take("request_data"), reader.take("response_data")
    if not isinstance(given, dict) or not (given.keys() & {"messages", "input", "prompt"} or said is not None):
        return None
    made = request(given)
    return reader.turn(made.history, response(said), made.tools)


def _from_events(reader: Reader, logged: list[Any]) -> Turn | None:
    """Pydantic AI before the current conventions: the events of the earlier ones, as a list in one attribute."""
    logs = [
        Log(
            str(item.get("event.name")),
            number,
            {key: value for key, value in item.items() if not key.startswith("event.")},
        )
        for number, item in enumerate(logged)
        if isinstance(item, dict)
    ]
    copy = Reader(
        Span(reader.span.trace, reader.span.id, reader.span.scope, attributes=reader.span.attributes, events=logs)
    )
    made = events(copy)
    if made is None:
        return None
    made.inputs, made.answers = _last_answer(made.inputs, made.answers)
    made.used |= reader.used
    return made


def _last_answer(history: list[Message], answers: list[list[Message]]) -> tuple[list[Message], list[list[Message]]]:
    """Where no choice is among the events, the last assistant message is the answer."""
    if answers or not history or history[-1].role != "assistant":
        return history, answers
    return history[:-1], [history[-1:]]
