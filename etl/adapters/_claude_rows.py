"""Sessions of Claude Code as conversations: the main thread, each branch of it, each sub-agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from etl.adapters._claude_lines import QUEUE, SPEAKERS, Line, canonical, is_global, session_lines
from etl.adapters._claude_messages import Transcript
from etl.adapters._claude_response import Response
from etl.adapters._claude_sessions import Launch, copies, launches, name_threads
from etl.adapters._claude_text import commanded, is_interruption, text_of
from etl.adapters._claude_tree import Path, Thread, ordered, paths
from etl.conversation import Conversation, Identity, Message, Record, StoredEvent, Tokens

HARNESS = "claude-code"


class _Place(NamedTuple):
    """Where a line stands: the row that owns it, and the lines up to it."""

    identity: Identity
    path: Path
    position: int


def conversations(family: Sequence[StoredEvent]) -> Iterator[Conversation]:
    """Every conversation of sessions that share lines."""
    sessions = session_lines(family)
    shared = copies(sessions)
    known: dict[str, _Place] = {}
    for key in shared.order:
        yield from _Session(key, sessions[key], shared.owner, known).conversations()


class _Session:
    """One session: its threads, and what other sessions of the family already have."""

    def __init__(self, key: str, lines: list[Line], owner: dict[int, str], known: dict[str, _Place]) -> None:
        self.key = key
        self.owner = owner
        self.known = known
        name_threads(lines)
        self.detached = [line for line in lines if line.kind == "detached"]
        self.threads: dict[str, list[Line]] = {}
        for line in lines:
            if line.kind not in ("detached", ""):
                self.threads.setdefault(line.thread, []).append(line)
        self.launches = launches(lines) if len(self.threads) > 1 else {}
        self.branches: set[str] = set()

    def conversations(self) -> Iterator[Conversation]:
        """The main thread first, with its branches; then the sub-agents in the order of their names."""
        places: dict[int, Identity] = {}
        main = ordered(self.threads.pop("", []))
        for made in self._main(main, places):
            self._tell_detached(made)
            yield made.conversation
        for thread in sorted(self.threads):
            lines = ordered(self.threads[thread]).lines
            launch = self.launches.get(thread)
            identity = self._identity(thread)
            made = _Made(identity, lines, {id(line) for line in lines if id(line) in self.owner})
            if made.owns_something():
                made.conversation.parent = self._parent_of(launch, places)
                if launch is not None:
                    made.launched(launch)
                self._tell_detached(made)
                yield made.conversation

    def _main(self, thread: Thread, places: dict[int, Identity]) -> Iterator[_Made]:
        ways = paths(thread)
        begun = self._continued(ways[0])
        identities = [self._identity(way.branch) for way in ways]
        for number, way in enumerate(ways):
            inherited = {id(line) for line in way.lines if id(line) in self.owner}
            inherited |= {id(line) for line in way.lines[: way.own]}
            for index, line in enumerate(way.lines):
                if index >= way.own:
                    places[id(line)] = identities[number]
                if line.uuid is not None and id(line) not in self.owner:
                    self.known.setdefault(line.uuid, _Place(identities[number], way, index))
            made = _Made(identities[number], way.lines, inherited)
            if not made.conversation.messages or (number and not made.owns_something()):
                continue
            if way.parent is not None:
                made.conversation.parent = identities[way.parent]
            else:
                made.conversation.parent = begun if begun is not None else self._copied_from(way)
            if way.fork is not None:
                made.conversation.group = f"{self.key}:{way.fork}"
            if way.abandoned:
                made.flags.add("abandoned")
            yield made

    def _identity(self, branch: str) -> Identity:
        unique, number = branch, 2
        while unique in self.branches:
            unique = f"{branch}#{number}"
            number += 1
        self.branches.add(unique)
        return Identity(self.key, branch=unique)

    def _copied_from(self, way: Path) -> Identity | None:
        """The row that owns the last of the lines that the path has from another session."""
        for line in reversed(way.lines):
            if id(line) in self.owner and line.origin in self.known:
                return self.known[line.origin].identity
        return None

    def _continued(self, way: Path) -> Identity | None:
        """Put the lines of an earlier session before a path that only names the last of them; the row that has them."""
        first = next((line for line in way.lines if line.kind in SPEAKERS), None)
        if first is None or not first.dangling or not is_global(first.parents[0]):
            return None
        place = self.known.get(first.parents[0])
        if place is None:
            return None
        before = place.path.lines[: place.position + 1]
        way.lines, way.own = before + way.lines, way.own + len(before)
        first.dangling = False
        return place.identity

    def _parent_of(self, launch: Launch | None, places: dict[int, Identity]) -> Identity:
        if launch is not None and launch.line is not None and id(launch.line) in places:
            return places[id(launch.line)]
        return Identity(self.key, branch=launch.thread if launch is not None else "")

    def _tell_detached(self, made: _Made) -> None:
        """Titles, summaries and links go with the first row of a session; a prompt that was said is not told twice."""
        extra = made.conversation.extra
        if extra is None:
            extra = made.conversation.extra = {}
        for line in sorted(self.detached, key=lambda line: (line.at or 0, canonical(line.value))):
            value = line.value
            kind = str(value.get("type"))
            prompt = text_of(value, "lastPrompt")
            made.take(line)
            if kind == "agent-setting" and (name := text_of(value, "agentSetting")):
                made.conversation.agent = name
            elif prompt is None or not made.transcript.says(prompt):
                told = extra.setdefault(kind, [])
                if isinstance(told, list):
                    told.append({k: v for k, v in value.items() if k not in ("type", "sessionId") and v is not None})
        self.detached = []


class _Made:
    """One conversation being made of the lines of a path."""

    def __init__(self, identity: Identity, lines: list[Line], inherited: set[int]) -> None:
        self.records: list[Record] = []
        self._taken: set[int] = set()
        self.transcript = Transcript(lines)
        for line in lines:
            self.take(line)
            self.transcript.add(line, id(line) in inherited)
        messages = self.transcript.messages()
        self.flags = self.transcript.flags
        own = [response for response in self.transcript.responses if not response.inherited and not response.synthetic]
        self.conversation = Conversation(messages, self.records, native_id=identity.key, branch=identity.branch)
        self.conversation.flags, self.conversation.prompt = self.flags, commanded(messages)
        self.conversation.extra = self.transcript.began_with
        self.conversation.usage = self._usage(own)
        self.conversation.agent = HARNESS
        real = [response for response in self.transcript.responses if not response.synthetic]
        self.conversation.model = next((response.model for response in reversed(real) if response.model), None)
        self.conversation.finish_reason = real[-1].finish_reason if real else None
        times = [line.at for line in lines if line.at is not None and line.kind != QUEUE]
        self.conversation.ended_at = max(times) if times else None
        if any(line.dangling for line in lines):
            self.flags.add("ambiguous_parent")
        self._end(messages)

    def take(self, line: Line) -> None:
        """Count the records of a line among those of the row."""
        for record in (line.record, *line.versions):
            if id(record) not in self._taken:
                self._taken.add(id(record))
                self.records.append(record)

    def owns_something(self) -> bool:
        """Whether any message is this row's own."""
        return any(not message.inherited for message in self.conversation.messages)

    def _usage(self, own: list[Response]) -> Tokens | None:
        """The sum over the model's own responses, each once."""
        counted = [response.tokens for response in own if response.tokens is not None]
        if not counted:
            return None
        if len(counted) < len(own):
            self.flags.add("usage_partial")
        return Tokens(*(_sum(values) for values in zip(*(_numbers(tokens) for tokens in counted), strict=True)))

    def launched(self, launch: Launch) -> None:
        """Name the kind of agent, and the call that started it."""
        if launch.agent is not None:
            self.conversation.agent = launch.agent
        if launch.call_id is not None and self.conversation.extra is not None:
            self.conversation.extra["tool_use_id"] = launch.call_id

    def _end(self, messages: list[Message]) -> None:
        """How it ended, where the log says so: an error of the API, an interruption, or calls left open."""
        answered = {message.call_id for message in messages if message.role == "tool"}
        for message in reversed(messages):
            if message.role == "assistant" and message.extra and message.extra.get("isApiErrorMessage") is True:
                self.conversation.status, self.conversation.error = "error", message.content
                return
            if message.synthetic and is_interruption(message.content):
                self.conversation.status = "aborted"
                return
            if not message.synthetic:
                waiting = message.calls or ()
                if any(call.actor == "agent" and call.id not in answered for call in waiting):
                    self.flags.add("incomplete")
                    self.conversation.status = "unknown"
                return


def _numbers(tokens: Tokens) -> tuple[int | float | None, ...]:
    return (
        tokens.input_tokens,
        tokens.output_tokens,
        tokens.cached_tokens,
        tokens.cache_write_tokens,
        tokens.reasoning_tokens,
        tokens.cost_usd,
    )


def _sum(values: tuple[Any, ...]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
