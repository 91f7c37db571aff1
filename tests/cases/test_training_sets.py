"""Training sets: odd orders, unknown roles, calls by order (B48)."""

from __future__ import annotations

import json
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
    assert found["sg3"]["flags"] == ["incomplete", "odd_order"]
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


_PREFERENCE = REPO / "sample_logs" / "preference_pairs"


def _sides(lake: Path) -> dict[str, dict[int | None, dict[str, Any]]]:
    """Rows by prompt, then by side."""
    found: dict[str, dict[int | None, dict[str, Any]]] = {}
    for row in rows(lake):
        found.setdefault(row["prompt"], {})[row["sample_index"]] = row
    return found


def test_both_sides_are_attempts_at_one_task(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", _PREFERENCE / "pairs.jsonl")
    found = _sides(tmp_path / "lake")
    assert [found["Name a fern."][side]["final_text"] for side in (0, 1)] == ["Bracken.", "Moss."]
    assert [found["Name a fern."][side]["reward"] for side in (0, 1)] == [8.5, 2.0]
    assert [found["Name a fern."][side]["model"] for side in (0, 1)] == ["demo-a", "demo-b"]
    for sides in found.values():
        assert len({row["task_id"] for row in sides.values()}) == 1
        assert len({row["group_id"] for row in sides.values()}) == 1
        for side, row in sides.items():
            assert row["judgments"][0]["label"] == ("rejected" if side == 1 else "chosen")
    assert found["Leeks?"][0]["final_text"] == "In March."
    assert found["Only one?"][None]["group_id"] is None
    assert found["Hello"][0]["prompt_len"] == 3
    same = [row for row in rows(tmp_path / "lake") if row["prompt"] == "Translate to Welsh: thyme."]
    assert (len(same), len({row["group_id"] for row in same}), len({row["task_id"] for row in same})) == (4, 2, 1)


def test_transcripts_in_one_text(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", _PREFERENCE / "transcripts.jsonl")
    found = _sides(tmp_path / "lake")
    sides = next(sides for prompt, sides in found.items() if prompt.startswith("My key"))
    assert [row["role"] for row in sides[0]["messages"]] == ["user", "assistant", "user", "assistant"]
    assert [info["inherited"] for info in sides[1]["message_info"]] == [False, True, False, False]
    assert (sides[0]["prompt_len"], sides[1]["final_text"]) == (3, "Because.")
    assert found["Thanks"][1]["final_text"] == ""


def test_labels_and_battles(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", _PREFERENCE / "labels.jsonl", _PREFERENCE / "battles.json")
    judged = sorted(
        (row["prompt"], row["judgments"][0]["value"], row["judgments"][0]["label"]) for row in rows(tmp_path / "lake")
    )
    assert judged == [
        ("Is ivy a fern?", 0.0, "undesirable"),
        ("Is moss a fern?", 1.0, "desirable"),
        ("Name a tree.", 0.0, "model_a"),
        ("Name a tree.", 0.5, "tie (bothbad)"),
        ("Name a tree.", 0.5, "tie (bothbad)"),
        ("Name a tree.", 1.0, "model_a"),
    ]


def test_instructions(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", REPO / "sample_logs" / "alpaca" / "rows.json")
    found = {row["prompt"]: row for row in rows(tmp_path / "lake")}
    assert found["Translate to Welsh.\nthyme"]["final_text"] == "teim"
    later = found["What do I sow in March?"]
    assert (later["prompt_len"], later["final_text"], later["messages"][0]["role"]) == (4, "Leeks.", "system")


def test_a_longer_context_is_the_task(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", _PREFERENCE / "pairs.jsonl", _PREFERENCE / "transcripts.jsonl")
    tasks = {row["prompt"][:6]: row["task_id"] for row in rows(tmp_path / "lake")}
    assert len(set(tasks.values())) == len(tasks)
    sides = [row["task_id"] for row in rows(tmp_path / "lake") if row["prompt"] == "Hello"]
    assert (len(sides), len(set(sides))) == (2, 1)


def test_images_lie_where_their_marks_are(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", _OURS)
    (row,) = (row for row in rows(tmp_path / "lake") if row["conversation_id"] == "sg-media")
    parts = [json.loads(info["parts"] or "[]") for info in row["message_info"]]
    assert parts == [[{"type": "image", "image": "beds/1.png"}], [], [{"type": "image", "image": "beds/2.png"}], []]
    assert json.loads(row["extra"]) == {"audios": ["a.wav"]}
