"""whileai rows: every field of the lesson is exact, with and without messages, and a grade replaces no episode."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.adapter import adapter_named
from tests.contract.harness import read
from tests.examples import examples

_TEXT = st.text(max_size=12)
_CALL = st.fixed_dictionaries(
    {"tool": st.sampled_from(["find", "cancel"]), "arguments": st.dictionaries(st.sampled_from("ab"), _TEXT)},
    optional={"result": _TEXT | st.dictionaries(st.sampled_from("xy"), st.integers(-5, 5)), "text": _TEXT},
)
_STEP = (
    _CALL | st.fixed_dictionaries({"user": st.text(min_size=1)}) | st.fixed_dictionaries({"text": st.text(min_size=1)})
)


def _read(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return read("".join(json.dumps(row) + "\n" for row in rows).encode(), adapter_named("whileai")).rows


def _row(**changes: Any) -> dict[str, Any]:
    row = {
        "schema_version": "1", "prompt": "Where is it?", "steps": [], "final_text": "There.", "scenario_id": "sc-1",
        "rollout_index": 0, "seed": 7, "seeded": [], "faults": {"*": {"mode": "timeout", "rate": 1.0}},
        "scenario_dimensions": {"tool": "find", "stance": "hurried"}, "model_version": "m", "policy_version": "m@1",
    }  # fmt: skip
    return {**row, **changes}


@given(st.lists(_STEP, max_size=5), st.text(min_size=1, max_size=9).filter(lambda text: text[:1] != "<"))
@examples(80)
def test_steps_without_messages_are_told_in_their_order(steps: list[dict[str, Any]], final: str) -> None:
    (row,) = _read(_row(steps=steps, final_text=final))
    called = [step for step in steps if "tool" in step]
    assert [(step["tool"], json.loads(step["arguments"])) for step in row["steps"]] == [
        (step["tool"], step["arguments"]) for step in called
    ]
    for step, made in zip(called, row["steps"], strict=True):
        assert (made["result_index"] is None) == ("result" not in step)
        if made["result_index"] is not None:
            told = row["messages"][made["result_index"]]["content"]
            assert told == step["result"] or json.loads(told) == step["result"]
    users = [message["content"] for message in row["messages"] if message["role"] == "user"]
    assert users == ["Where is it?", *(step["user"] for step in steps if "user" in step)]
    assert final in [message["content"] for message in row["messages"] if message["role"] == "assistant"]


def test_every_field_of_the_lesson_is_in_its_column() -> None:
    (row,) = _read(_row(seeded=["leak"], length="short", world_state="gone", reward=-0.5, reason="bad", judge_name="j"))
    assert (row["origin"], row["seed"], row["seeded"], row["reward"]) == ("simulation", 7, ["leak"], -0.5)
    assert json.loads(row["faults"]) == {"*": {"mode": "timeout", "rate": 1.0}}
    assert {axis: value for axis, value in row["scenario"].items() if value is not None} == {
        "tool": "find", "stance": "hurried", "length": "short", "world_state": "gone",
    }  # fmt: skip
    assert [(v["name"], v["kind"], v["value"], v["reason"]) for v in row["judgments"]] == [("j", "judge", -0.5, "bad")]
    assert (row["model"], row["policy_version"], row["sample_index"]) == ("m", "m@1", 0)


def test_a_grade_names_no_other_episode_and_another_episode_is_another_row() -> None:
    plain, graded, second, other = _read(
        _row(), _row(reward=1, judge_name="j"), _row(rollout_index=1), _row(final_text="Not there.")
    )
    assert plain["rollout_id"] == graded["rollout_id"]
    assert len({plain["rollout_id"], second["rollout_id"], other["rollout_id"]}) == 3
    assert plain["group_id"] == second["group_id"]
    assert plain["task_id"] == second["task_id"]


def test_messages_are_kept_as_they_are_and_what_steps_add_stays_with_them() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "I look.", "tool_calls": [{"name": "find", "arguments": {"n": 1}}]},
        {"role": "tool", "name": "find", "content": '{"status": "not_found"}'},
        {"role": "assistant", "content": "There."},
    ]
    call = {
        "tool": "find",
        "arguments": {"n": 1},
        "result": {"status": "not_found"},
        "text": "I look.",
        "logprob": -2.5,
    }
    (row,) = _read(_row(messages=messages, steps=[call]))
    assert [(m["role"], m["content"]) for m in row["messages"]] == [(m["role"], m["content"]) for m in messages]
    assert json.loads(row["message_info"][1]["extra"]) == {"logprob": -2.5}
    assert (row["steps"][0]["status"], row["steps"][0]["condition"]) == ("error", "not_found")
    (other,) = _read(_row(messages=messages, steps=[{**call, "arguments": {"n": 2}}]))
    assert json.loads(other["extra"])["steps"][0]["arguments"] == {"n": 2}, "steps that say something else are kept"


_OLDER: dict[str, dict[str, Any]] = {
    "platform pull": {"prompt": "p", "tool_trace": [{"tool": "t", "input": {"a": 1}, "output": "r"}]},
    "flat set": {"prompt": "p", "steps_json": '[{"tool": "t", "arguments": {"a": 1}, "result": "r"}]'},
    "OTel ingest": {"conversation_id": "c", "prompt": "p", "steps": [{"tool": "t", "args": {"a": 1}, "response": "r"}]},
}


@pytest.mark.parametrize("name", _OLDER)
def test_older_shapes(name: str) -> None:
    row = {**_OLDER[name], "final_text": "f"}
    assert adapter_named("whileai").score(_sample(row)) >= 0.9
    (found,) = _read(row)
    assert [message["content"] for message in found["messages"]] == ["p", "", "r", "f"]
    assert (found["steps"][0]["tool"], json.loads(found["steps"][0]["arguments"])) == ("t", {"a": 1})
    assert found["origin"] == "traffic"


def _sample(row: dict[str, Any]) -> Any:
    from etl.adapter import Sample

    return Sample("f", b"", [row])
