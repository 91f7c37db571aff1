"""ChatGPT exports (`conversations.json`): an array of conversations, each a tree of messages under `mapping`.

The row of a conversation is the way to `current_node`. Where that is missing or names no node, it is the way that takes
the last child at each turn, which is the answer regenerated last; the flag `ambiguous_parent` says so where there was a
choice. Every other way that was left is a row too: what it shares is inherited, and answers to one prompt are a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from etl.adapter import FileContext
from etl.adapters._blocks import identifier
from etl.adapters._branches import Branch, Tree, branches, name_of
from etl.adapters._chatgpt import Path, role_of
from etl.adapters._claude_lines import is_global
from etl.adapters._records import ClaimAdapter
from etl.conversation import Conversation, Identity, Outcome, Record, Unusable
from etl.identity import digest

_IDS = ("conversation_id", "id")


class ChatGPTExport(ClaimAdapter):
    """The conversations of a ChatGPT data export."""

    name = "chatgpt_export"
    version = 1
    about = "ChatGPT export: conversations.json, each a tree `mapping`; branches and regenerated answers are rows"
    splits = True

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of a `mapping` of nodes with message, parent and children."""
        mapping = value.get("mapping")
        if not isinstance(mapping, dict):
            return 0.0
        if not mapping:
            return 0.9 if "current_node" in value or "title" in value else 0.0
        nodes = [node for node in list(mapping.values())[:8] if isinstance(node, dict)]
        return (
            0.95 if nodes and all("message" in node and {"parent", "children"} & node.keys() for node in nodes) else 0.0
        )

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The rows of every conversation."""
        for record in records:
            value = record.value
            if not isinstance(value, dict) or not isinstance(value.get("mapping"), dict):
                yield Unusable(record, "no_mapping", "a conversation is an object with a `mapping` of nodes")
                continue
            yield from _Reading(record, value).rows()


class _Reading:
    """One conversation, being read."""

    def __init__(self, record: Record, value: dict[str, Any]) -> None:
        self.record, self.value = record, value
        self.nodes: dict[str, dict[str, Any]] = {}
        self.unread: dict[str, Any] = {}
        for name, node in value["mapping"].items():
            if isinstance(node, dict):
                self.nodes[name] = node
            else:
                self.unread[name] = node
        listed = {name: _names(node.get("children")) for name, node in self.nodes.items()}
        self.tree = Tree.of({name: identifier(node.get("parent")) for name, node in self.nodes.items()}, listed)
        found = next((identifier(value.get(key)) for key in _IDS if identifier(value.get(key))), None)
        self.id = found
        if found is not None and is_global(found):
            self.key = found
        else:
            told = (found, value.get("create_time"), None if found else next(iter(self._spoken()), None))
            self.key = f"chatgpt:{digest(msgspec.json.encode(told))}"

    def _spoken(self) -> Iterator[Any]:
        """What the nodes say, in order."""
        for node in self.nodes.values():
            message = node.get("message")
            if role_of(node) == "user" and isinstance(message, dict):
                yield [message.get("id"), message.get("create_time"), message.get("content")]

    def rows(self) -> Iterator[Outcome]:
        """The row of the current way, then those of ways that were left; or one reject."""
        if not self.nodes:
            yield Unusable(self.record, "no_messages", "the conversation has no nodes: nothing was said in it")
            return
        current = identifier(self.value.get("current_node"))
        chosen = current if current in self.nodes else None
        ways = branches(self.tree, chosen if chosen is not None else self.tree.end(-1))
        made: list[Conversation] = []
        for number, way in enumerate(ways):
            read = self._row(ways, number, way)
            if isinstance(read, str):
                yield Unusable(self.record, "bad_message", read)
                return
            if read is not None:
                made.append(read)
        if not made:
            yield Unusable(self.record, "no_messages", "no node of the conversation holds a message")
            return
        if chosen is None and len(ways) > 1:
            made[0].flags = {*(made[0].flags or ()), "ambiguous_parent"}
        yield from made

    def _row(self, ways: list[Branch], number: int, way: Branch) -> Conversation | str | None:
        path = Path()
        for index, name in enumerate(way.nodes):
            wrong = path.take(name, self.nodes[name], index < way.own)
            if wrong is not None:
                return wrong
        path.end()
        if all(message.inherited for message in path.messages):
            return None
        flags = {"abandoned"} if number else set()
        if any(name in self.tree.dangling for name in way.nodes):
            flags.add("ambiguous_parent")
        if path.interrupted:
            flags.add("interrupted")
        last = next((message for message in reversed(path.messages) if message.role == "assistant"), None)
        told = any(message.model for message in path.messages)
        group = self.tree.attempt(way, self._answers)
        return Conversation(
            path.messages,
            (self.record,),
            native_id=self.key,
            conversation_id=self.id,
            branch=name_of(ways, number),
            parent=None if way.parent is None else Identity(self.key, branch=name_of(ways, way.parent)),
            group=None if group is None else f"{self.key}:{group[0]}",
            sample_index=None if group is None else group[1],
            status="aborted" if path.interrupted else None,
            finish_reason=None if last is None else last.finish_reason,
            model=None if told else identifier(self.value.get("default_model_slug")),
            started_at=self.value.get("create_time") if number == 0 else None,
            flags=flags or None,
            extra=self._extra(path, number),
        )

    def _answers(self, name: str) -> bool:
        """Whether the model speaks at this node, or at the next one that has a message."""
        seen = {name}
        while (role := role_of(self.nodes[name])) is None or role == "system":
            name = next(iter(self.tree.below[name]), name)
            if name in seen:
                return False
            seen.add(name)
        return role == "assistant"

    def _extra(self, path: Path, number: int) -> dict[str, Any] | None:
        """Keys of the conversation and of nodes without a message, told once, with the current way."""
        if number:
            return None
        rest = {key: item for key, item in self.value.items() if key not in ("mapping", "create_time", *_IDS)}
        rest = {key: item for key, item in rest.items() if item is not None and item not in ([], {})}
        for key in _IDS:
            if self.value.get(key) is not None and identifier(self.value[key]) != self.id:
                rest[key] = self.value[key]
        hidden = {name: item for name, item in path.hidden.items() if item}
        structure = {"id", "message", "parent", "children"}
        more = {
            name: left
            for name, node in self.nodes.items()
            if (left := {key: item for key, item in node.items() if key not in structure})
        }
        for key, found in (("hidden_nodes", hidden), ("nodes", {**more, **self.unread})):
            if found:
                rest[key] = found
        return rest or None


def _names(value: Any) -> list[str]:
    return [name for item in value if (name := identifier(item)) is not None] if isinstance(value, list) else []
