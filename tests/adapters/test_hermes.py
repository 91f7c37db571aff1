"""Hermes sessions: a file that is written anew as it grows is one row."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cases.reading import read_in, told
from tests.lakes import rows, said


def test_a_session_written_anew_is_one_row(samples: Path, tmp_path: Path, lake: Path) -> None:
    whole = json.loads((samples / "hermes" / "coach.json").read_text(encoding="utf-8"))
    path = tmp_path / "session.json"
    for count, updated in ((1, "2026-04-29T20:05:01.000Z"), (4, whole["last_updated"])):
        grown = {**whole, "messages": whole["messages"][:count], "last_updated": updated, "message_count": count}
        path.write_text(json.dumps(grown), encoding="utf-8")
        read_in(lake, path)
    read_in(tmp_path / "once", samples / "hermes" / "coach.json")
    assert said(lake) == said(tmp_path / "once")
    (row,) = rows(lake)
    assert told(row)["messages"][:2] == [("system", "You run the coach house."), ("user", "Is the post coach late?")]
    assert [step["status"] for step in row["steps"]] == ["ok", "missing"]


def test_a_database_has_the_tokens_of_its_sessions_and_what_they_go_on_from(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "hermes" / "state.db")
    first, second = sorted(rows(lake), key=lambda row: row["parent_id"] is not None)
    assert [text for _, text in told(first)["messages"]][:2] == [
        "You run the coach house.",
        "Why does the coach stand still?",
    ]
    assert (first["final_text"], first["model"], first["provider"]) == ("The axle is broken.", "hermes-demo", "demo")
    assert [(step["status"], step["error"]) for step in first["steps"]] == [("error", "exit 3")]
    usage = first["usage"]
    assert (usage["input_tokens"], usage["cached_tokens"], usage["cost_usd"]) == (325, 20, 0.125)
    assert (second["parent_id"], second["prompt"]) == (first["rollout_id"], "Mend it.")


def test_lines_of_a_session_are_one_conversation(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "hermes" / "stable.jsonl")
    (row,) = rows(lake)
    assert (row["prompt"], row["final_text"], row["model"]) == ("Is the stable dry?", "It is dry.", "hermes-demo")
    assert [(step["tool"], step["status"]) for step in row["steps"]] == [("terminal", "ok"), ("read_file", "error")]
    assert json.loads(row["tools"])[0]["function"]["name"] == "terminal"
