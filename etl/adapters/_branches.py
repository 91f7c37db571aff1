"""Conversations that are trees: each way from the root to a leaf, with what it has in common with earlier ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Branch(NamedTuple):
    """A way through the tree; `nodes[:own]` belong to the branch with the number `parent` or to ones before that."""

    nodes: list[str]
    own: int
    parent: int | None
    fork: str | None
    """The last node that it shares, where the ways part."""


class Tree(NamedTuple):
    """Nodes by the node above them; `dangling` ones name a node that is not there."""

    above: dict[str, str | None]
    below: dict[str, list[str]]
    dangling: set[str]

    @classmethod
    def of(cls, above: dict[str, str | None], listed: dict[str, list[str]] | None = None) -> Tree:
        """A tree of the parents that nodes name, in their order; `listed` gives children in theirs, and the parent of
        nodes that name none.
        """
        listed = listed or {}
        known = dict(above)
        dangling = {node for node, parent in above.items() if parent is not None and parent not in above}
        for parent, children in listed.items():
            for child in children:
                if child in known and (known[child] is None or child in dangling) and child != parent:
                    known[child] = parent
                    dangling.discard(child)
        below: dict[str, list[str]] = {node: [] for node in known}
        for parent, children in listed.items():
            below[parent] = list(dict.fromkeys(child for child in children if known.get(child) == parent))
        placed = {child for children in below.values() for child in children}
        for node, named in known.items():
            if node not in placed and named is not None and named in below:
                below[named].append(node)
        return cls(known, below, dangling)

    def path(self, node: str) -> list[str]:
        """The nodes from the root to this one; a circle is cut."""
        found: dict[str, None] = {}
        at: str | None = node
        while at is not None and at in self.above and at not in found:
            found[at] = None
            at = self.above[at]
        return list(found)[::-1]

    def leaves(self) -> list[str]:
        """Nodes that nothing follows, depth first in the order of children; of circles, which have none, one node."""
        roots = [node for node, parent in self.above.items() if parent is None or parent not in self.above]
        found: list[str] = []
        seen: set[str] = set()
        for start in [*roots, *self.above]:
            stack = [start] if start not in seen else []
            while stack:
                node = stack.pop()
                if node in seen:
                    continue
                seen.add(node)
                fresh = [child for child in self.below[node] if child not in seen]
                if not fresh:
                    found.append(node)
                stack += fresh[::-1]
        return found

    def end(self, turn: int) -> str:
        """Where the first (0) or last (-1) child of the first or last child ends, from the first or last root."""
        roots = [node for node, parent in self.above.items() if parent is None or parent not in self.above]
        at = roots[turn] if roots else next(iter(self.above))
        seen = {at}
        while fresh := [child for child in self.below[at] if child not in seen]:
            at = fresh[turn]
            seen.add(at)
        return at

    def attempt(self, way: Branch, answers: Callable[[str], bool]) -> tuple[str, int] | None:
        """Where answers to one prompt part on a way, and which of them it takes: of the first way the first such
        place, of others the one where they left. `answers` tells whether the model speaks at a node.
        """
        last = len(way.nodes) - 1
        places = range(last) if way.parent is None else range(max(way.own - 1, 0), min(way.own, last))
        for index in places:
            siblings = [node for node in self.below[way.nodes[index]] if answers(node)]
            if len(siblings) > 1 and way.nodes[index + 1] in siblings:
                return way.nodes[index], siblings.index(way.nodes[index + 1])
        return None


def name_of(ways: list[Branch], number: int) -> str:
    """What a way is called: the first node of its own, and nothing for the first way."""
    return ways[number].nodes[ways[number].own] if number else ""


def branches(tree: Tree, end: str) -> list[Branch]:
    """The way that ends in `end`, then every other one that has a node of its own."""
    found: list[Branch] = []
    owner: dict[str, int] = {}
    for leaf in [end, *(leaf for leaf in tree.leaves() if leaf != end)]:
        path = tree.path(leaf)
        own = next((index for index, node in enumerate(path) if node not in owner), len(path))
        if own == len(path):
            continue
        fork = path[own - 1] if own else None
        parent = owner[fork] if fork is not None else 0 if found else None
        for node in path[own:]:
            owner.setdefault(node, len(found))
        found.append(Branch(path, own, parent, fork))
    return found
