"""Training sets: odd orders, unknown roles, calls by order (B48)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cases.reading import Given, Shared, agrees, given, read_in, told_by_id
from tests.lakes import REPO, rows

__all__ = ["given"]

_OURS = REPO / "sample_logs" / "sharegpt" / "turns.jsonl"


def test_the_shared_case(given: Given, tmp_path: Path) -> None:
    read_in(tmp_path / "lake", given(Shared("B48.sharegpt.jsonl")))
    found = told_by_id(tmp_path / "lake")
    assert found["sg1"]["messages"][0] == ("system", "Be terse.")
    assert (len(found["sg1"]["messages"]), found["sg1"]["final_text"]) == (7, "a3")
    agrees(
        found["sg2"],
        {
            "steps": [
                ("calc_age", {"birthdate": "1990-05-15"}, '{"age": 35}', "ok"),
                ("calc_age", {"birthdate": "1992-10-13"}, '{"age": 33}', "ok"),
            ],
            "final_text": "35 and 33.",
            "flags": [],
        },
    )
    assert [role for role, _ in found["sg3"]["messages"]] == ["assistant", "user", "user", "assistant", "user"]
    assert found["sg3"]["flags"] == ["incomplete"]
    agrees(
        found["sg5"],
        {
            "messages": [("user", "do it"), ("assistant", "Calling now."), ("tool", "done"), ("assistant", "Done.")],
            "steps": [("go", {"n": 1}, "done", "ok")],
        },
    )
    assert sorted(found) == ["sg1", "sg2", "sg3", "sg5"]
    assert _reasons(tmp_path / "lake") == ["no_messages", "unknown_role"]


def test_ours(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", _OURS)
    found = told_by_id(tmp_path / "lake")
    assert [step[2] for step in found["sg-calls"]["steps"]] == ['{"date": "04-20"}', '{"date": "05-11"}']
    assert found["sg-calls"]["calls"] == [["call_1", "call_2"]]
    assert found["sg-odd"]["messages"][3] == ("assistant", "")
    assert [(step[0], step[2]) for step in found["sg-tags"]["steps"]] == [("valve", "open"), ("log", "logged")]
    agrees(found["sg-unread"], {"steps": [], "flags": ["orphan_result", "unreadable_value"]})
    assert _reasons(tmp_path / "lake") == ["no_messages", "torn_tail", "unknown_role"]


def _reasons(lake: Path) -> list[Any]:
    return sorted(reject["reason"] for reject in rows(lake, "rejects"))
