"""Sessions of goose: its session files (metadata, then a message a line), exports, its database and rows of it.

A call (`toolRequest`) and what came back (`toolResponse`, in the user's place) are parts of messages. A session of
before 2025 (`tool_name` without an id) is read by order. The tokens are those of the session: accumulated ones where
it has them, since the others are of its last request alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._blocks import read as read_blocks
from etl.adapters._chat import parsed
from etl.adapters._records import left
from etl.adapters._rollouts import count, items, obj, text
from etl.adapters._sqlite import has_column, names_tables, records
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Tokens, ToolCall, Unusable
from etl.decode import Decoded, encode
from etl.framing import Framed, Limits
from etl.identity import digest

_CALLS = ("toolRequest", "frontendToolRequest")
_KINDS = frozenset({*_CALLS, "toolResponse", "toolConfirmationRequest", "actionRequired", "systemNotification"})
_META = frozenset({"working_dir", "message_count"})
_COUNTS = ("total_tokens", "input_tokens", "output_tokens")
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
"""A time of SQLite's own clock, which is UTC."""
_SUMS = tuple(f"accumulated_{name}" for name in _COUNTS)
_HELD = frozenset({"role", "created", "content", "id", "content_json", "created_timestamp", "session_id"})


class Goose(Adapter):
    """Sessions of the goose agent."""

    name = "goose"
    version = 3
    about = "goose sessions: a metadata line and a message a line, exports, sessions.db and rows of `messages`"
    ignores: ClassVar[dict[str, str]] = {
        "metadata": "the session of a file that holds no message yet: nothing was said"
    }

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of the database, or JSON."""
        return records(blocks, limits, {"sessions": _row, "messages": _row})

    def score(self, sample: Sample) -> float:
        """Sure of its tables, of its tool parts, and of its metadata before messages."""
        if names_tables(sample.head, "sessions") and has_column(sample.head, "messages", "content_json"):
            return 0.95
        objects = sample.objects()
        if not objects:
            return 0.0
        said = [item for value in objects for item in _conversation_of(value) or [value]]
        begins = _is_metadata(objects[0])
        fits = [_is_message(item) for item in said]
        if not any(fits):
            return 0.5 if begins and len(objects) == 1 else 0.0
        sure = begins or any(map(_is_typed, said)) or any(_conversation_of(value) for value in objects)
        share = (sum(fits) + begins) / len(said)
        return min(0.95, share) if sure else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation of a session file; one for each export and for each session of a table."""
        session: Record | None = None
        held: dict[str, Record] = {}
        alone: dict[str, list[Record]] = {}
        for record in records:
            value = record.value
            listed = _conversation_of(value)
            if listed is not None:
                yield _session(value, listed, [record])
            elif _is_message(value):
                alone.setdefault(identifier(value.get("session_id")) or "", []).append(record)
            elif isinstance(value, dict) and _is_metadata(value) and text(value.get("id")) and value["id"] not in held:
                held[value["id"]] = record
            elif isinstance(value, dict) and _is_metadata(value) and value.get("id") in held:
                yield Unusable(record, "repeated_id", "another session of this file has the same id: the first counts")
            elif session is None and not alone and isinstance(value, dict) and _is_metadata(value):
                session = record
            else:
                yield Unusable(
                    record, "unknown_role", "a line is the session's metadata or a message of it; see what wrote it"
                )
        if session is None and len(held) == 1 and "" in alone:
            session = held.pop(next(iter(held)))
        for key, found in alone.items():
            named = held.pop(key, None) if key else session
            first = [] if named is None else [named]
            holder = {**(named.value if named else {}), **({"id": key} if key else {})}
            yield _session(holder, [record.value for record in found], [*first, *found])
        if held:
            yield Ignored("metadata", len(held))
        if session is not None and "" not in alone:
            yield Ignored("metadata")


