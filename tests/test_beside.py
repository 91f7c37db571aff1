"""What lies beside sessions is skipped with its name, and the run is done all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl import ingest
from tests.lakes import NOW, rows

_BESIDE: dict[str, list[Any]] = {
    "history.jsonl": [{"display": "fix it", "pastedContents": {}, "timestamp": 1774850400000, "project": "/srv"}] * 2,
    "typed.jsonl": [{"display": "go", "pastedContents": {"1": {"content": "x"}}, "timestamp": 1, "sessionId": "s"}],
    "codex.jsonl": [{"session_id": "s", "ts": 1774850400, "text": "fix it"}] * 2,
    "index.jsonl": [{"id": "s", "thread_name": "Fix", "updated_at": "2026-03-30T06:00:00Z"}],
    "users.jsonl": [{"id": "U1", "name": "ann", "is_bot": False, "profile": {"real_name": "Ann"}}] * 2,
    "todos.jsonl": [{"content": "fix it", "status": "pending", "activeForm": "Fixing it"}] * 2,
    "logs.jsonl": [{"sessionId": "s", "messageId": 0, "type": "user", "message": "fix it", "timestamp": "2026-03-30"}],
    "terminal.cast": [{"version": 2, "width": 80, "height": 24}, [0.1, "o", "$ "], [0.2, "i", "ls"]],
    "projects.jsonl": [{"uuid": "p", "name": "P", "docs": [], "prompt_template": "", "creator": {"uuid": "u"}}],
    "memories.jsonl": [{"conversations_memory": "likes tea", "account_uuid": "u"}],
    "votes.jsonl": [{"conversation_id": "c", "rating": "thumbs_up", "content": "{}", "evaluation_name": None}] * 2,
    "shared.jsonl": [{"id": "s", "conversation_id": "c", "title": "Tea", "is_anonymous": True}],
    "trial.jsonl": [{"trial_name": "t__1", "task_name": "t", "agent_info": {"name": "a"}, "verifier_result": {}}],
    "stats.jsonl": [{"name": {"name": "exact"}, "count": 2, "sum": 1.0}],
    "shown.jsonl": [{"instance_id": "id1", "train_trial_index": 0, "predicted_text": "9"}],
    "analytics.jsonl": [{"event": "exit", "properties": {"reason": "x"}, "user_id": "u", "time": 1755099880}] * 2,
}


@pytest.mark.parametrize("name", _BESIDE)
def test_what_lies_beside_sessions_is_skipped_with_its_name(name: str, tmp_path: Path) -> None:
    path, lake = tmp_path / name, tmp_path / "lake"
    path.write_text("".join(json.dumps(value) + "\n" for value in _BESIDE[name]), encoding="utf-8")
    report = ingest([path], lake=lake, now=NOW, strict=True).to_json()
    assert (report["files"]["skipped"], report["files"]["failed"]) == (1, 0)
    (file,) = rows(lake, "sources")
    assert file["error"].startswith(f"{path}: ")


@pytest.mark.parametrize("text", ["[]", " [\n]\n", "\ufeff[ ]"])
def test_a_list_of_nothing_is_no_failure(text: str, tmp_path: Path) -> None:
    (tmp_path / "projects.json").write_text(text, encoding="utf-8")
    files = ingest([tmp_path / "projects.json"], lake=tmp_path / "lake", now=NOW).to_json()["files"]
    assert (files["skipped"], files["failed"]) == (1, 0)


def test_a_list_of_tasks_in_one_array_is_none_either(tmp_path: Path) -> None:
    path = tmp_path / "todos.json"
    path.write_text(json.dumps(_BESIDE["todos.jsonl"]), encoding="utf-8")
    assert ingest([path], lake=tmp_path / "lake", now=NOW).to_json()["files"]["skipped"] == 1


def test_unknown_records_still_fail(tmp_path: Path) -> None:
    path = tmp_path / "crm.jsonl"
    path.write_text('{"text": "a", "thing": {"b": 1}}\n{"text": "c", "thing": {}}\n', encoding="utf-8")
    assert ingest([path], lake=tmp_path / "lake", now=NOW).to_json()["files"]["failed"] == 1


@pytest.mark.parametrize(
    "text", ["[Request interrupted by user]\n\nGo on.\n", "['clear', 'Enter']\n", "[2026-03-30] up\n"]
)
def test_text_in_brackets_is_no_torn_json(text: str, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text(text, encoding="utf-8")
    assert ingest([tmp_path / "prompt.txt"], lake=tmp_path / "lake", now=NOW).to_json()["files"]["skipped"] == 1


@pytest.mark.parametrize("text", ['{"messages": [{"role": "us', '[{"role": "user", "content": "H'])
def test_torn_json_still_fails(text: str, tmp_path: Path) -> None:
    (tmp_path / "torn.json").write_text(text, encoding="utf-8")
    assert ingest([tmp_path / "torn.json"], lake=tmp_path / "lake", now=NOW).to_json()["files"]["failed"] == 1
