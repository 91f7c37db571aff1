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

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from etl.adapters._api_nodes import ANSWER, NOTHING, SENT, Forest, Node, not_later
from etl.adapters._api_repeats import Repeats
from etl.adapters._api_stored import Call, stored_calls
from etl.conversation import StoredEvent


def forest(family: Sequence[StoredEvent]) -> Forest:
    """The trees that the calls of a family are."""
    made = Forest()
    calls = stored_calls(family, made.messages)
    growth = _Growth(calls, made)
    for call in sorted(calls.values(), key=_after_its_past(calls)):
        growth.grow(call)
    made.nodes = [node for root in made.nodes if root.parent is None for node in _below(root)]
    for node in reversed(made.nodes):
        node.children.sort(key=Node.rank)
        below = max((child.depth for child in node.children), default=0)
        node.depth = below + made.speaks(node)
        moments = [child.latest for child in node.children if child.latest is not None]
        if node.call.moment is not None and node.kind != SENT:
            moments.append(node.call.moment)
        node.latest = max(moments, default=None)
    return made


def _below(root: Node) -> Iterator[Node]:
    """A node and all under it, each after its parent."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children


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


class _Growth:
    """The calls of a family, put into trees one after another."""

    def __init__(self, calls: dict[str, Call], made: Forest) -> None:
        self._calls = calls
        self._made = made
        self._grown: set[str] = set()
        self._repeats = Repeats(calls, made, self.grow)

    def grow(self, call: Call) -> None:
        """Put a call where it goes on from, once."""
        if call.call not in self._grown:
            self._grown.add(call.call)
            self._nodes(call, *_place(call, self._calls, self._made))

    def _nodes(self, call: Call, parent: Node | None, start: int) -> None:
        """The nodes of a call below the place that it goes on from."""
        made = self._made
        number = 0
        states = [(place, state) for place, state in call.states if place > start]
        ends: list[tuple[int, int | None]] = [*states]
        if not ends or ends[-1][0] < len(call.path):
            ends.append((len(call.path), None))
        if parent is None and 0 < (first := made.first_turn(call)) < ends[0][0]:
            parent = self._repeats.rooted(call, first, ends[0][0])
            if parent is None:
                ends.insert(0, (first, None))
            else:
                start = ends[0][0]
                made.pass_by(parent, ends[0][1])
        for end, state in ends:
            if end <= start and parent is not None:
                continue
            given = self._repeats.given(call, parent, start, end)
            if given is not None:
                parent = given
                made.pass_by(given, state)
            else:
                parent = made.add(Node(call, SENT, number, parent, start, end), state)
                parent.repeated = self._repeats.elsewhere(call, start, end)
                number += 1
            start = end
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
        nodes = [node for node in made.near(state, call) if node.is_shared() and not_later(node.call, call)]
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
            if node.kind == ANSWER and not node.children and not_later(node.call, call)
        ]
        if nodes:
            best, same = made.alike(nodes, call, place)
            call.unsure = not same
            return min(best, key=lambda node: node.call.order()), place
    return None
