"""Model calls into threads: a call whose history begins with what an earlier call said continues it.

Every call repeats the history it was given, so a conversation is found by prefix and never by concatenation. All
histories and answers of one conversation are laid into one tree of atoms (a text, a call, a result); a call continues
the deepest answer on its path. What branches off (another answer to the same history, an edited turn, a second choice)
is a thread of its own that shares its beginning. Histories that share nothing but instructions are unrelated. Calls of
which no history was captured are strung together by the agent that made them.

Everything here depends on what the calls say and when, never on the order in which they were read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from operator import is_
from typing import Any, TypeAlias

import msgspec

from etl.adapters._otlp_facts import Facts
from etl.adapters._otlp_span import Span, opened
from etl.adapters._otlp_told import Told
from etl.adapters._otlp_turn import Turn
from etl.conversation import Message, Tokens

Atom: TypeAlias = tuple[str, ...]
"""The least thing a history is compared by: kind, role or tool name, text."""

NEAR = 32
"""So many calls before and after a call are looked at, where many said the same."""


class Call(msgspec.Struct, eq=False):
    """One choice of one model response (or what is known of a response that never came)."""

    span: Span
    turn: Turn
    facts: Facts
    choice: int = 0
    agent: tuple[str, str] = ("", "")
    """Which agent made it: (its span's id, its name)."""
    part: int = 0
    """Which of several prompts of one request it answers."""
    path: list[int] = msgspec.field(default_factory=lambda: [0])
    """Nodes of the tree along its history: one more than the history has atoms."""
    lengths: list[int] = []
    """Atoms of each message of its history."""
    said: list[int] = []
    """Atoms of each message of its answer."""
    end: int = 0
    """The node of its answer; that of its history where nothing was answered."""
    depth: int = 0
    """Atoms of history and answer."""
    copies: list[Call] = []
    """Spans that tell of the same response: their usage does not count."""

    def answer(self) -> list[Message]:
        """The messages of this choice."""
        return self.turn.answers[self.choice] if self.choice < len(self.turn.answers) else []

    def is_open(self) -> bool:
        """Whether nothing is known of an answer."""
        return self.end == self.path[-1]

    def usage(self) -> Tokens | None:
        """What the response took, as the first of its spans that says so."""
        return next((each.facts.usage for each in (self, *self.copies) if each.facts.usage is not None), None)


class Thread(msgspec.Struct, eq=False):
    """Calls that continue one another."""

    scope: str
    calls: list[Call]
    branch: str = ""
    shared: int = 0
    """Atoms at its beginning that another thread owns."""
    parent: Thread | None = None
    """The thread that it branched off."""
    group: str | None = None
    sample_index: int | None = None
    abandoned: bool = False
    captured: bool = True
    """False where no history was captured."""


def atoms(message: Message) -> list[Atom]:
    """What a message is compared by: not its ids, its reasoning or white space, which change when it is repeated."""
    if message.role == "tool":
        return [("result", message.content.strip())]
    role = "system" if message.role == "developer" else message.role
    found: list[Atom] = []
    text = message.content.strip()
    if text:
        found.append((role, text))
    found += [("call", call.name, canonical(call.arguments)) for call in message.calls or ()]
    if message.parts and role != "assistant":
        found += [("part", role, canonical(part)) for part in message.parts]
    if not found and role != "assistant":
        found.append((role, ""))
    return found


_encode = msgspec.json.Encoder(order="deterministic").encode


def canonical(value: Any) -> str:
    """JSON that is the same for equal values, whether they stand as text or as objects.

    >>> canonical('{"b": 1, "a": 2}') == canonical({"a": 2, "b": 1}), canonical(None)
    (True, '{}')
    """
    if value is None or value == "":
        return "{}"
    if type(value) is dict or (type(value) is str and value[:1].isalpha()):
        return _encode(value).decode("utf-8", "replace")
    return _encode(opened(value)).decode("utf-8", "replace")


def threads(calls: Iterable[Call]) -> list[Thread]:
    """The threads of one conversation by their first calls; the first is the main one, its branch is empty."""
    ordered = sorted(calls, key=lambda call: (*call.span.at(), call.part, call.choice))
    ordered = _without_envelopes(ordered)
    told = [call for call in ordered if call.turn.inputs and not call.turn.lent]
    captured = _Tree(told).threads()
    made = sorted(
        [*captured, *_uncaptured([call for call in ordered if call.turn.lent or not call.turn.inputs])],
        key=lambda thread: (*thread.calls[0].span.at(), thread.calls[0].part, thread.calls[0].choice),
    )
    _name(made)
    return made


def _without_envelopes(calls: list[Call]) -> list[Call]:
    """The calls without agents and chains that repeat, in another trace, what a model said within their time.

    Context that is lost between processes leaves an envelope and its model calls in different traces.
    """
    if all(call.span.kind == "model" for call in calls):
        return calls
    spoken: dict[tuple[Atom, ...], list[Call]] = {}
    for call in calls:
        if call.span.kind == "model" and call.answer():
            spoken.setdefault(tuple(atom for message in call.answer() for atom in atoms(message)), []).append(call)
    if not spoken:
        return calls
    kept = []
    for call in calls:
        said = tuple(atom for message in call.answer() for atom in atoms(message))
        inside = (other for other in spoken.get(said, ()) if other.span.trace != call.span.trace)
        model = next((other for other in inside if call.span.spans(other.span)), None)
        if call.span.kind == "model" or not said or model is None:
            kept.append(call)
        else:
            model.copies.append(call)
    return kept


def _uncaptured(calls: Sequence[Call]) -> list[Thread]:
    """One thread for each agent whose histories nobody captured."""
    by_agent: dict[tuple[Any, ...], Thread] = {}
    for call in calls:
        # Other choices of a response begin where nobody saw: each is a row of its own.
        key = (call.span.trace, *call.agent) if call.choice == 0 else (call.span.trace, call.span.id, call.choice)
        if key in by_agent:
            by_agent[key].calls.append(call)
        else:
            by_agent[key] = Thread(call.span.scope, [call], captured=False)
        if len(call.turn.answers) > 1:
            thread = by_agent[key]
            if thread.calls == [call]:
                thread.group, thread.sample_index = f"{call.span.scope}\x1f{call.span.id}", call.choice
    return list(by_agent.values())


class _Tree:
    """All histories and answers of one conversation as one tree; its nodes are numbers, the root is 0."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._names: dict[Atom, int] = {}
        self._atoms: dict[int, tuple[list[int], bool]] = {}
        self._next: dict[tuple[int, int], int] = {}
        self._spoken = [False]
        self._calls = calls
        self._ends: dict[int, list[Call]] = {}
        self._open: dict[int, list[Call]] = {}
        self._order = {id(call): number for number, call in enumerate(calls)}
        alike: dict[tuple[int, int], list[Call]] = {}
        before: Call | None = None
        for call in calls:
            call.path, call.lengths = self._history(call.turn.inputs, before)
            answer, call.said = self._walk([call.path[-1]], [], call.answer())
            call.end = answer[-1]
            call.depth = len(call.path) + len(answer) - 2
            if call.is_open():
                self._open.setdefault(call.end, []).append(call)
            else:
                self._ends.setdefault(call.end, []).append(call)
                alike.setdefault((call.path[-1], call.end), []).append(call)
            before = call
        self._told = {answer: Told(each) for answer, each in alike.items() if len(each) > 1}
        self._thread_of: dict[int, Thread] = {}
        self._owner: dict[int, Thread] = {}
        self._continued: set[int] = set()
        self._told_by: dict[int, Call] = {}
        """Of a call that tells of a response again: the call that told of it first."""
        self._answering: dict[int, list[Thread]] = {}
        self.made: list[Thread] = []

    def _history(self, messages: list[Message], before: Call | None) -> tuple[list[int], list[int]]:
        """The nodes along a history, and the atoms of each of its messages; most go on from that of the call before."""
        told = [] if before is None else before.turn.inputs
        if before is None or len(told) > len(messages) or not all(map(is_, told, messages)):
            return self._walk([0], [], messages)
        return self._walk(before.path.copy(), before.lengths.copy(), messages[len(told) :])

    def _walk(self, path: list[int], lengths: list[int], messages: Iterable[Message]) -> tuple[list[int], list[int]]:
        """Go on along these messages; a node is spoken once a user or the model had a say."""
        node, after, spoken = path[-1], self._next, self._spoken
        for message in messages:
            known = self._atoms.get(id(message))
            if known is None:
                names = [self._names.setdefault(atom, len(self._names)) for atom in atoms(message)]
                known = self._atoms[id(message)] = (names, message.role not in ("system", "developer"))
            lengths.append(len(known[0]))
            for name in known[0]:
                before, node = node, after.setdefault((node, name), len(spoken))
                if node == len(spoken):
                    spoken.append(spoken[before] or known[1])
                path.append(node)
        return path, lengths

    def threads(self) -> list[Thread]:
        """Place every call, in order of time; one that is continued before its time is placed first."""
        for call in self._calls:
            waiting = [call]
            while waiting:
                last = waiting[-1]
                before = self._before(last)
                if before is not None and id(before) not in self._thread_of:
                    waiting.append(before)
                else:
                    waiting.pop()
                    self._place(last, before)
        self._mark_abandoned()
        return self.made

    def _before(self, call: Call) -> Call | None:
        """The call that this one continues: the deepest answer (or question without one) on its path."""
        for node in reversed(call.path):
            alike, asked = self._ends.get(node), self._open.get(node)
            answered = self._nearest(call, alike) if alike else None
            if answered is not None:
                return answered
            if not asked:
                continue
            earlier = len(asked)
            if node == call.path[-1]:
                earlier = bisect_left(asked, self._order[id(call)], key=lambda other: self._order[id(other)])
            if earlier:
                return asked[earlier - 1]
        return None

    def _nearest(self, call: Call, alike: Sequence[Call]) -> Call | None:
        """Of calls that said the same in the same place: the one whose calls have the ids that this history names, else
        one before this call, of the same agent, that nothing continues yet; of several the nearest in time.
        """
        now = self._order[id(call)]
        place = bisect_left(alike, now, key=lambda other: self._order[id(other)])
        near = [other for other in alike[max(0, place - NEAR) : place + NEAR] if other.span is not call.span]
        if len(near) < 2:
            return near[0] if near else None
        named = {made.id for message in call.turn.inputs for made in message.calls or () if made.id}

        def fits(other: Call) -> tuple[bool, bool, bool, bool, int]:
            ids = {made.id for message in other.answer() for made in message.calls or () if made.id}
            order = self._order[id(other)]
            is_earlier, is_left = order < now, id(other) not in self._continued
            return (
                not ids.isdisjoint(named),
                is_earlier,
                other.agent == call.agent,
                is_left,
                order if is_earlier else -order,
            )

        return max((self._told_by.get(id(other), other) for other in near), key=fits)

    def _place(self, call: Call, before: Call | None) -> None:
        if id(call) in self._thread_of:
            return
        told = self._told.get((call.path[-1], call.end))
        if told is not None:
            same = told.same(call)
            told.place(call)
            if same is not None:
                same.copies.append(call)
                self._told_by[id(call)] = same
                self._thread_of[id(call)] = self._thread_of[id(same)]
                return
        if before is not None and id(before) not in self._continued:
            thread = self._thread_of[id(before)]
            self._continued.add(id(before))
            thread.calls.append(call)
        else:
            thread = self._branch(call)
        self._thread_of[id(call)] = thread
        if not call.is_open():
            self._answering.setdefault(call.path[-1], []).append(thread)
        for node in (call.end, *reversed(call.path)):
            if node in self._owner:
                break  # and with it all before it: whoever owns a node owns or shares the way to it
            self._owner[node] = thread

    def _branch(self, call: Call) -> Thread:
        """A new thread, with the beginning that it shares with an earlier one."""
        shared = 0
        for depth, node in enumerate(call.path):
            if node in self._owner and self._spoken[node]:
                shared = depth
        thread = Thread(call.span.scope, [call], shared=shared)
        if shared:
            thread.parent = self._owner[call.path[shared]]
            self._group(thread, call)
        self.made.append(thread)
        return thread

    def _group(self, thread: Thread, call: Call) -> None:
        """Other answers to one history are repeats of one another."""
        repeats = self._answering.get(call.path[-1], [])
        if not repeats or call.is_open():
            return
        name = f"{call.span.scope}\x1f{_digest([atom for message in call.turn.inputs for atom in atoms(message)])}"
        if repeats[0].group is None:
            repeats[0].group, repeats[0].sample_index = name, 0
        thread.group, thread.sample_index = name, len(repeats)

    def _mark_abandoned(self) -> None:
        """A thread is abandoned where the log answered its last question again after it had ended."""
        for repeats in self._answering.values():
            latest: Span | None = None
            for thread in reversed(repeats):
                last, first = thread.calls[-1].span, thread.calls[0].span
                if latest is not None and latest is not last:
                    thread.abandoned = thread.abandoned or 0 < (last.end or last.start or 0) <= (latest.start or 0)
                if latest is None or first.at() > latest.at():
                    latest = first


def _digest(words: Any) -> str:
    return blake2b(msgspec.json.encode(words), digest_size=8).hexdigest()


def _name(made: Sequence[Thread]) -> None:
    """Branches: empty for the first thread; else by how a thread begins, so that what arrives later changes no name."""
    seen: dict[str, int] = {}
    for number, thread in enumerate(made):
        first = thread.calls[0]
        if number == 0:
            continue
        if not thread.captured:
            name = _digest(("agent", first.span.trace, *first.agent))
            if first.choice:
                name = _digest(("choice", first.span.trace, first.span.id, first.choice))
        else:
            spoken = [*first.turn.inputs, *(first.answer() if thread.shared else ())]
            words = [atom for message in spoken for atom in atoms(message)]
            opening = next((place for place, atom in enumerate(words) if atom[0] in ("assistant", "call")), len(words))
            name = _digest(words[thread.shared :] if thread.shared else words[:opening])
        repeated = seen.get(name, 0)
        seen[name] = repeated + 1
        thread.branch = f"{name}#{repeated}" if repeated else name
