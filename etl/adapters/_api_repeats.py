"""Turns that a history repeats otherwise than they were logged: answers asked for again, answers that a client edited.

An agent whose answer cannot be used asks again with the answer and a complaint, and leaves both out of all that it
sends later: the better answer then stands where the first one stood. It was given to a longer history than it is
repeated in, so no hash finds it; it is found by what it says and by the place where its own history leaves this one.
The answer moves to that place (`reasked`), what it was asked with stays behind as a branch.

A client may also keep the text of an answer and drop its calls, or the other way round: the answer at that place is
meant if ids, calls or text agree (`edited_history`).
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from etl.adapters._api_chain import atoms
from etl.adapters._api_form import Body, unpacked
from etl.adapters._api_nodes import ANSWER, Forest, Node, is_same_id, not_later
from etl.adapters._api_stored import Call

_BETWEEN = re.compile(r"[\W_]+")
_NEAR = 64
"""Answers that say the same, and conversations with the same opening, that are looked at."""
_Item = TypeVar("_Item")
_DEPTH = 50
"""Calls that are put into trees on the way to another, at most."""
_PIECE = 16
"""Characters of a text that is taken for a piece of a longer one, at least."""


class _Turn(NamedTuple):
    """What the assistant says between two others."""

    atoms: bytes
    ids: frozenset[str]
    text: str
    calls: bytes
    """The atoms of its tool calls alone."""


def _turn(forms: Iterable[Body]) -> _Turn:
    messages = [unpacked(form) for form in forms if form.get("role") == "assistant"]
    ids = frozenset(call.id for message in messages for call in message.calls or () if call.id)
    text = "\n".join(message.content.strip() for message in messages if message.content.strip())
    whole = b"".join(map(atoms, messages))
    for message in messages:
        message.content = ""
    return _Turn(whole, ids, text, b"".join(map(atoms, messages)))


class Repeats:
    """Finds the answers that the calls of a family repeat in their own way."""

    def __init__(self, calls: dict[str, Call], made: Forest, grow: Callable[[Call], None]) -> None:
        self._calls = calls
        self._made = made
        self._grow = grow
        self._depth = 0
        self._answers: dict[bytes, list[tuple[Call, int, _Turn]]] | None = None
        self._passed: set[int] = set()
        self._roots: dict[bytes, list[Node]] = {}
        self._seen_roots = 0

    def given(self, call: Call, parent: Node | None, start: int, end: int) -> Node | None:
        """The logged answer that this stretch of a call's history is, where it is none by its hash."""
        if parent is None or not self._speaks(call, start, end):
            return None
        turn = _turn(self._forms(call, start, end))
        for node in reversed(parent.children):
            if node.kind == ANSWER and not_later(node.call, call) and _edited(turn, self._said(node)):
                node.flags.add("edited_history")
                return node
        return self._asked_again(call, turn, lambda node: node is parent)

    def rooted(self, call: Call, first: int, end: int) -> Node | None:
        """The same for the first answer of all, whose place is any conversation that begins with the same question."""
        if not self._speaks(call, first, end):
            return None
        turn, opening = _turn(self._forms(call, first, end)), self._told(call, 0, first)
        found = self._asked_again(
            call, turn,
            lambda node: node.parent is None and node.end == self._made.first_turn(node.call)
            and self._told(node.call, 0, node.end) == opening,
        )  # fmt: skip
        if found is not None:
            return found
        near = _last(self._same_opening(opening), call, lambda root: root.call.order())
        nodes = [node for root in near for node in root.children if node.kind == ANSWER and not_later(node.call, call)]
        same = [node for node in nodes if _stripped(turn, self._said(node))]
        if not same:
            return None
        best = max(same, key=lambda node: (not node.children, node.call.order()))
        best.flags.add("edited_history")
        return best

    def elsewhere(self, call: Call, start: int, end: int) -> bool:
        """Whether a logged call gave this turn, in another conversation: ids of calls are told by their provider."""
        if not self._speaks(call, start, end):
            return False
        turn = _turn(self._forms(call, start, end))
        return bool(turn.ids) and any(
            other is not call and answer.ids == turn.ids
            for other, _, answer in _last(self._known(turn.atoms), call, lambda known: known[0].order())
        )

    def _asked_again(self, call: Call, turn: _Turn, is_place: Callable[[Node], bool]) -> Node | None:
        """The answer that was given to a longer history, at the place where that leaves this one."""
        if not turn.atoms:
            return None
        found: list[tuple[bool, tuple[Any, ...], Node, Node]] = []
        for other, choice, answer in _last(self._known(turn.atoms), call, lambda known: known[0].order()):
            if other is call or not not_later(other, call) or not _same_ids(answer.ids, turn.ids):
                continue
            self._ensure(other)
            node = self._made.answers.get((other.call, choice))
            if node is None or node.children or other.outs[choice] in self._passed:
                continue
            below = self._branch(node, is_place)
            if below is not None and self._said(below).atoms != turn.atoms:
                found.append((answer.ids == turn.ids, other.order(), node, below))
        if not found:
            return None
        *_, node, below = max(found, key=lambda each: each[:2])
        node.instead = below.call.response_id or below.call.named()
        node.flags.add("reasked")
        assert below.parent is not None
        self._made.move(node, below.parent)
        return node

    def _branch(self, node: Node, is_place: Callable[[Node], bool]) -> Node | None:
        """The turn below the place that an answer's own history went by; None where it did not, or ends there."""
        below = node
        while below.parent is not None:
            if is_place(below.parent):
                return None if below is node else below
            below = below.parent
        return None

    def _ensure(self, call: Call) -> None:
        if self._depth < _DEPTH:
            self._depth += 1
            self._grow(call)
            self._depth -= 1

    def _known(self, said: bytes) -> list[tuple[Call, int, _Turn]]:
        """The logged answers that say this."""
        if self._answers is None:
            self._answers = {}
            for call in sorted(self._calls.values(), key=Call.order):
                self._passed.update(state for _, state in call.states)
                for choice, answer in enumerate(call.answers[: len(call.outs)]):
                    turn = _turn(answer.get("messages", ()))
                    self._answers.setdefault(turn.atoms, []).append((call, choice, turn))
        return self._answers.get(said, [])

    def _same_opening(self, opening: bytes) -> list[Node]:
        new = self._made.roots[self._seen_roots :]
        self._seen_roots += len(new)
        for root in new:
            if root.end == self._made.first_turn(root.call):
                same = self._roots.setdefault(self._told(root.call, 0, root.end), [])
                insort(same, root, key=lambda other: other.call.order())
        return self._roots.get(opening, [])

    def _said(self, node: Node) -> _Turn:
        if node.kind == ANSWER:
            return _turn(node.call.answers[node.choice].get("messages", ()))
        return _turn(self._forms(node.call, node.start, node.end))

    def _told(self, call: Call, start: int, end: int) -> bytes:
        return b"".join(atoms(unpacked(form)) for form in self._forms(call, start, end))

    def _forms(self, call: Call, start: int, end: int) -> Iterator[Body]:
        return (self._made.messages.get(name, {"role": "user"}) for name in call.path[start:end])

    def _speaks(self, call: Call, start: int, end: int) -> bool:
        return any(form.get("role") == "assistant" for form in self._forms(call, start, end))


