"""Chat messages in OpenAI form, one conversation a record or one a file, in every spelling met in the wild.

A record is an object with `messages` (or `conversation`, or `prompt` and `completion` as lists), or a bare list of
messages; or each record is one message and the file is the conversation. A closed record is known by its id with a
hash of all of it; a file of timestamped messages grows, and is known by its first message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import call, identifier, plain, read, unheld
from etl.adapters._usage import tokens
from etl.conversation import Conversation, Message, Outcome, Record, ToolCall, Unusable
from etl.decode import JsonError, decode
from etl.identity import digest

_ROLES = {
    "system": "system", "developer": "developer", "user": "user", "human": "user", "assistant": "assistant",
    "ai": "assistant", "model": "assistant", "tool": "tool", "function": "tool", "ipython": "tool",
}  # fmt: skip
_LISTS = ("messages", "conversation", "dialog", "dialogue", "chat")
_IDS = ("id", "conversation_id", "uuid", "session_id", "chat_id", "custom_id", "request_id")
_STARTS = ("created_at", "started_at", "start_time", "created", "timestamp", "time", "date", "ts")
_ENDS = ("ended_at", "end_time", "completed_at", "finished_at", "updated_at")
_TOOLS = ("tools", "functions")
_AT = ("timestamp", "created_at", "time", "ts", "at", "date")
_REASONING = ("reasoning_content", "reasoning", "thinking")
_OTHERS = frozenset(
    {
        "traj",
        "simulations",
        "resourceSpans",
        "resourceLogs",
        "request",
        "response",
        "responses_create_params",
        "choices",
        "call_type",
        "sessionId",
        "schema_version",
        "trajectory_format",
        "mapping",
        "chosen",
        "rejected",
        "chat_messages",
        "trajectory",
    }
)
"""Top-level keys of richer formats that hold messages too: their own adapters read them."""


class OpenAIMessages(Adapter):
    """Conversations as lists of `{role, content, tool_calls, …}`."""

    name = "openai_messages"
    version = 1
    about = "chat messages in OpenAI form: {messages: […]} a line or an array, bare lists, or one message a line"

    def score(self, sample: Sample) -> float:
        """Certain of messages with roles, unsure where the record has keys of a richer format."""
        values = sample.values
        if not values:
            return 0.0
        hits = sum(_score(value) for value in values)
        if hits:
            return hits / len(values)
        return 0.6 if all(_is_message(value) for value in values) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation a record; or, where the first record is a message, one of all of them."""
        stream = iter(records)
        first = next(stream, None)
        if first is None:
            return
        if _is_message(first.value):
            yield from _one_conversation([first, *stream])
            return
        for record in chain((first,), stream):
            yield _conversation(record)


def _score(value: Any) -> float:
    if isinstance(value, list):
        return 0.6 if value and all(_is_message(item) for item in value[:8]) else 0.0
    if not isinstance(value, dict):
        return 0.0
    listed = _listed(value)
    if listed is None or not listed or not all(_is_message(item) for item in listed[:8]):
        return 0.0
    return 0.4 if _OTHERS & value.keys() else 0.8


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    return value["role"] in _ROLES and ("content" in value or "tool_calls" in value or "function_call" in value)


def _listed(value: dict[str, Any]) -> list[Any] | None:
    """The messages of a record, whichever key holds them; JSON text of a list counts."""
    for key in _LISTS:
        found = value.get(key)
        if type(found) is list:
            return found
        if type(found) is str and found.lstrip()[:1] == "[":
            parsed = _parsed(found)
            if isinstance(parsed, list):
                return parsed
    prompt, completion = value.get("prompt"), value.get("completion")
    if isinstance(prompt, list) and isinstance(completion, list):
        return [*prompt, *completion]
    return None


def _parsed(text: str) -> Any:
    try:
        return decode(text.encode("utf-8", "surrogatepass")).value
    except JsonError:
        return None


def _conversation(record: Record) -> Outcome:
    value = record.value
    if type(value) is list:
        value = {"messages": value}
    if type(value) is not dict:
        return Unusable(
            record, "not_an_object", "a record is a JSON object with messages, or a list of them; this is neither"
        )
    listed = _listed(value)
    if listed is None:
        return Unusable(record, "no_messages", "the record has no list of messages; is this an OpenAI messages file?")
    messages: list[Message] = []
    for index, item in enumerate(listed):
        read_as = _messages(item)
        if isinstance(read_as, str):
            return Unusable(record, read_as, f"messages[{index}] is no message with a known role; see what wrote it")
        messages += read_as
    return _assembled(record, value, messages)


