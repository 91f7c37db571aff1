"""Trees of any shape: every node is on a way, and one way owns it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from etl.adapters._branches import Tree, branches

_names = st.sampled_from("abcdefgh")


@given(st.dictionaries(_names, st.none() | _names, min_size=1), st.dictionaries(_names, st.lists(_names)), st.data())
def test_each_node_has_one_owner(
    above: dict[str, str | None], listed: dict[str, list[str]], data: st.DataObject
) -> None:
    tree = Tree.of(above, {name: children for name, children in listed.items() if name in above})
    end = data.draw(st.sampled_from(sorted(above)))
    ways = branches(tree, end)
    assert ways[0].nodes[-1] == end
    assert {node for way in ways for node in way.nodes} == set(above)
    assert all(way.own < len(way.nodes) for way in ways)
    assert all(way.parent is not None and way.parent < number for number, way in enumerate(ways) if number)


@given(st.integers(1, 12), st.data())
def test_of_a_sound_tree_every_leaf_is_one_way(size: int, data: st.DataObject) -> None:
    above: dict[str, str | None] = {"0": None}
    for number in range(1, size):
        above[str(number)] = str(data.draw(st.integers(0, number - 1)))
    tree = Tree.of(above)
    leaves = set(above) - {parent for parent in above.values() if parent}
    ways = branches(tree, tree.leaves()[0])
    assert {way.nodes[-1] for way in ways} == leaves
    owned = [node for way in ways for node in way.nodes[way.own :]]
    assert sorted(owned) == sorted(above)
    for way in ways:
        assert all(above[lower] == upper for upper, lower in zip(way.nodes, way.nodes[1:], strict=False))
