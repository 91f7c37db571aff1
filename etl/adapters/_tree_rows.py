"""Rows of a chat that is a tree of messages: the way that counts, and every way that was left.

What a way shares with an earlier one is inherited, answers to one prompt are a group. How a node is read is the
format's own; a node may be several messages, where an answer called tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from etl.adapters._branches import Branch, Tree, branches, name_of
from etl.adapters._claude_lines import is_global
from etl.adapters._session import summed
from etl.conversation import Conversation, Identity, Message, Record, Tokens, Verdict
from etl.decode import encode
from etl.identity import digest


def chat_key(made_by: str, name: str | None, first: Sequence[Any]) -> str:
    """A chat is known by its id where that is unique by its making, else by that and what its first message says."""
    if name is not None and is_global(name):
        return name
    return f"{made_by}:{digest(encode([name, *first]).encode('utf-8', 'surrogatepass'))}"


class Said(msgspec.Struct):
    """What one node says."""

    messages: list[Message]
    usage: Tokens | None = None
    verdicts: list[Verdict] | None = None
    status: str | None = None
    """How a conversation that ends here ended, where the node tells."""
    error: str | None = None


class Talk(NamedTuple):
    """A chat as a tree; `read` makes the messages of a node anew each time, or says what is wrong with it."""

    key: str
    tree: Tree
    end: str
    read: Callable[[str], Said | str]
    answers: Callable[[str], bool]
    """Whether the model speaks at a node."""


def rows(talk: Talk, records: Sequence[Record]) -> list[Conversation] | str:
    """The row of the way to the end, then those of ways that were left; or what is wrong with a node."""
    ways = branches(talk.tree, talk.end)
    made: list[Conversation] = []
    for number, way in enumerate(ways):
        row = _row(talk, records, ways, number, way)
        if isinstance(row, str):
            return row
        made.append(row)
    return made


def _row(talk: Talk, records: Sequence[Record], ways: list[Branch], number: int, way: Branch) -> Conversation | str:
    said: list[Said] = []
    for index, name in enumerate(way.nodes):
        read = talk.read(name)
        if isinstance(read, str):
            return f"message {name}: {read}"
        for message in read.messages:
            message.inherited = index < way.own
        said.append(read)
    own = said[way.own :]
    group = talk.tree.attempt(way, talk.answers)
    flags = {"abandoned"} if number else set()
    if any(name in talk.tree.dangling for name in way.nodes):
        flags.add("ambiguous_parent")
    messages = [message for each in said for message in each.messages]
    last = next((message for message in reversed(messages) if message.role == "assistant"), None)
    return Conversation(
        messages,
        records[:1] if number else records,
        native_id=talk.key,
        branch=name_of(ways, number),
        parent=None if way.parent is None else Identity(talk.key, branch=name_of(ways, way.parent)),
        group=None if group is None else f"{talk.key}:{group[0]}",
        sample_index=None if group is None else group[1],
        status=said[-1].status,
        error=said[-1].error,
        finish_reason=None if last is None else last.finish_reason,
        usage=summed(each.usage for each in own if each.usage is not None),
        judgments=[verdict for each in own for verdict in each.verdicts or ()] or None,
        flags=flags or None,
        n_records=len(talk.tree.above),  # of all ways: a chat that goes on elsewhere is a later version of itself
    )
