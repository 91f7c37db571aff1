"""Cline 4: sessions and their manifests, in any order and under any name; forks, sub-agents and copies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import read_in, told
from tests.lakes import rows


def _by_key(lake: Path) -> dict[str, dict[str, Any]]:
    return {row["conversation_id"]: row for row in rows(lake)}


@pytest.fixture
def lines(samples: Path) -> list[str]:
    """A manifest, its session, a copy; a manifest of a fork, the fork."""
    return (samples / "cline_sessions" / "mill.jsonl").read_text(encoding="utf-8").splitlines()[:5]


def test_a_session_its_sub_agent_and_a_fork(samples: Path, lake: Path) -> None:
    report = read_in(lake, samples / "cline_sessions")
    assert (report["rejects"], report["ignored"]) == ({"torn_tail": 1}, {"compacted_copy": 1})
    found = _by_key(lake)
    session, agent, fork = found["mill_1"], found["mill_1/s1"], found["mill_2"]
    assert (session["prompt"], session["final_text"]) == ("Which stone is worn?", "Nothing is open.")
    assert [step[3] for step in told(session)["steps"]] == ["ok", "error", "ok", "ok"]
    assert session["steps"][1]["error"] == "Command failed with exit code 3"
    assert (session["usage"]["input_tokens"], session["usage"]["cached_tokens"]) == (3500, 2800)
    assert (agent["parent_id"], fork["parent_id"]) == (session["rollout_id"], session["rollout_id"])
    assert (fork["usage"]["input_tokens"], fork["status"], fork["error"]) == (1500, "error", "exit 1")
    assert [bool(info["inherited"]) for info in fork["message_info"]][-3:] == [True, False, False]
    assert (session["model"], session["n_turns"]) == ("demo-mill", 1)


@pytest.mark.parametrize("order", [(1, 4), (4, 1)])
def test_a_fork_is_known_without_its_manifest(
    order: tuple[int, int], lines: list[str], tmp_path: Path, lake: Path
) -> None:
    """It begins with messages of the other, whichever is read first."""
    for number in order:
        (tmp_path / f"{number}.json").write_text(lines[number], encoding="utf-8")
        read_in(lake, tmp_path)
    found = _by_key(lake)
    assert found["mill_2"]["parent_id"] == found["mill_1"]["rollout_id"]
    assert [found[key]["usage"]["input_tokens"] for key in ("mill_1", "mill_2")] == [3500, 1500]


def test_a_session_grows_and_its_manifest_comes_later(lines: list[str], tmp_path: Path, lake: Path) -> None:
    whole = json.loads(lines[1])
    path = tmp_path / "log"
    for number in (0, 2, 6):
        path.write_text(json.dumps({**whole, "messages": whole["messages"][:number]}), encoding="utf-8")
        report = read_in(lake, path)
        assert report["ignored"] == ({} if number else {"manifest_without_session": 1})
    (tmp_path / "other.json").write_text(lines[0], encoding="utf-8")
    read_in(lake, tmp_path)
    (row,) = rows(lake)
    assert (len(row["messages"]), row["prompt"]) == (11, "Which stone is worn?")
    assert (row["status"], row["usage"]["cost_usd"]) == ("completed", pytest.approx(0.019))
