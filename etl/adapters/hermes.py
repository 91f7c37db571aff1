"""Hermes sessions: one JSON object a file, `{session_id, session_start, messages, …}`, written anew as it grows; lines
of messages after one of `session_meta`; and its database, `state.db`, with the tokens of each session.

A session is known by its id with the time at which it began: the id alone is made of the day. Lines have no id: they
are known by the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._chat import chat_messages, parsed
from etl.adapters._session import canonical, dict_of, real, text_of, whole, without
from etl.adapters._sqlite import has_column, names_tables, records
from etl.conversation import Conversation, Identity, Ignored, Message, Outcome, Record, Tokens, Unusable
from etl.decode import Decoded
from etl.framing import Framed, Limits
from etl.identity import digest

_KEYS = frozenset({"session_start", "last_updated", "messages"})
_HELD = ("session_id", "session_start", "last_updated", "messages", "model", "system_prompt", "tools")
_TEXTS = frozenset({"session_id", "model", "system_prompt"})
_META = "session_meta"
_ROW = ("id", "session_id", "timestamp", "tool_name", "token_count")
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_SILENT = "silent_session"
_ENDS = {"interrupted": "aborted", "error": "error"}


class Hermes(Adapter):
    """Session files of Hermes, and its database."""

    name = "hermes"
    version = 2
    about = "Hermes sessions: {session_id, session_start, last_updated, model, messages} a file, its lines, state.db"
    ignores: ClassVar[dict[str, str]] = {_SILENT: "a session in which nobody says anything"}

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Rows of the database, or JSON."""
        return records(blocks, limits, {"sessions": _session_row, "messages": _message_row})

    def score(self, sample: Sample) -> float:
        """By the tables of a database; else the share of values that are sessions or lines of one."""
        if names_tables(sample.head, "sessions") and has_column(sample.head, "messages", "tool_calls"):
            return 0.95
        objects = sample.objects()
        hits = sum(1 for value in objects if value.keys() >= _KEYS and isinstance(value["messages"], list))
        if any(value.get("role") == _META for value in objects):
            hits = sum(1 for value in objects if isinstance(value.get("role"), str))
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation a record, of all lines of a file, or a session of the database."""
        lines: list[Record] = []
        rows: dict[str, list[Record]] = {}
        for record in records:
            value = record.value
            if isinstance(value, dict) and isinstance(value.get("messages"), list):
                yield _conversation(record, value)
            elif isinstance(value, dict) and isinstance(value.get("row_of"), str):
                rows.setdefault(value["row_of"], []).append(record)
            elif isinstance(value, dict) and isinstance(value.get("role"), str):
                lines.append(record)
            else:
                yield Unusable(record, "no_messages", "a session is an object with a list of messages; this is none")
        if lines:
            yield from _of_lines(lines)
        began = {name: _began(found) for name, found in rows.items()}
        for name, found in rows.items():
            yield from _of_rows(name, found, began)


def _conversation(record: Record, value: dict[str, Any]) -> Outcome:
    messages = _messages(value["messages"])
    if isinstance(messages, str):
        return Unusable(record, messages, "a message of the session has no known role; see what wrote it")
    _prompted(messages, text_of(value, "system_prompt"))
    name, began = text_of(value, "session_id"), text_of(value, "session_start")
    made = Conversation(messages, [record], local_id=name, conversation_id=name)
    if name is not None and began is not None:
        made.native_id = f"{name}@{began}"
    made.model, made.agent, made.tools = text_of(value, "model"), "hermes", value.get("tools")
    made.started_at, made.ended_at = value.get("session_start"), value.get("last_updated")
    held = [key for key in _HELD if key not in _TEXTS or text_of(value, key) is not None]
    if value.get("message_count") == len(value["messages"]):
        held.append("message_count")
    made.extra = without(value, *held) or None
    return made


def _messages(listed: Sequence[Any]) -> list[Message] | str:
    """The messages of a session, their results told as failed where they say so."""
    messages: list[Message] = []
    for item in listed:
        found = chat_messages(item)
        if isinstance(found, str):
            return found
        for message in found:
            if message.extra is not None and message.at is None and "timestamp" in message.extra:
                message.at = message.extra.pop("timestamp")
                message.extra = message.extra or None
            _judge(message)
        messages += found
    return messages


def _judge(message: Message) -> None:
    """What a tool says of itself: the exit code of a command, or an error."""
    if message.role != "tool" or message.failed is not None or not message.content.startswith("{"):
        return
    told = parsed(message.content)
    code = told.get("exit_code") if isinstance(told, dict) else None
    if type(code) is int:
        message.failed, message.error = code != 0, f"exit {code}" if code else None
    if (error := text_of(told, "error")) is not None:
        message.failed, message.error = True, error


def _prompted(messages: list[Message], system: str | None) -> None:
    """Put the system prompt of a session before its messages, where they do not say it."""
    if system is not None and not any(message.role == "system" and message.content == system for message in messages):
        messages.insert(0, Message("system", system))


def _of_lines(lines: list[Record]) -> Iterator[Outcome]:
    meta = [record.value for record in lines if record.value["role"] == _META]
    messages = _messages([record.value for record in lines if record.value["role"] != _META])
    if isinstance(messages, str):
        for record in lines:
            yield Unusable(record, messages, "a line of a session is a message with a role; one of this file is none")
        return
    if not messages:
        yield Ignored(_SILENT, len(lines))
        return
    head: dict[str, Any] = {}
    for value in meta:
        head |= without(value, "role")
    key = digest(canonical(lines[0].value).encode())
    made = Conversation(messages, lines, native_id=f"h_{key}", agent="hermes", model=text_of(head, "model"))
    made.tools, made.started_at = head.get("tools"), head.get("timestamp")
    made.extra = without(head, "model", "tools", "timestamp") or None
    yield made


def _session_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `sessions`; nothing else is called by its id there."""
    name = row.get("id")
    return Decoded({"row_of": name, "session": _told(row)}) if isinstance(name, str) and name else None


