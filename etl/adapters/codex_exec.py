"""The output of `codex exec --json`: JSON Lines of thread, turn and item events; the prompt is not among them.

A file is the capture of one run, or of several appended. An item is told when it starts, when it changes and when it is
complete: it is one piece of the conversation, and what was told last counts. Usage is the running total of the thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._blocks import plain, result
from etl.adapters._codex_tokens import Totals
from etl.adapters._session import SureAdapter, dict_of, noted, summed, text_of, without
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Tokens, ToolCall, Unusable
from etl.identity import digest

_UNKNOWN = "unknown_type"
_DELTA = "item.plan.delta"
_TELLING = frozenset({"item.started", "item.updated", "item.completed"})
_KNOWN = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed", "error", *_TELLING})
_CALLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "collab_tool_call", "web_search"})
_DONE = frozenset({"completed", "failed", "declined"})


class CodexExec(SureAdapter):
    """Event streams of `codex exec --json`."""

    name = "codex_exec"
    version = 1
    about = "codex exec --json: JSON Lines of thread.started, turn.* and item.* events, without the prompt"
    ignores: ClassVar[dict[str, str]] = {
        _DELTA: "a piece of a plan that comes whole",
        f"{_UNKNOWN}:*": "a type of event not known here",
    }

    def looks(self, value: Any) -> float:
        """Whether it is an event; sure only where a thread starts or an item is told."""
        return _looks(value)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation for each run in the file."""
        run: list[Record] = []
        for record in records:
            kind = text_of(record.value, "type")
            if kind is None:
                yield Unusable(record, "no_type", "an event of codex exec is an object with a type; this is none")
            elif kind == _DELTA:
                yield Ignored(_DELTA)
            elif kind not in _KNOWN:
                yield Ignored(f"{_UNKNOWN}:{kind[:40]}")
            elif kind in _TELLING and not dict_of(record.value, "item"):
                yield Unusable(record, "no_item", f"an event of type {kind} without its item; the log is damaged here")
            else:
                if kind == "thread.started" and run:
                    yield _Run(run).conversation()
                    run = []
                run.append(record)
        if run:
            yield _Run(run).conversation()


def _looks(value: Any) -> float:
    kind = text_of(value, "type")
    if kind == "thread.started":
        return 0.95 if text_of(value, "thread_id") else 0.0
    if kind in _TELLING:
        return 0.95 if text_of(value.get("item"), "type") and "id" in value["item"] else 0.0
    return 0.5 if kind in _KNOWN or kind == _DELTA else 0.0


