"""SWE-agent and mini-SWE-agent: a run told twice, demonstrations, actions as text, how a run ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from etl.adapter import adapters
from tests.contract.harness import read

SWE, MINI = adapters()["swe_agent"], adapters()["mini_swe_agent"]


def _turn(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "agent": "main", **more}


def _run(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"environment": "main", "history": [_turn("user", "Fix it."), *turns], "info": {}, **more}


def _row(value: dict[str, Any], adapter: Any = SWE) -> dict[str, Any]:
    (row,) = read(json.dumps(value).encode(), adapter).rows
    return row


def test_a_demonstration_is_no_turn_and_no_prompt() -> None:
    shown = [_turn("user", "Shown.", is_demo=True), _turn("assistant", "Done so.", is_demo=True, action="ls")]
    row = _row({**_run(), "history": [*shown, _turn("user", "Fix it."), _turn("assistant", "Hm.")]})
    assert [message["content"] for message in row["messages"]] == ["Fix it.", "Hm."]
    assert row["prompt"] == "Fix it."
    assert row["n_steps"] == 0
    assert json.loads(row["extra"])["demonstration"] == shown


def test_an_action_as_text_is_a_call_and_what_follows_its_result() -> None:
    acted = _turn("assistant", "Look.\n```\nls\n```", thought="Look.\n", action="ls\n")
    step = {"action": "ls\n", "observation": "a.py", "response": acted["content"], "state": "s", "execution_time": 2}
    row = _row(_run(acted, _turn("user", "a.py\n$"), acted, trajectory=[step]))
    assert [(step["tool"], step["status"], step["duration_ms"]) for step in row["steps"]] == [
        ("action", "ok", 2000.0),
        ("action", "missing", None),
    ]
    assert json.loads(row["steps"][0]["arguments"]) == {"input": "ls\n"}
    assert row["messages"][1]["content"] == acted["content"]


@pytest.mark.parametrize(
    ("step", "status"),
    [
        ({"observation": "diff --git a/x b/x"}, "ok"),
        ({"observation": "", "state": '{"working_dir": "/repo"}'}, "ok"),
        ({"observation": "", "state": {}, "execution_time": 0.5}, "ok"),
        ({"observation": "", "state": "{}", "execution_time": 0.0}, "missing"),
        ({"observation": "diff", "response": "Another."}, "missing"),
        ({"observation": None, "state": {"working_dir": "/repo"}}, "missing"),
    ],
)
def test_what_the_last_action_gave_stands_in_its_step_alone(step: dict[str, Any], status: str) -> None:
    acted = _turn("assistant", "Submit it.\n```\nsubmit\n```", thought="Submit it.\n", action="submit\n")
    told = {"action": "submit\n", "response": acted["content"], **step}
    row = _row(_run(acted, trajectory=[told], info={"exit_status": "submitted"}))
    assert [made["status"] for made in row["steps"]] == [status]
    assert row["flags"] == ([] if status == "ok" else ["missing_result"])
    assert [m["content"] for m in row["messages"][2:]] == ([step["observation"]] if status == "ok" else [])
    if status == "missing" and step["observation"]:
        assert json.loads(row["extra"])["trajectory"][0]["observation"] == step["observation"]


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("submitted", "completed"),
        ("submitted (exit_cost)", "truncated"),
        ("submitted (exit_error)", "error"),
        ("exit_context", "truncated"),
        ("exit_error", "error"),
    ],
)
def test_how_a_run_ended(reason: str, status: str) -> None:
    row = _row(_run(_turn("assistant", "Hm."), info={"exit_status": reason}))
    assert (row["status"], row["finish_reason"]) == (status, reason)


def test_each_response_is_counted_once() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    turn = {"role": "assistant", "content": "Hm.", "extra": {"response": {"usage": usage, "model": "m"}}}
    messages = [{"role": "user", "content": "Fix it."}, turn, {"role": "user", "content": "Output."}, turn]
    row = _row({"trajectory_format": "mini-swe-agent-1.1", "info": {}, "messages": messages}, MINI)
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"], row["usage"]["cached_tokens"]) == (20, 4, 8)
    assert row["n_turns"] == 1


def test_thinking_blocks_of_a_turn_are_its_reasoning() -> None:
    block = {"type": "thinking", "thinking": "Look first.", "signature": "c2ln"}
    row = _row(_run(_turn("assistant", "I look.", thinking_blocks=[block])))
    assert row["messages"][1]["reasoning_content"] == "Look first."
    assert json.loads(row["message_info"][1]["parts"]) == [{"type": "thinking", "signature": "c2ln"}]


def test_a_command_that_was_stopped_is_a_timeout() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    late = "An error occurred while executing the command: Command 'x' timed out after 30 seconds"
    told = {"returncode": -1, "raw_output": "", "exception_info": late}
    messages = [
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "<returncode>-1</returncode>", "extra": told},
    ]
    row = _row({"info": {}, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}, MINI)
    assert [(step["status"], step["condition"], step["error"]) for step in row["steps"]] == [("error", "timeout", late)]


@pytest.mark.parametrize(
    ("commands", "end", "results"),
    [
        (["submit"], "Submitted", {"c0": "diff"}),
        (["ls", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"], "Submitted", {"c1": "diff"}),
        (["ls", "make"], "Submitted", {}),
        (["submit"], "LimitsExceeded", {}),
    ],
)
def test_what_the_submitting_command_printed_stands_in_the_exit(
    commands: list[str], end: str, results: dict[str, str]
) -> None:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
        for n, command in enumerate(commands)
    ]
    messages = [
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "Submit.", "tool_calls": calls},
        {"role": "exit", "content": "diff", "extra": {"exit_status": end, "submission": "diff"}},
    ]
    info = {"exit_status": end, "submission": "diff"}
    row = _row({"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}, MINI)
    told = {message["tool_call_id"]: message["content"] for message in row["messages"] if message["role"] == "tool"}
    assert told == results
    assert [step["status"] for step in row["steps"]] == [
        "ok" if f"c{n}" in results else "missing" for n in range(len(calls))
    ]
