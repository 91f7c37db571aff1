"""Gemini CLI chats: one JSON object a file, or (since 0.40) a log of messages, patches (`$set`) and rewinds
(`$rewindTo`).

The live chat is a row with an empty branch; what was rewound is a row with `parent_id`, flag `abandoned`. A call and
its result are one element of a message: they become a call and a tool message. A sub-agent's chat has a file of its
own; the call that started it names its session.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import plain
from etl.adapters._claude_text import echoes, texts_in
from etl.adapters._gemini_chat import SUMMARY, Chat, Left, Said, agents_in, is_header
from etl.adapters._gemini_parts import Parts, answer_of, exit_of, read_parts, thought_of, tokens_of
from etl.adapters._session import (
    Naming,
    dict_of,
    inherited,
    list_of,
    noted,
    runs,
    sessions,
    summed,
    sure_share,
    text_of,
    without,
)
from etl.conversation import (
    Conversation,
    Fragment,
    Identity,
    Ignored,
    Message,
    Outcome,
    Record,
    StoredEvent,
    Tokens,
    ToolCall,
    Unusable,
)
from etl.times import instant

HARNESS = "gemini-cli"
_TYPES = frozenset({"user", "gemini", "model", "info", "error", "warning", "system"})
_MODEL = frozenset({"gemini", "model"})
_UNKNOWN = "unknown_type"
_HARNESS_TEXTS = (
    "<session_context>",
    "This is the Gemini CLI. We are setting up the context",
    "System: Please continue",
    "<hook_context>",
    SUMMARY,
)
_THANKS = "Got it. Thanks for the"
_COMMAND = re.compile(r"/[a-z][\w:-]{0,40}(?:\s|$)")
"""How a command for the program begins, which is kept as if it were said to the model."""
_OPEN = frozenset({"scheduled", "validating", "executing", "awaiting_approval"})


class GeminiCli(Adapter):
    """Chat files of Gemini CLI, of its sub-agents too."""

    name = "gemini_cli"
    version = 3
    about = "Gemini CLI chats: {sessionId, messages: […]} a file, or a log of messages, $set and $rewindTo; checkpoints"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {f"{_UNKNOWN}:*": "a type of message not known here, without content"}

    def score(self, sample: Sample) -> float:
        """The share of records of a chat; sure only where a header or an answer of the model is among them."""
        if sample.values and all(_contents(value) for value in sample.values):
            return 0.9 if any(text_of(each, "role") == "model" for v in sample.values for each in _contents(v)) else 0.0
        return sure_share([_looks(value) for value in sample.values])

    def share(self, start: Sample) -> float:
        """Of a chat as many as look so; what has contents may be all of it."""
        if all(_contents(value) for value in start.values):
            return len(start.values)
        return sum(1 for value in start.values if _looks(value) > 0)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each record under the session that the file is in."""
        naming = Naming(linked=True)
        sent: list[Record] = []
        for record in records:
            value = record.value
            if _contents(value) and "history" in value:
                yield _checkpoint([record])
            elif _contents(value):
                sent.append(record)
            elif not isinstance(value, dict):
                yield Unusable(record, "not_an_object", "a record of a chat is a JSON object; this is none")
            elif is_header(value) or "$set" in value or "$rewindTo" in value:
                yield from _named(naming, text_of(value, "sessionId"))
                agents = agents_in(value)
                yield from naming.take(record, value.get("lastUpdated"), agents[0] if agents else None)
            elif text_of(value, "type") is None:
                yield Unusable(record, "no_type", "a message of a chat has a type; this has none")
            elif value["type"] not in _TYPES and not (value.get("content") or value.get("parts")):
                yield Ignored(f"{_UNKNOWN}:{value['type'][:40]}")
            else:
                yield from _named(naming, text_of(value, "sessionId"))
                agents = agents_in(value)
                yield from naming.take(record, value.get("timestamp"), agents[0] if agents else None)
        yield from naming.end()
        if sent:
            yield _checkpoint(sent)

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation]:
        """The rows of the chats of a family."""
        chats = {key: Chat(events) for key, events in sessions(family).items()}
        started: dict[str, str] = {}
        for key, chat in chats.items():
            for said in [*(said for left in chat.left for said in left.own), *chat.messages.values()]:
                started.update((name, key) for name in agents_in(said.value) if name != key)
        for key in sorted(chats):
            yield from _rows(key, chats[key], started.get(key))