class _Run:
    """One run, event by event."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self._messages: list[Message] = []
        self._open: Message | None = None
        self._items: dict[str, Message] = {}
        self._answered: set[str] = set()
        self._totals = Totals()
        self._used: list[Tokens] = []
        self._status: str | None = None
        self._error: str | None = None
        self._flags = {"content_not_captured"}
        self._ended = False

    def conversation(self) -> Conversation:
        """The run as a conversation, named by its thread and its first item: a thread can be resumed in a further
        run."""
        for record in self._records:
            self._take(record.value)
        values = [record.value for record in self._records]
        thread = next((name for value in values if (name := text_of(value, "thread_id"))), None)
        first = next((record.raw for record in self._records if "item" in record.value), b"")
        made = Conversation(self._messages, self._records, native_id=thread or f"h_{digest(first)}")
        made.attempt, made.conversation_id = digest(first), thread
        made.agent, made.usage = "codex", summed(self._used)
        made.status, made.error, made.flags = self._status, self._error, self._flags
        if self._status is None and not self._ended:
            made.status = "unknown"
            self._flags.add("incomplete")
        return made

    def _take(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if kind in _TELLING:
            self._item(kind, event["item"])
            self._note({"type": kind, **more} if (more := without(event, "type", "item")) else None)
        elif kind == "turn.completed":
            self._ended, self._status, self._error = True, None, None
            new = self._totals.add(event.get("usage"))
            if new is not None:
                self._used.append(new)
            self._note({"type": kind, **more} if (more := without(event, "type", "usage")) else None)
        elif kind in ("turn.failed", "error"):
            error = event.get("error", event.get("message"))
            self._status, self._error = "error", text_of(error, "message") or plain(error) or kind
            self._note({"type": kind, **more} if (more := without(event, "type", "message", "error")) else None)
        else:
            self._ended = False
            self._note({"type": kind, **more} if (more := without(event, "type", "thread_id")) else None)

    def _note(self, note: dict[str, Any] | None) -> None:
        if note is not None:
            noted(self._messages[-1] if self._messages else self._piece(), "notes", note)

    def _piece(self) -> Message:
        if self._open is None:
            self._open = Message("assistant")
            self._messages.append(self._open)
        return self._open

    def _item(self, event: str, item: dict[str, Any]) -> None:
        kind = text_of(item, "type", "item_type") or ""
        name = text_of(item, "id")
        if kind in _CALLS:
            self._call(event, kind, name, item)
        elif name is not None and name in self._items and kind != "todo_list":
            _say(self._items[name], kind, item)
        elif kind == "error":
            self._note({key: value for key, value in item.items() if value is not None})
        elif kind in ("agent_message", "assistant_message", "plan", "reasoning"):
            open_piece = self._open
            if open_piece is not None and (open_piece.content or (kind == "reasoning" and open_piece.calls)):
                self._open = None
            message = self._piece()
            _say(message, kind, item)
            if name is not None:
                self._items[name] = message
        else:
            self._keep(name, item)

    def _keep(self, name: str | None, item: dict[str, Any]) -> None:
        """A to-do list, or an item of a kind not known here: a part of the message, as told last."""
        message = self._items.get(name or "") or self._piece()
        others = [part for part in message.parts or () if name is None or text_of(part, "id") != name]
        message.parts = [*others, item]
        if name is not None:
            self._items[name] = message

    def _call(self, event: str, kind: str, name: str | None, item: dict[str, Any]) -> None:
        call = _called(kind, item)
        known = self._items.get(name or "")
        if known is None:
            known = self._piece()
            known.calls = [*(known.calls or []), call]
            if name is not None:
                self._items[name] = known
        else:
            known.calls = [call if made.id == name else made for made in known.calls or ()]
        status = text_of(item, "status")
        done = event == "item.completed" or status in _DONE
        if not done or kind == "web_search" or (name is not None and name in self._answered):
            return
        if name is not None:
            self._answered.add(name)
        self._open = None
        self._messages.append(_answer(kind, name, item, status))


def _say(message: Message, kind: str, item: dict[str, Any]) -> None:
    """Put the text of an item into its message; a later telling replaces an earlier one."""
    text = plain(item.get("text"))
    if kind == "reasoning":
        message.reasoning = text or message.reasoning
    else:
        message.content = text or message.content
        message.id = text_of(item, "id")
    rest = without(item, "id", "type", "item_type", "text")
    if rest:
        message.extra = {**(message.extra or {}), kind: rest}


_RESULTS = ("aggregated_output", "exit_code", "status", "result", "error", "agents_states")


def _called(kind: str, item: dict[str, Any]) -> ToolCall:
    """The call that an item tells."""
    name = text_of(item, "id")
    said = {key: value for key, value in item.items() if key not in ("id", "type", "item_type", *_RESULTS)}
    if kind == "mcp_tool_call":
        server, tool = text_of(item, "server"), text_of(item, "tool") or kind
        return ToolCall(f"mcp__{server}__{tool}" if server else tool, item.get("arguments"), name)
    if kind == "collab_tool_call":
        tool = text_of(item, "tool") or kind
        return ToolCall(tool, without(said, "tool"), name)
    return ToolCall(kind, said, name, actor="server" if kind == "web_search" else "agent")


def _answer(kind: str, name: str | None, item: dict[str, Any], status: str | None) -> Message:
    """The result that a finished item tells."""
    code, error = item.get("exit_code"), item.get("error")
    told = result(item["result"]) if isinstance(item.get("result"), dict) else None
    text = text_of(item, "aggregated_output") or (told.text if told is not None else plain(item.get("agents_states")))
    failed = status in ("failed", "declined") or (type(code) is int and code != 0) or error is not None
    message = Message("tool", text or text_of(error, "message") or plain(error), call_id=name, failed=failed)
    if told is not None:
        message.parts = told.parts
    if status == "declined":
        message.condition = "permission_denied"
    rest: dict[str, Any] = {} if told is None or told.rest is None else {"result": told.rest}
    if kind == "command_execution" and code not in (0, None):
        rest["exit_code"] = code
    if status not in (None, "completed", "failed"):
        rest["status"] = status
    message.extra = rest or None
    return message
