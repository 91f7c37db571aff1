"""LibreChat conversations: exports (flat or as a tree), and dumps of its `messages` collection, a message a record.

Messages name the one before them: the way to the newest is the row of the conversation, every way that was left is
one too. Dumps may be MongoDB's extended JSON. A conversation of the collection of that name is a card without words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._blocks import identifier
from etl.adapters._branches import Tree
from etl.adapters._librechat_parts import answer, failure
from etl.adapters._records import ClaimAdapter, left
from etl.adapters._rollouts import count, items, obj, text
from etl.adapters._tree_rows import Said, Talk, chat_key, rows
from etl.conversation import Ignored, Message, Outcome, Record, Unusable, Verdict
from etl.times import instant

_MESSAGE = frozenset({"messageId", "parentMessageId", "isCreatedByUser"})
_CARD = frozenset({"conversationId", "endpoint", "user"})
_ROOT = "00000000-0000-0000-0000-000000000000"
_TREE = ("messages", "messagesTree")
_HELD = frozenset({
    "messageId", "parentMessageId", "conversationId", "isCreatedByUser", "text", "content", "createdAt", "model",
    "children", "finish_reason", "feedback", "error", "unfinished", "promptTokens", "files",
})  # fmt: skip
_SYSTEM = ("promptPrefix", "system")
_NUMBERS = ("$numberInt", "$numberLong", "$numberDouble")
_INDEX = "conversation_card"


class LibreChat(ClaimAdapter):
    """Conversations of LibreChat."""

    name = "librechat"
    about = "LibreChat: exports {conversationId, messages: [{messageId, parentMessageId, isCreatedByUser}]}, dumps"
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        _INDEX: "title and settings of a conversation, whose messages are in another collection"
    }

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of messages that name themselves and the one before, and of who made them."""
        if value.keys() >= _MESSAGE:
            return 0.95
        if "conversationId" not in value:
            return 0.0
        listed = next((value[key] for key in _TREE if isinstance(value.get(key), list)), None)
        if listed is None:
            return 0.0
        if "exportAt" not in value and value.keys() >= _CARD and not any(isinstance(item, dict) for item in listed):
            return 0.9
        fits = [isinstance(item, dict) and item.keys() >= _MESSAGE for item in listed[:8]]
        return 0.95 if fits and all(fits) else 0.9 if not fits and "exportAt" in value else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The rows of every export, and of every conversation that single messages name."""
        alone: dict[str, list[Record]] = {}
        values: dict[str, list[dict[str, Any]]] = {}
        for record in records:
            value = _plain(record.value) if b'"$' in record.raw else record.value
            if not isinstance(value, dict):
                yield Unusable(record, "not_an_object", "a record is a conversation or a message of one; this is none")
            elif value.keys() >= _MESSAGE:
                name = identifier(value.get("conversationId")) or ""
                alone.setdefault(name, []).append(record)
                values.setdefault(name, []).append(value)
            elif listed := next((items(value, key) for key in _TREE if any(map(_is_dict, items(value, key)))), None):
                yield from _rows([record], value, list(_flat(listed)))
            elif value.keys() >= _CARD:
                yield Ignored(_INDEX)
            else:
                yield Unusable(record, "no_messages", "nothing was said in this conversation")
        for name, found in alone.items():
            yield from _rows(found, {"conversationId": name or None}, values[name])


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _plain(value: Any) -> Any:
    """A value of MongoDB's extended JSON without its types."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, item),) = value.items()
        if key in ("$oid", "$date"):
            return _plain(item)
        if key in _NUMBERS and isinstance(item, str) and len(item) < 19 and item.lstrip("-").isdigit():
            return int(item)
    return {key: _plain(item) for key, item in value.items()}


def _flat(listed: list[Any]) -> Iterator[Any]:
    """The messages of a tree in order, each before those that follow it."""
    stack = listed[::-1]
    while stack:
        item = stack.pop()
        yield item
        stack += items(item, "children")[::-1]