def _contents(value: Any) -> list[Any]:
    """The contents of a saved chat (`{history: [{role, parts}]}`), or the one that a record is; else none."""
    listed = list_of(value, "history") if isinstance(value, dict) and "history" in value else [value]
    fits = [
        text_of(each, "role") in ("user", "model") and isinstance(each.get("parts"), list) and "type" not in each
        for each in listed
    ]
    return listed if fits and all(fits) else []


def _checkpoint(records: list[Record]) -> Conversation:
    """A chat as it was saved by hand: what the model was sent, without ids, times and counts."""
    kinds = {"user": "user", "model": "gemini"}
    said = [
        Said({"type": kinds[each["role"]], "content": each["parts"]}, [])
        for record in records
        for each in _contents(record.value)
    ]
    made = _Reading(said).conversation("", "", records)
    made.native_id = made.conversation_id = None
    made.extra = without(records[0].value, "history", "role", "parts") or None
    return made


def _named(naming: Naming, session: str | None) -> Iterator[Fragment]:
    if session is not None and session != naming.key:
        yield from naming.begin(session)


def _looks(value: Any) -> float:
    if not isinstance(value, dict):
        return 0.0
    if "$set" in value or "$rewindTo" in value:
        return 0.5
    if is_header(value):
        messages = [message for message in list_of(value, "messages")[:8] if isinstance(message, dict)]
        if "projectHash" in value and "startTime" in value:
            return 0.97
        return 0.95 if any(message.get("type") == "gemini" for message in messages) else 0.3
    kind = text_of(value, "type")
    if kind not in _TYPES or "id" not in value or "timestamp" not in value or "uuid" in value or "message" in value:
        return 0.0
    return 0.93 if kind == "gemini" and "content" in value else 0.4


def _rows(key: str, chat: Chat, parent: str | None) -> Iterator[Conversation]:
    """The live chat first, then what was left."""
    live = _Reading(list(chat.messages.values()))
    main: Conversation | None = None
    if live.messages or chat.left:
        main = live.conversation(key, "", chat.records)
        main.parent = None if parent is None else Identity(parent)
        header = without(chat.header, "sessionId", "startTime", "lastUpdated")
        main.extra = {**header, **(main.extra or {})} or None
        main.started_at, main.ended_at = chat.header.get("startTime"), _later(chat.header.get("lastUpdated"), main)
        yield main
    for left in chat.left:
        yield _branch(key, left)


def _later(updated: Any, made: Conversation) -> Any:
    """When a chat ended: a log's header is not written again with each message."""
    last = max((at for message in made.messages if (at := instant(message.at).micros) is not None), default=None)
    known = instant(updated).micros
    return None if last is not None and (known is None or known < last) else updated


def _branch(key: str, left: Left) -> Conversation:
    before, own = _Reading(left.before), _Reading(left.own)
    name = text_of(left.own[0].value, "id") or "left"
    made = own.conversation(key, name, [record for said in left.own for record in said.records])
    made.messages = [*inherited(before.messages), *own.messages]
    made.parent = Identity(key)
    made.flags = {*(made.flags or ()), "abandoned"}
    return made


