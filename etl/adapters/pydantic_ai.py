"""Message histories of Pydantic AI (`all_messages_json`): requests and responses, each of parts told by `part_kind`.

A list of them is a history; so is a record that holds one under `messages`, and a file with a message a line. What a
request tells in answer to a call (a return, a prompt to try again) is the result of that call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._chat import parsed
from etl.adapters._records import left
from etl.adapters._rollouts import count, items, obj, text
from etl.conversation import Conversation, Message, Outcome, Record, Tokens, ToolCall, Unusable
from etl.decode import encode
from etl.identity import digest

_LISTS = ("messages", "message_history", "all_messages", "new_messages")
_CALLS = ("tool-call", "builtin-tool-call")
_RETURNS = ("tool-return", "builtin-tool-return", "retry-prompt")
_HELD = frozenset({"parts", "kind", "timestamp", "model_name", "usage", "finish_reason", "instructions"})
_PART = frozenset({"part_kind", "content", "tool_name", "tool_call_id", "args", "timestamp", "id"})
_COUNTS = frozenset({"requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "details"})
_DENIED = ("denied", "interrupted")
_IDS = ("conversation_id", "run_id")


class PydanticAI(Adapter):
    """Histories of Pydantic AI agents."""

    name = "pydantic_ai"
    version = 1
    about = (
        "Pydantic AI message histories: [{kind: request|response, parts: [{part_kind, …}]}], alone, a record or a line"
    )
    scores_share = True

    def score(self, sample: Sample) -> float:
        """Sure of parts with a `part_kind` in a request or response."""
        values = sample.values
        return sum(0.95 for value in values if _listed(value) or _is_message(value)) / len(values) if values else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation for each record with a list; messages that stand alone are one, by conversation."""
        alone: dict[str, list[Record]] = {}
        for record in records:
            value = record.value
            listed = _listed(value)
            if listed:
                yield _conversation(listed, [record], value if isinstance(value, dict) else {})
            elif _is_message(value):
                alone.setdefault(identifier(value.get("conversation_id")) or "", []).append(record)
            else:
                yield Unusable(record, "no_messages", "a history is a list of requests and responses with parts")
        for found in alone.values():
            yield _conversation([record.value for record in found], found, {})


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("kind") not in ("request", "response"):
        return False
    parts = value.get("parts")
    return isinstance(parts, list) and all(isinstance(part, dict) and "part_kind" in part for part in parts[:4])


def _listed(value: Any) -> list[Any]:
    """The history of a record; JSON text of a list counts. Empty where it holds none."""
    found = value
    if isinstance(value, dict):
        found = next((value[key] for key in _LISTS if value.get(key)), None)
    found = parsed(found) if isinstance(found, str) else found
    return found if isinstance(found, list) and found and all(map(_is_message, found[:8])) else []


def _conversation(listed: list[Any], records: list[Record], holder: dict[str, Any]) -> Outcome:
    messages: list[Message] = []
    instructions: Any = None
    for index, value in enumerate(listed):
        if not _is_message(value):
            return Unusable(
                records[0], "bad_message", f"message {index} is neither a request nor a response with parts"
            )
        if value["kind"] == "response":
            messages += _response(value)
            continue
        given = value.get("instructions")
        if text(given) and given != instructions:
            messages.append(Message("system", given, at=value.get("timestamp")))
            instructions = given
        messages += _request(value)
    ids = {key: identifier(listed[0].get(key)) for key in _IDS}
    first = encode([listed[0].get("run_id"), listed[0]]).encode("utf-8", "surrogatepass")
    named = next((key for key in _LISTS if holder.get(key)), None)
    local = next(
        (found for found in (identifier(holder.get(key)) for key in ("id", *_IDS, "session_id")) if found), None
    )
    return Conversation(
        messages,
        records,
        native_id=f"pydantic_ai:{digest(first)}" if _timed(listed[0]) else None,
        local_id=local,
        conversation_id=local or ids["conversation_id"] or ids["run_id"],
        task_from_prompt=True,
        usage=_sum([found for found in map(_usage, listed) if found is not None]),
        finish_reason=text(listed[-1].get("finish_reason")),
        extra=left(holder, {named} if named else ()),
    )


def _timed(value: dict[str, Any]) -> bool:
    """Whether a first message says when it was: then no other conversation begins with it."""
    parts = items(value, "parts")
    return bool(value.get("timestamp")) or any(isinstance(part, dict) and part.get("timestamp") for part in parts)


