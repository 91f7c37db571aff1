"""Claude.ai exports (`conversations.json`): an array of conversations with `chat_messages`.

A message is read from its content blocks: its `text` is reasoning and answer glued together, and only what no block
says is kept of it. An answer that called tools is the messages that it was made of. Where messages name the one before
them, the way to the newest is the row of the conversation, and every way that was left is one too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from etl.adapter import FileContext
from etl.adapters._blocks import identifier, plain, read
from etl.adapters._branches import Branch, Tree, branches, name_of
from etl.adapters._claude_lines import is_global
from etl.adapters._records import ClaimAdapter
from etl.conversation import Conversation, Identity, Message, Outcome, Record, Unusable
from etl.identity import digest

_SENDERS = {"human": "user", "user": "user", "assistant": "assistant"}
_HELD = frozenset(
    {"uuid", "sender", "text", "content", "created_at", "attachments", "files", "files_v2", "parent_message_uuid"}
)
_ATTACHED = {"attachments": "attachment", "files": "file", "files_v2": "file"}
_MODELLED = frozenset({"uuid", "chat_messages", "created_at", "model"})


class ClaudeAiExport(ClaimAdapter):
    """The conversations of a Claude.ai data export."""

    name = "claude_ai_export"
    version = 1
    about = "Claude.ai export: conversations.json, {uuid, chat_messages: [{sender, content, …}]}; branches are rows"
    splits = True

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of `chat_messages` with senders."""
        listed = value.get("chat_messages")
        if not isinstance(listed, list):
            return 0.0
        if not listed:
            return 0.9 if "uuid" in value else 0.0
        return 0.95 if all(isinstance(item, dict) and "sender" in item for item in listed[:8]) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The rows of every conversation."""
        for record in records:
            value = record.value
            listed = value.get("chat_messages") if isinstance(value, dict) else None
            if not isinstance(listed, list):
                yield Unusable(record, "no_messages", "a conversation is an object with a list `chat_messages`")
                continue
            yield from _Reading(record, value, listed).rows()


class _Reading:
    """One conversation, being read."""

    def __init__(self, record: Record, value: dict[str, Any], listed: list[Any]) -> None:
        self.record, self.value = record, value
        self.said: dict[str, Any] = {}
        above: dict[str, str | None] = {}
        linked = any(isinstance(item, dict) and identifier(item.get("parent_message_uuid")) for item in listed)
        before = None
        for index, item in enumerate(listed):
            name = identifier(item.get("uuid")) if isinstance(item, dict) else None
            unique = name if name is not None and name not in self.said else f"{name or ''}#{index}"
            self.said[unique] = item
            parent = identifier(item.get("parent_message_uuid")) if isinstance(item, dict) else None
            above[unique] = parent if linked and parent in self.said and parent != unique else before
            if linked and parent is not None and parent not in self.said:
                above[unique] = None
            before = unique
        self.tree = Tree.of(above)
        self.id = identifier(value.get("uuid"))
        if self.id is not None and is_global(self.id):
            self.key = self.id
        else:
            told = (self.id, value.get("created_at"), None if self.id else listed[:1])
            self.key = f"claude_ai:{digest(msgspec.json.encode(told))}"

    def rows(self) -> Iterator[Outcome]:
        """The row of the newest way, then those of ways that were left; or one reject."""
        if not self.said:
            yield Unusable(self.record, "no_messages", "nothing was said in this conversation")
            return
        current = identifier(self.value.get("current_leaf_message_uuid"))
        ways = branches(self.tree, current if current in self.said else next(reversed(self.said)))
        made: list[Conversation] = []
        for number, way in enumerate(ways):
            read_as = self._row(ways, number, way)
            if isinstance(read_as, str):
                yield Unusable(self.record, "bad_message", read_as)
                return
            made.append(read_as)
        yield from made

    def _row(self, ways: list[Branch], number: int, way: Branch) -> Conversation | str:
        messages: list[Message] = []
        for index, name in enumerate(way.nodes):
            read_as = _messages(self.said[name])
            if isinstance(read_as, str):
                return f"chat message {name}: {read_as}"
            for message in read_as:
                message.inherited = index < way.own
            messages += read_as
        attempt = self.tree.attempt(way, self._answers)
        rest = {key: item for key, item in self.value.items() if key not in _MODELLED and item not in (None, "")}
        if self.value.get("uuid") is not None and self.id is None:
            rest["uuid"] = self.value["uuid"]
        return Conversation(
            messages,
            (self.record,),
            native_id=self.key,
            conversation_id=self.id,
            branch=name_of(ways, number),
            parent=None if way.parent is None else Identity(self.key, branch=name_of(ways, way.parent)),
            group=None if attempt is None else f"{self.key}:{attempt[0]}",
            sample_index=None if attempt is None else attempt[1],
            model=self.value.get("model"),
            started_at=self.value.get("created_at") if number == 0 else None,
            flags={"abandoned"} if number else None,
            extra=None if number else rest or None,
        )

    def _answers(self, name: str) -> bool:
        item = self.said[name]
        return isinstance(item, dict) and item.get("sender") == "assistant"


def _messages(item: Any) -> list[Message] | str:
    """The messages that one chat message is: results of tools stand between the pieces of an answer."""
    if not isinstance(item, dict):
        return "it is no object"
    role = _SENDERS.get(item["sender"]) if isinstance(item.get("sender"), str) else None
    if role is None:
        return f"its sender {plain(item.get('sender'))[:60]!r} is not known"
    content = item.get("content")
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    messages: list[Message] = []
    for piece in _pieces(blocks):
        messages += _piece(role, piece, item.get("created_at"))
    text = item["text"] if isinstance(item.get("text"), str) else ""
    if not messages:
        messages.append(Message(role, text, at=item.get("created_at")))
        text = ""
    first = messages[0]
    first.id = identifier(item.get("uuid"))
    extra = {key: value for key, value in item.items() if key not in _HELD and value is not None}
    for key, kind in _ATTACHED.items():
        attached = item.get(key)
        if isinstance(attached, list):
            parts = [{"type": kind, **part} if isinstance(part, dict) else part for part in attached]
            if key != "files_v2" or attached != item.get("files"):
                first.parts = [*(first.parts or ()), *parts] or None
        elif attached is not None:
            extra[key] = attached
    if left := _unsaid(text, messages):
        extra["text"] = left
    elif "text" in item and not isinstance(item["text"], str) and item["text"] is not None:
        extra["text"] = item["text"]
    if extra:
        first.extra = {**(first.extra or {}), **extra}
    return messages


def _pieces(blocks: list[Any]) -> Iterator[list[Any]]:
    """Runs of blocks: results apart from what is said before and after them."""
    run: list[Any] = []
    results = False
    for block in blocks:
        is_result = isinstance(block, dict) and block.get("type") == "tool_result"
        if run and is_result != results:
            yield run
            run = []
        results = is_result
        run.append(block)
    if run:
        yield run


def _piece(role: str, blocks: list[Any], at: Any) -> list[Message]:
    content = read(blocks)
    started = next((block["start_timestamp"] for block in blocks if _timed(block)), at)
    messages = [
        Message(
            "tool", found.text, call_id=found.call_id, name=found.name, parts=found.parts, failed=found.failed,
            at=started, extra=found.rest,
        )
        for found in content.results or ()
    ]  # fmt: skip
    if messages and not (content.text or content.reasoning or content.parts or content.calls):
        return messages
    extra = {"blocks": content.rest} if content.rest else None
    said = Message(role, content.text, content.reasoning, calls=content.calls, parts=content.parts, extra=extra)
    said.at = started
    return [*messages, said]


def _timed(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("start_timestamp"), str)


def _unsaid(text: str, messages: list[Message]) -> str:
    """What is left of a joined text without what the blocks say."""
    for message in messages:
        for said in (message.reasoning, message.content):
            for line in (said or "").split("\n") if said and said not in text else [said or ""]:
                if line.strip():
                    text = text.replace(line, "", 1)
    return text.strip()
