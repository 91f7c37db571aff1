"""The lines of one Codex session as conversations: the thread, and turns that were rolled back.

Items of the Responses API are pieces: reasoning, text and calls of one response become one assistant message. A
compaction puts a summary in the place of what was said: it becomes a synthetic message, and what it repeats is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from etl.adapters._codex_items import Items
from etl.adapters._codex_lines import (
    COMPACTED,
    CONTEXT,
    EVENT,
    ITEM,
    META,
    NOTE,
    USAGE,
    Line,
    base_of,
    header,
    parent_of,
)
from etl.adapters._codex_text import mark_repeats, spoken
from etl.adapters._codex_tokens import Counter
from etl.adapters._session import canonical, dict_of, inherited, list_of, noted, summed, text_of, without
from etl.conversation import Conversation, Identity, Message, Record, Tokens
from etl.identity import digest

HARNESS = "codex"
_STARTED = frozenset({"task_started", "turn_started"})
_ENDED = frozenset({"task_complete", "turn_complete"})
_BY_PROGRAM = frozenset({"replaced", "review_ended", "budget_limited"})
"""Why a turn was aborted, where no person did it."""
_ENDS_OF_CALLS = frozenset({"exec_command_end", "mcp_tool_call_end", "patch_apply_end", "web_search_end"})


def conversations(key: str, lines: list[Line], family: Mapping[str, list[Line]]) -> Iterator[Conversation]:
    """The thread of a session first, then what was rolled back; nothing where another row has all that is said."""
    own = header(key, lines)
    session = _Session(key, lines, own)
    for line in lines:
        session.take(line)
    parent = None if own is None else parent_of(own.payload)
    known = parent is None or parent in family
    silent = all(entry.message.inherited or entry.message.role == "system" for entry in session.entries)
    if silent and not session.left and (known or not session.entries):
        return
    main = session.conversation(own)
    if parent is not None and parent != key:
        main.parent = Identity(parent)
        if parent not in family:
            session.flags.add("ambiguous_parent")
            if own is not None and base_of(own.payload) is not None:
                session.flags.add("truncated_source")
    yield main
    for branch in session.left:
        yield session.branch(branch, main)


class Entry(msgspec.Struct, gc=False, eq=False):
    """A message, with the lines that it was made of and what they used."""

    message: Message
    records: list[Record]
    tokens: list[Tokens]
    ordinal: int | None = None


class _Left(msgspec.Struct, gc=False):
    """Turns that were rolled back, after what they followed."""

    before: list[Message]
    own: list[Entry]


class _Session:
    """A session being read, line by line."""

    def __init__(self, key: str, lines: list[Line], own: Line | None) -> None:
        self.key = key
        self.entries: list[Entry] = []
        self.left: list[_Left] = []
        self.flags: set[str] = set()
        self.model: str | None = None
        self.extra: dict[str, Any] = {}
        self._lines = lines
        self._context: dict[str, Any] = {}
        self._waiting: dict[str, Any] = {}
        """What the next message is told with."""
        self._early: list[Tokens] = []
        self._counter = Counter(lines, own is not None and parent_of(own.payload) is not None)
        self._end: tuple[str, str] | None = None
        """(status, why) where the log says how it ended, until something follows."""
        mark_repeats(lines)
        self._items = Items(self, lines)

    def take(self, line: Line) -> None:
        """Read the next line."""
        if line.kind == META:
            self._meta(line)
        elif line.kind == CONTEXT:
            self._turn_context(line.payload)
        elif line.kind == ITEM:
            self._items.take(line)
        elif line.kind == EVENT:
            self._event(line)
        elif line.kind == COMPACTED:
            self._compacted(line)
        elif line.kind == NOTE:
            self.note(line)

    def say(self, line: Line, message: Message) -> Entry:
        """Append a message that a line says."""
        message.at = message.at if message.at is not None else line.time
        message.inherited = line.copied
        if message.role == "assistant":
            message.model = self.model
        if self._waiting:
            message.extra = {**(message.extra or {}), **self._waiting}
            self._waiting = {}
        entry = Entry(message, [line.record], self._early, line.ordinal)
        self._early = []
        self.entries.append(entry)
        if not message.synthetic:
            self._end = None
        return entry

    def note(self, line: Line, said: dict[str, Any] | None = None) -> None:
        """Keep what a line says beside the messages with the one before it."""
        told = without(line.payload, "type") if said is None else said
        if line.copied or (said is not None and not said):
            return
        note = {"type": line.type or line.kind, "at": line.time, **told}
        if self.entries:
            noted(self.entries[-1].message, "notes", note)
        else:
            self._waiting.setdefault("notes", []).append(note)

    def _meta(self, line: Line) -> None:
        if line.copied and not line.lent:
            return
        base = base_of(line.payload)
        if base is not None and base[0] == self.key:
            self._revert(base[1])
        instructions = line.payload.get("base_instructions")
        text = text_of(instructions, "text") or text_of(line.payload, "base_instructions", "instructions")
        system = {entry.message.content for entry in self.entries if entry.message.role == "system"}
        if text and text not in system and not (line.lent and system):
            self.say(line, Message("system", text))
        if line.copied:
            return
        said = without(line.payload, "base_instructions", "instructions", "type")
        if not self.extra:
            self.extra = said
        elif more := {key: value for key, value in said.items() if self.extra.get(key) != value}:
            self.note(line, more)

    def _turn_context(self, payload: dict[str, Any]) -> None:
        """Keep the model, and what differs from the turn before."""
        self.model = text_of(payload, "model") or self.model
        said = without(payload, "model", "type")
        changed = {key: value for key, value in said.items() if self._context.get(key) != value}
        self._context |= changed
        if changed:
            self._waiting["turn_context"] = {**self._waiting.get("turn_context", {}), **changed}

    def _event(self, line: Line) -> None:
        kind, payload = line.type, line.payload
        if line.repeats:
            self._beside(line)
        elif (said := spoken(line)) is not None:
            self._items.spoken(line, *said)
        elif kind in ("token_count", "turn.completed", USAGE):
            self._count(line)
        elif kind in _STARTED:
            self._waiting[kind] = {**without(payload, "type"), "at": line.time}
        elif kind in _ENDED:
            last = text_of(payload, "last_agent_message")
            if last and not any(entry.message.content.strip() == last.strip() for entry in self.entries[-40:]):
                self.say(line, Message("assistant", last))
            self.note(line, without(payload, "type", "last_agent_message"))
            if (why := text_of(payload.get("error"), "message")) is not None:
                self._end = ("error", why)
        elif kind == "turn_aborted":
            self.note(line)
            reason = text_of(payload, "reason") or kind
            self._end = ("aborted", reason)
            if reason not in _BY_PROGRAM:
                self.flags.add("interrupted")
        elif kind == "error":
            self.note(line)
            self._end = ("error", text_of(payload, "message") or kind)
        elif kind == "thread_rolled_back":
            self._roll_back(line)
        elif kind == "context_compacted":
            self.flags.add("compacted")
        elif kind in _ENDS_OF_CALLS:
            self._items.ended(line)
        else:
            self.note(line)

    def _beside(self, line: Line) -> None:
        """What an event says that its item does not: places of pictures, what a memory is cited for."""
        more = without(line.payload, "type", "message", "text", "phase", "client_id", "kind")
        self.note(line, more)

    def _count(self, line: Line) -> None:
        info = line.payload.get("info")
        found = self._counter.take(line)
        rest = {} if line.type == USAGE else without(line.payload, "type", "info", "usage")
        window = info.get("model_context_window") if isinstance(info, dict) else None
        if rest or window is not None:
            self.extra["token_count"] = {**rest, **({"model_context_window": window} if window is not None else {})}
        self._items.close()
        if line.copied:
            return
        answer = next((e.message for e in reversed(self.entries) if e.message.role == "assistant"), None)
        name = text_of(line.payload, "response_id")
        if name is not None and answer is not None and not answer.inherited:
            answer.extra = {"response_id": name, **(answer.extra or {})}
        if found is None:
            return
        new, last = found
        if answer is not None and not answer.inherited and answer.output_tokens is None:
            answer.input_tokens, answer.output_tokens = last.input_tokens, last.output_tokens
        (self.entries[-1].tokens if self.entries else self._early).append(new)

    def _roll_back(self, line: Line) -> None:
        """Set the last turns of a person aside; the log goes on from before them."""
        self._items.close()
        turns = line.payload.get("num_turns")
        wanted = turns if type(turns) is int and turns > 0 else 1
        asked = [n for n, e in enumerate(self.entries) if e.message.role == "user" and not e.message.synthetic]
        if not asked:
            self.note(line)
            return
        self._leave(asked[max(0, len(asked) - wanted)], line.copied)
        self._waiting.setdefault("notes", []).append({"type": line.type, "at": line.time, "num_turns": turns})

    def _revert(self, end: int) -> None:
        """Set aside what a later file of the session goes back behind."""
        self._items.close()
        places = (n for n, entry in enumerate(self.entries) if entry.ordinal is not None and entry.ordinal >= end)
        place = next(places, None)
        if place is not None:
            self._leave(place)

    def _leave(self, place: int, copied: bool = False) -> None:
        """Set the messages from a place on aside."""
        own = self.entries[place:]
        if not copied:
            own = [entry for entry in own if not entry.message.inherited]
        before = [entry.message for entry in self.entries[:place]]
        self.entries = self.entries[:place]
        if own and not all(entry.message.inherited for entry in own):
            self.left.append(_Left(before, own))
        self._end = None

    def _compacted(self, line: Line) -> None:
        self._items.close()
        self.flags.add("compacted")
        known = {entry.message.content.strip() for entry in self.entries}
        known |= {message.content.strip() for left in self.left for message in left.before}
        known |= {entry.message.content.strip() for left in self.left for entry in left.own}
        count = len(self.entries)
        rest = without(line.payload, "message", "replacement_history", "type")
        summary = text_of(line.payload, "message")
        if summary and summary.strip() not in known:
            self.say(line, Message("user", summary, synthetic=True, extra={"compacted": rest} if rest else None))
            known.add(summary.strip())
        for item in list_of(line.payload, "replacement_history"):
            self._items.replaced(line, item, known)
        if len(self.entries) == count and rest:
            self.note(line, rest)

    def conversation(self, own: Line | None) -> Conversation:
        """The thread as a conversation."""
        messages = [entry.message for entry in self.entries]
        made = Conversation(messages, [line.record for line in self._lines if not line.lent], native_id=self.key)
        made.conversation_id = self.key
        payload = {} if own is None else own.payload
        spawn = dict_of(dict_of(dict_of(payload, "source"), "subagent"), "thread_spawn")
        made.agent = text_of(spawn, "agent_role", "agent_nickname") or HARNESS
        made.provider = text_of(payload, "model_provider")
        made.model = next((m.model for m in reversed(messages) if m.role == "assistant" and m.model), self.model)
        made.extra, made.flags = self.extra or None, self.flags
        made.usage = summed([tokens for entry in self.entries for tokens in entry.tokens] + self._early)
        times = [line.at for line in self._lines if line.at is not None and not line.lent]
        made.ended_at = max(times) if times else None
        if self._end is not None:
            made.status, made.finish_reason = self._end[0], self._end[1]
            if self._end[0] == "error":
                made.error = made.finish_reason
                made.finish_reason = None
        return made

    def branch(self, left: _Left, main: Conversation) -> Conversation:
        """Turns that were rolled back, after what they followed."""
        messages = [*inherited(left.before), *(entry.message for entry in left.own)]
        records = list({id(record): record for entry in left.own for record in entry.records}.values())
        first = left.own[0].message
        name = digest(canonical([first.role, first.content, first.at if isinstance(first.at, str) else None]).encode())
        made = Conversation(messages, records, native_id=self.key, branch=name, parent=Identity(self.key))
        made.conversation_id, made.agent, made.provider, made.model = self.key, main.agent, main.provider, main.model
        made.flags = {"abandoned"}
        made.usage = summed(tokens for entry in left.own for tokens in entry.tokens)
        return made
