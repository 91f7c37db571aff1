"""OpenAI chat completions and legacy text completions, as OpenAI, Azure and the many compatible servers write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etl.adapters._api_form import Answered, Asked, Body, Choice, Codec, arr, error_text, kept, obj, text, without
from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import chat_messages
from etl.adapters._usage import tokens
from etl.conversation import Message
from etl.decode import JsonError, decode

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
    """The error of a body, or of a choice that a gateway gave up (OpenRouter)."""
    if body.get("error") is not None:
        return error_text(body["error"])
    for choice in map(obj, arr(body.get("choices"))):
        if choice.get("error") is not None:
            return error_text(choice["error"])
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
        if (counted := obj(chunk.get("x_groq")).get("usage")) is not None:
            body["usage"] = counted
        for part in map(obj, arr(chunk.get("choices"))):
            choice = choices.setdefault(_index(part), {"index": _index(part), "message": {"role": "assistant"}})
            for key, value in part.items():
                if key == "text" and type(value) is str:
                    choice["message"]["content"] = choice["message"].get("content", "") + value
                elif key not in ("delta", "index") and value is not None:
                    choice[key] = value
            _grow(choice["message"], obj(part.get("delta")))
    for choice in choices.values():
        calls = arr(choice["message"].get("tool_calls"))
        places = [call.get("index") for call in calls]
        if all(type(place) is int for place in places) and len(set(places)) == len(places):
            calls.sort(key=_index)  # the calls of a turn are in the order of their indices, whichever came first
        for call in calls:
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
        elif key == "audio" and type(value) is dict:
            _grow(message.setdefault("audio", {}), value)
        elif key == "content" and list in (type(value), type(message.get(key))):
            message[key] = _grown(arr(message.get(key)) or plain(message.get(key)), value)
        elif type(value) is str and type(message.get(key)) is str:
            message[key] += value
        elif type(value) is list and type(message.get(key)) is list:
            message[key] = [*message[key], *value]
        else:
            message[key] = value


def _grown(content: Any, more: Any) -> list[Any]:
    """Content that comes as text and as blocks (Mistral's, while it thinks): blocks of one kind grow."""
    made: list[Any] = []
    for piece in (content, more):
        blocks = piece if type(piece) is list else [{"type": "text", "text": piece}] if piece else []
        for block in blocks:
            kind = obj(block).get("type")
            last = obj(made[-1]) if made else {}
            if kind in ("text", "thinking") and last.get("type") == kind and block.keys() == last.keys():
                made[-1] = {"type": kind, **{key: _more(last[key], block[key]) for key in last if key != "type"}}
            else:
                made.append(block)
    return made


def _more(before: Any, after: Any) -> Any:
    """A text, or a list of texts, with what comes after it; of anything else what came last."""
    if type(before) is list and type(after) is list:
        return _grown(before, after)
    return before + after if type(before) is type(after) is str else after


def _grow_call(calls: list[Body], delta: Body) -> None:
    place = _call_of(calls, delta)
    function = obj(delta.get("function"))
    if place is None:
        place = {}
        calls.append(place)
    elif delta.get("id") and _whole(place) and obj(place["function"])["arguments"] == function.get("arguments"):
        return  # told whole once more at the end of the stream
    for key, value in delta.items():
        if key in ("function", "custom"):
            _merge(place.setdefault(key, {}), obj(value))
        elif value is not None and not (key == "id" and (place.get("id") or not value)):
            place[key] = value


def _call_of(calls: list[Body], delta: Body) -> Body | None:
    """The call that a delta goes on with; None for a new one.

    Servers leave the index out, count it from anywhere, or give two calls the same; ids come once or every time.
    So an id and a name begin another call at an index that is taken, and a name does after arguments that are whole.
    """
    index, name = delta.get("index"), delta.get("id")
    function = obj(delta.get("function"))
    at = [call for call in calls if index is None or call.get("index") == index]
    if name:
        known = [call for call in at if call.get("id") == name]
        if known:
            return known[-1]
        if not at or function.get("name") or index is None:
            return None
        return at[-1]
    if not at:
        goes_on = calls and index is not None and not function.get("name") and not _whole(calls[-1])
        return calls[-1] if goes_on else None
    if function.get("name") and function.get("arguments") and _whole(at[-1]):
        return None
    return at[-1]


def _whole(call: Body) -> bool:
    """Whether the arguments so far are a JSON object."""
    arguments = obj(call.get("function")).get("arguments")
    if type(arguments) is not str or arguments[-1:] != "}":
        return False
    try:
        return type(decode(arguments.encode("utf-8", "surrogatepass")).value) is dict
    except JsonError:
        return False


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
