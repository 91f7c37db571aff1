"""The grid: every pair that can be is covered, what cannot be never comes, cells do not depend on the budget."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.errors import UsageError
from etl.simulator.domain import Domain
from etl.simulator.grid import Grid
from etl.simulator.limits import DIMENSIONS
from etl.simulator.tools import as_tools
from tests.simulator.shop import PROMPT, TOOLS

DOMAIN = Domain(as_tools(TOOLS), PROMPT)


@pytest.fixture(scope="module")
def whole():
    """The grid of all tools, made once."""
    return Grid(list(DOMAIN.tools), DOMAIN.meanings, DOMAIN.rules, seed=0)


def grid(**chosen):
    return Grid(list(DOMAIN.tools), DOMAIN.meanings, DOMAIN.rules, seed=0, chosen=chosen)


def test_the_first_cells_cover_every_pair_that_a_cell_can_have(whole):
    seen = {
        (a, cell[a], b, cell[b])
        for cell in (whole.cell(number) for number in range(4_000))
        for a, b in itertools.combinations(DIMENSIONS, 2)
    }
    first = {
        (a, cell[a], b, cell[b])
        for cell in (whole.cell(number) for number in range(len(whole.array)))
        for a, b in itertools.combinations(DIMENSIONS, 2)
    }
    assert seen == first
    told = whole.tuples(len(whole.array))
    assert told.covered == told.planned == len(first)
    assert told.planned + sum(told.impossible.values()) == sum(
        len(whole.values[a]) * len(whole.values[b]) for a, b in itertools.combinations(DIMENSIONS, 2)
    )


@given(st.integers(min_value=0, max_value=10**7))
def test_any_cell_is_whole_and_can_be(whole, number):
    cell = whole.cell(number)
    assert tuple(cell) == DIMENSIONS
    assert all(cell[name] in whole.values[name] for name in DIMENSIONS)
    assert whole.why_not(cell) is None


def test_cells_are_spread_evenly_beyond_the_array(whole):
    cells = [whole.cell(number) for number in range(len(whole.array), len(whole.array) + 800)]
    per_tool = {tool: sum(cell["tool"] == tool for cell in cells) for tool in whole.values["tool"]}
    assert max(per_tool.values()) - min(per_tool.values()) <= 2
    for name in DIMENSIONS:
        assert {cell[name] for cell in cells} == set(whole.values[name])


def test_another_seed_gives_other_cells_and_the_same_seed_the_same(whole):
    other = Grid(list(DOMAIN.tools), DOMAIN.meanings, DOMAIN.rules, seed=1)
    again = Grid(list(DOMAIN.tools), DOMAIN.meanings, DOMAIN.rules, seed=0)
    numbers = [0, 5, 500, 5_000]
    assert [again.cell(n) for n in numbers] == [whole.cell(n) for n in numbers]
    assert [other.cell(n) for n in numbers] != [whole.cell(n) for n in numbers]


def test_a_tool_without_a_record_has_no_missing_record(whole):
    assert whole.why_not({"tool": "calculate", "world_state": "missing"}) is not None
    assert whole.why_not({"tool": "get_order", "world_state": "missing"}) is None


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"mood": ["calm"]}, "no dimension is called 'mood'; dimensions: tool, tool_condition"),
        ({"stance": ["sleepy"]}, "stance has no value 'sleepy'; values: ordinary"),
        ({"tool": ["calculate"], "world_state": ["missing"]}, "no situation has all the values that were chosen"),
    ],
)
def test_a_grid_that_cannot_be_is_one_line(chosen, said):
    with pytest.raises(UsageError, match=said):
        grid(**chosen)


def test_a_chosen_value_holds_everywhere():
    chosen = grid(stance=["hurried"], length=["short"])
    cells = [chosen.cell(number) for number in range(300)]
    assert {(cell["stance"], cell["length"]) for cell in cells} == {("hurried", "short")}


def test_triples_can_be_covered_too():
    tools = list(DOMAIN.tools)[:1]
    triples = Grid(tools, DOMAIN.meanings, {}, seed=0, strength=3)
    told = triples.tuples(len(triples.array))
    assert told.strength == 3
    assert told.covered == told.planned > 400
