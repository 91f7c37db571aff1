"""OpenAI chat completions and legacy text completions, as OpenAI, Azure and the many compatible servers write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etl.adapters._api_form import Answered, Asked, Body, Choice, Codec, arr, error_text, kept, obj, text, without
from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import chat_messages
from etl.adapters._usage import tokens
from etl.conversation import Message

_FILTERS = ("content_filter", "SAFETY")


def _asked(body: Body) -> Asked:
    """`{model, messages, tools | functions, …}`."""
    tools = body.get("tools")
    if not tools:
        tools = body.get("functions") or None
    held = ["messages", "model", "tools" if body.get("tools") else "functions"]
    return Asked(
        arr(body.get("messages")),
        tools,
        text(body.get("model")),
        user=text(body.get("user")),
        rest=without(body, *held),
    )


def message(item: Any) -> list[Message]:
    """One chat message; what is none keeps its JSON as a user's text, flagged by its role."""
    read = chat_messages(item)
    if not isinstance(read, str):
        return read
    if isinstance(item, dict):
        found = chat_messages({**item, "role": "user"})
        if not isinstance(found, str):
            return [kept(each, role=item.get("role")) for each in found]
    return [Message("user", plain(item), extra={"role": None})]


def _answered(body: Body) -> Answered:
    """`{id, created, model, choices[{message, finish_reason, index}], usage}`; `{error}`."""
    choices = []
    for item in sorted(map(obj, arr(body.get("choices"))), key=_index):
        said = item.get("message")
        if type(said) is not dict:
            said = {"role": "assistant", "content": item.get("text")}
        read = message({**said, "role": text(said.get("role")) or "assistant"})
        choices.append(
            Choice(read, text(item.get("finish_reason")), without(item, "message", "text", "finish_reason", "index"))
        )
    return Answered(
        choices, identifier(body.get("id")), text(body.get("model")), body.get("created"), tokens(body.get("usage")),
        _error(body), body.get("unfinished") is not True, rest=_rest(body),
    )  # fmt: skip


def _rest(body: Body) -> Body:
    return without(body, "id", "model", "created", "choices", "error", "object", "unfinished")


def _error(body: Body) -> str | None:
    if body.get("error") is not None:
        return error_text(body["error"])
    return None if "choices" in body else error_text(body)


def _index(item: Body) -> int:
    index = item.get("index")
    return index if type(index) is int else 0


def _joined(chunks: Sequence[Any]) -> Body:
    """Chunks `{choices[{index, delta, finish_reason}]}` as one completion; usage comes in the last one, if at all."""
    body: Body = {}
    choices: dict[int, Body] = {}
    for chunk in map(obj, chunks):
        for key, value in chunk.items():
            if key not in ("choices", "object") and value is not None:
                body[key] = value
        for part in map(obj, arr(chunk.get("choices"))):
            choice = choices.setdefault(_index(part), {"index": _index(part), "message": {"role": "assistant"}})
            for key, value in part.items():
                if key == "text" and type(value) is str:
                    choice["message"]["content"] = choice["message"].get("content", "") + value
                elif key not in ("delta", "index") and value is not None:
                    choice[key] = value
            _grow(choice["message"], obj(part.get("delta")))
    for choice in choices.values():
        for call in arr(choice["message"].get("tool_calls")):
            call.pop("index", None)
    body["choices"] = list(choices.values())
    if not body["choices"] and "error" in body:
        del body["choices"]
    elif any(not choice.get("finish_reason") for choice in choices.values()):
        body["unfinished"] = True
    return body


def _grow(message: Body, delta: Body) -> None:
    """Take in one delta: texts grow, tool calls grow at their index, everything else is set."""
    for key, value in delta.items():
        if value is None:
            continue
        if key == "tool_calls":
            calls = message.setdefault("tool_calls", [])
            for call in map(obj, arr(value)):
                _grow_call(calls, call)
        elif key == "function_call":
            _merge(message.setdefault("function_call", {}), obj(value))
        elif key == "role":
            message["role"] = value
        elif type(value) is str and type(message.get(key)) is str:
            message[key] += value
        elif type(value) is list and type(message.get(key)) is list:
            message[key] = [*message[key], *value]
        else:
            message[key] = value


def _grow_call(calls: list[Body], delta: Body) -> None:
    index = delta.get("index")
    place = next((call for call in calls if call.get("index") == index), None) if index is not None else None
    if place is None and index is None and not delta.get("id") and calls:
        place = calls[-1]
    if place is None:
        place = {}
        calls.append(place)
    for key, value in delta.items():
        if key in ("function", "custom"):
            _merge(place.setdefault(key, {}), obj(value))
        elif value is not None and not (key == "id" and place.get("id")):
            place[key] = value


def _merge(holder: Body, delta: Body) -> None:
    for key, value in delta.items():
        if key in ("arguments", "input") and type(value) is str:
            holder[key] = plain(holder.get(key)) + value
        elif value is not None and not (key == "name" and holder.get("name")):
            holder[key] = value


def _completion_asked(body: Body) -> Asked:
    """`{model, prompt}`: a prompt is one user message; several prompts are joined as blocks."""
    prompt = body.get("prompt")
    items = [{"role": "user", "content": item} for item in (prompt if type(prompt) is list else [prompt])]
    return Asked(
        [item for item in items if item["content"] is not None], None, text(body.get("model")),
        user=text(body.get("user")), rest=without(body, "prompt", "model"),
    )  # fmt: skip


CHAT = Codec("openai_chat", "openai", _asked, message, _answered, _joined)
COMPLETIONS = Codec("openai_completions", "openai", _completion_asked, message, _answered, _joined)
