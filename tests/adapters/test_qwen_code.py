"""Qwen Code sessions: the tree of records, records written twice, forks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import read_in
from tests.lakes import rows


def _record(name: str, parent: str | None, role: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": name,
        "parentUuid": parent,
        "sessionId": "kiln",
        "timestamp": f"2026-05-06T07:00:{int(name[1:]):02}.000Z",
        "type": "assistant" if role == "model" else "user",
        "message": {"role": role, "parts": [{"text": text}]},
        **more,
    }


def _log(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def _texts(row: dict[str, Any]) -> list[str]:
    return [message["content"] for message in row["messages"]]


ASKED = (_record("r1", None, "user", "Crack?"), _record("r2", "r1", "model", "Too fast."))


def test_what_a_rewind_left_is_a_row_of_its_own(tmp_path: Path, lake: Path) -> None:
    left = (_record("r3", "r2", "user", "Again."), _record("r4", "r3", "model", "Fired."))
    live = (_record("r5", "r2", "user", "Slowly."), _record("r6", "r5", "model", "Done."))
    read_in(lake, _log(tmp_path / "a.jsonl", *ASKED, *left, *live))
    main, other = sorted(rows(lake), key=lambda row: row["parent_id"] is not None)
    assert _texts(main) == ["Crack?", "Too fast.", "Slowly.", "Done."]
    assert _texts(other) == ["Crack?", "Too fast.", "Again.", "Fired."]
    assert [info["inherited"] for info in other["message_info"]] == [True, True, False, False]
    assert "abandoned" in other["flags"]


def test_a_record_whose_parent_is_gone_stays_in_its_place(tmp_path: Path, lake: Path) -> None:
    read_in(lake, _log(tmp_path / "a.jsonl", *ASKED, _record("r5", "gone", "user", "Slowly.")))
    (row,) = rows(lake)
    assert _texts(row) == ["Crack?", "Too fast.", "Slowly."]
    assert "ambiguous_parent" in row["flags"]


def test_records_of_one_id_are_one_message(tmp_path: Path, lake: Path) -> None:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 4}
    thought = _record("r2", "r1", "model", "")
    thought["message"]["parts"] = [{"text": "Hm.", "thought": True}]
    read_in(lake, _log(tmp_path / "a.jsonl", ASKED[0], thought, {**ASKED[1], "usageMetadata": usage}))
    (row,) = rows(lake)
    assert (_texts(row), row["messages"][1]["reasoning_content"]) == (["Crack?", "Too fast."], "Hm.")
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (9, 6)


@pytest.mark.parametrize("with_parent", [True, False])
def test_a_fork_counts_what_it_copied_once(with_parent: bool, samples: Path, lake: Path) -> None:
    files = ["glaze-forked.jsonl", *(["glaze.jsonl"] if with_parent else [])]
    read_in(lake, *(samples / "qwen_code" / name for name in files))
    (fork,) = [row for row in rows(lake) if row["conversation_id"].endswith("0002")]
    assert [info["inherited"] for info in fork["message_info"]] == [True, True, False, False]
    assert fork["usage"]["output_tokens"] == 7
    assert ("ambiguous_parent" in fork["flags"]) is not with_parent


def test_thoughts_that_the_total_has_among_the_candidates_count_once(tmp_path: Path, lake: Path) -> None:
    counts = {"promptTokenCount": 100, "candidatesTokenCount": 10, "thoughtsTokenCount": 3}
    inside = _record("r2", "r1", "model", "Too fast.", usageMetadata={**counts, "totalTokenCount": 110})
    beside = _record("r3", "r2", "model", "Too hot.", usageMetadata={**counts, "totalTokenCount": 113})
    read_in(lake, _log(tmp_path / "a.jsonl", ASKED[0], inside, beside))
    (row,) = rows(lake)
    assert [info["output_tokens"] for info in row["message_info"]] == [None, 10, 13]
    assert (row["usage"]["output_tokens"], row["usage"]["reasoning_tokens"]) == (23, 6)


def test_a_command_that_exited_with_an_error_failed(tmp_path: Path, lake: Path) -> None:
    call = _record("r2", "r1", "model", "")
    call["message"]["parts"] = [{"functionCall": {"id": "c1", "name": "run_shell_command", "args": {}}}]
    output = {"output": "Command: fire\nExit Code: 2\nSignal: (none)"}
    result = _record("r3", "r2", "user", "", toolCallResult={"callId": "c1", "status": "success"})
    result["message"]["parts"] = [{"functionResponse": {"id": "c1", "name": "run_shell_command", "response": output}}]
    result["type"] = "tool_result"
    read_in(lake, _log(tmp_path / "a.jsonl", ASKED[0], call, result))
    (row,) = rows(lake)
    assert [step["status"] for step in row["steps"]] == ["error"]