def _request(value: dict[str, Any]) -> Iterator[Message]:
    """System prompts, what was said, and results, each a message."""
    rest = left(value, _HELD)
    for part in value["parts"]:
        if not isinstance(part, dict):
            continue
        message = _requested(part, value)
        if rest:
            message.extra, rest = {**(message.extra or {}), **rest}, None
        yield message
    if rest:
        yield Message("user", at=value.get("timestamp"), synthetic=True, extra=rest)


def _requested(part: dict[str, Any], value: dict[str, Any]) -> Message:
    kind, content = part.get("part_kind"), part.get("content")
    at = part.get("timestamp") or value.get("timestamp")
    more = left(part, _PART)
    if kind == "system-prompt":
        return Message("system", plain(content), at=at, extra=more)
    if kind in _RETURNS and (kind != "retry-prompt" or text(part.get("tool_name"))):
        return _returned(part, at)
    if kind != "user-prompt":
        said = plain(content) if content is not None else ""
        return Message("user", said, at=at, synthetic=True, extra={"part_kind": kind, **(more or {})})
    pieces = content if isinstance(content, list) else [content]
    texts = [_text(piece) for piece in pieces]
    media = [piece for piece, found in zip(pieces, texts, strict=True) if found is None and piece is not None]
    return Message("user", "\n".join(found for found in texts if found), at=at, parts=media or None, extra=more)


def _text(piece: Any) -> str | None:
    if isinstance(piece, dict) and piece.get("kind") in ("text", None) and isinstance(piece.get("content"), str):
        return str(piece["content"])
    return piece if isinstance(piece, str) else None


def _returned(part: dict[str, Any], at: Any) -> Message:
    """What a call gave back. A prompt to try again says that its arguments or the tool failed."""
    outcome, kind = part.get("outcome"), part.get("part_kind")
    more = left(part, _PART)
    message = Message("tool", plain(part.get("content")), call_id=identifier(part.get("tool_call_id")), at=at)
    message.name = text(part.get("tool_name"))
    message.cancelled = outcome in _DENIED
    message.synthetic = isinstance(obj(part, "metadata").get("pydantic_ai_synthesized_tool_return"), bool)
    if kind == "retry-prompt" or outcome == "failed":
        message.failed = True
    elif outcome == "success":
        message.failed = False
    message.extra = {**(more or {}), "part_kind": kind} if kind == "retry-prompt" else more
    return message


def _response(value: dict[str, Any]) -> list[Message]:
    """A response; what ran at the provider gave its results inside of it."""
    usage = _usage(value)
    message = Message(
        "assistant",
        at=value.get("timestamp"),
        model=text(value.get("model_name")),
        finish_reason=text(value.get("finish_reason")),
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        extra=left(value, _HELD),
    )
    results: list[Message] = []
    for part in value["parts"]:
        kind = part.get("part_kind") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("content"), str):
            message.content += part["content"]
        elif kind == "thinking" and isinstance(part.get("content"), str):
            message.reasoning = "\n".join(filter(None, (message.reasoning, part["content"]))) or None
        elif kind in _CALLS and isinstance(part.get("tool_name"), str):
            actor = "server" if kind == "builtin-tool-call" else "agent"
            call = ToolCall(part["tool_name"], part.get("args"), identifier(part.get("tool_call_id")), actor)
            message.calls = [*(message.calls or ()), call]
        elif kind in _RETURNS:
            results.append(_returned(part, part.get("timestamp")))
            continue
        else:
            message.parts = [*(message.parts or ()), part]
            continue
        more = left(part, _PART)
        if more:
            message.parts = [*(message.parts or ()), {"part_kind": kind, **more}]
    rest = left(obj(value, "usage"), _COUNTS)
    if rest or obj(obj(value, "usage"), "details"):
        message.extra = {**(message.extra or {}), "usage": value["usage"]}
    return [message, *results]


def _usage(value: Any) -> Tokens | None:
    """Tokens of one response: `input_tokens` counts cached ones too. Before version 1: `request_tokens`."""
    usage = obj(value, "usage")
    if value.get("kind") != "response" or not usage:
        return None
    first = {key: usage.get(key, usage.get(older)) for key, older in _OLDER.items()}
    found = Tokens(
        count(first["input_tokens"]),
        count(first["output_tokens"]),
        count(usage.get("cache_read_tokens")),
        count(usage.get("cache_write_tokens")),
        count(obj(usage, "details").get("reasoning_tokens")),
    )
    return found if found.input_tokens is not None or found.output_tokens is not None else None


_OLDER = {"input_tokens": "request_tokens", "output_tokens": "response_tokens"}


def _sum(counted: list[Tokens]) -> Tokens | None:
    if not counted:
        return None
    total = Tokens()
    for field in ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens"):
        known = [found for found in (getattr(each, field) for each in counted) if found is not None]
        setattr(total, field, sum(known) if known else None)
    return total
