"""APIs that take a prompt, or chat under names of their own: Ollama, Cohere, the older models of Bedrock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etl.adapters._api_form import (
    Answered,
    Asked,
    Body,
    Choice,
    Codec,
    arr,
    count,
    error_text,
    kept,
    obj,
    text,
    without,
)
from etl.adapters._api_openai import message
from etl.adapters._blocks import identifier, plain
from etl.adapters._blocks import read as read_blocks
from etl.conversation import Message, Tokens

_PROMPTS = ("prompt", "inputText", "inputs", "message")
_SAID = (
    ("generation", "stop_reason"), ("completion", "stop_reason"), ("outputText", "completionReason"),
    ("text", "finish_reason"), ("generated_text", "finish_reason"), ("response", "done_reason"),
)  # fmt: skip
"""Keys of the text that a model gave, each with the key that says why it stopped."""
_LISTS = ("results", "completions", "generations", "outputs")
_IN = ("prompt_eval_count", "prompt_token_count", "inputTextTokenCount", "input_tokens")
_OUT = ("eval_count", "generation_token_count", "tokenCount", "totalOutputTextTokenCount", "output_tokens")


def _asked(body: Body) -> Asked:
    """`{model, messages | prompt | inputText, system, tools, …}`."""
    items = list(arr(body.get("messages")))
    held = ["messages", "model", "tools", "system"]
    if not items:
        items = [{**obj(turn), "content": obj(turn).get("message")} for turn in arr(body.get("chat_history"))]
        key = next((key for key in _PROMPTS if body.get(key) is not None), None)
        if key is not None:
            said: Body = {"role": "user", "content": body[key]}
            if body.get("images"):
                said["images"] = body["images"]
            items.append(said)
            held += [key, "images", "chat_history"]
    if body.get("system"):
        items.insert(0, {"role": "system", "content": body["system"]})
    return Asked(items, body.get("tools") or None, text(body.get("model")), rest=without(body, *held))


def _answered(body: Body) -> Answered:
    """`{message}` (Ollama, Cohere), or text under one of many keys, at the top or in a list."""
    choices = []
    said = body.get("message")
    if type(said) is dict:
        choices.append(_chat(said, body))
    elif "error" not in body:
        listed = next((arr(body.get(key)) for key in _LISTS if arr(body.get(key))), [body])
        choices = [choice for item in map(obj, listed) if (choice := _text(item)) is not None]
    failed = error_text(body) if "error" in body or not choices else None
    held = {"message", "error", "model", "id", "created_at", "done", "unfinished", *_LISTS, *_IN, *_OUT}
    held |= {key for pair in _SAID for key in pair} if choices else set()
    return Answered(
        choices, identifier(body.get("id")), text(body.get("model")), body.get("created_at"), _usage(body), failed,
        body.get("done") is not False and body.get("unfinished") is not True, rest=without(body, *held),
    )  # fmt: skip


def _chat(said: Body, body: Body) -> Choice:
    read = message({**said, "role": "assistant"})
    finish = text(body.get("done_reason")) or text(body.get("finish_reason"))
    return Choice(read, finish)


def _text(item: Body) -> Choice | None:
    """The text of an answer: plain, or `{data: {text}}` as AI21 has it."""
    data = obj(item.get("data"))
    if type(data.get("text")) is str:
        reason = obj(item.get("finishReason")).get("reason")
        made = Message("assistant", data["text"])
        return Choice([kept(made, data=without(data, "text"))], text(reason))
    for key, why in _SAID:
        if type(item.get(key)) is str:
            made = Message("assistant", item[key], text(item.get("thinking")))
            rest = without(item, key, why, "thinking", "tokenCount")
            return Choice([made], text(item.get(why)), rest if "model" not in item and "id" not in item else None)
    content = item.get("content")
    if type(content) is list:
        blocks = read_blocks(content)
        return Choice([Message("assistant", blocks.text, parts=blocks.parts)], text(item.get("finish_reason")))
    return None


def _usage(body: Body) -> Tokens | None:
    places = [
        body,
        obj(body.get("usage")),
        obj(obj(body.get("usage")).get("tokens")),
        obj(obj(body.get("meta")).get("tokens")),
        *map(obj, arr(body.get("results"))),
    ]

    def first(keys: tuple[str, ...]) -> int | None:
        return next((found for place in places for key in keys if (found := _whole(place.get(key))) is not None), None)

    found = Tokens(first(_IN), first(_OUT), first(("cached_tokens",)))
    return found if found != Tokens() else None


def _whole(value: Any) -> int | None:
    """A count, also where it is written as a float (Cohere)."""
    return count(int(value) if type(value) is float and value.is_integer() else value)


def _joined(chunks: Sequence[Any]) -> Body:
    """Chunks whose texts grow (Ollama's lines, Bedrock's events); counts and reasons come with the last."""
    body: Body = {}
    for chunk in map(obj, chunks):
        for key, value in chunk.items():
            if key == "message" and type(value) is dict:
                body["message"] = obj(body.get("message"))
                _grow(body["message"], value)
            elif key in ("response", "generation", "completion", "outputText", "thinking") and type(value) is str:
                body[key] = plain(body.get(key)) + value
            elif value is not None:
                body[key] = value
    return body


def _grow(said: Body, delta: Body) -> None:
    for key, value in delta.items():
        if key != "role" and type(value) is str:
            said[key] = plain(said.get(key)) + value
        elif type(value) is list:
            said[key] = [*arr(said.get(key)), *value]
        elif value is not None:
            said[key] = value


PROMPTED = Codec("prompted", None, _asked, message, _answered, _joined)
OLLAMA = PROMPTED._replace(name="ollama", provider="ollama")
