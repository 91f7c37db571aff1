"""Calls into trees: which call goes on from where, told from hashes alone, so that the set of calls decides.

A tree has a node for every stretch of conversation between two states that calls were seen in: what was sent, and
each answer. A call goes on from the answer that its history ends with; of equal answers the earliest is meant that
nobody went on from. Otherwise it leaves its tree where its history leaves what is known: the same request sent again,
an answer that the client threw away, an edited history. Of several such places the latest is taken and flagged. Nothing
is joined before the first answer to a user, or by turns that no logged call gave: two strangers who both say "hi" stay
apart, as do requests that begin with the same demonstrations. Histories that lie at the provider are joined by response
id, or, where a conversation is kept there, by time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from etl.adapters._api_form import Body
from etl.conversation import Record, StoredEvent


class Call(msgspec.Struct, gc=False):
    """A stored call; see `_api_calls.py`."""

    call: str
    api: str
    path: list[int] = msgspec.field(default_factory=list)
    states: list[tuple[int, int]] = msgspec.field(default_factory=list)
    said: dict[str, Body] = msgspec.field(default_factory=dict)
    asked: int = 0
    outs: list[int] = msgspec.field(default_factory=list)
    answers: list[Body] = msgspec.field(default_factory=list)
    kit: int | None = None
    kits: dict[str, Any] = msgspec.field(default_factory=dict)
    """Tool definitions that were new with this call, by digest; `kit` names those of the call."""
    tools: Any = None
    model: str | None = None
    asked_model: str | None = None
    provider: str | None = None
    at: Any = None
    ended_at: Any = None
    created: Any = None
    error: str | None = None
    done: bool = True
    usage: Body | None = None
    response_id: str | None = None
    previous: str | None = None
    thread: str | None = None
    request: Body = msgspec.field(default_factory=dict)
    response: Body = msgspec.field(default_factory=dict)
    log: Body = msgspec.field(default_factory=dict)
    flags: list[str] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    mended: list[tuple[str, str]] = msgspec.field(default_factory=list)
    captured: bool = True
    key: str = ""
    """The conversation that it was stored under."""
    moment: int | None = None
    """Microseconds since the epoch."""
    record: str = ""
    """Digest of the record that it was read from."""
    events: list[StoredEvent] = msgspec.field(default_factory=list)
    unsure: bool = False
    """Where what it continues is not there, or one of several."""

    def order(self) -> tuple[bool, int, str]:
        """By time, then by name: the same for the same set of calls."""
        return self.moment is None, self.moment or 0, self.call

    def named(self) -> str | None:
        """Its name, where that is not only ours."""
        return None if self.call.startswith("call:") else self.call

    def records(self) -> list[Record]:
        """What it was read from."""
        return [event.record for event in self.events]


SENT, ANSWER, NOTHING = "sent", "answer", "nothing"
_NEAR = 256
"""Places that are looked at, of all where the same was said."""


class Node(msgspec.Struct, gc=False, eq=False):
    """A stretch of conversation: messages that a call sent, one of its answers, or that it got none."""

    call: Call
    kind: str
    number: int
    """Which of the nodes of its call, from 0."""
    parent: Node | None = None
    start: int = 0
    end: int = 0
    """Places in the path of the call, of what was sent."""
    choice: int = 0
    answered: bool = False
    """Whether a logged call answered before it."""
    children: list[Node] = msgspec.field(default_factory=list)
    depth: int = 0
    """Turns of the assistant from here to the farthest end."""
    latest: int | None = None
    """When the last call from here on was made."""

    def is_shared(self) -> bool:
        """Whether what leads here can only be one conversation: calls answered in it, or it is all that a call asked.
        Turns that no call gave may be demonstrations, which any number of strangers begin with.
        """
        return self.kind == ANSWER or self.answered or self.end == len(self.call.path)

    def rank(self) -> tuple[Any, ...]:
        """Among the children of a node the least goes on: where the log went on last; else where most was said."""
        latest = 0 if self.latest is None else self.latest
        return self.kind == NOTHING, -latest, -self.depth, self.call.order(), self.number


def call_ids(form: Body) -> list[str]:
    """Ids of the tool calls in a stored message, in order."""
    return [name for call in form.get("calls") or () if (name := call.get("id"))]


class Forest(msgspec.Struct, gc=False):
    """All trees of a family, every node after its parent; and every message that any call sent."""

    nodes: list[Node] = msgspec.field(default_factory=list)
    messages: dict[int, Body] = msgspec.field(default_factory=dict)
    places: dict[int, list[Node]] = msgspec.field(default_factory=dict)
    """State → where it was passed."""
    last: dict[str, Node] = msgspec.field(default_factory=dict)
    """Id of a response → the (first) answer in it."""

    def near(self, state: int, call: Call) -> list[Node]:
        """Where a state was passed, the last times before a call. The same words may be said ten thousand times (a
        program that asks for its state); what is meant is then among the last ones.
        """
        nodes = self.places.get(state, [])
        if len(nodes) <= _NEAR or call.moment is None:
            return nodes[-_NEAR:]
        end = bisect_right(nodes, call.order(), key=lambda node: node.call.order())
        return nodes[max(end - _NEAR, 0) : end]

    def ids(self, call: Call, place: int) -> set[str]:
        """Ids of the tool calls in the first messages that a call sent."""
        return {name for number in call.path[:place] for name in call_ids(self.messages.get(number, {}))}

    def alike(self, nodes: list[Node], call: Call, place: int) -> tuple[list[Node], bool]:
        """Of places where the same was said, those whose tool calls have the ids that a call's history has, where there
        are such; and whether there are. An id that its client put a prefix on is the same.
        """
        sent = self.ids(call, place)
        ranked: dict[int, list[Node]] = {}
        for node in nodes:
            known = self.ids(node.call, node.end if node.kind == SENT else len(node.call.path))
            if node.kind == ANSWER:
                known |= {name for form in node.call.answers[node.choice]["messages"] for name in call_ids(form)}
            other = known - sent
            found = 0 if not other else 1 if all(any(name in given for given in sent) for name in other) else 2
            ranked.setdefault(found, []).append(node)
        least = min(ranked)
        return ranked[least], least < 2

    def speaks(self, node: Node) -> bool:
        """Whether the assistant has a turn in it: an answer, or one that no logged call gave."""
        if node.kind != SENT:
            return node.kind == ANSWER
        forms = (self.messages.get(name, {}) for name in node.call.path[node.start : node.end])
        return any(form.get("role") == "assistant" for form in forms)

    def add(self, node: Node, state: int | None) -> Node:
        """Put a node under its parent."""
        self.nodes.append(node)
        if node.parent is not None:
            node.parent.children.append(node)
            node.answered = node.parent.answered or node.parent.kind == ANSWER
        if state is not None:
            self.places.setdefault(state, []).append(node)
        return node


def forest(family: Sequence[StoredEvent]) -> Forest:
    """The trees that the calls of a family are."""
    made = Forest()
    calls = _calls(family, made.messages)
    for call in sorted(calls.values(), key=_after_its_past(calls)):
        _grow(call, *_place(call, calls, made), made)
    for node in reversed(made.nodes):
        node.children.sort(key=Node.rank)
        below = max((child.depth for child in node.children), default=0)
        node.depth = below + made.speaks(node)
        moments = [child.latest for child in node.children if child.latest is not None]
        if node.call.moment is not None and node.kind != SENT:
            moments.append(node.call.moment)
        node.latest = max(moments, default=None)
    return made


def _after_its_past(calls: dict[str, Call]) -> Callable[[Call], tuple[Any, ...]]:
    """The order in which every call comes after those it can go on from: by length of the history, wherever it lies."""
    named = {call.response_id: call for call in calls.values() if call.response_id}

    def length(call: Call) -> int:
        found, seen = 0, set[str]()
        while call.call not in seen:
            seen.add(call.call)
            found += len(call.states)
            if call.previous not in named:
                break
            found, call = found + 2, named[call.previous]
        return found

    return lambda call: (length(call), call.order())


def _grow(call: Call, parent: Node | None, start: int, made: Forest) -> None:
    """The nodes of a call below the place that it goes on from."""
    number = 0
    states = [(place, state) for place, state in call.states if place > start]
    ends: list[tuple[int, int | None]] = [*states]
    if not ends or ends[-1][0] < len(call.path):
        ends.append((len(call.path), None))
    for end, state in ends:
        if end > start or parent is None:
            parent = made.add(Node(call, SENT, number, parent, start, end), state)
            number, start = number + 1, end
    for choice, out in enumerate(call.outs[: len(call.answers)]):
        node = made.add(Node(call, ANSWER, number + choice, parent, choice=choice), out)
        made.last.setdefault(call.response_id or call.call, node)
    if not call.answers:
        made.last.setdefault(call.response_id or call.call, made.add(Node(call, NOTHING, number, parent), None))


def _place(call: Call, calls: dict[str, Call], made: Forest) -> tuple[Node | None, int]:
    """The node that a call goes on from, and how much of its path that node's conversation has."""
    free = _free(call, made)
    if free is not None:
        return free
    for place, state in reversed(call.states):
        nodes = [node for node in made.near(state, call) if node.is_shared() and _not_later(node.call, call)]
        if nodes:
            best, same = made.alike(nodes, call, place)
            call.unsure = len(best) > 1 or not same
            return max(best, key=lambda node: node.call.order()), place
    if call.previous is not None:
        call.unsure = call.previous not in made.last
        if not call.unsure:
            return made.last[call.previous], 0
    elif call.thread is not None:
        earlier = [other for other in calls.values() if other.thread == call.thread and other.order() < call.order()]
        nodes = [
            node
            for other in sorted(earlier, key=Call.order)
            if (node := made.last.get(other.response_id or other.call))
        ]
        if nodes:
            return nodes[-1], 0
    return None, 0