def _last(known: list[_Item], call: Call, order: Callable[[_Item], tuple[Any, ...]]) -> list[_Item]:
    """Of things in the order of their calls, the last ones before a call: one answer may be given a million times."""
    end = len(known) if call.moment is None else bisect_right(known, call.order(), key=order)
    return known[max(end - _NEAR, 0) : end]


def _same_ids(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether calls can be the same: a client may put a prefix on an id, or leave it out."""
    return not one or not other or all(any(is_same_id(name, given) for given in other) for name in one)


def _stripped(turn: _Turn, answer: _Turn) -> bool:
    """Whether a turn is an answer whose calls the client dropped, or one with the same ids of calls."""
    if turn.ids & answer.ids:
        return True
    return not turn.calls and bool(answer.calls) and _words(turn.text) == _words(answer.text)


def _edited(turn: _Turn, answer: _Turn) -> bool:
    """The same within one conversation, where also a text that was cut, or calls with another text, will do."""
    if _stripped(turn, answer):
        return True
    if turn.calls or answer.calls:
        return turn.calls == answer.calls and _same_ids(turn.ids, answer.ids)
    short, long = sorted((_words(turn.text), _words(answer.text)), key=len)
    return len(short) >= _PIECE and short in long


def _words(text: str) -> str:
    """A text as far as clients leave it alone: letters and digits, without marks, spaces and quotes of either kind."""
    return _BETWEEN.sub("", text).casefold()
