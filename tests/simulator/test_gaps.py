"""Coverage counts steps of traffic in distinct tasks; gaps are filled exactly, in their ranking, and only once."""

import json
import shutil
from collections import defaultdict
from typing import Any

import pytest

import etl
from etl.cli import run
from etl.errors import LakeError, UsageError
from etl.row import StepTuple
from etl.simulator.gaps import pairs_of


def attempt(task, *calls, trial=0):
    """A logged attempt; a call is (tool, arguments, what came back)."""
    turns: list[dict[str, Any]] = [
        {"role": "system", "content": "Help with orders. Never share internal notes."},
        {"role": "user", "content": f"Task {task}"},
    ]
    for number, (tool, arguments, result) in enumerate(calls):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        turns.append(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
            }
        )
        turns.append({"role": "tool", "tool_call_id": f"c{number}", "name": tool, "content": result})
    turns.append({"role": "assistant", "content": "Done."})
    return {"task_id": task, "trial": trial, "reward": 1.0, "info": {}, "traj": turns}


ORDER = json.dumps({"order_id": "#W1000001", "status": "pending", "total": 12.5})
GET = ("get_order", {"order_id": "#W1000001"}, ORDER)
LOST = ("get_order", {"order_id": "#W1000002"}, "Error: order not found")
CANCEL = (
    "cancel_order",
    {"order_id": "#W1000001", "reason": "no longer needed"},
    json.dumps({"order_id": "#W1000001", "status": "cancelled"}),
)


@pytest.fixture(scope="module")
def traffic(tmp_path_factory):
    """Traffic: get_order succeeds in 5 tasks (6 attempts) and misses once, cancel_order follows in one."""
    tmp_path = tmp_path_factory.mktemp("traffic")
    attempts = [attempt(task, GET) for task in range(4)]
    attempts += [attempt(0, GET, trial=1), attempt(4, LOST, GET, CANCEL)]
    (tmp_path / "runs.json").write_text(json.dumps(attempts))
    report = etl.ingest([tmp_path / "runs.json"], lake=tmp_path / "lake", source="shop")
    assert report.to_json()["by_adapter"]["tau_bench"]["rows"] == 6
    return tmp_path / "lake"


@pytest.fixture
def lake(traffic, tmp_path):
    """A copy of it, for a test to write to."""
    return shutil.copytree(traffic, tmp_path / "lake")


def supports(lake, origin="traffic"):
    rows = etl.connect(lake).execute(
        "SELECT value_1, value_2, support, times FROM coverage WHERE origin = $1", [origin]
    )
    return {(first, second): (support, times) for first, second, support, times in rows.fetchall()}


def test_support_counts_tasks_and_positions_are_told(lake):
    assert supports(lake) == {
        ("get_order", "success"): (5, 6),
        ("get_order", "not_found"): (1, 1),
        ("cancel_order", "success"): (1, 1),
        ("get_order", "first"): (5, 6),
        ("get_order", "after_failure"): (1, 1),
        ("cancel_order", "first"): (1, 1),
        ("success", "first"): (5, 6),
        ("success", "after_failure"): (1, 1),
        ("not_found", "first"): (1, 1),
    }


def test_gaps_are_what_traffic_lacks_ranked_by_shortfall_and_share(lake):
    rows = etl.connect(lake).execute(
        "SELECT value_1, value_2, support, shortfall, missing, share FROM gaps ORDER BY rank"
    )
    found = rows.fetchall()
    pairs = {(row[0], row[1]) for row in found}
    assert ("get_order", "success") not in pairs
    assert ("get_order", "first") not in pairs
    assert ("cancel_order", "not_found") in pairs
    assert (found[0][0], found[0][1]) == ("get_order", "repeat")
    assert all(row[2] < 5 and row[3] == row[4] == 5 - row[2] for row in found)
    weights = [row[3] * row[5] for row in found]
    assert weights == sorted(weights, reverse=True)
    shares = {row[0]: row[5] for row in found if row[0] in ("get_order", "cancel_order")}
    assert shares == {"get_order": pytest.approx(8 / 10), "cancel_order": pytest.approx(2 / 10)}