def _free(call: Call, made: Forest) -> tuple[Node, int] | None:
    """The earliest answer that a call's history ends with (a user's last turn aside), not gone on from yet."""
    for place, state in call.states[:-3:-1]:
        nodes = [
            node
            for node in made.near(state, call)
            if node.kind == ANSWER and not node.children and _not_later(node.call, call)
        ]
        if nodes:
            best, same = made.alike(nodes, call, place)
            call.unsure = not same
            return min(best, key=lambda node: node.call.order()), place
    return None


def _not_later(earlier: Call, call: Call) -> bool:
    return earlier.moment is None or call.moment is None or earlier.moment <= call.moment


def _calls(family: Sequence[StoredEvent], messages: dict[int, Body]) -> dict[str, Call]:
    """Calls by name, copies and polls of one response made one; what they sent goes to `messages`."""
    found: dict[str, list[Call]] = {}
    bridges: dict[str, list[StoredEvent]] = {}
    kits: dict[str, Any] = {}
    for event in family:
        value = event.record.value
        if "bridge" in value:
            bridges.setdefault(value["bridge"], []).append(event)
            continue
        call = msgspec.convert(value, Call)
        call.key, call.moment, call.events = event.key, event.at, [event]
        event.record.notes, event.record.mended = tuple(call.notes), tuple(call.mended)
        messages.update((int(name), form) for name, form in call.said.items())
        kits.update(call.kits)
        found.setdefault(call.call, []).append(call)
    for call in (call for same in found.values() for call in same):
        call.tools = kits.get(str(call.kit))
    calls: dict[str, Call] = {}
    for name, same in sorted(found.items()):
        for number, call in enumerate(_distinct(same)):
            call.events += _once(bridges.get(name, ()))
            if number:
                # One id under two requests (a replayed recording): calls of their own, told apart by what they asked.
                call.call = f"{name}#{call.asked}"
            calls[call.call] = call
    return calls


