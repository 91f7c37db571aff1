"""Conversations as agent frameworks save them: the state of a graph, a team or a session, or a list of its messages.

LangChain and LangGraph (serialised messages, states, snapshots of a thread), AutoGen (`save_state`, task results),
items of the OpenAI Agents SDK and of LiveKit, Semantic Kernel, LlamaIndex, smolagents, Strands and Bedrock's messages,
threads of the Assistants API, Letta's agent files, messages of Dify. `_state_dialects.py` reads the messages. A state
is written anew as it grows: of several of one thread the one that says most counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._api_rows import joined_pieces
from etl.adapters._blocks import identifier
from etl.adapters._rollouts import items, obj, text
from etl.adapters._state_dialects import DIALECTS, Dialect, counted, dialect_of
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Unusable
from etl.decode import encode
from etl.identity import digest
from etl.times import instant

_LISTS = (
    *("message_thread", "messages", "items", "history", "chat_history", "conversation", "steps", "data", "llm_context"),
    *("values", "channel_values", "checkpoint", "state", "memory", "task_result", "result", "agent_state", "store"),
)
"""Keys under which a state has its messages, or what holds them; the first that does counts."""
_MANY = ("agent_states", "agents", "store", "conversations", "threads")
_HOLDERS = frozenset({*_LISTS, *_MANY})
_THREAD = ("thread_id", "conversation_id", "session_id", "chat_id", "id")
_NEWEST_FIRST = ("openai_thread", "dify")
"""Dialects whose API lists the newest message first."""
MAX_DEPTH = 5
_LONG = 19
"""From so many characters on an id or a time names its message alone."""


class Chat(NamedTuple):
    """A list of messages, and what stands around it."""

    listed: list[Any]
    dialect: Dialect
    around: dict[str, Any]
    thread: str | None


class AgentStates(Adapter):
    """States and message lists of agent frameworks."""

    name = "agent_states"
    about = (
        "agent frameworks' own states: LangGraph, LangChain, AutoGen, OpenAI items, LlamaIndex, smolagents, Letta, …"
    )
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "earlier_state": "a state of a thread of which a later one in the file says all that it says"
    }

    def score(self, sample: Sample) -> float:
        """Sure of messages that only one framework writes."""
        values = sample.values
        if not values:
            return 0.0
        if dialect_of(list(values)) is not None:
            return 0.88
        return sum(0.88 for value in values if _chats(value)) / len(values)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation for each state; messages that stand alone are one, by the conversation they name."""
        found = list(records)
        dialect = _loose([record.value for record in found])
        if dialect is not None:
            yield from _alone(found, dialect)
            return
        states: dict[str, tuple[Record, Chat]] = {}
        for record in found:
            chats = _chats(record.value)
            if not chats:
                yield Unusable(
                    record, "no_messages", "no list of messages of a known agent framework; see what wrote it"
                )
            elif len(chats) > 1:
                whole = f"agent_states:{digest(record.raw)}"
                for number, chat in enumerate(chats):
                    yield _conversation(chat, [record], f"{whole} {number}")
            elif chats[0].thread is None:
                yield _conversation(chats[0], [record])
            else:
                (chat,) = chats
                name = str(chat.thread)
                if name in states:
                    yield Ignored("earlier_state")
                if name not in states or len(chat.listed) >= len(states[name][1].listed):
                    states[name] = record, chat
        for record, chat in states.values():
            yield _conversation(chat, [record])


def _loose(values: list[Any]) -> Dialect | None:
    """The dialect of a file whose records are messages, though some of them may be junk."""
    said = [value for value in values if isinstance(value, dict) and not _chats(value)]
    for dialect in DIALECTS:
        fitting = [value for value in said if dialect.fits(value)]
        if (
            fitting
            and 2 * len(fitting) >= len(values)
            and (len(fitting) == len(values) or any(map(dialect.sure, fitting)))
        ):
            return dialect
    return None


def _alone(found: list[Record], dialect: Dialect) -> Iterator[Outcome]:
    """A file whose records are messages: one conversation for each that they name."""
    groups: dict[str, list[Record]] = {}
    for record in found:
        value = record.value
        read = dialect.read(value) if isinstance(value, dict) and dialect.fits(value) else "unknown_message"
        if isinstance(read, str):
            yield Unusable(record, read, "a message of no known agent framework; see what wrote it")
            continue
        groups.setdefault(text(value.get("conversation_id")) or text(value.get("thread_id")) or "", []).append(record)
    for thread, records in groups.items():
        yield _conversation(Chat([record.value for record in records], dialect, {}, thread or None), records)