class _Reading:
    """Messages of a chat, one after the other."""

    def __init__(self, said: list[Said]) -> None:
        self.messages: list[Message] = []
        self._tokens: list[Tokens] = []
        self._uncounted = False
        self._flags: set[str] = set()
        self._end: tuple[str, str] | None = None
        self._early: list[Any] = []
        self._answered: dict[str, Message] = {}
        self._typed: dict[int, str] = {}
        for one in said:
            self._take(one.value, one.told)
        for note in self._early if self.messages else ():
            noted(self.messages[0], "notes", note)

    def conversation(self, key: str, branch: str, records: list[Record]) -> Conversation:
        """What was read as a conversation."""
        made = Conversation(self.messages, list({id(record): record for record in records}.values()))
        made.native_id, made.branch, made.conversation_id = key, branch, key
        made.agent, made.flags, made.usage = HARNESS, self._flags, summed(self._tokens)
        made.prompt = self._prompt()
        made.model = next((message.model for message in reversed(self.messages) if message.model), None)
        if self._uncounted and self._tokens:
            self._flags.add("usage_partial")
        if self._end is not None:
            made.status = self._end[0]
            made.error = self._end[1] if self._end[0] == "error" else None
        if not self.messages:
            made.flags = {*self._flags, "incomplete"}
        return made

    def _prompt(self) -> str | None:
        """What a person typed first, where the message has files pasted into it; commands are for the program."""
        for message, after in itertools.zip_longest(self.messages, self.messages[1:]):
            unanswered = after is None or after.role == "user"
            if message.role == "user" and unanswered and _COMMAND.match(message.content):
                message.synthetic = True
        first = next((one for one in self.messages if one.role == "user" and not one.synthetic), None)
        return None if first is None else self._typed.get(id(first))

    def _take(self, value: dict[str, Any], told: bool) -> None:
        kind = text_of(value, "type") or ""
        found = read_parts(value["parts"] if "parts" in value else value.get("content"))
        if kind in _MODEL:
            after = bool(self.messages) and self.messages[-1].synthetic
            self._answer(value, found, told or (after and found.text.startswith(_THANKS)))
        elif kind in ("info", "warning", "error") or (kind not in _TYPES and not found.text):
            self._note(kind, value, found.text)
        else:
            self._ask(value, found, synthetic=kind != "user")

    def _note(self, kind: str, value: dict[str, Any], text: str) -> None:
        """What the program shows a person beside the chat; an error or a cancelled request ends a turn."""
        note = without(value, "id")
        if self.messages:
            noted(self.messages[-1], "notes", note)
        else:
            self._early.append(note)
        if kind == "error":
            self._end = ("error", text)
        elif kind == "info" and text.startswith("Request cancelled"):
            self._end = ("aborted", text)
            self._flags.add("interrupted")

    def _ask(self, value: dict[str, Any], found: Parts, synthetic: bool) -> None:
        self._end = None
        self._give(found.answers or (), value)
        if not found.text and not found.other and found.answers:
            return
        content = value["parts"] if "parts" in value else value.get("content")
        pieces = runs(content, _is_harness) if isinstance(content, list) else [(_is_harness(found.text), [content])]
        own = next((number for number, (harness, _) in enumerate(pieces) if not harness), 0)
        for number, (harness, piece) in enumerate(pieces or [(False, [])]):
            read = read_parts(piece)
            message = Message("user", read.text, at=value.get("timestamp"), parts=read.other)
            message.synthetic = synthetic or harness
            if number == own:
                self._own(message, value, found.text)
            if harness and read.text.lstrip().startswith(SUMMARY):
                self._flags.add("compacted")
            self.messages.append(message)

    def _own(self, message: Message, value: dict[str, Any], text: str) -> None:
        """What a record says of the message that a person wrote."""
        message.id = text_of(value, "id")
        rest = without(value, "id", "timestamp", "type", "content", "parts", "sessionId")
        if text_of(value, "type") not in _TYPES or text_of(value, "type") != "user":
            rest["type"] = value.get("type")
        shown = read_parts(rest.get("displayContent")).text
        if shown and shown != text:
            self._typed[id(message)] = shown
        elif shown == text:
            rest.pop("displayContent", None)
        message.extra = rest or None

    def _give(self, answers: Iterable[Message], value: dict[str, Any]) -> None:
        """Results, each once: a call whose message was written again has its own in it."""
        for answer in answers:
            known = self._answered.get(answer.call_id or "")
            if known is None:
                self.messages.append(_at(answer, value))
                self._answered |= {answer.call_id: answer} if answer.call_id else {}
            elif known.content != answer.content:
                noted(known, "results", answer.content)

    def _answer(self, value: dict[str, Any], found: Parts, told: bool) -> None:
        self._end = None
        message = Message("assistant", found.text, id=text_of(value, "id"), at=value.get("timestamp"))
        message.model, message.parts = text_of(value, "model"), found.other
        thoughts = [thought for item in list_of(value, "thoughts") if (thought := thought_of(item))]
        message.reasoning = "\n".join([*thoughts, *([found.reasoning] if found.reasoning else [])]) or None
        tokens = tokens_of(value.get("tokens"))
        if tokens is not None:
            self._tokens.append(tokens)
            message.input_tokens, message.output_tokens = tokens.input_tokens, tokens.output_tokens
        else:
            self._uncounted = self._uncounted or not told
        message.synthetic = told
        held = ("id", "timestamp", "type", "content", "parts", "sessionId", "model", "thoughts", "tokens", "toolCalls")
        message.extra = without(value, *held) or None
        times = [text_of(item, "timestamp") for item in list_of(value, "thoughts")]
        if any(times):
            message.extra = {**(message.extra or {}), "thoughts_at": times}
        self.messages.append(message)
        calls: list[ToolCall] = []
        for item in list_of(value, "toolCalls"):
            call, answers = _call(item)
            if call is None:
                message.parts = [*(message.parts or []), item]
                continue
            calls.append(call)
            self.messages += answers
            self._answered |= {call.id: answers[0]} if call.id and answers else {}
        told_twice = {call.id for call in calls if call.id}
        message.calls = [call for call in found.calls or () if call.id not in told_twice] + calls or None
        self._give(found.answers or (), value)


