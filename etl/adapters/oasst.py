"""Open Assistant exports: trees of messages, nested (`prompt` with `replies`, one tree or root a line) or one message a
line.

Every way from the prompt to a last reply is a row. The row of a tree is the way of the best-ranked replies; what others
share with it is inherited, and replies to one message are a group. Ranks, labels and reviews stay with their message,
and the rank of a row's last reply is a judgment of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._branches import Branch, Tree, branches, name_of
from etl.adapters._training import Pairs
from etl.conversation import (
    Conversation,
    Fragment,
    Identity,
    Ignored,
    Message,
    Outcome,
    Record,
    StoredEvent,
    Unusable,
    Verdict,
)

_ROLES = {"prompter": "user", "user": "user", "assistant": "assistant", "system": "system"}
_HELD = frozenset({"message_id", "text", "role", "replies", "created_date", "parent_id", "message_tree_id"})
_LAST = 1 << 31
"""The rank of a message without one: after all others."""


class Oasst(Adapter):
    """Trees of prompts and ranked replies."""

    name = "oasst"
    version = 1
    about = (
        "Open Assistant trees: prompt and ranked replies, nested or one message a line; every way to a leaf is a row"
    )
    scores_share = True
    splits = True
    spans_files = True

    def score(self, sample: Sample) -> float:
        """Sure of messages with `message_id`, text and role, alone or as the prompt of a tree."""
        if not sample.values:
            return 0.0
        roots = [value.get("prompt", value) for value in sample.objects()]
        return sum(0.95 for root in roots if _is_message(root)) / len(sample.values)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The ways of nested trees; a message of a tree that lies in many records is a piece of it."""
        for record in records:
            value = record.value
            root = value.get("prompt", value) if isinstance(value, dict) else None
            if not isinstance(root, dict) or not _is_message(root):
                yield Unusable(record, "bad_message", "neither a tree with a prompt nor a message with id, text, role")
                continue
            tree = identifier(root.get("message_tree_id"))
            if root is value and "replies" not in root and tree is not None and root["role"] in _ROLES:
                yield Fragment(record, tree, at=root.get("created_date"))
            else:
                yield from _nested(record, root)

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The ways of a tree whose messages lie in many records, which may have come more than once."""
        growth = _Growth(family[0].key, {}, len(family))
        said = {msgspec.json.encode(event.record.value): event.record for event in family}
        for raw in sorted(said, key=lambda raw: (str(said[raw].value.get("created_date")), raw)):
            message = said[raw].value
            if identifier(message["message_id"]) not in growth.said:
                growth.add(message, identifier(message.get("parent_id")), said[raw])
        yield from growth.rows()


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and identifier(value.get("message_id")) is not None
        and isinstance(value.get("text"), str)
        and isinstance(value.get("role"), str)
    )


def _nested(record: Record, root: dict[str, Any]) -> Iterator[Outcome]:
    """The ways of a tree whose replies lie in it."""
    value = record.value
    about = {key: item for key, item in value.items() if key != "prompt"} if root is not value else {}
    name = identifier(about.pop("message_tree_id", None)) or identifier(root.get("message_id")) or ""
    growth = _Growth(name, about)
    waiting: list[tuple[Any, str | None]] = [(root, None)]
    while waiting:
        message, above = waiting.pop()
        wrong = growth.add(message, above, record)
        if wrong is not None:
            yield Unusable(record, "bad_message", wrong)
            return
        replies = message.get("replies")
        if isinstance(replies, list):
            waiting += [(reply, growth.latest) for reply in reversed(replies)]
        elif replies is not None:
            growth.odd[growth.latest] = replies
    yield from growth.rows()


class _Growth:
    """A tree, being put together."""

    def __init__(self, name: str, about: dict[str, Any], n_records: int | None = None) -> None:
        self.name, self.about, self.n_records = name, about, n_records
        self.said: dict[str, dict[str, Any]] = {}
        self.above: dict[str, str | None] = {}
        self.of: dict[str, Record] = {}
        self.odd: dict[str, Any] = {}
        """Replies that are no list, by message."""
        self.latest = ""

    def add(self, message: Any, above: str | None, record: Record) -> str | None:
        """Take a message in; what is wrong with it where it is none."""
        if not _is_message(message) or message["role"] not in _ROLES:
            told = message.get("role") if isinstance(message, dict) else message
            return f"a reply is no message with text and a known role ({plain(told)[:60]})"
        name = identifier(message["message_id"]) or ""
        number = 2
        while name in self.said:
            name = f"{message['message_id']}#{number}"
            number += 1
        self.said[name], self.above[name], self.of[name] = message, above, record
        self.latest = name
        return None

    def rows(self) -> Iterator[Conversation]:
        """The way of the best ranks, then all others."""
        tree = Tree.of(self.above)
        ways = branches(tree, self._best(tree))
        for number, way in enumerate(ways):
            yield self._row(tree, ways, number, way)

    def _best(self, tree: Tree) -> str:
        roots = [name for name, parent in self.above.items() if parent is None or parent not in self.said]
        at = roots[0] if roots else next(iter(self.said))
        seen = {at}
        while fresh := [name for name in tree.below[at] if name not in seen]:
            at = min(fresh, key=self._rank)
            seen.add(at)
        return at

    def _rank(self, name: str) -> int:
        rank = self.said[name].get("rank")
        return rank if type(rank) is int else _LAST

    def _row(self, tree: Tree, ways: list[Branch], number: int, way: Branch) -> Conversation:
        pairs = Pairs()
        messages = [self._message(name, pairs, index < way.own) for index, name in enumerate(way.nodes)]
        own = [name for name in way.nodes[way.own :] if self.said[name]["role"] == "assistant"]
        ranked = next((self._rank(name) for name in reversed(own) if self._rank(name) != _LAST), None)
        attempt = tree.attempt(way, lambda name: self.said[name]["role"] == "assistant")
        records = list({id(self.of[name]): self.of[name] for name in way.nodes}.values())
        key = self.name
        extra = {} if number else dict(self.about)
        if pairs.unread:
            extra["unread"] = pairs.unread
        return Conversation(
            messages,
            records,
            native_id=key,
            branch=name_of(ways, number),
            parent=None if way.parent is None else Identity(key, branch=name_of(ways, way.parent)),
            group=None if attempt is None else f"{key}:{attempt[0]}",
            sample_index=None if attempt is None else attempt[1],
            task_from_prompt=True,
            judgments=None if ranked is None else [Verdict("rank", "human", float(ranked))],
            flags={"ambiguous_parent"} if way.nodes[0] in tree.dangling else None,
            extra=extra or None,
            n_records=self.n_records,
        )

    def _message(self, name: str, pairs: Pairs, inherited: bool) -> Message:
        logged = self.said[name]
        role = _ROLES[logged["role"]]
        text, calls = logged["text"], None
        extra = {key: item for key, item in logged.items() if key not in _HELD and item is not None}
        if role == "assistant":
            text, asked = pairs.said(text, name)
            calls = pairs.asked(asked.calls) or None
            if asked.rest:
                extra["blocks"] = asked.rest
        if name in self.odd:
            extra["replies"] = self.odd[name]
        model = extra.get("model_name")
        if isinstance(model, str) and role == "assistant":
            del extra["model_name"]
        else:
            model = None
        tree = identifier(logged.get("message_tree_id"))
        if logged.get("message_tree_id") is not None and tree != self.name:
            extra["message_tree_id"] = logged["message_tree_id"]
        return Message(
            role,
            text,
            calls=calls,
            id=identifier(logged["message_id"]),
            at=logged.get("created_date"),
            model=model,
            inherited=inherited,
            extra=extra or None,
        )