def _row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `sessions` or `messages` by the names that files have; JSON columns opened."""
    value = {key: item for key, item in row.items() if item is not None and not isinstance(item, bytes)}
    for key in [key for key in value if key.endswith("_json") and key != "content_json"]:
        found = parsed(value[key]) if isinstance(value[key], str) else None
        value[key if found is None else key.removesuffix("_json")] = found if found is not None else value[key]
        if found is not None:
            del value[key]
    for key in ("created_at", "updated_at"):
        if isinstance(value.get(key), str) and _CLOCK.fullmatch(value[key]):
            value[key] += "Z"
    if "content_json" in value:
        value["id"] = value.pop("message_id", value.get("id"))
        value.pop("timestamp", None)
    return Decoded(value)


def _is_metadata(value: dict[str, Any]) -> bool:
    return "role" not in value and "description" in value and bool(_META & value.keys())


def _conversation_of(value: Any) -> list[Any] | None:
    """The messages of an export: `conversation` (also as an object with `messages`), beside `working_dir`."""
    if not isinstance(value, dict) or not ("working_dir" in value or "workingDir" in value):
        return None
    found = value.get("conversation", value.get("messages"))
    found = found.get("messages") if isinstance(found, dict) else found
    return found if isinstance(found, list) else None


def _content(value: dict[str, Any]) -> list[Any] | None:
    found = value.get("content", value.get("content_json"))
    found = parsed(found) if isinstance(found, str) and "content_json" in value else found
    return found if isinstance(found, list) else None


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("role") not in ("user", "assistant", "system", "tool"):
        return False
    return _content(value) is not None and ("created" in value or "created_timestamp" in value)


def _is_typed(value: Any) -> bool:
    return _is_message(value) and any(
        isinstance(item, dict) and _kind(item) in _KINDS for item in _content(value) or ()
    )


def _kind(item: dict[str, Any]) -> str:
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    return "toolRequest" if "tool_name" in item else "toolResponse" if "tool_result" in item else "text"


def _session(holder: dict[str, Any], listed: list[Any], records: list[Record]) -> Outcome:
    messages: list[Message] = []
    for index, value in enumerate(listed):
        if not isinstance(value, dict) or value.get("role") not in ("user", "assistant", "system", "tool"):
            return Unusable(records[0], "unknown_role", f"message {index} of the session has no known role")
        messages += _messages(value)
    session_id = identifier(holder.get("id"))
    first = listed[0] if listed else {}
    # Ids of sessions are a day and a number: only what was said first, and when, tells two machines apart.
    begun = encode([first.get("created", first.get("created_timestamp")), _content(first)])
    usage, counted = _usage(holder)
    told = {"conversation", "messages", *counted, *(("id",) if session_id else ())}
    provider = text(holder.get("provider_name"))
    model = text(obj(holder, "model_config").get("model_name"))
    return Conversation(
        messages,
        records,
        native_id=f"goose:{digest(begun.encode('utf-8', 'surrogatepass'))}" if messages else None,
        local_id=session_id,
        conversation_id=session_id,
        task_from_prompt=True,
        model=model,
        provider=provider,
        agent="goose",
        usage=usage,
        flags={"content_not_captured"} if not messages else None,
        extra=left(holder, told | ({"provider_name"} if provider else set())),
    )


def _usage(holder: dict[str, Any]) -> tuple[Tokens | None, tuple[str, ...]]:
    """The sums of a session, and the keys that told them; what its last request took is no sum."""
    summed = Tokens(count(holder.get(_SUMS[1])), count(holder.get(_SUMS[2])))
    if summed == Tokens():
        return None, ()
    return summed, _SUMS[1:]


def _messages(value: dict[str, Any]) -> Iterator[Message]:
    """A message, and the results in it, which come before what was said beside them."""
    at = value.get("created", value.get("created_timestamp"))
    results: list[Message] = []
    calls: list[ToolCall] = []
    others: list[Any] = []
    rest = left(value, _HELD) or {}
    for item in _content(value) or ():
        kind = _kind(item) if isinstance(item, dict) else ""
        if kind in _CALLS:
            _call(item, calls, results, at, rest)
        elif kind == "toolResponse":
            results.append(_result(item, at))
        elif kind in _KINDS:
            rest[kind] = [*rest.get(kind, ()), left(item, ("type",))]
        else:
            others.append(item)
    blocks = read_blocks(others)
    message = Message(value["role"], blocks.text, blocks.reasoning, calls or None, at=at, parts=blocks.parts)
    message.id = identifier(value.get("id"))
    message.synthetic = value["role"] == "user" and obj(value, "metadata").get("userVisible") is False
    if blocks.rest:
        rest["blocks"] = blocks.rest
    message.extra = rest or None
    if value["role"] != "assistant":
        yield from results
    if value["role"] == "assistant" or not results or blocks.text or blocks.parts:
        yield message
    elif rest or message.id:
        results[-1].extra = {**(results[-1].extra or {}), **rest} or None
        results[-1].id = message.id
    if value["role"] == "assistant":
        yield from results


def _call(item: dict[str, Any], calls: list[ToolCall], results: list[Message], at: Any, rest: dict[str, Any]) -> None:
    """A call; one that the model got wrong has an error in its place, which is its result."""
    told = obj(item, "toolCall")
    made = obj(told, "value") or told
    call_id = identifier(item.get("id"))
    name = text(made.get("name")) or text(item.get("tool_name")) or ""
    given = made.get("arguments", item.get("arguments"))
    calls.append(ToolCall(name, given, call_id))
    if told.get("status") == "error" or "error" in told:
        results.append(Message("tool", plain(told.get("error")), call_id=call_id, at=at, failed=True))
    more = left(item, ("type", "id", "toolCall", "tool_name", "arguments"))
    if more:
        rest["tool_call_keys"] = [*rest.get("tool_call_keys", ()), {"id": call_id, **more}]


def _is_shown_only(block: Any) -> bool:
    """Whether a block of a result is for the person alone: the model is not sent it."""
    audience = items(obj(block, "annotations"), "audience")
    return bool(audience) and "assistant" not in audience


def _result(item: dict[str, Any], at: Any) -> Message:
    """What came back: a list of blocks, since version 1.10 in an object with `isError`; an error where it failed."""
    told = obj(item, "toolResult")
    message = Message("tool", call_id=identifier(item.get("id")), at=at)
    message.extra = left(item, ("type", "id", "toolResult", "tool_result"))
    if told.get("status") == "error" or "error" in told:
        message.failed, message.content = True, plain(told.get("error"))
        return message
    value = told.get("value", item.get("tool_result"))
    if isinstance(value, dict):
        if isinstance(value.get("isError"), bool):
            message.failed = value["isError"]
        more = left(value, ("content", "isError"))
        if more:
            message.extra = {**(message.extra or {}), **more}
        value = items(value, "content")
    listed = value if isinstance(value, list) else []
    shown = [block for block in listed if _is_shown_only(block)]
    blocks = read_blocks([block for block in listed if not _is_shown_only(block)] if shown else value)
    message.content, message.parts = blocks.text, blocks.parts
    if more_shown := [block for block in shown if block.get("text") != message.content]:
        message.extra = {**(message.extra or {}), "shown": more_shown}
    if blocks.rest:
        message.extra = {**(message.extra or {}), "blocks": blocks.rest}
    if message.failed is None and told.get("status") == "success":
        message.failed = False
    return message