def _message_row(row: dict[str, Any], limits: Limits) -> Decoded | None:
    """A row of `messages`, under its session."""
    name = row.get("session_id")
    return Decoded({"row_of": name, "message": _told(row)}) if isinstance(name, str) and name else None


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in row.items() if item is not None and not isinstance(item, bytes)}


def _began(found: Sequence[Record]) -> Any:
    return next((session.get("started_at") for record in found if (session := dict_of(record.value, "session"))), None)


def _of_rows(name: str, found: list[Record], began: dict[str, Any]) -> Iterator[Outcome]:
    session: dict[str, Any] = {}
    for record in found:
        session |= dict_of(record.value, "session")
    listed = [message for record in found if (message := dict_of(record.value, "message"))]
    listed.sort(key=lambda message: (real(message.get("timestamp")) or 0.0, whole(message.get("id")) or 0))
    if not listed:
        yield Ignored(_SILENT, len(found))
        return
    messages = _messages([without(message, *_ROW) for message in listed])
    if isinstance(messages, str):
        for record in found:
            yield Unusable(record, messages, "a message of this session has no known role; see what wrote it")
        return
    if len(messages) == len(listed):
        for said, row in zip(messages, listed, strict=True):
            said.at, said.name = row.get("timestamp"), None
    _prompted(messages, text_of(session, "system_prompt"))
    made = Conversation(messages, found, native_id=f"{name}@{began[name]}", conversation_id=name, agent="hermes")
    parent = text_of(session, "parent_session_id")
    made.parent = Identity(f"{parent}@{began.get(parent)}") if parent is not None else None
    made.model, made.provider = text_of(session, "model"), text_of(session, "billing_provider")
    made.started_at, made.ended_at = session.get("started_at"), session.get("ended_at")
    made.usage = _usage(session)
    made.status = _ENDS.get(text_of(session, "end_reason") or "")
    held = ("id", "parent_session_id", "model", "billing_provider", "started_at", "ended_at", "system_prompt", *_COUNTS)
    made.extra = without(session, *held) or None
    yield made


def _usage(session: dict[str, Any]) -> Tokens | None:
    """The sums of a session: what was fresh, read from the cache and written to it stand apart."""
    fresh, out, read, written, thought = (whole(session.get(key)) for key in _COUNTS)
    if not any((fresh, out, read, written)):
        return None
    cost = session.get("actual_cost_usd", session.get("estimated_cost_usd"))
    return Tokens((fresh or 0) + (read or 0) + (written or 0), out, read, written, thought, real(cost))
