"""Kimi Code wire logs: prompts told twice, steps in pieces, what was typed and never heard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cases.reading import read_in, told
from tests.lakes import rows

_START = 1785612800000


def _log(path: Path, *events: dict[str, Any]) -> Path:
    named = [{"type": "metadata", "protocol_version": "1.4", "created_at": _START}]
    named += [{**event, "time": _START + 1000 * number} for number, event in enumerate(events, 1)]
    path.write_text("".join(json.dumps(event) + "\n" for event in named), encoding="utf-8")
    return path


def _typed(text: str) -> dict[str, Any]:
    return {"type": "turn.prompt", "input": [{"type": "text", "text": text}], "origin": {"kind": "user"}}


def _entered(text: str) -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": text}], "origin": {"kind": "user"}}
    return {"type": "context.append_message", "message": message}


def _loop(**event: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": event}


USAGE = {"inputOther": 5, "inputCacheRead": 4, "output": 2}
ANSWER = (
    _loop(type="step.begin", uuid="s"),
    _loop(type="content.part", part={"type": "think", "think": "Hm."}),
    _loop(type="content.part", part={"type": "text", "text": "Nine "}),
    _loop(type="content.part", part={"type": "text", "text": "metres."}),
    _loop(type="step.end", uuid="s", usage=USAGE, finishReason="end_turn"),
)


def test_a_prompt_told_twice_is_said_once_and_equal_ones_stay_two(tmp_path: Path, lake: Path) -> None:
    twice = [event for _ in range(2) for event in (_typed("How tall?"), _entered("How tall?"), *ANSWER)]
    read_in(lake, _log(tmp_path / "wire.jsonl", *twice))
    (row,) = rows(lake)
    assert told(row)["messages"] == [("user", "How tall?"), ("assistant", "Nine metres.")] * 2
    assert row["messages"][1]["reasoning_content"] == "Hm."
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (18, 4)


def test_what_was_typed_and_never_heard_is_kept(tmp_path: Path, lake: Path) -> None:
    events = (_typed("How tall?"), _entered("How tall?"), *ANSWER, _typed("Stop."), {"type": "turn.cancel"})
    read_in(lake, _log(tmp_path / "wire.jsonl", *events))
    (row,) = rows(lake)
    assert told(row)["messages"][-1] == ("user", "Stop.")
    assert (row["status"], "interrupted" in row["flags"]) == ("aborted", True)


def test_logs_appended_in_one_file_are_rows_of_their_own(tmp_path: Path, lake: Path) -> None:
    first = _log(tmp_path / "a.jsonl", _entered("How tall?"), *ANSWER).read_text(encoding="utf-8")
    second = first.replace(str(_START), str(_START + 1))
    (tmp_path / "both.jsonl").write_text(first + second, encoding="utf-8")
    read_in(lake, tmp_path / "both.jsonl")
    assert [row["n_turns"] for row in rows(lake)] == [1, 1]


def test_what_the_person_rejected_was_denied(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "kimi_cli" / "bamboo.jsonl")
    (row,) = rows(lake)
    assert [step["condition"] for step in row["steps"]] == [None, "permission_denied", None]
    assert json.loads(row["tools"])[0]["function"]["name"] == "Bash"


def test_responses_in_pieces_are_whole_and_counted_once(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "kimi_cli" / "turns.jsonl")
    main, agent = sorted(rows(lake), key=lambda row: row["parent_id"] is not None)
    assert main["prompt"] == "Which bamboo flowers?"
    assert [(step["tool"], json.loads(step["arguments"]), step["result_index"]) for step in main["steps"]] == [
        ("Shell", {"command": "grep flower grove.txt"}, 4),
        ("WriteFile", {"path": "grove.txt", "content": ""}, 2),
        ("Agent", {"prompt": "Count the canes."}, 3),
    ]
    assert main["messages"][1]["reasoning_content"] == "Look twice."
    assert [step["condition"] for step in main["steps"]] == ["error", "permission_denied", "success"]
    usage = main["usage"]
    assert (usage["input_tokens"], usage["cached_tokens"], usage["output_tokens"]) == (10_200, 9900, 55)
    assert (main["status"], main["n_turns"]) == ("aborted", 3)
    assert (agent["parent_id"], agent["prompt"], agent["final_text"]) == (
        main["rollout_id"],
        "Count the canes.",
        "12 canes.",
    )
    assert (agent["usage"]["input_tokens"], agent["agent"]) == (30, "explore")


def test_a_context_file_is_the_transcript_that_was_sent(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "kimi_cli" / "context.jsonl")
    (row,) = rows(lake)
    assert (row["prompt"], row["final_text"], row["n_turns"]) == ("How old is it?", "Nobody knows.", 1)
    assert [(step["tool"], step["status"]) for step in row["steps"]] == [("Shell", "error")]
    assert row["messages"][0]["role"] == "system"