def _rows(records: list[Record], value: dict[str, Any], listed: list[Any]) -> Iterator[Outcome]:
    nodes: dict[str, dict[str, Any]] = {}
    for index, item in enumerate(listed):
        if not isinstance(item, dict):
            yield from _refused(records, f"messages[{index}] is no object")
            return
        name = identifier(item.get("messageId"))
        nodes[name if name is not None and name not in nodes else f"{name or ''}#{index}"] = item
    times = {name: instant(item.get("createdAt")).micros for name, item in nodes.items()}
    known = [at for at in times.values() if at is not None]
    if len(known) == len(times):
        nodes = {name: nodes[name] for name in sorted(nodes, key=lambda name: times[name] or 0)}
    tree = Tree.of({name: _parent(item) for name, item in nodes.items()})
    leaves = tree.leaves()
    end = max(leaves, key=lambda name: times[name] or 0) if len(known) == len(times) else tree.end(-1)
    name = identifier(value.get("conversationId"))
    talk = Talk(_key(name, nodes), tree, end, lambda node: _said(nodes[node]), lambda node: not _typed(nodes[node]))
    made = rows(talk, records)
    if isinstance(made, str):
        yield from _refused(records, made)
        return
    options = obj(value, "options")
    system = next((said for key in _SYSTEM if (said := text(options.get(key)))), None)
    for row in made:
        row.conversation_id, row.agent = name, "librechat"
        row.model = None if any(message.model for message in row.messages) else text(options.get("model"))
        if system is not None:
            row.messages.insert(0, Message("system", system, inherited=row is not made[0]))
    made[0].ended_at = max(known) if known else None
    made[0].extra = _told(left(value, ("conversationId", *_TREE)))
    yield from made


def _refused(records: list[Record], why: str) -> Iterator[Outcome]:
    for record in records:
        yield Unusable(record, "bad_message", why)


def _told(value: dict[str, Any] | None) -> dict[str, Any] | None:
    return {key: item for key, item in (value or {}).items() if item not in ("", [], {}, False)} or None


def _parent(item: dict[str, Any]) -> str | None:
    parent = identifier(item.get("parentMessageId"))
    return None if parent == _ROOT else parent


def _typed(item: dict[str, Any]) -> bool:
    """Whether a person wrote it; tables have words for truth."""
    return item.get("isCreatedByUser") in (True, "true", "True", 1)


def _key(name: str | None, nodes: dict[str, dict[str, Any]]) -> str:
    first = next(iter(nodes.values()))
    return chat_key("librechat", name, [first.get("messageId"), first.get("createdAt"), first.get("text")])


def _said(item: dict[str, Any]) -> Said:
    """A message of a person or an answer, which may be several with results between."""
    typed = _typed(item)
    messages = answer(item)
    if typed:
        for message in messages:
            message.role = "user" if message.role == "assistant" else message.role
    first, last = messages[0], messages[-1]
    failed = None if typed else failure(item)
    for message in messages:
        message.at = item.get("createdAt")
        message.model = text(item.get("model")) if message.role == "assistant" else None
    first.id = identifier(item.get("messageId"))
    first.parts = [*(first.parts or ()), *items(item, "files")] or None
    if last.role == "assistant":
        last.finish_reason, last.input_tokens = text(item.get("finish_reason")), count(item.get("promptTokens"))
    rest = _told(left(item, _HELD))
    if rest is not None:
        first.extra = {**(first.extra or {}), **rest}
    if failed is not None:
        return Said(messages, None, _verdicts(item), "error", failed)
    stopped = not typed and item.get("unfinished") in (True, "true")
    return Said(messages, None, _verdicts(item), "aborted" if stopped else None)


def _verdicts(item: dict[str, Any]) -> list[Verdict] | None:
    """The thumb that a person gave an answer."""
    told = obj(item, "feedback")
    label = text(told.get("rating"))
    if label is None:
        return None
    tag = told.get("tag")
    key = text(tag.get("key")) if isinstance(tag, dict) else text(tag)
    reason = "; ".join(filter(None, (key, text(told.get("text")))))
    return [Verdict("feedback", "human", label=label, reason=reason or None)]
