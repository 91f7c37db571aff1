"""Sessions of pi as conversations: the live chain, and those that were left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from etl.adapters._blocks import Blocks, plain, read
from etl.adapters._claude_text import echoes, texts_in
from etl.adapters._pi_tree import header_of, is_in, nodes_of, parent_of, said_in
from etl.adapters._session import dict_of, inherited, noted, real, summed, text_of, whole, without
from etl.adapters._tree import Chain, Node, chains
from etl.conversation import Conversation, Identity, Message, Record, StoredEvent, Tokens, ToolCall
from etl.times import instant

HARNESS = "pi"
_STRUCTURE = ("type", "id", "parentId", "timestamp", "message")
_SUMMARIES = frozenset({"compaction", "branch_summary"})
_CHANGES = frozenset({"model_change", "thinking_level_change"})


def conversations(key: str, family: Mapping[str, Sequence[StoredEvent]]) -> Iterator[Conversation]:
    """The rows of a session; none where nobody says anything of its own."""
    events = family[key]
    header = header_of(events)
    parent = parent_of(header)
    copied = said_in(family[parent]) if parent is not None and parent in family and parent != key else set()
    live: Conversation | None = None
    for chain in chains(nodes_of(events)):
        reading = _Reading(chain, copied)
        if not reading.owns_something():
            continue
        made = reading.conversation(key, "" if live is None else chain.own[0].name)
        if live is None:
            live = made
            made.records = [event.record for event in events]
            made.extra = {**without(header, "type", "timestamp"), **(made.extra or {})} or None
            if parent is not None and parent != key:
                made.parent = Identity(parent)
                reading.flags |= set() if parent in family else {"ambiguous_parent"}
        else:
            made.parent = Identity(key)
            reading.flags.add("abandoned")
        yield made


class _Reading:
    """A chain being read, entry by entry."""

    def __init__(self, chain: Chain, copied: set[str]) -> None:
        self.flags: set[str] = set()
        self.messages: list[Message] = []
        self._records: list[Record] = []
        self._tokens: list[Tokens] = []
        self._calls: dict[str, ToolCall] = {}
        self._waiting: dict[str, Any] = {}
        self._provider: str | None = None
        self._model: str | None = None
        self._end: tuple[str, str | None] | None = None
        for node in chain.before:
            self._take(node, False)
        self.messages = inherited(self.messages)
        for node in chain.own:
            count = len(self.messages)
            again = is_in(node.value, copied) if copied else False
            self._take(node, not again)
            if again:
                self.messages[count:] = inherited(self.messages[count:])
            self._records += node.records
        if self._waiting and self.messages:
            self._note({"at_the_end": self._waiting})

    def owns_something(self) -> bool:
        """Whether any message is the chain's own."""
        return any(not message.inherited for message in self.messages)

    def conversation(self, key: str, branch: str) -> Conversation:
        """What was read as a conversation."""
        made = Conversation(self.messages, self._records, native_id=key, branch=branch, conversation_id=key)
        made.agent, made.flags, made.usage = HARNESS, self.flags, summed(self._tokens)
        made.model = next((message.model for message in reversed(self.messages) if message.model), self._model)
        made.provider = self._provider
        real_ones = [message for message in self.messages if message.role == "assistant"]
        made.finish_reason = real_ones[-1].finish_reason if real_ones else None
        if self._end is not None:
            made.status, made.error = self._end
        return made

    def _take(self, node: Node, own: bool) -> None:
        if node.dangling:
            self.flags.add("ambiguous_parent")
        value = node.value
        kind = text_of(value, "type") or ""
        if kind == "message":
            self._message(node, dict_of(value, "message"), own)
        elif kind in _SUMMARIES:
            self.flags |= {"compacted"} if kind == "compaction" else set()
            self._say(
                node, Message("user", plain(value.get("summary")), synthetic=True), {kind: _rest(value, "summary")}
            )
        elif kind == "custom_message":
            said = read(value.get("content"))
            message = Message("user", said.text, parts=said.parts, synthetic=True)
            self._say(node, message, {kind: _rest(value, "content")})
        elif kind in _CHANGES:
            self._model = text_of(value, "modelId") or self._model
            self._provider = text_of(value, "provider") or self._provider
            change = {"type": kind, "timestamp": value.get("timestamp"), **_rest(value)}
            self._waiting["changes"] = [*self._waiting.get("changes", []), change]
        else:
            self._note({"type": kind, "timestamp": value.get("timestamp"), **_rest(value)})

    def _message(self, node: Node, message: dict[str, Any], own: bool) -> None:
        role = text_of(message, "role")
        said = read(message.get("content"))
        if role == "assistant":
            self._answer(node, message, said, own)
        elif role == "toolResult":
            self._result(node, message, said)
        elif role == "bashExecution":
            self._executed(node, message)
        else:
            given = role if role in ("user", "system", "developer") else "user"
            made = Message(given, said.text, parts=said.parts, synthetic=role != given)
            text = "" if said.text else plain(message.get("summary"))
            made.content = made.content or text
            held = ("role", "content", *(("summary",) if text else ()))
            extra = {**_inner(node, message, *held), **({"role": role} if role != given else {})}
            if said.rest:
                extra["content"] = said.rest
            self._say(node, made, extra)

    def _say(self, node: Node, message: Message, extra: dict[str, Any]) -> None:
        """Append a message, with what waits for it and what nothing else holds."""
        message.id = message.id or text_of(node.value, "id")
        message.at = node.value.get("timestamp")
        told = {**self._waiting, **{key: item for key, item in extra.items() if item not in (None, {}, [], "")}}
        self._waiting = {}
        message.extra = {**told, **(message.extra or {})} or None
        self.messages.append(message)
        if not message.synthetic:
            self._end = None

    def _note(self, note: dict[str, Any]) -> None:
        if self.messages and not self.messages[-1].inherited:
            noted(self.messages[-1], "notes", note)
        elif not self.messages:
            self._waiting["notes"] = [*self._waiting.get("notes", []), note]

    def _answer(self, node: Node, message: dict[str, Any], said: Blocks, own: bool) -> None:
        made = Message("assistant", said.text, said.reasoning, said.calls, parts=said.parts)
        made.model, made.finish_reason = text_of(message, "model"), text_of(message, "stopReason")
        self._provider = text_of(message, "provider") or self._provider
        tokens = _usage(message.get("usage"))
        if tokens is not None:
            made.input_tokens, made.output_tokens = tokens.input_tokens, tokens.output_tokens
            if own:
                self._tokens.append(tokens)
        self._calls.update((call.id, call) for call in said.calls or () if call.id)
        held = ("role", "content", "model", "stopReason", *(("usage",) if tokens is not None else ()))
        extra = _inner(node, message, *held)
        if said.rest:
            extra["content"] = said.rest
        self._say(node, made, extra)
        error = text_of(message, "errorMessage")
        if made.finish_reason == "aborted":
            self._end = ("aborted", None)
            self.flags.add("interrupted")
        elif made.finish_reason == "error":
            self._end = ("error", error or "error")
            self.flags.add("api_error")

    def _result(self, node: Node, message: dict[str, Any], said: Blocks) -> None:
        made = Message("tool", said.text, call_id=text_of(message, "toolCallId"), parts=said.parts)
        flag = message.get("isError")
        made.failed = flag if isinstance(flag, bool) else None
        call = self._calls.get(made.call_id or "")
        name = text_of(message, "toolName")
        held = ("role", "content", "toolCallId", "isError", *(("toolName",) if call and call.name == name else ()))
        rest = _inner(node, message, *held)
        told = echoes(rest.pop("details", None), said.text, texts_in(call.arguments) if call is not None else ())
        self._say(node, made, {**rest, "details": told, "content": said.rest})

    def _executed(self, node: Node, message: dict[str, Any]) -> None:
        """A command that a person ran: a call of theirs and its result."""
        call = ToolCall("bash", {"command": message.get("command")}, f"{node.name}:bash", actor="user")
        self._say(node, Message("user", "", calls=[call], synthetic=True), {})
        code, cancelled = message.get("exitCode"), message.get("cancelled") is True
        answer = Message("tool", plain(message.get("output")), call_id=call.id, cancelled=cancelled, synthetic=True)
        answer.failed = code != 0 if type(code) is int else None
        rest = _inner(node, message, "role", "command", "output", "cancelled")
        if code == 0:
            rest.pop("exitCode", None)
        if rest.get("truncated") is False:
            del rest["truncated"]
        self._say(node, answer, rest)


def _rest(value: dict[str, Any], *held: str) -> dict[str, Any]:
    return without(value, *_STRUCTURE, *held)


def _inner(node: Node, message: dict[str, Any], *held: str) -> dict[str, Any]:
    """What a message and its entry say beside what is held; the message's own time where it is another."""
    rest = {**_rest(node.value), **without(message, *held)}
    if rest.get("timestamp") is not None and instant(rest["timestamp"]) == instant(node.value.get("timestamp")):
        del rest["timestamp"]
    return rest


def _usage(usage: Any) -> Tokens | None:
    """`{input, output, cacheRead, cacheWrite, cost}`: what was cached is beside the input."""
    if not isinstance(usage, dict):
        return None
    fresh, read_again, written = (whole(usage.get(key)) for key in ("input", "cacheRead", "cacheWrite"))
    total = None if fresh is None else fresh + (read_again or 0) + (written or 0)
    found = Tokens(total, whole(usage.get("output")), read_again, written, whole(usage.get("reasoning")))
    found.cost_usd = real(dict_of(usage, "cost").get("total"))
    return found if found != Tokens() else None
