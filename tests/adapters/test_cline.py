"""Cline and Roo Code: calls as XML, results as text, and the files of a task's folder as one row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl.adapters._cline_text import said as pieces
from etl.adapters._cline_text import written
from tests.cases.reading import agrees, read_in, told
from tests.lakes import rows, said


def _row(lake: Path) -> dict[str, Any]:
    (row,) = rows(lake)
    return row


def test_calls_in_the_text_are_answered_by_texts(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "cline" / "xml")
    agrees(
        told(_row(lake)),
        {
            "prompt": "Mend the fence.",
            "status": "completed",
            "steps": [
                ("read_file", {"path": "fence.txt"}, "two posts\nFENCE_API_KEY=<SECRET_api_key>", "ok"),
                (
                    "execute_command",
                    {"command": "fence --mend", "requires_approval": "true"},
                    "The user denied this operation.",
                    "error",
                ),
                (
                    "write_to_file",
                    {"path": "list.xml", "content": "<content>nails</content>"},
                    "The tool execution failed with the following error:\n<error>\nread-only\n</error>",
                    "error",
                ),
                ("attempt_completion", {"result": "The fence needs nails."}, None, "missing"),
            ],
        },
    )
    row = _row(lake)
    assert [step["condition"] for step in row["steps"]] == [None, "permission_denied", "error", None]
    typed = [m["content"] for m, i in zip(row["messages"], row["message_info"], strict=True) if not i["synthetic"]]
    assert [text for text in typed if text in ("Mend the fence.", "Do it by hand.")] == [
        "Mend the fence.",
        "Do it by hand.",
    ]
    assert row["n_turns"] == 2


def test_blocks_are_answered_by_texts_in_order(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "cline" / "native" / "api_conversation_history.json")
    row = _row(lake)
    assert [(s["call_id"], s["status"]) for s in row["steps"]] == [
        ("toolu_1", "ok"),
        ("toolu_2", "ok"),
        ("toolu_3", "ok"),
        ("toolu_4", "missing"),
    ]
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"], row["model"]) == (370, 21, "demo-fence-1")


def _task(folder: Path, samples: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("xml/api_conversation_history.json", "view/ui_messages.json"):
        path = samples / "cline" / name
        (folder / path.name).write_bytes(path.read_bytes())
    uses = [{"ts": 1774850400000, "model_id": "demo-1", "model_provider_id": "demo", "mode": "act"}]
    metadata = {"files_in_context": [{"path": "fence.txt"}], "model_usage": uses}
    (folder / "task_metadata.json").write_text(json.dumps(metadata), encoding="utf-8")


def test_the_files_of_a_task_are_one_row(samples: Path, tmp_path: Path, lake: Path) -> None:
    _task(tmp_path / "tasks" / "1774850400000", samples)
    read_in(lake, tmp_path / "tasks")
    row = _row(lake)
    assert (row["model"], row["provider"], row["n_turns"]) == ("demo-1", "demo", 2)
    assert (row["usage"]["input_tokens"], row["usage"]["cached_tokens"], row["usage"]["output_tokens"]) == (270, 60, 18)
    assert row["started_at"].isoformat() == "2026-03-30T06:00:00+00:00"
    _task(tmp_path / "moved", samples)
    report = read_in(lake, tmp_path / "moved")
    assert report["rows"]["added"] == report["rows"]["replaced"] == 0


def test_a_growing_history_keeps_its_name(samples: Path, tmp_path: Path, lake: Path) -> None:
    values = json.loads((samples / "cline" / "xml" / "api_conversation_history.json").read_text(encoding="utf-8"))
    path = tmp_path / "api_conversation_history.json"
    for end in (2, 5, len(values)):
        path.write_text(json.dumps(values[:end]), encoding="utf-8")
        read_in(lake, path)
    read_in(tmp_path / "once", samples / "cline" / "xml")
    assert said(lake) == said(tmp_path / "once")


def test_a_view_alone_tells_calls_and_results(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "cline" / "view")
    row = _row(lake)
    assert [(s["tool"], s["status"]) for s in row["steps"]] == [
        ("readFile", "ok"),
        ("execute_command", "ok"),
        ("newFileCreated", "missing"),
    ]
    assert (row["prompt"], row["final_text"], row["status"]) == (
        "Mend the fence.",
        "The fence needs nails.",
        "completed",
    )


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Use <b>bold</b> text.", []),
        ("<read_file><path>a</path>", []),
        ("<my_tool><x>1</x></my_tool>", [("my_tool", {"x": "1"})]),
        ("<write_to_file><content></content></write_to_file>", [("write_to_file", {"content": ""})]),
        ("<list_files></list_files>", [("list_files", {})]),
    ],
)
def test_only_tools_are_calls(text: str, calls: list[Any]) -> None:
    assert written(text, frozenset({"my_tool"})).calls == calls


def test_a_task_that_speaks_of_its_own_tags_stays_whole() -> None:
    (piece,) = pieces("Explain <environment_details> to me")
    assert (piece.text, piece.synthetic) == ("Explain <environment_details> to me", False)


def test_a_request_shown_as_one_text_is_taken_apart() -> None:
    details = "<environment_details>\ny\n</environment_details>"
    text = f"<task>\nMend it.\n</task>\n\n\n# task_progress RECOMMENDED\n\n- x\n\n{details}"
    assert [(piece.text.split("\n")[0], piece.synthetic) for piece in pieces(text)] == [
        ("Mend it.", False),
        ("# task_progress RECOMMENDED", True),
        ("<environment_details>", True),
    ]


def test_the_first_text_of_a_view_is_the_task(tmp_path: Path, lake: Path) -> None:
    request = {
        "request": "<task>\nMend it.\n</task>\n\n# task_progress\n\n<environment_details>\ny\n</environment_details>"
    }
    said_first = {"ts": 1774850400000, "type": "say", "say": "text", "text": "Mend it.", "images": [], "files": []}
    asked = {"ts": 1774850400100, "type": "say", "say": "api_req_started", "text": json.dumps(request)}
    answer = {"ts": 1774850401000, "type": "say", "say": "text", "text": "Mended.", "partial": False}
    (tmp_path / "ui_messages.json").write_text(json.dumps([said_first, asked, answer]), encoding="utf-8")
    read_in(lake, tmp_path / "ui_messages.json")
    row = _row(lake)
    assert (row["prompt"], row["final_text"], row["n_turns"]) == ("Mend it.", "Mended.", 1)


def test_the_summary_of_a_condensed_task_is_no_turn(tmp_path: Path, lake: Path) -> None:
    history: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "<task>\nMend it\n</task>"}], "ts": 1772400000000},
        {"role": "assistant", "content": [{"type": "text", "text": "I mend."}], "ts": 1772400001000},
        {"role": "user", "content": "The fence is half mended.", "isSummary": True, "ts": 1772400002000},
        {"role": "assistant", "content": [{"type": "text", "text": "Mended."}], "ts": 1772400003000},
    ]
    path = tmp_path / "api_conversation_history.json"
    path.write_text(json.dumps(history), encoding="utf-8")
    read_in(lake, path)
    (row,) = rows(lake)
    assert (row["prompt"], row["n_turns"], row["flags"]) == ("Mend it", 1, ["compacted"])
    assert [info["synthetic"] for info in row["message_info"]] == [False, False, True, False]
