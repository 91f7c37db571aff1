"""Records of a session that name the record before them: which chain of them is alive, and which were left."""

from __future__ import annotations

from typing import Any

import msgspec

from etl.conversation import Record


class Node(msgspec.Struct, gc=False, eq=False):
    """A record, and those that were written under the same id."""

    name: str
    value: dict[str, Any]
    records: list[Record]
    above: str | None = None
    """The record before it in its chain."""
    dangling: bool = False


class Chain(msgspec.Struct, gc=False):
    """A way through the tree: what it shares with the live one (or an earlier one), and what is its own."""

    before: list[Node]
    own: list[Node]


def chains(nodes: dict[str, Node]) -> list[Chain]:
    """The live chain (that of the last record that no other follows), then each that was left."""
    if not nodes:
        return []
    has_below = {node.above for node in nodes.values()}
    leaves = [node for node in nodes.values() if node.name not in has_below]
    found: list[Chain] = []
    taken: set[str] = set()
    for leaf in [leaves[-1], *leaves[:-1]] if leaves else [next(reversed(nodes.values()))]:
        path = _path(leaf, nodes)
        own = [node for node in path if node.name not in taken]
        taken.update(node.name for node in own)
        found.append(Chain([node for node in path if node not in own], own))
    return found


def _path(leaf: Node, nodes: dict[str, Node]) -> list[Node]:
    path: list[Node] = []
    seen: set[str] = set()
    node: Node | None = leaf
    while node is not None and node.name not in seen:
        seen.add(node.name)
        path.append(node)
        node = nodes.get(node.above) if node.above is not None else None
    return path[::-1]
