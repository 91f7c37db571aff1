"""The answer key is exact: readers that know nothing of the generator find each planted mistake, and no other."""

import json
from collections import Counter

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import etl
from etl.errors import UsageError
from etl.simulator.mistakes import BEHAVIORS
from tests.examples import examples
from tests.simulator.detectors import DETECTORS, found
from tests.simulator.schemas import SCHEMAS
from tests.simulator.shop import PROMPT, TOOLS


@pytest.fixture(scope="module", params=[0, pytest.param(1, marks=pytest.mark.slow)])
def rows(request):
    agent = etl.seeded_agent(TOOLS, rate=0.6)
    made = etl.simulate(agent, tools=TOOLS, system_prompt=PROMPT, budget=1_200, seed=request.param, reward="seeded")
    return made.table.to_pylist()


def test_each_planted_mistake_is_found_where_it_is_named_and_nowhere_else(rows):
    assert set(DETECTORS) == set(BEHAVIORS)
    for row in rows:
        assert found(row) == set(row["seeded"]), row["conversation_id"]
    assert {name for row in rows for name in row["seeded"]} == set(BEHAVIORS)


def test_the_share_of_planted_mistakes_is_the_rate(rows):
    assert sum(bool(row["seeded"]) for row in rows) / len(rows) == pytest.approx(0.6, abs=0.05)
    assert all(len(row["seeded"]) <= 1 for row in rows)
    assert all(row["reward"] == (0.0 if row["seeded"] else 1.0) for row in rows)


def test_who_behaves_ends_in_the_expected_state(rows):
    for row in rows:
        broken = [judgment for judgment in row["judgments"] if judgment["value"] != 1.0]
        assert row["seeded"] or not broken, row["conversation_id"]
        extra = json.loads(row["extra"])
        same = extra["state_after"] == extra["state_expected"]
        assert row["judgments"][0]["name"] == "end_state"
        assert row["judgments"][0]["value"] == float(same)


def test_a_claim_of_success_alone_scores_nothing(rows):
    claimed = [row for row in rows if row["seeded"] == ["ignore_fault"]]
    assert claimed
    assert all(min(judgment["value"] for judgment in row["judgments"]) == 0.0 for row in claimed)


def test_every_argument_validates_unless_that_is_the_mistake(rows):
    for row in rows:
        tools = {t["function"]["name"]: jsonschema_rs.validator_for(t["function"]["parameters"], validate_formats=True)
                 for t in json.loads(row["tools"])}  # fmt: skip
        valid = [tools[step["tool"]].is_valid(json.loads(step["arguments"])) for step in row["steps"]]
        assert all(valid) or row["seeded"] == ["wrong_argument"]


def test_conversations_are_no_one_liners(rows):
    turns = Counter(row["scenario"]["length"] for row in rows)
    assert set(turns) == {"short", "medium", "long"}
    for row in rows:
        least, most = {"short": (1, 1), "medium": (2, 3), "long": (4, 6)}[row["scenario"]["length"]]
        assert least <= row["n_turns"] <= most
        assert row["messages"][-1]["role"] == "assistant"
        assert row["final_text"]
    assert any(len(m["tool_calls"] or ()) > 1 for row in rows for m in row["messages"])
    assert any(len({step["tool"] for step in row["steps"]}) > 1 for row in rows)


def test_every_tool_succeeds_and_fails(rows):
    met = Counter((step["tool"], step["condition"] == "success") for row in rows for step in row["steps"])
    names = [tool["function"]["name"] for tool in TOOLS]
    assert all(met[name, True] and met[name, False] for name in names)


def test_attempts_at_one_ask_share_all_but_the_attempt(rows):
    groups: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        groups.setdefault(row["group_id"], []).append(row)
    assert len(groups) == 300
    for members in groups.values():
        assert [row["sample_index"] for row in members] == [0, 1, 2, 3]
        for name in ("prompt", "task_id", "scenario", "faults", "tools", "seed"):
            assert len({str(row[name]) for row in members}) == 1
        before = {json.dumps(json.loads(str(row["extra"]))["state_before"]) for row in members}
        assert len(before) == 1


def test_behaviors_can_be_chosen_and_unknown_ones_are_refused():
    agent = etl.seeded_agent(rate=1.0, behaviors=["leak"])
    rows = etl.simulate(agent, tools=TOOLS[:1], budget=80)
    assert {tuple(row.seeded or ()) for row in rows} == {(), ("leak",)}
    with pytest.raises(UsageError, match="no behavior is called 'lying'; behaviors: hedging"):
        etl.seeded_agent(behaviors=["lying"])
    with pytest.raises(UsageError, match="rate must be between 0 and 1"):
        etl.seeded_agent(rate=1.5)


NAMES = st.sampled_from(
    ["get_order", "cancelBooking", "search_rooms", "create_note", "delete_user", "frobnicate", "update_file_text"]
)


@examples(10)
@given(
    st.lists(st.tuples(NAMES, SCHEMAS), min_size=1, max_size=3, unique_by=lambda pair: pair[0]), st.integers(0, 1_000)
)
def test_any_tools_can_be_simulated(named, seed):
    tools = [{"name": name, "parameters": schema} for name, schema in named]
    rows = etl.simulate(etl.seeded_agent(rate=0.3), tools=tools, system_prompt=PROMPT, budget=12, repeats=2, seed=seed)
    assert len(rows) == 12
    for row in rows.table.to_pylist():
        assert row["seeded"] or all(judgment["value"] == 1.0 for judgment in row["judgments"]), row["messages"]
        for step in row["steps"]:
            assert step["condition"] != "invalid_arguments" or row["seeded"] == ["wrong_argument"]
