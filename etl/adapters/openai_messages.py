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
from etl.adapters._blocks import read
from etl.adapters._chat import ROLES, chat_messages, parsed, take_text
from etl.adapters._tagged import untagged
from etl.adapters._training import place_media
from etl.adapters._usage import tokens
from etl.conversation import Conversation, Message, Outcome, Record, Unusable
from etl.identity import digest

_LISTS = ("messages", "conversation", "dialog", "dialogue", "chat")
_IDS = ("id", "conversation_id", "conversation_hash", "uuid", "session_id", "chat_id", "custom_id", "request_id")
_STARTS = ("created_at", "started_at", "start_time", "created", "timestamp", "time", "date", "ts")
_ENDS = ("ended_at", "end_time", "completed_at", "finished_at", "updated_at")
_TOOLS = ("tools", "functions")
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


_SCORED = (
    frozenset({"completion", "reward"}),
    frozenset({"epoch", "target"}),
    frozenset({"trajectory_format"}),
    frozenset({"session_start", "last_updated"}),
    frozenset({"v", "created"}),
    frozenset({"completion", "advantage", "step"}),
    frozenset({"schema_version", "scenario_id"}),
    frozenset({"schema_version", "loss_mask"}),
    frozenset({"core_memory", "in_context_message_indices"}),
    frozenset({"sessionId", "updated_at", "agent"}),
    frozenset({"source_message_count", "updated_at"}),
)
"""Keys that make a record more than a plain chat: an attempt at a task (verifiers, Inspect, mini-SWE-agent, TRL), a
session of Hermes or Cline or a thread of Amp that is written anew as it grows, a training row of whileai, an agent of
Letta."""

_GOOSE = ("toolRequest", "toolResponse")
"""Parts that goose alone writes."""
_CONVERSE = frozenset({"toolUse", "toolResult"})
"""Blocks of Bedrock's messages."""
_HARNESS = ("<task>", "<user_message>", "<environment_details>")
"""How the harness of a coding task begins what it says in the user's place."""


class OpenAIMessages(Adapter):
    """Conversations as lists of `{role, content, tool_calls, …}`."""

    name = "openai_messages"
    version = 2
    about = "chat messages in OpenAI form: {messages: […]} a line or an array, bare lists, or one message a line"

    def score(self, sample: Sample) -> float:
        """Certain of messages with roles, unsure where the record has keys of a richer format."""
        values = sample.values
        if not values:
            return 0.0
        hits = sum(_score(value) for value in values)
        if hits:
            return hits / len(values)
        if not all(_is_message(value) for value in values):
            return 0.0
        return 0.2 if any(_is_task(value) for value in values) else 0.6

    def share(self, start: Sample) -> float:
        """What they claim; all of them, where each is a message."""
        return len(start.values) if all(map(_is_message, start.values)) else sum(map(_score, start.values))

    def lines_apart(self, sample: Sample) -> bool:
        """A line is a conversation, unless the first one is a message."""
        return not any(_is_message(value) for value in sample.values)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation a record; or, where the first record is a message, one of all of them."""
        stream = iter(records)
        first = next(stream, None)
        if first is None:
            return
        if file.begins and _is_message(first.value):
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
    if any(keys <= value.keys() for keys in _SCORED):
        return 0.2
    if isinstance(value.get("response"), dict) or "call_type" in value or value.get("type") in ("request", "response"):
        return 0.0  # one call of a model API: it repeats a conversation, it is none
    return 0.4 if _OTHERS & value.keys() else 0.8


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    if isinstance(value.get("toolInvocations"), list) or isinstance(value.get("parts"), list):
        return False  # a message of the AI SDK: its calls and their results stand there
    content = value.get("content")
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        return False  # the same, as Mastra keeps it
    for item in content[:4] if isinstance(content, list) else ():
        if isinstance(item, dict) and (item.get("type") in _GOOSE or item.keys() & _CONVERSE):
            return False
    return value["role"].lower() in ROLES and ("content" in value or "tool_calls" in value or "function_call" in value)


def _is_task(value: dict[str, Any]) -> bool:
    """A message of a coding task (Cline, Roo Code): the harness speaks in the user's place, between tags."""
    if value.get("modelInfo") or value.get("metrics"):
        return True
    content = value.get("content")
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return isinstance(text, str) and text.startswith(_HARNESS)


def _listed(value: dict[str, Any]) -> list[Any] | None:
    """The messages of a record, whichever key holds them; JSON text of a list counts."""
    for key in _LISTS:
        found = value.get(key)
        if type(found) is list:
            return _flat(found)
        if type(found) is str and found.lstrip()[:1] == "[":
            listed = parsed(found)
            if isinstance(listed, list):
                return listed
    prompt, completion = value.get("prompt"), value.get("completion")
    if isinstance(prompt, list) and isinstance(completion, list):
        return [*prompt, *completion]
    return None


def _flat(listed: list[Any]) -> list[Any]:
    """The messages of turns that are lists of messages, one after another."""
    if listed and all(type(turn) is list and turn and all(map(_is_message, turn)) for turn in listed):
        return [message for turn in listed for message in turn]
    return listed


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
        read_as = chat_messages(item)
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
    told = untagged(messages, next((rest[key] for key in _TOOLS if rest.get(key)), None))
    if told is not None:
        messages = told[0]
        if told[1]:
            rest["unread"] = told[1]
    place_media(rest, messages)
    local_id = take_text(rest, _IDS)
    usage = tokens(rest.get("usage"))
    task = take_text(rest, ("task_id",))
    made = Conversation(
        messages,
        (record,),
        local_id=local_id,
        task=None if task is None else ("", task),
        task_from_prompt=task is None,
        tools=_take_first(rest, _TOOLS),
        started_at=_take_time(rest, _STARTS),
        ended_at=_take_time(rest, _ENDS),
        model=take_text(rest, ("model", "model_name")),
        provider=take_text(rest, ("provider",)),
        agent=take_text(rest, ("agent", "agent_name")),
        policy_version=take_text(rest, ("policy_version",)),
        finish_reason=take_text(rest, ("finish_reason", "stop_reason")),
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
        read_as = chat_messages(record.value)
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
