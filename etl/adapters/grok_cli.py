"""Grok CLI `chat_history.jsonl`: flat lines of system, user, reasoning, assistant, tool_result and backend_tool_call.

The lines have neither times nor a session id. A file is one conversation, known by its lines up to the first that the
model made, whose ids are the model's: that stays when the file grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._blocks import Blocks, call, identifier, read
from etl.adapters._cursor_rows import ask
from etl.adapters._session import SureAdapter, canonical, dict_of, list_of, text_of, without
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, ToolCall, Unusable
from etl.identity import digest

_KNOWN = frozenset({"system", "user", "reasoning", "assistant", "tool_result", "backend_tool_call"})
_MADE = frozenset({"reasoning", "assistant", "backend_tool_call"})
_UNKNOWN = "unknown_type"


class GrokCli(SureAdapter):
    """Chat histories of Grok CLI."""

    name = "grok_cli"
    version = 2
    about = "Grok CLI chat histories: flat system, user, reasoning, assistant, tool_result and backend_tool_call lines"
    ignores: ClassVar[dict[str, str]] = {f"{_UNKNOWN}:*": "a type of line not known here"}

    def looks(self, value: Any) -> float:
        """Whether it is a line; sure only where a line has what no other log has."""
        return _looks(value)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation of all lines."""
        used: list[Record] = []
        for record in records:
            kind = text_of(record.value, "type")
            if kind is None:
                yield Unusable(record, "no_type", "a line of a chat history is an object with a type; this is none")
            elif kind not in _KNOWN:
                yield Ignored(f"{_UNKNOWN}:{kind[:40]}")
            else:
                used.append(record)
        if used:
            yield _conversation(used)


def _looks(value: Any) -> float:
    kind = text_of(value, "type")
    if kind not in _KNOWN or value.keys() & {"timestamp", "uuid", "message", "payload", "session_id", "sessionId"}:
        return 0.0
    if kind == "backend_tool_call":
        return 0.95 if dict_of(value, "kind") else 0.0
    if kind == "assistant":
        return 0.95 if "model_id" in value else 0.5 if "content" in value else 0.0
    if kind == "user":
        return 0.93 if value.keys() & {"prompt_index", "synthetic_reason"} else 0.4 if "content" in value else 0.0
    if kind == "tool_result":
        return 0.5 if "tool_call_id" in value and "content" in value else 0.0
    return 0.4 if kind == "reasoning" or isinstance(value.get("content"), str) else 0.0


def _conversation(records: list[Record]) -> Conversation:
    made_by = next((n for n, record in enumerate(records) if record.value["type"] in _MADE), len(records) - 1)
    key = digest("\n".join(canonical(record.value) for record in records[: made_by + 1]).encode())
    talk = Talk()
    for record in records:
        _take(talk, record.value)
    made = Conversation([], records, native_id=f"first:{key}", agent="grok-cli", provider="xai")
    return talk.tell(made)


def _take(talk: Talk, value: dict[str, Any]) -> None:
    kind = value["type"]
    if kind == "reasoning":
        said = read([without(value, "status")])
        message = talk.think(said.reasoning or "")
        if said.parts:
            message.parts = [*(message.parts or []), *said.parts]
    elif kind == "assistant":
        _answer(talk, value)
    elif kind == "tool_result":
        said = read(value.get("content"))
        message = Message("tool", said.text, call_id=identifier(value.get("tool_call_id")), parts=said.parts)
        message.extra = without(value, "type", "tool_call_id", "content") or None
        talk.say(message)
    elif kind == "backend_tool_call":
        _searched(talk, dict_of(value, "kind"))
    else:
        _asked(talk, value)


def _answer(talk: Talk, value: dict[str, Any]) -> None:
    said = read(value.get("content"))
    talk.model = text_of(value, "model_id") or talk.model
    message = talk.speak(said.text) if said.text else talk.piece()
    message.model = talk.model
    message.parts = [*(message.parts or []), *(said.parts or [])] or None
    for item in list_of(value, "tool_calls"):
        made = call(item) if isinstance(item, dict) else None
        if made is None:
            message.parts = [*(message.parts or []), item]
        else:
            talk.call(made)
    rest = without(value, "type", "content", "tool_calls", "model_id")
    if rest:
        message.extra = {**(message.extra or {}), **rest}


def _searched(talk: Talk, kind: dict[str, Any]) -> None:
    """A tool that ran at the provider; what it found is in its action."""
    tool = text_of(kind, "tool_type") or "backend_tool"
    action = kind.get("action")
    arguments = without(action, "sources", "type") if isinstance(action, dict) else action
    call = ToolCall(tool, arguments, identifier(kind.get("id")), actor="server")
    talk.call(call)
    rest = without(kind, "tool_type", "action", "id", *(("status",) if kind.get("status") == "completed" else ()))
    sources = list_of(action, "sources")
    found = {**rest, **({"sources": sources} if sources else {})}
    if found:
        talk.note({"call": call.id, **found})


def _asked(talk: Talk, value: dict[str, Any]) -> None:
    said: Blocks = read(value.get("content"))
    extra = without(value, "type", "content")
    if value["type"] == "system":
        talk.say(Message("system", said.text, parts=said.parts, extra=extra or None))
        return
    if value.get("prior_turn_interrupt"):
        talk.flags.add("interrupted")
    if text_of(value, "synthetic_reason") is not None:
        talk.say(Message("user", said.text, parts=said.parts, extra=extra, synthetic=True))
    else:
        ask(talk, said.text, parts=said.parts, extra=extra)
