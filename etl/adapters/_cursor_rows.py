"""Cursor's conversations: messages of the CLI agent (transcripts and `store.db`), and bubbles of the editor."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from etl.adapters._blocks import plain, read, result
from etl.adapters._claude_text import echoes, texts_in
from etl.adapters._session import dict_of, list_of, text_of, whole, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Identity, Message, Tokens, ToolCall

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_PROGRAM = re.compile(
    r"\s*<(user_info|system_reminder|attached_files|additional_data|rules|project_layout|git_status|open_and_recently|"
    r"timestamp|agent_skills|agent_transcripts|cursor_rules|manually_attached_skills|image_files|mcp_)"
)
_BUBBLE = (
    "_v", "bubbleId", "type", "text", "richText", "createdAt", "thinking", "allThinkingBlocks", "toolFormerData",
    "tokenCount", "modelInfo", "images", "isAgentic", "unifiedMode", "capabilities", "capabilityType",
)  # fmt: skip
_COMPOSER = (
    "_v", "composerId", "conversation", "conversationMap", "fullConversationHeadersOnly", "createdAt",
    "lastUpdatedAt", "modelConfig", "richText", "text", "hasLoaded", "conversationState",
)  # fmt: skip


def ask(talk: Talk, text: str, at: Any = None, **more: Any) -> None:
    """What stands in a user's place: a person's query between tags, the program's pieces around it."""
    place = 0
    found = list(_QUERY.finditer(text))
    if not found:
        talk.ask(text, at, **more)
        if _PROGRAM.match(text):
            talk.messages[-1].synthetic = True
        return
    for query in found:
        if before := text[place : query.start()].strip():
            talk.say(Message("user", before, at=at, synthetic=True))
        talk.say(Message("user", query.group(1), at=at, id=more.get("id"), parts=more.get("parts")))
        talk.messages[-1].extra = more.get("extra") or None
        more, place = {}, query.end()
    if rest := text[place:].strip():
        talk.say(Message("user", rest, at=at, synthetic=True))


def chat(values: Iterable[dict[str, Any]]) -> Talk:
    """Messages `{role, content}` (or `{role, message: {content}}`), in order."""
    talk = Talk()
    answered = False
    for value in (part for each in values for part in _parted(each)):
        inner = dict_of(value, "message")
        said = read(inner["content"] if "content" in inner else value.get("content"))
        role = text_of(value, "role") or text_of(inner, "role")
        extra = {**without(value, "role", "content", "message", "id"), **without(inner, "role", "content")}
        if said.rest:
            extra["content"] = said.rest
        name = text_of(value, "id")
        for found in said.results or ():
            answered = True
            message = Message("tool", found.text, call_id=found.call_id, parts=found.parts, failed=found.failed)
            call = talk.calls.get(found.call_id or "")
            rest = without(found.rest or {}, *(("toolName",) if call is not None else ()))
            told = echoes(rest, found.text, texts_in(call.arguments) if call is not None else ())
            message.extra = {"content": told} if told else None
            talk.say(message)
        if role == "system":
            talk.say(Message("system", said.text, id=name, parts=said.parts, extra=extra or None))
        elif role == "assistant":
            talk.answer(said, id=name, extra=extra)
        elif role != "tool" and (said.text or said.parts):
            ask(talk, said.text, id=name, parts=said.parts, extra=extra)
        elif extra:
            talk.note(extra)
    if talk.messages and not answered and any(message.calls for message in talk.messages):
        talk.flags.add("content_not_captured")
    return talk


def _parted(value: dict[str, Any]) -> list[dict[str, Any]]:
    """A turn of the model that has results in it as its responses, and the results between them."""
    listed = list_of(dict_of(value, "message"), "content")
    kinds = [text_of(block, "type") == "tool_result" for block in listed]
    if value.get("role") != "assistant" or not any(kinds):
        return [value]
    return [
        {"role": "tool" if result else "assistant", "message": {"content": [block for _, block in group]}}
        for result, group in itertools.groupby(zip(kinds, listed, strict=True), key=lambda pair: pair[0])
    ]


def composer(made: Conversation, data: dict[str, Any], bubbles: dict[str, dict[str, Any]]) -> Conversation:
    """A conversation of the editor: its bubbles in the order of its headers."""
    talk = Talk()
    talk.model = text_of(dict_of(data, "modelConfig"), "modelName")
    listed = [*list_of(data, "fullConversationHeadersOnly"), *list_of(data, "conversation")]
    known = {**dict_of(data, "conversationMap"), **{text_of(b, "bubbleId") or "": b for b in listed}, **bubbles}
    names = [text_of(header, "bubbleId") or "" for header in listed]
    rest = sorted((name for name in known if name not in set(names)), key=lambda name: _began(known[name]))
    for name in dict.fromkeys([*names, *rest]):
        value = known.get(name)
        if isinstance(value, dict):
            _bubble(talk, value)
    made.started_at, made.ended_at = data.get("createdAt"), data.get("lastUpdatedAt")
    made.extra = _quiet(without(data, *_COMPOSER)) or None
    parent = text_of(dict_of(data, "subagentInfo"), "parentComposerId") or text_of(data, "parentComposerId")
    made.parent = Identity(parent) if parent is not None else None
    if text_of(data, "status") in ("aborted", "cancelled"):
        made.status = "aborted"
    return talk.tell(made)


