"""ATIF trajectories: results without ids, sub-agents in three places, continuations, token sequences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl import ingest
from etl.adapter import adapters
from etl.adapters._rollouts import Sampled, one_sequence
from tests.contract.harness import read
from tests.lakes import NOW, REPO, by_id

ATIF = adapters()["atif"]
SESSION = "3f0c9a52-7d1e-4b6a-9c88-51e2a0b7d914"


def _trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    numbered = [{"step_id": number, "message": "", **step} for number, step in enumerate(steps, 1)]
    return {"schema_version": "ATIF-v1.6", "session_id": SESSION, "agent": {"name": "pilot"}, "steps": numbered, **more}


def _agent(calls: int, results: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    made = [{"tool_call_id": f"c{number}", "function_name": "run", "arguments": {}} for number in range(calls)]
    return {"source": "agent", "tool_calls": made, "observation": {"results": results}, **more}


def _row(value: dict[str, Any]) -> dict[str, Any]:
    (row,) = read(json.dumps(value).encode(), ATIF).rows
    return row


@given(st.integers(1, 6))
def test_results_without_ids_answer_the_calls_of_their_step_in_order(calls: int) -> None:
    results = [{"source_call_id": None, "content": str(number)} for number in range(calls)]
    asked = {"source": "user", "message": "Go"}
    row = _row(_trajectory(asked, _agent(calls, results), _agent(calls, results)))
    assert [step["result_index"] for step in row["steps"]] == [
        *range(2, 2 + calls),
        *range(3 + calls, 3 + 2 * calls),
    ]


def test_a_sub_agent_in_another_file_names_its_parent(tmp_path: Path) -> None:
    asked, answered = {"source": "user", "message": "Go"}, {"source": "agent", "message": "Gone"}
    below = {"name": "pilot-summary", "extra": {"parent_session_id": SESSION}}
    files = {
        "a.json": _trajectory(asked, answered),
        "b.json": _trajectory(asked, answered, session_id=f"{SESSION}-summary", agent=below),
        "c.json": _trajectory(asked, {**answered, "is_copied_context": True}, answered, session_id=f"{SESSION}-cont-1"),
        "d.json": _trajectory(asked, answered, session_id=f"{SESSION}-cont-2"),
    }
    for name, value in files.items():
        (tmp_path / name).write_text(json.dumps(value))
    ingest([tmp_path / name for name in files], lake=tmp_path / "lake", now=NOW, strict=True)
    found = by_id(tmp_path / "lake")
    main, continued = found[SESSION], found[f"{SESSION}-cont-1"]
    assert found[f"{SESSION}-summary"]["parent_id"] == continued["parent_id"] == main["rollout_id"]
    assert found[f"{SESSION}-cont-2"]["parent_id"] == continued["rollout_id"]
    assert continued["prompt_len"] == 2


def test_a_parent_that_cannot_be_named_is_flagged() -> None:
    asked, answered = {"source": "user", "message": "Go"}, {"source": "agent", "message": "Gone"}
    agent = {"name": "pilot", "extra": {"parent_session_id": "a session of no account"}}
    row = _row(_trajectory(asked, answered, session_id="s", agent=agent))
    assert row["parent_id"] is None
    assert "ambiguous_parent" in row["flags"]


def test_a_trajectory_that_grew_replaces_the_shorter_one(tmp_path: Path) -> None:
    whole = json.loads((REPO / "sample_logs" / "atif" / "trajectory.json").read_text())
    log = tmp_path / "trajectory.json"
    for steps in (3, 6):
        log.write_text(json.dumps({**whole, "steps": whole["steps"][:steps]}))
        ingest([log], lake=tmp_path / "lake", now=NOW, strict=True)
    (row,) = by_id(tmp_path / "lake").values()
    assert len(row["messages"]) == 9


_TOKENS = st.lists(st.integers(0, 9), min_size=1, max_size=4)


@given(st.lists(st.tuples(_TOKENS, _TOKENS), min_size=1, max_size=4))
def test_responses_that_continue_one_another_are_one_sequence(turns: list[tuple[list[int], list[int]]]) -> None:
    responses: list[Sampled] = []
    whole: list[int] = []
    for given_tokens, sampled in turns:
        prompt = [*whole, *given_tokens]
        responses.append(Sampled(prompt, sampled, [-0.5] * len(sampled)))
        whole = [*prompt, *sampled]
    sequence = one_sequence(responses)
    assert sequence is not None
    assert sequence.token_ids == whole
    masked = [token for token, mask in zip(whole, sequence.loss_mask, strict=True) if mask]
    assert masked == [token for _, sampled in turns for token in sampled]
    assert sequence.logprobs == [-0.5 if mask else 0.0 for mask in sequence.loss_mask]
    rewritten = [*responses, Sampled([*([9 - whole[0]]), *whole[1:]], [1], None)]
    assert one_sequence(rewritten) is None


def test_the_result_of_a_trial_judges_the_trajectory_below_it(tmp_path: Path) -> None:
    below = tmp_path / "bridge__abc" / "agent"
    below.mkdir(parents=True)
    trajectory = _trajectory({"source": "user", "message": "Go."}, _agent(1, [{"content": "done"}]))
    (below / "trajectory.json").write_text(json.dumps(trajectory), encoding="utf-8")
    failure = {"exception_type": "AgentTimeoutError", "exception_message": "timed out after 9 s"}
    trial = {
        "task_name": "bridge",
        "trial_name": "bridge__abc",
        "source": "spans",
        "agent_info": {"name": "pilot"},
        "verifier_result": {"rewards": {"reward": 0.5, "style": 1}},
        "exception_info": failure,
    }
    (below.parent / "result.json").write_text(json.dumps(trial), encoding="utf-8")
    report = ingest([tmp_path / "bridge__abc"], lake=tmp_path / "lake", now=NOW).to_json()
    assert (report["files"]["skipped"], report["files"]["failed"]) == (1, 0)
    (row,) = by_id(tmp_path / "lake").values()
    assert (row["reward"], json.loads(row["rewards"])) == (0.5, {"reward": 0.5, "style": 1.0})
    assert (row["status"], row["error"]) == ("error", "timed out after 9 s")