def _assembled(record: Record, value: dict[str, Any], messages: list[Message]) -> Conversation:
    """The conversation of one record: every key in its column, or in `extra`."""
    rest = {key: item for key, item in value.items() if key not in _LISTS}
    if len(rest) == len(value):
        rest.pop("prompt", None)
        rest.pop("completion", None)
    if isinstance(rest.get("system"), (str, list)) and not any(message.role == "system" for message in messages):
        system = read(rest.pop("system"))
        messages.insert(0, Message("system", system.text, parts=system.parts))
    local_id = _take_text(rest, _IDS)
    usage = tokens(rest.get("usage"))
    task = _take_text(rest, ("task_id",))
    made = Conversation(
        messages,
        (record,),
        local_id=local_id,
        task=None if task is None else ("", task),
        task_from_prompt=task is None,
        tools=_take_first(rest, _TOOLS),
        started_at=_take_time(rest, _STARTS),
        ended_at=_take_time(rest, _ENDS),
        model=_take_text(rest, ("model", "model_name")),
        provider=_take_text(rest, ("provider",)),
        agent=_take_text(rest, ("agent", "agent_name")),
        policy_version=_take_text(rest, ("policy_version",)),
        finish_reason=_take_text(rest, ("finish_reason", "stop_reason")),
        error=_take_error(rest),
        reward=_take_scalar(rest, ("reward", "score")),
        rewards=_take_object(rest, ("rewards", "reward_components")),
        usage=usage,
    )
    if usage is not None and not _rich_usage(rest["usage"]):
        del rest["usage"]
    made.extra = rest or None
    return made


def _rich_usage(usage: dict[str, Any]) -> bool:
    """Whether usage says more than the columns hold."""
    plain_keys = {
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "input_tokens",
        "output_tokens",
        "cost",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    }
    return any(key not in plain_keys and item not in (None, {}) for key, item in usage.items())


