"""pi sessions: lists and trees, branches, what a person ran, how a turn ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl.adapters._pi_tree import parent_of
from tests.cases.reading import read_in, told
from tests.lakes import rows

_HEADER = {"type": "session", "id": "mill", "timestamp": "2026-05-12T01:00:00.000Z", "cwd": "/srv/mill"}


def _entry(second: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, **more}
    if role == "assistant":
        message |= {"model": "demo", "stopReason": more.get("stopReason", "stop"), "usage": {"input": 3, "output": 2}}
    return {"type": "message", "timestamp": f"2026-05-12T01:00:{second:02}.000Z", "message": message}


def _tree(name: str, above: str | None, entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "id": name, "parentId": above}


def _read(tmp_path: Path, lake: Path, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in (_HEADER, *entries)), encoding="utf-8")
    read_in(lake, path)
    return sorted(rows(lake), key=lambda row: row["parent_id"] is not None)


def _texts(row: dict[str, Any]) -> list[str]:
    return [message["content"] for message in row["messages"]]


def test_a_list_and_a_tree_give_the_same_transcript(tmp_path: Path, lake: Path) -> None:
    said = [_entry(1, "user", "Grind?"), _entry(2, "assistant", "Ground."), _entry(3, "user", "Grind?")]
    (row,) = _read(tmp_path, lake, *said)
    chained = [_tree(f"e{n}", f"e{n - 1}" if n else None, entry) for n, entry in enumerate(said)]
    (again,) = _read(tmp_path, tmp_path / "tree", *chained)
    assert _texts(row) == _texts(again) == ["Grind?", "Ground.", "Grind?"]
    assert row["content_hash"] == again["content_hash"]


def test_a_branch_that_was_left_is_a_row(tmp_path: Path, lake: Path) -> None:
    main, left = _read(
        tmp_path,
        lake,
        _tree("a", None, _entry(1, "user", "Grind?")),
        _tree("b", "a", _entry(2, "assistant", "Coarse.")),
        _tree("c", "b", _entry(3, "user", "Again.")),
        _tree("d", "c", _entry(4, "assistant", "Coarser.")),
        _tree("e", "b", _entry(5, "user", "Finer.")),
        _tree("f", "e", _entry(6, "assistant", "Fine.")),
    )
    assert _texts(main) == ["Grind?", "Coarse.", "Finer.", "Fine."]
    assert _texts(left) == ["Grind?", "Coarse.", "Again.", "Coarser."]
    assert (main["usage"]["output_tokens"], left["usage"]["output_tokens"]) == (4, 2)
    assert left["flags"] == ["abandoned"]


def test_a_result_that_hangs_on_a_call_hangs_on_its_message(tmp_path: Path, lake: Path) -> None:
    call = {"type": "toolCall", "id": "t1", "name": "gauge", "arguments": {"sail": "east"}}
    (row,) = _read(
        tmp_path,
        lake,
        _tree("a", "mill", _entry(1, "user", "Slow?")),
        _tree("b", "a", _entry(2, "assistant", [call])),
        _tree("c", "t1", _entry(3, "toolResult", "4 turns", toolCallId="t1", toolName="gauge", isError=False)),
        _tree("d", "c", _entry(4, "assistant", "Slow.")),
    )
    assert told(row)["steps"] == [("gauge", {"sail": "east"}, "4 turns", "ok")]
    assert row["flags"] == []


@pytest.mark.parametrize(
    ("stop", "status", "error"),
    [("aborted", "aborted", None), ("error", "error", "529"), ("length", "truncated", None)],
)
def test_how_a_turn_ended(stop: str, status: str, error: str | None, tmp_path: Path, lake: Path) -> None:
    last = _entry(2, "assistant", [], stopReason=stop, errorMessage="529")
    (row,) = _read(tmp_path, lake, _entry(1, "user", "Grind?"), last)
    assert (row["status"], row["error"]) == (status, error)


def test_a_command_that_a_person_ran_is_a_step_of_theirs_and_no_turn(tmp_path: Path, lake: Path) -> None:
    ran = {"role": "bashExecution", "command": "ls", "output": "flour", "exitCode": 2, "cancelled": False}
    entry = {"type": "message", "timestamp": "2026-05-12T01:00:03.000Z", "message": ran}
    (row,) = _read(tmp_path, lake, _entry(1, "user", "Grind?"), _entry(2, "assistant", "Ground."), entry)
    (step,) = row["steps"]
    assert (step["actor"], step["tool"], step["status"]) == ("user", "bash", "error")
    assert (row["n_turns"], row["prompt"], row["status"]) == (1, "Grind?", "completed")


@pytest.mark.parametrize("with_parent", [True, False])
def test_what_a_branched_session_copied_is_inherited_where_its_owner_is(
    with_parent: bool, samples: Path, lake: Path
) -> None:
    names = ["rye-branched.jsonl", *(["rye.jsonl"] if with_parent else [])]
    read_in(lake, *(samples / "pi" / name for name in names))
    (row,) = [row for row in rows(lake) if row["parent_id"]]
    assert [info["inherited"] for info in row["message_info"]] == [with_parent, with_parent, False, False]
    assert row["usage"]["output_tokens"] == (5 if with_parent else 9)


def test_a_path_names_the_session_in_it() -> None:
    name = "d97339c6-6c10-4827-846b-9ff1d9c3dc37"
    assert parent_of({"parentSession": f"/srv/sessions/2026_{name}.jsonl"}) == name
    assert parent_of({}) is None


def test_real_sessions_keep_their_totals(shared: Path, lake: Path) -> None:
    folder = shared / "corpora" / "pi-agent"
    for path in sorted(folder.glob("*large-session.jsonl")):
        read_in(lake, path)
        (row,) = rows(lake)
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        used = [record["message"]["usage"] for record in records if "usage" in record.get("message", {})]
        assert row["usage"]["output_tokens"] == sum(usage["output"] for usage in used)
        assert row["usage"]["input_tokens"] == sum(u["input"] + u["cacheRead"] + u["cacheWrite"] for u in used)
        assert row["n_steps"] == 391
