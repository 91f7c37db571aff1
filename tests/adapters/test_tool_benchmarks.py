"""ToolBench and BFCL: prefixes told once, branches that a search left, calls that nobody ran, scores of failures."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.adapter import adapters
from tests.contract.harness import read

TOOLBENCH, BFCL = adapters()["toolbench"], adapters()["bfcl"]
ASKED = {"role": "user", "content": "Where is it?"}


def _turn(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _answer(*lists: list[dict[str, Any]]) -> bytes:
    return json.dumps({"win": True, "answer_generation": {"train_messages": lists}}).encode()


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6))
def test_a_chain_of_prefixes_is_one_row(said: list[str]) -> None:
    whole = [ASKED, *map(_turn, said)]
    found = read(_answer(*(whole[: number + 2] for number in range(len(said)))), TOOLBENCH)
    (row,) = found.rows
    assert [message["content"] for message in row["messages"][1:]] == said
    assert found.ignored["repeated_prefix"] == len(said) - 1


def test_a_branch_that_was_left_inherits_what_it_shares() -> None:
    found = read(_answer([ASKED, _turn("a"), _turn("b")], [ASKED, _turn("a"), _turn("c")]), TOOLBENCH).rows
    main = next(row for row in found if row["parent_id"] is None)
    left = next(row for row in found if row["parent_id"] == main["rollout_id"])
    assert "abandoned" in left["flags"]
    assert [bool(info["inherited"]) for info in left["message_info"]] == [True, True, False]
    assert left["prompt_len"] == 2
    assert left["group_id"] == main["group_id"]


def test_a_task_is_the_same_in_results_and_scores() -> None:
    result = {"id": "simple_7", "result": [{"area": '{"base": 1}'}]}
    prompt = {"id": "simple_7", "question": "How large?", "function": {"name": "area", "parameters": {}}}
    failure = {"id": 8, "model_name": "m", "valid": False, "error": ["No."], "error_type": "e", "prompt": prompt}
    (one,) = read(json.dumps(result).encode(), BFCL).rows
    (other,) = read(json.dumps({**failure, "model_result": "none"}).encode(), BFCL).rows
    assert one["task_id"] == other["task_id"]
    assert (one["reward"], other["reward"]) == (None, 0.0)
    assert other["judgments"][0]["reason"] == '["No."]'
    assert [step["tool"] for step in one["steps"]] == ["area"]


def test_a_run_that_was_stopped_has_the_questions_that_were_asked() -> None:
    questions = [[{"role": "user", "content": text}] for text in ("Open it.", "Read it.", "Shut it.")]
    value = {"id": 3, "valid": False, "model_result": [["open()"], ["read()"]], "prompt": {"question": questions}}
    (row,) = read(json.dumps(value).encode(), BFCL).rows
    assert [message["content"] for message in row["messages"]] == ["Open it.", "open()", "Read it.", "read()"]
    assert json.loads(row["extra"])["prompt"] == {"question": questions[2:]}
