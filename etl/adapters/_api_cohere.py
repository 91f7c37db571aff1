"""Cohere's chat, both versions: documents as results of tools, and streams whose events are pieces of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etl.adapters._api_form import Body, arr, obj, text
from etl.adapters._api_openai import message as chat_message
from etl.adapters._api_prompted import PROMPTED
from etl.adapters._blocks import plain
from etl.conversation import Message


def message(item: Any) -> list[Message]:
    """One message; the documents that a tool gave are its text."""
    if type(item) is dict and item.get("role") == "tool" and type(item.get("content")) is list:
        return chat_message({**item, "content": [_document(block) for block in item["content"]]})
    return chat_message(item)


def _document(block: Any) -> Any:
    """`{type: document, document: {id, data}}` as a block of text; `data` is text or an object."""
    held = obj(obj(block).get("document"))
    if obj(block).get("type") != "document" or held.get("data") is None:
        return block
    made = {"type": "text", "text": plain(held["data"])}
    return {**made, "document_id": held["id"]} if held.get("id") is not None else made


def _joined(events: Sequence[Any]) -> Body:
    """Events of version 2 (`content-delta`, `tool-call-delta`, …), or of version 1, whose last one has it all."""
    body: Body = {}
    said: Body = {"role": "assistant"}
    calls: dict[int, Body] = {}
    ended = False
    for event in map(obj, events):
        kind = text(event.get("type")) or text(event.get("event_type")) or ""
        delta = obj(event.get("delta"))
        told = obj(delta.get("message"))
        if kind == "message-start":
            body["id"] = event.get("id")
        elif kind == "content-delta":
            for key, piece in obj(told.get("content")).items():
                if type(piece) is str and key in _CONTENT:
                    said[_CONTENT[key]] = plain(said.get(_CONTENT[key])) + piece
        elif kind == "tool-plan-delta":
            said["tool_plan"] = plain(said.get("tool_plan")) + plain(told.get("tool_plan"))
        elif kind in ("tool-call-start", "tool-call-delta"):
            _grow_call(calls.setdefault(_place(event), {}), obj(told.get("tool_calls")))
        elif kind == "citation-start":
            said["citations"] = [*arr(said.get("citations")), told.get("citations")]
        elif kind == "message-end":
            ended = True
            body.update({key: value for key, value in delta.items() if value is not None})
        elif kind == "text-generation":
            said["content"] = plain(said.get("content")) + plain(event.get("text"))
        elif kind == "stream-start":
            body["id"] = event.get("generation_id")
        elif kind == "stream-end" and type(event.get("response")) is dict:
            return {**event["response"], "finish_reason": event.get("finish_reason")}
    if calls:
        said["tool_calls"] = [calls[place] for place in sorted(calls)]
    body["message"] = said
    if not ended:
        body["unfinished"] = True
    return body


_CONTENT = {"text": "content", "thinking": "reasoning_content"}
"""Key of a piece of content → that of the message it belongs to."""


def _place(event: Body) -> int:
    index = event.get("index")
    return index if type(index) is int else 0


def _grow_call(call: Body, delta: Body) -> None:
    """Take in a piece of a call: its arguments grow, all else is set."""
    function = call.setdefault("function", {})
    for key, value in obj(delta.get("function")).items():
        function[key] = plain(function.get(key)) + value if key == "arguments" and type(value) is str else value
    call.update({key: value for key, value in delta.items() if key != "function" and value is not None})


COHERE = PROMPTED._replace(name="cohere", provider="cohere", message=message, joined=_joined)