def _chats(value: Any, depth: int = MAX_DEPTH) -> list[Chat]:
    """The lists of messages that a value holds: one of a state, one for each of several agents or sessions."""
    if isinstance(value, list):
        dialect = dialect_of(value)
        return [Chat(value, dialect, {}, None)] if dialect is not None else []
    if not isinstance(value, dict) or depth == 0 or _HOLDERS.isdisjoint(value):
        return []
    team = _team(value)
    if team is not None:
        return [team]
    for key in (*_LISTS, *_MANY):
        held = value.get(key)
        several = list(held.values()) if key in _MANY and isinstance(held, dict) else held if key in _MANY else None
        if isinstance(several, list) and dialect_of(several) is None:
            found = [chat for inner in several for chat in _chats(inner, depth - 1)]
        else:
            found = _chats(held, depth - 1)
        if found:
            around = {name: item for name, item in value.items() if name != key and item not in (None, [], {})}
            thread = _thread(value)
            return [
                chat._replace(
                    around={**around, **chat.around}, thread=chat.thread or (thread if len(found) == 1 else None)
                )
                for chat in found
            ]
    return []


def _team(value: dict[str, Any]) -> Chat | None:
    """A team of AutoGen: its thread of messages repeats what each agent's own context has."""
    states = value.get("agent_states")
    if not isinstance(states, dict):
        return None
    for name, state in states.items():
        listed = items(state, "message_thread")
        dialect = dialect_of(listed)
        if dialect is not None:
            others = {key: item for key, item in states.items() if key != name}
            return Chat(listed, dialect, {"agent_states": others} if others else {}, None)
    return None


def _thread(value: dict[str, Any]) -> str | None:
    """What a state says that its thread is called."""
    named = obj(obj(value, "config"), "configurable") or obj(value, "checkpoint") or value
    return next((found for key in _THREAD if (found := identifier(named.get(key)))), None)


def _conversation(chat: Chat, records: list[Record], place: str | None = None) -> Outcome:
    """The row; `place` names it where it is one of several in a record."""
    listed = chat.listed
    if chat.dialect.name in _NEWEST_FIRST:
        listed = sorted(listed, key=lambda item: instant(obj({"": item}, "").get("created_at")).micros or 0)
    messages: list[Message] = []
    for index, item in enumerate(listed):
        read = chat.dialect.read(item) if isinstance(item, dict) and chat.dialect.fits(item) else "unknown_message"
        if isinstance(read, str):
            return Unusable(records[0], read, f"message {index} is none of {chat.dialect.name}; see what wrote it")
        messages += read
    messages = _thought(joined_pieces(messages))
    around, first = dict(chat.around), listed[0]
    thread = chat.thread or next((found for key in _THREAD[:-1] if (found := identifier(first.get(key)))), None)
    return Conversation(
        messages,
        records,
        native_id=_native(thread, chat.dialect, first) or place,
        local_id=thread,
        conversation_id=thread,
        task_from_prompt=True,
        tools=around.pop("tools", None) or None,
        model=next((message.model for message in reversed(messages) if message.model), text(around.get("model"))),
        usage=counted(messages),
        status="completed" if listed[-1].get("is_final_answer") is True else None,
        finish_reason=text(around.pop("stop_reason", None)),
        extra={"framework": chat.dialect.name, **around},
    )


def _native(thread: str | None, dialect: Dialect, first: dict[str, Any]) -> str | None:
    """A state grows: it is known by its first message, where that has a time or an id that no other has."""
    fields = obj(first, "kwargs") or obj(first, "data") or first
    named = [fields.get(key) for key in ("id", "created_at", "createdAt", "timestamp")]
    if not any(isinstance(name, (int, float)) or (isinstance(name, str) and len(name) >= _LONG) for name in named):
        return None
    return f"agent_states:{digest(encode([thread, dialect.name, first]).encode('utf-8', 'surrogatepass'))}"


def _thought(messages: list[Message]) -> list[Message]:
    """Thoughts that are told apart (AutoGen) belong to what the same agent says next."""
    made: list[Message] = []
    for message in messages:
        last = made[-1] if made else None
        if (
            last is not None
            and last.role == message.role == "assistant"
            and last.name == message.name
            and _thinks(last)
        ):
            message.reasoning = "\n".join(filter(None, (last.reasoning, message.reasoning)))
            made[-1] = message
        else:
            made.append(message)
    return made


def _thinks(message: Message) -> bool:
    return bool(message.reasoning) and not (message.content or message.calls or message.parts or message.extra)
