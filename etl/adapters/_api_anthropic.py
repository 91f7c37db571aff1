"""Anthropic Messages, at Anthropic, Bedrock or Vertex: blocks in and out, tool results in user messages."""

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
    error_text,
    kept,
    obj,
    streamed_input,
    text,
    without,
)
from etl.adapters._blocks import identifier, plain
from etl.adapters._blocks import read as read_blocks
from etl.adapters._usage import tokens
from etl.conversation import Message

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "model": "assistant"}


def _asked(body: Body) -> Asked:
    """`{model, system: text | blocks, messages, tools, metadata{user_id}}`."""
    items: list[Any] = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    return Asked(
        [*items, *arr(body.get("messages"))], body.get("tools") or None, text(body.get("model")),
        user=text(obj(body.get("metadata")).get("user_id")), rest=without(body, "system", "messages", "tools", "model"),
    )  # fmt: skip


def message(item: Any) -> list[Message]:
    """One message: results in it are messages of their own; those of an assistant's own tools stay in their place."""
    if type(item) is not dict:
        return [Message("user", plain(item))]
    logged = item.get("role")
    role = _ROLES.get(logged) if type(logged) is str else None
    read = _content(item.get("content"), role or "user")
    if role is None:
        kept(read[0], role=logged)
    kept(read[-1], **without(item, "role", "content"))
    return read


def _content(content: Any, role: str) -> list[Message]:
    """A content list, cut where a result of a tool stands: what a server's tool gave came in the middle of a turn."""
    if type(content) is not list:
        return [_said(content, role)]
    made: list[Message] = []
    said: list[Any] = []
    for block in content:
        kind = block.get("type") if type(block) is dict else None
        if type(kind) is str and (kind == "tool_result" or kind.endswith("_tool_result")):
            if said and role == "assistant":
                made.append(_said(said, role))
                said = []
            made += _results(block)
        else:
            said.append(block)
    if said or not made:
        made.append(_said(said, role))
    return made


def _said(content: Any, role: str) -> Message:
    blocks = read_blocks(content)
    made = Message(role, blocks.text, blocks.reasoning, blocks.calls, parts=blocks.parts)
    return kept(made, blocks=blocks.rest)


def _results(block: Body) -> list[Message]:
    """The result in a block; a server tool's structured content is a part, its error a failure."""
    made = []
    for found in read_blocks([block]).results or ():
        content = block.get("content")
        inner = content.get("type") if type(content) is dict else None
        failed = True if type(inner) is str and inner.endswith("_error") else found.failed
        rest = {key: value for key, value in (found.rest or {}).items() if key != "type"}
        made.append(
            Message(
                "tool", found.text, call_id=found.call_id, name=found.name, parts=found.parts, failed=failed,
                extra=rest or None,
            )
        )  # fmt: skip
    return made


def _answered(body: Body) -> Answered:
    """`{id, model, content[blocks], stop_reason, usage}`; `{type: error, error}`."""
    content = body.get("content")
    choices = []
    if type(content) in (list, str) or "stop_reason" in body:
        choices.append(
            Choice(_content(content if content is not None else [], "assistant"), text(body.get("stop_reason")))
        )
    failed = error_text(body) if body.get("error") is not None or not choices else None
    rest = without(body, "id", "model", "content", "stop_reason", "role", "type", "error", "unfinished")
    return Answered(
        choices, identifier(body.get("id")), text(body.get("model")), None, tokens(body.get("usage")), failed,
        body.get("unfinished") is not True, rest=rest,
    )  # fmt: skip


_EVENT_KEYS = ("type", "index", "message", "content_block", "delta", "usage", "error", "sequence_number")


def _joined(events: Sequence[Any]) -> Body:
    """`message_start`, then blocks that grow by deltas, then `message_delta` with stop reason and final usage."""
    body: Body = {}
    blocks: dict[int, Body] = {}
    inputs: dict[int, str] = {}
    ended = False
    for event in map(obj, events):
        kind, index = event.get("type"), event.get("index")
        place = index if type(index) is int else 0
        if kind == "message_start":
            body = dict(obj(event.get("message")))
        elif kind == "content_block_start":
            blocks[place] = dict(obj(event.get("content_block")))
        elif kind == "content_block_delta":
            _grow(blocks.setdefault(place, {}), obj(event.get("delta")), inputs, place)
        elif kind == "message_delta":
            body.update({key: value for key, value in obj(event.get("delta")).items() if value is not None})
            told = {key: value for key, value in obj(event.get("usage")).items() if value is not None}
            body["usage"] = {**obj(body.get("usage")), **told}
        elif kind == "message_stop":
            ended = True
        elif kind == "error":
            body["error"] = event.get("error")
        body.update(without(event, *_EVENT_KEYS))
    for place, partial in inputs.items():
        blocks[place]["input"] = streamed_input(partial)
    if blocks or "content" in body:
        body["content"] = [blocks[place] for place in sorted(blocks)]
    if not ended and "error" not in body:
        body["unfinished"] = True
    return body


def _grow(block: Body, delta: Body, inputs: dict[int, str], place: int) -> None:
    for key, value in delta.items():
        if key == "partial_json":
            inputs[place] = inputs.get(place, "") + plain(value)
        elif key == "citation":
            block["citations"] = [*arr(block.get("citations")), value]
        elif key != "type" and type(value) is str:
            block[key] = plain(block.get(key)) + value
            block.setdefault("type", "thinking" if key in ("thinking", "signature") else "text")
        elif key != "type" and value is not None:
            block[key] = value


ANTHROPIC = Codec("anthropic_messages", "anthropic", _asked, message, _answered, _joined)
