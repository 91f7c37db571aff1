"""Sessions of Qwen Code as conversations: the live chain, and those that were left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from etl.adapters._claude_text import echoes, texts_in
from etl.adapters._gemini_parts import exit_of, read_parts, usage_of
from etl.adapters._qwen_tree import nodes_of
from etl.adapters._session import dict_of, inherited, list_of, noted, real, summed, text_of, without
from etl.adapters._tree import Chain, Node, chains
from etl.conversation import Conversation, Identity, Message, Record, StoredEvent, Tokens, ToolCall

HARNESS = "qwen-code"
_SESSION_KEYS = ("cwd", "version", "gitBranch")
_STRUCTURE = (
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "type",
    "message",
    "forkedFrom",
    "subtype",
    *_SESSION_KEYS,
)
_HARNESS_SUBTYPES = frozenset(
    {
        "notification",
        "background_task_completed",
        "cron",
        "agent_bootstrap",
        "agent_retry",
        "goal_runtime",
        "goal_state",
    }
)
_HARNESS_PROVENANCE = frozenset({"system", "goal_control", "goal_runtime"})
_PARENTS = ("parentSessionId", "parentSession", "sessionId")


def conversations(key: str, events: Sequence[StoredEvent], family: set[str]) -> Iterator[Conversation]:
    """The rows of a session; none where nobody says anything."""
    found = chains(nodes_of(events))
    live: Conversation | None = None
    for number, chain in enumerate(found):
        reading = _Reading(chain)
        elsewhere = reading.parent in family or live is not None
        if not reading.owns_something() and (elsewhere or not reading.messages):
            continue
        made = reading.conversation(key, "" if live is None else chain.own[0].name)
        if live is None:
            live = made
            made.records = list({id(event.record): event.record for event in events}.values())
            if reading.parent is not None and reading.parent != key:
                made.parent = Identity(reading.parent)
                if reading.parent not in family:
                    reading.flags.add("ambiguous_parent")
        else:
            made.parent = Identity(key)
        if number:
            reading.flags.add("abandoned")
        yield made


class _Reading:
    """A chain being read, record by record."""

    def __init__(self, chain: Chain) -> None:
        self.flags: set[str] = set()
        self.parent: str | None = None
        self.messages: list[Message] = []
        self._records: list[Record] = []
        self._tokens: list[Tokens] = []
        self._calls: dict[str, ToolCall] = {}
        self._session: dict[str, Any] = {}
        self._current: dict[str, Any] = {}
        self._early: list[Any] = []
        self._end: tuple[str, str] | None = None
        for node in chain.before:
            self._take(node, False)
        self.messages = inherited(self.messages)
        for node in chain.own:
            self._take(node, True)
            self._records += node.records
        for note in self._early if self.messages else ():
            noted(self.messages[0], "notes", note)

    def owns_something(self) -> bool:
        """Whether any message is the chain's own."""
        return any(not message.inherited for message in self.messages)

    def conversation(self, key: str, branch: str) -> Conversation:
        """What was read as a conversation."""
        made = Conversation(self.messages, self._records, native_id=key, branch=branch, conversation_id=key)
        made.agent, made.flags, made.usage = HARNESS, self.flags, summed(self._tokens)
        made.extra = self._session or None
        made.model = next((message.model for message in reversed(self.messages) if message.model), None)
        if self._end is not None:
            made.status = self._end[0]
            made.error = self._end[1] if self._end[0] == "error" else None
        return made

    def _take(self, node: Node, own: bool) -> None:
        value = node.value
        copied = dict_of(value, "forkedFrom")
        if copied:
            self.parent = text_of(copied, "sessionId") or self.parent
        if node.dangling:
            self.flags.add("ambiguous_parent")
        count = len(self.messages)
        kind = text_of(value, "type")
        if kind == "assistant":
            self._answer(node, own and not copied)
        elif kind == "tool_result":
            self._result(node)
        elif kind == "user" or dict_of(value, "message"):
            self._ask(node)
        else:
            self._system(node)
        if copied:
            for message in self.messages[count:]:
                message.inherited = True

    def _extra(self, node: Node, *held: str) -> dict[str, Any]:
        """Every key of a record that nothing else holds; of those that all repeat, where they change."""
        value = node.value
        rest = without(value, *_STRUCTURE, *held)
        for key in _SESSION_KEYS:
            now = value.get(key)
            if now is not None and now != self._current.get(key):
                if key in self._current:
                    rest[key] = now
                else:
                    self._session[key] = now
                self._current[key] = now
        if text_of(value, "subtype"):
            rest["subtype"] = value["subtype"]
        message = without(dict_of(value, "message"), "role", "parts", "content")
        if message:
            rest["message"] = message
        return rest

    def _ask(self, node: Node) -> None:
        value = node.value
        message = dict_of(value, "message")
        found = read_parts(message.get("parts", message.get("content")))
        self._end = None
        shown = dict_of(value, "systemPayload")
        extra = self._extra(node, "systemPayload")
        shown = without(shown, *(("displayText",) if shown.get("displayText") == found.text else ()))
        if shown:
            extra["systemPayload"] = shown
        subtype, provenance = text_of(value, "subtype"), text_of(value, "provenance")
        said = Message("user", found.text, id=node.name, at=value.get("timestamp"), parts=found.other)
        said.synthetic = subtype in _HARNESS_SUBTYPES or provenance in _HARNESS_PROVENANCE
        if text_of(value, "type") != "user":
            said.synthetic, extra["type"] = True, value.get("type")
        for answer in found.answers or ():
            answer.at = value.get("timestamp")
            self.messages.append(answer)
        if said.content or said.parts or not found.answers:
            said.extra = extra or None
            self.messages.append(said)

    def _answer(self, node: Node, counts: bool) -> None:
        value = node.value
        found = read_parts(dict_of(value, "message").get("parts", dict_of(value, "message").get("content")))
        said = Message("assistant", found.text, found.reasoning, found.calls, id=node.name, at=value.get("timestamp"))
        said.model, said.parts = text_of(value, "model"), found.other
        tokens = usage_of(value.get("usageMetadata"))
        if tokens is not None:
            said.input_tokens, said.output_tokens = tokens.input_tokens, tokens.output_tokens
            if counts:
                self._tokens.append(tokens)
        self._calls.update((call.id, call) for call in found.calls or () if call.id)
        said.extra = self._extra(node, "model", *(("usageMetadata",) if tokens is not None else ())) or None
        self.messages.append(said)
        self._end = None

    def _result(self, node: Node) -> None:
        value = node.value
        found = read_parts(dict_of(value, "message").get("parts"))
        told = dict_of(value, "toolCallResult")
        extra = self._extra(node, "toolCallResult")
        answers = found.answers or [Message("tool", found.text, call_id=text_of(told, "callId"))]
        status = text_of(told, "status")
        first = answers[0]
        for answer in answers:
            answer.id, answer.at, answer.name = node.name, value.get("timestamp"), None
            answer.cancelled = status == "cancelled"
            if status in ("error", "success") and answer.failed is None:
                answer.failed = status == "error"
            if text_of(told, "errorType") == "execution_denied":
                answer.condition = "permission_denied"
        call = self._calls.get(first.call_id or "")
        if call is not None and call.name == "run_shell_command" and exit_of(first.content):
            first.failed = True
        first.duration_ms = real(told.get("durationMs"))
        said = without(told, "callId", "status", "durationMs")
        if said.get("responseParts") == list_of(dict_of(value, "message"), "parts"):
            del said["responseParts"]
        more = echoes(said, first.content, texts_in(call.arguments) if call is not None else ())
        if isinstance(more, dict):
            extra["toolCallResult"] = more
        if extra:
            first.extra = {**(first.extra or {}), **extra}
        self.messages += answers

    def _system(self, node: Node) -> None:
        value, subtype = node.value, text_of(node.value, "subtype")
        payload = dict_of(value, "systemPayload")
        if subtype == "chat_compression":
            self._compressed(node, payload)
        elif subtype == "parent_session":
            self.parent = text_of(payload, *_PARENTS) or self.parent
        elif payload or without(value, *_STRUCTURE):
            event = dict_of(payload, "uiEvent")
            error = text_of(event, "error_message")
            if error is not None:
                self._end = ("error", error)
                self.flags.add("api_error")
            self._note({"subtype": subtype, "timestamp": value.get("timestamp"), **self._extra(node)})

    def _note(self, note: dict[str, Any]) -> None:
        if self.messages and not self.messages[-1].inherited:
            noted(self.messages[-1], "notes", without(note))
        elif not self.messages:
            self._early.append(without(note))

    def _compressed(self, node: Node, payload: dict[str, Any]) -> None:
        """A summary in the place of what was said: a message of the program's; what it repeats is left."""
        self.flags.add("compacted")
        known = {message.content.strip() for message in self.messages}
        rest = without(payload, "compressedHistory")
        for content in list_of(payload, "compressedHistory"):
            found = read_parts(content.get("parts") if isinstance(content, dict) else content)
            if not found.text.strip() or found.text.strip() in known:
                continue
            role = "assistant" if text_of(content, "role") == "model" else "user"
            said = Message(role, found.text, id=node.name, at=node.value.get("timestamp"), synthetic=True)
            said.extra = {"chat_compression": rest} if rest else None
            rest = {}
            self.messages.append(said)
        if rest:
            self._note({"subtype": "chat_compression", "payload": rest})
