"""Bedrock Converse: blocks whose key is their type, results in user messages; Nova speaks it in InvokeModel too."""

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
    streamed_input,
    text,
    total,
    without,
)
from etl.adapters._blocks import identifier, join, plain
from etl.conversation import Message, Tokens, ToolCall

_ROLES = {"user": "user", "assistant": "assistant", "system": "system"}


def _asked(body: Body) -> Asked:
    """`{messages, system[{text}], toolConfig{tools[{toolSpec}]}, inferenceConfig, …}`."""
    system = body.get("system")
    items: list[Any] = [{"role": "system", "content": system}] if system else []
    config = obj(body.get("toolConfig"))
    tools = [_tool(obj(tool)) for tool in arr(config.get("tools"))]
    rest = without(body, "messages", "system", "toolConfig", "modelId")
    if left := without(config, "tools"):
        rest["toolConfig"] = left
    return Asked([*items, *arr(body.get("messages"))], tools or None, text(body.get("modelId")), rest=rest)


def _tool(tool: Body) -> Body:
    """A `toolSpec` in the flat form; anything else (a cache point, the provider's own tool) as it is."""
    spec = tool.get("toolSpec")
    if type(spec) is not dict:
        return tool
    schema = obj(spec.get("inputSchema"))
    made = {key: value for key, value in spec.items() if key != "inputSchema"}
    return {**made, "parameters": schema.get("json", schema) if schema else None}


def message(item: Any) -> list[Message]:
    """One message; results come before what else it says."""
    if type(item) is not dict:
        return [Message("user", plain(item))]
    logged = item.get("role")
    role = _ROLES.get(logged) if type(logged) is str else None
    read = _content(item.get("content"), role or "user")
    if role is None and logged is not None:
        kept(read[0], role=logged)
    kept(read[-1], **without(item, "role", "content"))
    return read


def _content(content: Any, role: str) -> list[Message]:
    """The blocks of a message; what a tool at the provider gave came in the middle of the assistant's turn."""
    made: list[Message] = []
    current, pieces = Message(role), list[tuple[str, bool]]()
    for block in content if type(content) is list else [] if content is None else [content]:
        if type(block) is not dict:
            pieces.append((plain(block), False))
        elif type(block.get("toolResult")) is dict:
            if role == "assistant" and _says(current, pieces):
                made.append(_closed(current, pieces))
                current, pieces = Message(role), []
            made.append(_result(block["toolResult"]))
        else:
            _take(block, current, pieces)
    if _says(current, pieces) or not made:
        made.append(_closed(current, pieces))
    return made


def _says(message: Message, pieces: list[tuple[str, bool]]) -> bool:
    return bool(pieces or message.calls or message.parts or message.reasoning)


def _closed(message: Message, pieces: list[tuple[str, bool]]) -> Message:
    message.content = join(pieces) if pieces else ""
    return message


def _take(block: Body, message: Message, pieces: list[tuple[str, bool]]) -> None:
    left = dict(block)
    if type(left.get("text")) is str:
        pieces.append((left.pop("text"), False))
        if left.get("type") == "text":
            del left["type"]
    use = left.get("toolUse")
    if type(use) is dict and text(use.get("name")):
        server = use.get("type") == "server_tool_use"
        call = ToolCall(
            use["name"], use.get("input"), identifier(use.get("toolUseId")), "server" if server else "agent"
        )
        message.calls = [*(message.calls or ()), call]
        del left["toolUse"]
        more = without(use, "name", "input", "toolUseId")
        if more and more != {"type": "tool_use"}:
            left["toolUse"] = {"toolUseId": call.id, **more}
    thought = obj(obj(left.get("reasoningContent")).get("reasoningText"))
    if type(thought.get("text")) is str:
        message.reasoning = f"{message.reasoning}\n{thought['text']}" if message.reasoning else thought["text"]
        signed = without(thought, "text")
        del left["reasoningContent"]
        if signed:
            left["reasoningContent"] = {"reasoningText": signed}
    cited = left.get("citationsContent")
    if type(cited) is dict:
        pieces += [(found, True) for each in arr(cited.get("content")) if (found := text(obj(each).get("text")))]
    if left:
        message.parts = [*(message.parts or ()), left]


