"""Nodes of the trees that calls are: stretches of conversation between two states that calls were seen in."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import msgspec

from etl.adapters._api_form import Body
from etl.adapters._api_stored import Call

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
    repeated: bool = False
    """Whether a logged call gave this turn in another conversation."""
    instead: str | None = None
    """The call whose answer was thrown away for this one."""
    flags: set[str] = msgspec.field(default_factory=set)

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


def is_same_id(one: str, other: str) -> bool:
    """Whether two ids of tool calls are one: a client may put a prefix on an id.

    >>> is_same_id("call_1", "resp_7:call_1"), is_same_id("call_1", "call_12"), is_same_id("1", "21")
    (True, False, False)
    """
    short, long = sorted((one, other), key=len)
    return long.endswith(short) and (len(short) == len(long) or not long[-len(short) - 1].isalnum())


class Forest(msgspec.Struct, gc=False):
    """All trees of a family, every node after its parent; and every message that any call sent."""

    nodes: list[Node] = msgspec.field(default_factory=list)
    messages: dict[int, Body] = msgspec.field(default_factory=dict)
    places: dict[int, list[Node]] = msgspec.field(default_factory=dict)
    """State → where it was passed."""
    last: dict[str, Node] = msgspec.field(default_factory=dict)
    """Id of a response → the (first) answer in it."""
    answers: dict[tuple[str, int], Node] = msgspec.field(default_factory=dict)
    """Name of a call and number of a choice → the answer."""
    roots: list[Node] = msgspec.field(default_factory=list)

    def near(self, state: int, call: Call) -> list[Node]:
        """Where a state was passed, the last times before a call. The same words may be said ten thousand times (a
        program that asks for its state); what is meant is then among the last ones.
        """
        nodes = self.places.get(state, [])
        if len(nodes) <= _NEAR or call.moment is None:
            return nodes[-_NEAR:]
        end = bisect_right(nodes, call.order(), key=lambda node: node.call.order())
        return nodes[max(end - _NEAR, 0) : end]

    def ids(self, call: Call, place: int, start: int = 0) -> set[str]:
        """Ids of the tool calls in messages that a call sent: the first ones, up to a place."""
        return {name for number in call.path[start:place] for name in call_ids(self.messages.get(number, {}))}

    def alike(self, nodes: list[Node], call: Call, place: int) -> tuple[list[Node], bool]:
        """Of places where the same was said, those whose tool calls have the ids that a call's history has, where there
        are such; and whether there are. An id that its client put a prefix on is the same.
        """
        if len(nodes) == 1 and nodes[0].kind == ANSWER:
            # Nearly always: a request that repeats an earlier one to the letter, and its answer.
            (node,) = nodes
            before = node.call.path
            given = {name for form in node.call.answers[node.choice]["messages"] for name in call_ids(form)}
            if call.path[: len(before)] == before and given <= self.ids(call, place, len(before)):
                return nodes, True
        sent = self.ids(call, place)
        ranked: dict[int, list[Node]] = {}
        for node in nodes:
            known = self.ids(node.call, node.end if node.kind == SENT else len(node.call.path))
            if node.kind == ANSWER:
                known |= {name for form in node.call.answers[node.choice]["messages"] for name in call_ids(form)}
            other = known - sent
            found = (
                0 if not other else 1 if all(any(is_same_id(name, given) for given in sent) for name in other) else 2
            )
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
        else:
            self.roots.append(node)
        if node.kind == ANSWER:
            self.answers[node.call.call, node.choice] = node
        self.pass_by(node, state)
        return node

    def pass_by(self, node: Node, state: int | None) -> None:
        """Remember that a state was passed at a node."""
        if state is not None:
            self.places.setdefault(state, []).append(node)

    def move(self, node: Node, parent: Node) -> None:
        """Put a node without children under another parent."""
        assert node.parent is not None
        node.parent.children.remove(node)
        node.parent = parent
        parent.children.append(node)
        node.answered = parent.answered or parent.kind == ANSWER

    def first_turn(self, call: Call) -> int:
        """The place of the first turn of the assistant after one of a user; the end where there is none."""
        asked = False
        for place, name in enumerate(call.path):
            role = self.messages.get(name, {}).get("role")
            if role == "assistant" and asked:
                return place
            asked = asked or role == "user"
        return len(call.path)


def not_later(earlier: Call, call: Call) -> bool:
    """Whether one call can have come before another, as far as their times are known."""
    return earlier.moment is None or call.moment is None or earlier.moment <= call.moment