def _began(bubble: Any) -> str:
    return text_of(bubble, "createdAt") or ""


def _bubble(talk: Talk, value: dict[str, Any]) -> None:
    at, text = value.get("createdAt"), plain(value.get("text"))
    extra = _quiet(without(value, *_BUBBLE))
    name = text_of(value, "bubbleId")
    if value.get("type") == 1:
        if not text and value.get("richText"):
            extra["richText"] = value["richText"]
        images = list_of(value, "images")
        if text or images or extra:
            ask(talk, text, at, id=name, parts=images or None, extra=extra)
        return
    talk.model = text_of(dict_of(value, "modelInfo"), "modelName") or talk.model
    blocks = [value.get("thinking"), *list_of(value, "allThinkingBlocks")]
    thoughts = list(dict.fromkeys(filter(None, (_thought(block) for block in blocks))))
    for thought in thoughts:
        talk.think(thought, at)
    tool = dict_of(value, "toolFormerData")
    if text:
        talk.speak(text, at)
    if tool:
        _tool(talk, tool, at, name)
    if not text and not tool and not thoughts:
        if extra:
            talk.note({"bubbleId": name, **extra})
        return
    message = next(m for m in reversed(talk.messages) if m.role == "assistant")
    message.id = message.id or name
    message.extra = {**(message.extra or {}), **extra} or None
    count = dict_of(value, "tokenCount")
    read_in, out = whole(count.get("inputTokens")), whole(count.get("outputTokens"))
    if read_in or out:
        talk.tokens.append(Tokens(read_in, out))
        if message.input_tokens is None:
            message.input_tokens, message.output_tokens = read_in, out


def _thought(item: Any) -> str | None:
    return item if isinstance(item, str) else text_of(item, "text", "thinking")


def _tool(talk: Talk, tool: dict[str, Any], at: Any, bubble: str | None) -> None:
    """A call and what came of it, in one bubble."""
    arguments = tool.get("rawArgs") if tool.get("rawArgs") not in (None, "", "{}") else tool.get("params")
    if arguments in (None, ""):
        arguments = tool.get("rawArgs")
    name = text_of(tool, "name") or (f"tool_{tool['tool']}" if type(tool.get("tool")) is int else "tool")
    call = ToolCall(name, arguments, text_of(tool, "toolCallId") or bubble)
    talk.call(call, at)
    status, decision = text_of(tool, "status"), text_of(tool, "userDecision")
    told = tool.get("result")
    ended = status in ("completed", "success", "error", "cancelled", "rejected") or told not in (None, "")
    rest = without(tool, "name", "tool", "toolCallId", "rawArgs", "params", "result", "status", "userDecision", "error")
    rest.pop("modelCallId", None)
    rest.pop("toolIndex", None)
    if not ended:
        talk.note({"call": call.id, **without({"status": status}), **rest})
        return
    output = result({"content": told if told not in (None, "") else tool.get("error", "")})
    message = Message("tool", output.text, call_id=call.id, parts=output.parts, at=at)
    if decision == "rejected" or status == "rejected":
        message.failed, message.condition = True, "permission_denied"
    elif status == "cancelled":
        message.cancelled = True
    elif status == "error" or tool.get("error"):
        message.failed, message.error = True, plain(tool.get("error")) or None
    params = tool.get("params") if arguments is not tool.get("params") else None
    more = echoes({**rest, **without({"params": params})}, message.content, (plain(arguments),))
    message.extra = more or None
    talk.say(message)


def _quiet(value: dict[str, Any]) -> dict[str, Any]:
    """An object without what is off, zero or empty at any level: the editor writes every field."""
    kept: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            item = _quiet(item)
        if item not in (None, False, 0, "", [], {}):
            kept[key] = item
    return kept


def tabs(value: Any) -> Sequence[tuple[str, Talk]]:
    """The chats of an older version: `{tabs: [{tabId, bubbles: [{type: user|ai, text}]}]}`."""
    found: list[tuple[str, Talk]] = []
    for tab in list_of(value, "tabs"):
        name = text_of(tab, "tabId")
        talk = Talk()
        for bubble in list_of(tab, "bubbles"):
            text = text_of(bubble, "text", "rawText") or ""
            if text_of(bubble, "type") == "user":
                ask(talk, text, extra=without(bubble, "type", "text", "rawText", "initText", "id"))
            elif text:
                message = talk.speak(text)
                message.model = text_of(bubble, "modelType")
                talk.close()
        if name is not None and talk.messages:
            found.append((name, talk))
    return found