def _once(bridges: Iterable[StoredEvent]) -> list[StoredEvent]:
    """Bridges that are records of their own, copies dropped; those that only link are the call's own record again."""
    found: dict[str, StoredEvent] = {}
    for event in bridges:
        record = event.record.value.get("record")
        if type(record) is str:
            found.setdefault(record, event)
    return list(found.values())


def _distinct(same: list[Call]) -> list[Call]:
    """Calls of one name, one for each request; polls, which send none, are added to the first."""
    asked: dict[int, list[Call]] = {}
    polls: list[Call] = []
    for call in same:
        if call.path or call.request:
            asked.setdefault(call.asked, []).append(call)
        else:
            polls.append(call)
    if not asked:
        return [_merged(polls)]
    merged = [_merged(calls) for calls in asked.values()]
    merged.sort(key=lambda call: (call.order(), call.asked))
    if polls:
        merged[0] = _merged([merged[0], *polls])
    return merged


def _merged(calls: list[Call]) -> Call:
    """The fullest of several logs of one call, with the request of the one that has it and the records of all."""
    ranked = sorted(calls, key=_fullness, reverse=True)
    best = ranked[0]
    first = min(calls, key=Call.order)
    sent = next((call for call in ranked if call.path or call.request), best)
    if sent is not best:
        outs = best.outs if best.asked == sent.asked or not sent.outs else sent.outs
        for name in ("path", "states", "asked", "request", "tools", "previous", "thread", "asked_model", "key"):
            setattr(best, name, getattr(sent, name))
        best.outs = outs
    else:
        best.key = min(call.key for call in calls if call.asked == best.asked)
    best.at, best.moment = first.at, first.moment
    logs: dict[str, StoredEvent] = {}
    for call in calls:
        for event in call.events:
            logs.setdefault(event.record.value["record"], event)
    best.events = [logs[name] for name in sorted(logs)]
    return best


def _fullness(call: Call) -> tuple[Any, ...]:
    return (
        call.done and call.error is None,
        bool(call.answers),
        len(call.answers),
        sum(len(answer.get("messages", ())) for answer in call.answers),
        call.usage is not None,
        call.moment or 0,
        msgspec.json.encode((call.answers, call.request, call.log, call.flags)),
    )
