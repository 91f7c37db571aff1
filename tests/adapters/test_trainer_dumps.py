"""What trainers dump of their rollouts: rendered prompts taken apart, groups, graphs of turns."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.adapter import adapter_named
from etl.adapters._rendered import rendered
from tests.contract.harness import read
from tests.examples import examples

_SAID = st.text(st.characters(codec="ascii", exclude_characters="<>|\r\n"), min_size=1, max_size=12)
_ROLES = st.sampled_from(["system", "user", "assistant"])


def _read(adapter: str, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    return read("".join(json.dumps(row) + "\n" for row in rows).encode(), adapter_named(adapter)).rows


@given(st.lists(st.tuples(_ROLES, _SAID), min_size=1, max_size=5), _SAID)
@examples(80)
def test_chatml_is_taken_apart(turns: list[tuple[str, str]], answer: str) -> None:
    prompt = "".join(f"<|im_start|>{role}\n{said}<|im_end|>\n" for role, said in turns) + "<|im_start|>assistant\n"
    found = rendered(prompt, answer)
    assert [(m.role, m.content) for m in found.messages if m.content.strip()] == [
        (role, said) for role, said in [*turns, ("assistant", answer)] if said.strip()
    ]
    assert not found.bare


def test_roles_on_lines_are_flagged_and_plain_prompts_are_not() -> None:
    bare, plain = _read(
        "rl_rollouts",
        {"input": "system\nBe brief.\nuser\nHi\nassistant\n", "output": "Yes", "score": 1.0, "step": 1},
        {"input": "user\nis a word here", "output": "Yes", "score": 1.0, "step": 1},
    )
    assert [(m["role"], m["content"]) for m in bare["messages"]] == [
        ("system", "Be brief."), ("user", "Hi"), ("assistant", "Yes"),
    ]  # fmt: skip
    assert bare["flags"] == ["roles_inferred"]
    assert (plain["prompt"], plain["flags"]) == ("user\nis a word here", [])


def test_attempts_at_one_prompt_are_a_group_and_scores_are_kept() -> None:
    rows = [
        {"input": "Q", "output": str(n), "score": score, "step": 3, "fmt": 0.5} for n, score in enumerate([2.5, -1, 0])
    ]
    found = _read("rl_rollouts", *rows, {"input": "Q", "output": "9", "score": 0, "step": 4})
    assert [(row["reward"], row["sample_index"]) for row in found] == [(2.5, 0), (-1.0, 1), (0.0, 2), (0.0, 0)]
    assert len({row["group_id"] for row in found}) == 2
    assert len({row["task_id"] for row in found}) == 1
    assert json.loads(found[0]["rewards"]) == {"fmt": 0.5}


def _node(parent: int | None, role: str, said: str, **more: Any) -> dict[str, Any]:
    return {"parent": parent, "message": {"role": role, "content": said}, "sampled": role == "assistant", **more}


def test_ways_through_a_trace_are_rows_and_share_their_prefix() -> None:
    nodes = [
        _node(None, "user", "go"), _node(0, "assistant", "one"), _node(1, "user", "left"), _node(2, "assistant", "two"),
        _node(1, "user", "right"), _node(4, "assistant", "three"),
    ]  # fmt: skip
    calls = [{"node": n, "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 2}} for n in (1, 3, 5)]
    trace = {
        "id": "ab" * 16,
        "task": {"key": "k"},
        "nodes": nodes,
        "calls": calls,
        "rewards": {"r": {"score": 0.5, "weight": -2.0}},
    }
    rows = {row["final_text"]: row for row in _read("verifiers_traces", trace)}
    main, side = rows["three"], rows["two"]
    assert (main["reward"], json.loads(main["rewards"]), side["reward"]) == (-1.0, {"r": -1.0}, None)
    assert side["parent_id"] == main["rollout_id"]
    assert [info["inherited"] for info in side["message_info"]] == [True, True, False, False]
    assert [row["usage"]["output_tokens"] for row in (main, side)] == [4, 2], "no response is counted twice"


def test_nobody_scored_is_no_reward() -> None:
    nodes = [_node(None, "user", "go"), _node(0, "assistant", "one")]
    (row,) = _read("verifiers_traces", {"id": "cd" * 16, "task": {"key": "k"}, "nodes": nodes, "rewards": {"r": None}})
    assert row["reward"] is None