def _is_harness(text: str) -> bool:
    return text.lstrip().startswith(_HARNESS_TEXTS)


def _at(message: Message, value: dict[str, Any]) -> Message:
    message.at = value.get("timestamp")
    return message


def _call(item: Any) -> tuple[ToolCall | None, list[Message]]:
    """A call, and the tool messages that answer it."""
    tool = text_of(item, "name")
    if tool is None:
        return None, []
    call = ToolCall(tool, item.get("args"), text_of(item, "id"), at=item.get("timestamp"))
    status = text_of(item, "status")
    result = item.get("result")
    parts = result if isinstance(result, list) else [result] if result is not None else []
    answers = [answer_of(dict_of(part, "functionResponse")) for part in parts if dict_of(part, "functionResponse")]
    others = [part for part in parts if not dict_of(part, "functionResponse")]
    shown = item.get("error", item.get("resultDisplay"))
    if others and not answers:
        read = read_parts(others)
        answers, others = [Message("tool", read.text, parts=read.other)], []
    if not answers and status is not None and status not in _OPEN:
        answers = [Message("tool", plain(shown))]
    if not answers:
        return call, []
    first = answers[0]
    first.call_id, first.at, first.name = call.id, item.get("timestamp"), None
    first.parts = [*(first.parts or []), *others] or None
    first.cancelled = status == "cancelled"
    if status in ("error", "success") and first.failed is None:
        first.failed = status == "error"
    if tool == "run_shell_command" and exit_of(first.content):
        first.failed = True
    said = without(item, "id", "name", "args", "result", "status", "timestamp")
    more = echoes(said, first.content, texts_in(item.get("args")))
    if isinstance(more, dict):
        first.extra = {**(first.extra or {}), **more}
    return call, answers
