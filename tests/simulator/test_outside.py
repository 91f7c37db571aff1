"""Agents that are not ours: callables, and models behind a real HTTP server."""

import importlib.util
import json

import pytest

import etl
from etl.cli import run
from etl.errors import UsageError
from tests.simulator.served import model
from tests.simulator.shop import TOOLS

pytestmark = pytest.mark.skipif(importlib.util.find_spec("openai") is None, reason="the extra agent asks models")
GET_ORDER = TOOLS[:1]


def lookup(messages, tools):
    """Asks for an id, looks it up, tells what came back."""
    if messages[-1]["role"] == "tool":
        return f"I got this: {messages[-1]['content']}"
    words = " ".join(m["content"] for m in messages if m["role"] == "user").replace("?", " ").replace(".", " ").split()
    known = [word.strip(",:;()!") for word in words if word.startswith("ORD-")]
    if not known:
        return "Which order is it, please?"
    arguments = json.dumps({"order_id": known[-1]})
    return {"content": None, "tool_calls": [{"id": "a", "function": {"name": "get_order", "arguments": arguments}}]}


def test_a_callable_is_an_agent():
    rows = etl.simulate(lookup, tools=GET_ORDER, system_prompt="Help with orders.", budget=40, repeats=1)
    assert len(rows) == 40
    assert all(row.seeded is None for row in rows)
    asked = [row for row in rows if row.scenario and row.scenario.stance == "ambiguous"]
    assert asked
    assert all(row.n_turns >= 2 and row.steps for row in asked)
    assert any(j.name == "end_state" and j.value == 1.0 for row in rows for j in row.judgments)


def test_a_callable_that_raises_costs_its_attempt_alone():
    rows = etl.simulate(lambda messages: 1 / 0, tools=GET_ORDER, budget=4, repeats=2)
    assert [row.status for row in rows] == ["error"] * 4
    assert rows[0].error == "ZeroDivisionError: division by zero"
    assert rows.report.failed == 4


def test_a_callable_that_only_calls_is_stopped():
    call = {"tool_calls": [{"id": "x", "function": {"name": "get_order", "arguments": "{}"}}]}
    (row,) = etl.simulate(lambda messages: call, tools=GET_ORDER, budget=1)
    assert row.status == "error"
    assert "without an answer" in str(row.error)
    assert {step.condition for step in row.steps} == {"invalid_arguments"}


def test_what_is_no_agent_is_refused():
    with pytest.raises(UsageError, match="not int"):
        etl.simulate(3, tools=GET_ORDER)


def test_a_model_behind_an_endpoint(tmp_path, capsys):
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(GET_ORDER))
    with model("429", "500", "broken") as server:
        code = run(
            ["simulate", "--tools", str(tools), "--lake", str(tmp_path / "lake"), "--budget", "6", "--repeats", "2",
             "--json",
             "--agent-model", "tiny", "--base-url", server.url, "--concurrency", "3", "--price", "2", "10",
             "--dimension", "tool=get_order"]
        )  # fmt: skip
    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert told["rows"]["added"] == 6
    assert told["failed"] == 0
    names = "model, status, n_steps, usage, message_info[-1].finish_reason, reward, seeded, final_text, group_id"
    rows = etl.connect(tmp_path / "lake").execute(f"SELECT {names} FROM rollouts ORDER BY source_line").fetchall()
    assert {row[0] for row in rows} == {"tiny"}
    assert {row[1] for row in rows} == {"completed"}
    assert all(row[2] >= 1 for row in rows)
    answers = len(server.requests) - 3
    assert told["usage"] == {
        "input_tokens": 100 * answers, "output_tokens": 10 * answers,
        "cost_usd": pytest.approx(answers * (100 * 2 + 10 * 10) / 1e6),
    }  # fmt: skip
    assert all(row[4] == "stop" and row[6] is None and row[7].startswith("Here is what I got") for row in rows)
    assert len({row[8] for row in rows}) == 3
    assert all(request["stream"] and request["tools"] for request in server.requests)


def test_a_model_as_the_person_too(tmp_path, capsys):
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(GET_ORDER))
    with model() as server:
        run(["simulate", "--tools", str(tools), "--lake", str(tmp_path / "lake"), "--budget", "2", "--repeats", "1",
             "--json",
             "--agent-model", "tiny", "--user-model", "small", "--base-url", server.url])  # fmt: skip
    assert json.loads(capsys.readouterr().out)["failed"] == 0
    asked = [request for request in server.requests if request["model"] == "small"]
    assert asked
    assert "You play" in asked[0]["messages"][0]["content"]
    ((extra,),) = etl.connect(tmp_path / "lake").execute("SELECT extra FROM rollouts LIMIT 1").fetchall()
    assert json.loads(extra)["agent"]["user_usage"]["output_tokens"] == 10


def test_a_model_that_stays_away_costs_its_attempts_alone(tmp_path, capsys):
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(GET_ORDER))
    with model(*["400"] * 2) as server:
        code = run(["simulate", "--tools", str(tools), "--lake", str(tmp_path / "lake"), "--budget", "3", "--repeats",
                    "1",
                    "--json", "--agent-model", "tiny", "--base-url", server.url, "--concurrency", "1"])  # fmt: skip
    assert code == 3
    assert json.loads(capsys.readouterr().out)["failed"] == 2
    errors = etl.connect(tmp_path / "lake").execute("SELECT error FROM rollouts WHERE status = 'error'").fetchall()
    assert all("planned 400" in error for (error,) in errors)
    assert len(errors) == 2


def test_options_of_models_need_a_model(tmp_path, capsys):
    assert run(["simulate", "--base-url", "http://127.0.0.1:9", "--lake", str(tmp_path / "lake")]) == 2
    assert "--agent-model" in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()