def _take_text(rest: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    """The first of these keys with a text or number, taken out of the rest."""
    for key in keys:
        if key in rest:
            found = rest[key]
            if type(found) is str:
                del rest[key]
                return found
            if type(found) is int:
                del rest[key]
                return str(found)
            if found is None:
                del rest[key]
    return None


def _take_first(rest: dict[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        if rest.get(key) is not None:
            return rest.pop(key)
    return None


def _take_time(rest: dict[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        if type(rest.get(key)) in (str, int, float):
            return rest.pop(key)
    return None


def _take_scalar(rest: dict[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        if type(rest.get(key)) in (int, float, bool, str):
            return rest.pop(key)
    return None


def _take_object(rest: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any] | None:
    for key in keys:
        found = rest.get(key)
        if type(found) is dict and found:
            del rest[key]
            return found
    return None


def _take_error(rest: dict[str, Any]) -> str | None:
    found = rest.get("error")
    if type(found) is str and found:
        del rest["error"]
        return found
    message = found.get("message") if type(found) is dict else None
    return message if type(message) is str else None


def _one_conversation(records: list[Record]) -> Iterator[Outcome]:
    """A file whose records are the messages of one conversation."""
    messages: list[Message] = []
    used: list[Record] = []
    for record in records:
        read_as = _messages(record.value)
        if isinstance(read_as, str):
            yield Unusable(record, read_as, "not a message with a known role; see what wrote it")
            continue
        messages += read_as
        used.append(record)
    if not used:
        return
    growing = messages[0].at is not None
    native = f"first:{digest(used[0].raw)}" if growing else None
    yield Conversation(messages, used, native_id=native, task_from_prompt=True)


def _messages(item: Any) -> list[Message] | str:
    """The message (and the results in its blocks, as messages of their own), or the reason why it is none."""
    if type(item) is str and item[:1] == "{":
        item = _parsed(item)
    if type(item) is not dict:
        return "bad_message"
    logged = item.get("role")
    role = _ROLES.get(logged) if type(logged) is str else None
    if role is None:
        return "unknown_role"
    message = Message(role)
    others: dict[str, Any] = {}
    for key, value in item.items():
        if key == "content" and (type(value) is str or value is None):
            message.content = value or ""
        elif key == "tool_calls" and type(value) is list:
            if value:
                _calls(value, message, others)
        elif key == "tool_call_id" and type(value) is str and role == "tool":
            message.call_id = value
        elif key == "name" and type(value) is str:
            message.name = value or None
        elif key == "role":
            if logged != role:
                others["role"] = logged
        elif value is not None:
            others[key] = value
    return _rich(others, message) if others else [message]


def _rich(rest: dict[str, Any], message: Message) -> list[Message]:
    """A message with more than role, text, calls and ids: `rest` has its other keys, and keeps what no field takes."""
    results: list[Message] = []
    if "content" in rest:
        _content(rest.pop("content"), message, results, rest)
    _reasoning(rest, message)
    if "tool_calls" in rest and not message.calls:
        listed = rest.pop("tool_calls")
        _calls(_parsed(listed) if type(listed) is str and _parsed(listed) else listed, message, rest)
    legacy = rest.get("function_call")
    if type(legacy) is dict and type(legacy.get("name")) is str:
        message.calls = [*(message.calls or ()), ToolCall(legacy["name"], legacy.get("arguments"))]
        del rest["function_call"]
    refusal = rest.get("refusal")
    if type(refusal) is str and refusal and not message.content:
        message.content = refusal
        rest["refusal"] = True
    for key in _AT:
        if type(rest.get(key)) in (str, int, float):
            message.at = rest.pop(key)
            break
    message.id = _take_text(rest, ("id",))
    if message.role == "tool":
        _result(rest, message)
    if type(rest.get("model")) is str:
        message.model = rest.pop("model")
    if type(rest.get("finish_reason")) is str:
        message.finish_reason = rest.pop("finish_reason")
    usage = tokens(rest.get("usage")) if "usage" in rest else None
    if usage is not None:
        message.input_tokens, message.output_tokens = usage.input_tokens, usage.output_tokens
    message.extra = rest or None
    if results and not (message.content or message.parts or message.calls or message.reasoning):
        return results
    return [*results, message]


def _content(content: Any, message: Message, results: list[Message], rest: dict[str, Any]) -> None:
    """Content that is no string: blocks, or a bare value (its text is its JSON)."""
    if type(content) is dict and type(content.get("type")) is not str and type(content.get("text")) is not str:
        message.content = plain(content)
        return
    blocks = read(content)
    message.content, message.reasoning, message.parts = blocks.text, blocks.reasoning, blocks.parts
    message.calls = blocks.calls or message.calls
    if not isinstance(content, (list, dict)):
        rest["content"] = content
    if blocks.rest:
        rest["blocks"] = blocks.rest
    for found in blocks.results or ():
        if message.role == "tool" and len(blocks.results or ()) == 1 and not message.content:
            message.content, message.failed = found.text, found.failed
            message.call_id = message.call_id or found.call_id
            message.parts = [*(message.parts or ()), *(found.parts or ())] or None
        else:
            results.append(
                Message(
                    "tool",
                    found.text,
                    call_id=found.call_id,
                    name=found.name,
                    parts=found.parts,
                    failed=found.failed,
                    extra=found.rest,
                )
            )


def _reasoning(rest: dict[str, Any], message: Message) -> None:
    for key in _REASONING:
        found = rest.get(key)
        if type(found) is str and (message.reasoning is None or found in ("", message.reasoning)):
            message.reasoning = found or message.reasoning
            del rest[key]


def _calls(listed: Any, message: Message, rest: dict[str, Any]) -> None:
    """Calls in every spelling: objects or their JSON text, nested or flat; what is none stays in `rest`."""
    made: list[ToolCall] = []
    unread: list[Any] = []
    more: list[Any] = []
    for logged in listed if type(listed) is list else [] if listed == {} else [listed]:
        entry = _parsed(logged) if type(logged) is str else logged
        if type(entry) is dict and len(entry) == 3 and entry.get("type") == "function":
            function, call_id = entry.get("function"), entry.get("id")
            if type(function) is dict and len(function) == 2 and type(call_id) is str and call_id:
                name = function.get("name")
                if type(name) is str and "arguments" in function:
                    made.append(ToolCall(name, function["arguments"], call_id))
                    continue
        found = _call(entry)
        if found is None:
            unread.append(logged)
            continue
        made.append(found)
        left = unheld(entry, found)
        if left:
            more.append(left)
    if made:
        message.calls = [*message.calls, *made] if message.calls else made
    if unread:
        rest["tool_calls"] = unread
    if more:
        rest["tool_call_keys"] = more


def _call(entry: Any) -> ToolCall | None:
    if type(entry) is not dict:
        return None
    custom = entry.get("custom")
    if type(custom) is dict and type(custom.get("name")) is str:
        return ToolCall(custom["name"], custom.get("input"), identifier(entry.get("id")), free_form=True)
    return call(entry)


def _result(rest: dict[str, Any], message: Message) -> None:
    """What only a tool message has: the call it answers, and whether that failed."""
    if message.call_id is None:
        message.call_id = _take_text(rest, ("tool_call_id",))
    for key in ("is_error", "isError"):
        if type(rest.get(key)) is bool:
            message.failed = rest.pop(key)
    if message.failed is None and rest.get("status") in ("error", "success"):
        message.failed = rest["status"] == "error"
    if message.failed is None and type(rest.get("error")) is str and rest["error"]:
        message.failed = True
    for key in ("duration_ms", "latency_ms"):
        if type(rest.get(key)) in (int, float):
            message.duration_ms = float(rest.pop(key))
            break
