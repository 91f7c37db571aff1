"""Chat exports are trees: the way a user is on, the ways that were left, what both share (B46)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cases.reading import Given, Shared, given, read_in
from tests.lakes import REPO, rows

__all__ = ["given"]

_CHATGPT = REPO / "sample_logs" / "chatgpt_export"


def _ways(lake: Path) -> dict[tuple[str, bool], dict[str, Any]]:
    """Rows by conversation, and whether they were left."""
    return {(row["conversation_id"], "abandoned" in row["flags"]): row for row in rows(lake)}


def _texts(row: dict[str, Any]) -> list[str]:
    return [message["content"] for message in row["messages"]]


def test_the_shared_case(given: Given, tmp_path: Path) -> None:
    read_in(tmp_path / "lake", given(Shared("B46.conversations.json")))
    found = _ways(tmp_path / "lake")
    row, left = found["cg-1", False], found["cg-1", True]
    assert _texts(row) == ["Tell me a slogan", "New slogan", "Count its letters", "", "9", "It has 9 letters."]
    assert [step["tool"] for step in row["steps"]] == ["python"]
    assert json.loads(row["steps"][0]["arguments"]) == {"code": 'len("New slogan".replace(" ",""))'}
    assert (row["model"], row["final_text"], row["flags"]) == ("demo-g2", "It has 9 letters.", [])
    assert [row[name].strftime("%H:%M:%S") for name in ("started_at", "ended_at")] == ["10:00:00", "10:00:22"]
    assert row["message_info"][2]["at"] is None
    assert json.loads(row["message_info"][2]["parts"])[0]["asset_pointer"] == "file-service://file-X"
    assert _texts(left) == ["Tell me a slogan", "Old slogan", "Do not like it"]
    assert (left["model"], left["parent_id"]) == ("demo-g1", row["rollout_id"])
    assert left["group_id"] == row["group_id"]
    assert (left["sample_index"], row["sample_index"]) == (0, 1)
    assert [info["inherited"] for info in left["message_info"]] == [True, False, False]
    assert _texts(found["cg-2", False]) == _texts(row)
    assert "ambiguous_parent" in found["cg-2", False]["flags"]
    assert [reject["reason"] for reject in rows(tmp_path / "lake", "rejects")] == ["no_messages"]


def test_ours(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", _CHATGPT)
    found = {row["conversation_id"][-2:]: row for row in rows(tmp_path / "lake") if "abandoned" not in row["flags"]}
    assert [(step["tool"], step["status"]) for step in found["01"]["steps"]] == [("python", "error"), ("python", "ok")]
    assert _texts(found["02"]) == ["Name a herb.", "Mint."]
    thought = found["04"]["messages"][2]
    assert thought["reasoning_content"] == "Weather\nIt asks for rain."
    assert thought["tool_calls"][0]["function"] == {"name": "web.search", "arguments": '{"query":"rain tomorrow"}'}
    assert found["04"]["prompt"].startswith("My key is")
    assert found["-2"]["flags"] == ["ambiguous_parent"]
    edited = [row for row in rows(tmp_path / "lake") if row["conversation_id"] == "old-1"]
    assert len(edited) == 3
    assert {row["group_id"] for row in edited} == {None}


def test_a_later_export_replaces_the_row_and_keeps_its_name(tmp_path: Path) -> None:
    (first, *_) = json.loads((_CHATGPT / "conversations.json").read_bytes())
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps([first]))
    first["mapping"]["a3"]["children"] = ["u4"]
    content = {"content_type": "text", "parts": ["Thanks."]}
    message = {"author": {"role": "user"}, "create_time": 1772200000, "content": content}
    first["mapping"]["u4"] = {"id": "u4", "parent": "a3", "children": [], "message": message}
    first["current_node"] = "u4"
    after.write_text(json.dumps([first]))
    read_in(tmp_path / "lake", before)
    report = read_in(tmp_path / "lake", after)
    assert (report["rows"]["added"], report["rows"]["replaced"]) == (0, 1)
    read_in(tmp_path / "lake", before)
    assert "Thanks." in _texts(next(row for row in rows(tmp_path / "lake") if "abandoned" not in row["flags"]))


def test_an_answer_of_claude_ai_is_read_from_its_blocks(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", REPO / "sample_logs" / "claude_ai_export" / "conversations.json")
    found = {row["conversation_id"][-3:]: row for row in rows(tmp_path / "lake")}
    answer = found["100"]["messages"][1]
    assert (answer["reasoning_content"], answer["content"]) == (
        "Bed 3 is two metres.",
        "Thirty centimetres, so six plants.",
    )
    assert "text" not in json.loads(found["100"]["message_info"][1]["extra"])
    assert [message["role"] for message in found["300"]["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [(step["tool"], step["status"]) for step in found["300"]["steps"]] == [
        ("web_search", "ok"),
        ("artifacts", "missing"),
    ]
    assert "not shown" in json.loads(found["300"]["message_info"][1]["extra"])["text"]


def test_ways_of_a_claude_ai_conversation(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", REPO / "sample_logs" / "claude_ai_export" / "branches.json")
    ways = {row["messages"][-1]["content"]: row for row in rows(tmp_path / "lake")}
    assert sorted(ways) == ["Anothr.", "Bracken.", "Polypody."]
    assert {end: (row["sample_index"], "abandoned" in row["flags"]) for end, row in ways.items()} == {
        "Polypody.": (1, False),
        "Bracken.": (0, True),
        "Anothr.": (None, True),
    }
    assert ways["Bracken."]["group_id"] == ways["Polypody."]["group_id"]
    assert ways["Anothr."]["parent_id"] == ways["Polypody."]["rollout_id"]


def test_every_way_through_an_open_assistant_tree(tmp_path: Path) -> None:
    read_in(tmp_path / "lake", REPO / "sample_logs" / "oasst")
    ways = {row["final_text"] or row["prompt"]: row for row in rows(tmp_path / "lake")}
    best = ways["Copper tape."]
    assert _texts(best) == ["How do I keep slugs off?", "A beer trap.", "And without beer?", "Copper tape."]
    assert (best["parent_id"], best["model"], best["sample_index"]) == (None, "demo-o", 1)
    for text, index, rank in (("Salt.", 0, 1.0), ("Ducks.", 2, None)):
        row = ways[text]
        assert (row["parent_id"], row["group_id"], row["sample_index"]) == (best["rollout_id"], best["group_id"], index)
        assert [info["inherited"] for info in row["message_info"]] == [True, False]
        assert [judged["value"] for judged in row["judgments"]] == ([] if rank is None else [rank])
    assert ways["Ivy."]["parent_id"] == ways["Sphagnum."]["rollout_id"]
    assert ways["It does."]["flags"] == ["ambiguous_parent"]
    assert sorted(reject["reason"] for reject in rows(tmp_path / "lake", "rejects")) == ["bad_message", "torn_tail"]
