"""The entries of one pi session as a tree, and the session that it was branched from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from etl.adapters._session import canonical, dict_of, list_of, stored, text_of
from etl.adapters._tree import Node
from etl.conversation import StoredEvent
from etl.identity import digest

_NAMED = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.jsonl)?\Z")


def parent_of(header: dict[str, Any]) -> str | None:
    """The session that a header says it was branched from; the path it names ends in that session's id.

    >>> parent_of({"branchedFrom": "/home/me/s/2026_d97339c6-6c10-4827-846b-9ff1d9c3dc37.jsonl"})
    'd97339c6-6c10-4827-846b-9ff1d9c3dc37'
    """
    path = text_of(header, "branchedFrom", "parentSession")
    found = _NAMED.search(path) if path is not None else None
    return path if found is None else found.group(1)


def header_of(events: Iterable[StoredEvent]) -> dict[str, Any]:
    """The header of a session; an empty object where it is not there."""
    values = (stored(event) for event in events)
    return next((value for value in values if text_of(value, "type") == "session"), {})


def nodes_of(events: Iterable[StoredEvent]) -> dict[str, Node]:
    """Entries in order, each under the one it names; one that names none, or the header, follows the one before it.

    A result may name the call that it answers: it hangs on the message that makes it.
    """
    nodes: dict[str, Node] = {}
    called: dict[str, str] = {}
    header: str | None = None
    last: str | None = None
    for event in events:
        value = stored(event)
        if not isinstance(value, dict):
            continue
        if text_of(value, "type") == "session":
            header = text_of(value, "id")
            continue
        name = text_of(value, "id")
        name = name if name is not None and name not in nodes else _unique(value, nodes)
        above = text_of(value, "parentId")
        node = Node(name, value, [event.record], called.get(above or "", above))
        if node.above not in nodes:
            node.dangling = above is not None and above != header
            node.above = last
        nodes[name] = node
        last = name
        for block in list_of(dict_of(value, "message"), "content"):
            if text_of(block, "type") == "toolCall" and (call := text_of(block, "id")):
                called[call] = name
    return nodes


def _unique(value: dict[str, Any], nodes: dict[str, Node]) -> str:
    """A name for an entry without one: a hash of it, with a number where it is there already."""
    name = digest(canonical(value).encode())
    number = 1
    unique = name
    while unique in nodes:
        number += 1
        unique = f"{name}.{number}"
    return unique


def said_in(events: Iterable[StoredEvent]) -> set[str]:
    """What the entries of a session say, to find them again in one that was branched from it."""
    return {_said(stored(event)) for event in events}


def is_in(value: dict[str, Any], said: set[str]) -> bool:
    """Whether an entry is among those of another session."""
    return _said(value) in said


def _said(value: Any) -> str:
    """An entry without what a copy may change: its place in the tree."""
    if not isinstance(value, dict):
        return ""
    return canonical({key: item for key, item in value.items() if key not in ("id", "parentId")})