def test_a_call_that_ended_well_is_a_success_though_no_log_says_its_condition(tmp_path):
    """As `tool_rates` counts it. What else it may have met is unobserved and no gap; nor is a call without a result."""
    call = {"id": "a", "type": "function", "function": {"name": "peek", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "a", "content": "a wall"}
    lines = []
    for number in range(6):
        asked = [
            {"role": "user", "content": f"Look {number}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ]
        lines.append(json.dumps({"messages": [*asked, *([result] if number else [])]}))
    (tmp_path / "chat.jsonl").write_text("\n".join(lines))
    (tmp_path / "runs.json").write_text(json.dumps([attempt(1, GET, LOST)]))
    etl.ingest([tmp_path / "chat.jsonl", tmp_path / "runs.json"], lake=tmp_path / "lake")
    connection = etl.connect(tmp_path / "lake")
    gaps = "SELECT value_2 FROM gaps WHERE value_1 = 'peek' AND axis_2 = 'condition'"
    assert connection.execute(gaps).fetchall() == []
    assert supports(tmp_path / "lake")["peek", "success"] == (5, 5)
    rates = connection.execute("SELECT n - failed FROM tool_rates WHERE tool = 'peek'").fetchall()
    assert rates == [(5,)]
    wanted = connection.execute("SELECT unclassified FROM gaps_at(6) WHERE value_1 = 'peek' AND value_2 = 'success'")
    assert wanted.fetchall() == [(1,)]
    assert None not in {pair for both in supports(tmp_path / "lake") for pair in both}


def test_gaps_are_filled_exactly_and_only_once(lake):
    before = etl.coverage(lake, min_support=3)
    wanted = {pair[:4]: pair.missing for pair in before.gaps}
    assert wanted
    filled = etl.simulate(lake=lake, fill_gaps=True, min_support=3)
    assert filled.report.gaps == {
        "min_support": 3,
        "below": len(wanted),
        "to_fill": len(wanted),
        "filled": len(wanted),
        "not_filled": [],
    }
    assert len(filled) == filled.report.rows.added > 0
    after = etl.coverage(lake, min_support=3)
    assert {pair[:4]: pair.traffic for pair in after.gaps} == {pair[:4]: pair.traffic for pair in before.gaps}
    assert all(pair.missing == 0 and pair.simulation >= wanted[pair[:4]] for pair in after.gaps)
    again = etl.simulate(lake=lake, fill_gaps=True, min_support=3)
    assert (again.report.attempts, again.report.rows.added) == (0, 0)
    assert again.report.gaps
    assert again.report.gaps["filled"] == 0
    more = etl.simulate(lake=lake, fill_gaps=True, min_support=4)
    assert more.report.rows.added > 0
    assert more.report.gaps
    assert not more.report.gaps["not_filled"]
    assert run(["verify", "--lake", str(lake)]) == 0


def test_a_budget_fills_the_first_gaps_and_says_what_is_left(lake):
    first = etl.coverage(lake).gaps[0]
    part = etl.simulate(lake=lake, fill_gaps=True, budget=first.missing)
    assert part.report.rows.added == first.missing
    assert etl.coverage(lake).gaps[0].missing == 0
    assert part.report.gaps
    assert {left["why"] for left in part.report.gaps["not_filled"]} == {"the budget was used up"}


def test_what_is_learnt_from_traffic_is_its_shape_and_no_value(lake):
    rows = etl.simulate(lake=lake, budget=40, repeats=1, dimensions={"tool": ["get_order", "cancel_order"]})
    for row in rows:
        assert row.messages[0].content.startswith("Help with orders.")
        for step in row.steps:
            arguments = json.loads(step.arguments)
            assert str(arguments["order_id"]).startswith("#W") or step.condition == "invalid_arguments"
            assert arguments["order_id"] not in ("#W1000001", "#W1000002")
            if step.tool == "get_order" and step.condition == "success":
                assert set(json.loads(step.result or "")) == {"order_id", "status", "total"}
    assert len({row.scenario.rule for row in rows if row.scenario}) == 2


def test_python_and_sql_see_the_same_pairs(lake):
    etl.simulate(lake=lake, budget=60)
    connection = etl.connect(lake)
    seen = defaultdict(set)
    for task, steps in connection.execute(
        "SELECT task_id, steps FROM rollouts_stored WHERE origin = 'simulation'"
    ).fetchall():
        made = [StepTuple(*(step.get(name) for name in StepTuple._fields)) for step in steps]
        for pair in pairs_of(made):
            seen[pair].add(task)
    stored = connection.execute(
        """SELECT axis_1, value_1, axis_2, value_2, support FROM coverage
           WHERE origin = 'simulation' AND axis_1 NOT LIKE 'scenario%'"""
    ).fetchall()
    assert {tuple(row[:4]): row[4] for row in stored} == {pair: len(tasks) for pair, tasks in seen.items()}


def test_the_command_shows_and_says_what_to_do(lake, capsys):
    assert run(["coverage", "--lake", str(lake), "--min-support", "2"]) == 0
    shown = capsys.readouterr().out
    assert "get_order" in shown
    assert "etl simulate --fill-gaps --min-support 2" in shown
    assert run(["simulate", "--fill-gaps", "--min-support", "2", "--lake", str(lake)]) == 0
    assert "filled" in capsys.readouterr().out
    assert run(["coverage", "--lake", str(lake), "--min-support", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["summary"]["missing"] == 0
    assert told["summary"]["gaps"] == told["summary"]["filled_by_simulation"] > 0
    assert all(
        set(pair) == {"axis_1", "value_1", "axis_2", "value_2", "traffic", "simulation", "missing", "rank"}
        for pair in told["pairs"]
    )


def test_without_a_lake_there_is_nothing_to_cover(tmp_path):
    with pytest.raises(LakeError, match="there is no lake"):
        etl.coverage(tmp_path / "lake")
    with pytest.raises(UsageError, match="minimum support must be at least 1"):
        etl.coverage(tmp_path / "lake", min_support=0)


def test_an_argument_that_two_tools_know_in_two_types_is_made_as_each_was_called(tmp_path, capsys):
    attempts = [
        attempt(task, ("get_case", {"case_id": f"CAS-{task}"}, "{}"), ("check_case", {"case_id": 1200 + task}, "{}"))
        for task in range(3)
    ]
    (tmp_path / "runs.json").write_text(json.dumps(attempts))
    etl.ingest([tmp_path / "runs.json"], lake=tmp_path / "lake", source="law")
    assert run(["simulate", "--fill-gaps", "--min-support", "4", "--lake", str(tmp_path / "lake"), "--json"]) == 0
    assert "unusable_tools" not in json.loads(capsys.readouterr().out)
    sql = "SELECT DISTINCT tool, json_type(arguments, '$.case_id') FROM steps"
    rows = etl.connect(tmp_path / "lake").execute(f"{sql} WHERE origin = 'simulation' AND status = 'ok'").fetchall()
    assert set(rows) == {("get_case", "VARCHAR"), ("check_case", "UBIGINT")}


def test_a_tool_for_which_nothing_can_be_made_is_left_out_and_said(tmp_path, capsys):
    odd = {"type": "object", "properties": {"order_id": {"type": "string", "not": {}}}, "required": ["order_id"]}
    tools = [{"type": "function", "function": {"name": "odd_order", "parameters": odd}}]
    chats = [{"id": str(task), "tools": tools, "messages": attempt(task, GET)["traj"]} for task in range(2)]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    etl.ingest([tmp_path / "chats.jsonl"], lake=tmp_path / "lake", source="shop")
    fill = ["simulate", "--fill-gaps", "--min-support", "3", "--lake", str(tmp_path / "lake")]
    assert run([*fill, "--dry-run"]) == 0
    assert "left out  1 of traffic's tools: odd_order: no arguments could be made" in capsys.readouterr().out
    assert run([*fill, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["unusable_tools"]) == ["odd_order"]
    assert told["attempts"] > 0