def _result(block: Body) -> Message:
    """`{toolUseId, content[{text | json | image | …}], status}`."""
    pieces: list[str] = []
    parts: list[Any] = []
    for item in arr(block.get("content")):
        if type(item) is dict and type(item.get("text")) is str:
            pieces.append(item["text"])
            if more := without(item, "text", "type"):
                parts.append(more)
        elif type(item) is dict and "json" in item:
            pieces.append(plain(item["json"]))
        else:
            parts.append(item)
    status = block.get("status")
    failed = {"error": True, "success": False}.get(status) if type(status) is str else None
    made = Message(
        "tool", "\n".join(pieces), call_id=identifier(block.get("toolUseId")), parts=parts or None, failed=failed
    )
    return kept(made, result=without(block, "toolUseId", "content", *(["status"] if failed is not None else [])))


def usage(logged: Any) -> Tokens | None:
    """Reads and writes of the cache are counted beside `inputTokens`, under either of two names."""
    told = obj(logged)
    read, written = (
        next((found for key in keys if (found := count(told.get(key))) is not None), None)
        for keys in (
            ("cacheReadInputTokens", "cacheReadInputTokenCount"), ("cacheWriteInputTokens", "cacheWriteInputTokenCount")
        )
    )  # fmt: skip
    fresh = count(told.get("inputTokens"))
    used = Tokens(
        None if fresh is None else total(fresh, read, written), count(told.get("outputTokens")), read, written
    )
    return used if used != Tokens() else None


def _answered(body: Body) -> Answered:
    """`{output{message}, stopReason, usage, metrics, trace}`; errors are `{message}`."""
    said = obj(body.get("output")).get("message")
    choices = []
    if type(said) is dict:
        choices.append(Choice(message({**said, "role": "assistant"}), text(body.get("stopReason"))))
    failed = None if choices else error_text(body)
    rest = without(body, "output", "stopReason", "message", "error", "unfinished")
    if other := without(obj(body.get("output")), "message"):
        rest["output"] = other
    return Answered(
        choices, None, None, None, usage(body.get("usage")), failed, body.get("unfinished") is not True, rest=rest
    )


_EVENTS = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}
)


def _joined(events: Sequence[Any]) -> Body:
    """Events `{messageStart | contentBlockStart | contentBlockDelta | messageStop | metadata: …}` as one response."""
    body: Body = {}
    blocks: dict[int, Body] = {}
    inputs: dict[int, str] = {}
    for event in map(obj, events):
        start, grown = obj(event.get("contentBlockStart")), obj(event.get("contentBlockDelta"))
        place = start.get("contentBlockIndex", grown.get("contentBlockIndex", 0))
        place = place if type(place) is int else 0
        if start:
            blocks[place] = {key: dict(obj(value)) for key, value in obj(start.get("start")).items()}
        if grown:
            _grow(blocks.setdefault(place, {}), obj(grown.get("delta")), inputs, place)
        if "messageStop" in event:
            body.update(obj(event["messageStop"]))
        if "metadata" in event:
            body.update(obj(event["metadata"]))
        body.update({key: value for key, value in event.items() if key not in _EVENTS})
    for place, partial in inputs.items():
        obj(blocks[place].setdefault("toolUse", {}))["input"] = streamed_input(partial)
    if blocks:
        content: list[Body] = []
        for place in sorted(blocks):
            # Nova counts a block for every piece of one text.
            if content and set(content[-1]) == set(blocks[place]) == {"text"}:
                content[-1]["text"] += blocks[place]["text"]
            else:
                content.append(blocks[place])
        body["output"] = {"message": {"role": "assistant", "content": content}}
    if "stopReason" not in body:
        body["unfinished"] = True
    failed = next((value for key, value in body.items() if key.endswith("Exception")), None)
    if failed is not None:
        body["error"] = failed
    return body


def _grow(block: Body, delta: Body, inputs: dict[int, str], place: int) -> None:
    for key, value in delta.items():
        if key == "toolUse":
            inputs[place] = inputs.get(place, "") + plain(obj(value).get("input"))
        elif key == "reasoningContent":
            inner = block.setdefault("reasoningContent", {}).setdefault("reasoningText", {})
            for name, said in obj(value).items():
                inner[name] = plain(inner.get(name)) + said if type(said) is str else said
        elif type(value) is str:
            block[key] = plain(block.get(key)) + value
        else:
            block[key] = value


CONVERSE = Codec("bedrock_converse", None, _asked, message, _answered, _joined)
