"""OpenHands: files of single events, the state beside them, one response of many calls, the older stream."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from tests.cases.reading import agrees, read_in, told
from tests.lakes import rows, said


def _row(lake: Path) -> dict[str, Any]:
    (row,) = rows(lake)
    return row


def _events(samples: Path) -> list[dict[str, Any]]:
    text = (samples / "openhands" / "sdk.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in text.splitlines()[:-1]]
    return [event for event in events if event["kind"] != "BrandNewEvent"]


def _folder(folder: Path, events: list[dict[str, Any]], state: bool = True) -> None:
    """A conversation as the SDK keeps it: a file an event, its state beside the folder."""
    (folder / "events").mkdir(parents=True, exist_ok=True)
    for number, event in enumerate(events):
        path = folder / "events" / f"event-{number:05}-{event['id']}.json"
        path.write_text(json.dumps(event), encoding="utf-8")
    if state:
        (folder / "base_state.json").write_text(json.dumps(events[-1]["value"]), encoding="utf-8")


def test_calls_of_one_response_are_one_message(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "openhands" / "sdk.jsonl")
    row = _row(lake)
    agrees(told(row), {"prompt": "Which crane is idle?", "final_text": "Crane 3 is idle.", "model": "demo/harbour-1"})
    assert [(s["tool"], s["status"], s["error"]) for s in row["steps"]] == [
        ("terminal", "ok", None),
        ("terminal", "error", "exit 2"),
        ("terminal", "error", "Leave it where it is."),
        ("browser", "missing", None),
    ]
    assert len({step["message_index"] for step in row["steps"]}) == 3
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"], row["usage"]["cached_tokens"]) == (
        330,
        33,
        100,
    )
    assert [info["input_tokens"] for info in row["message_info"] if info["input_tokens"]] == [100, 110, 120]


def test_a_file_an_event_is_the_row_of_the_lines(samples: Path, tmp_path: Path, lake: Path) -> None:
    events = _events(samples)
    for end in (3, 8, len(events)):
        _folder(tmp_path / "conversation", events[:end], state=end == len(events))
        read_in(lake, tmp_path / "conversation")
    row = _row(lake)
    read_in(tmp_path / "once", samples / "openhands" / "sdk.jsonl")
    once = _row(tmp_path / "once")
    assert (row["rollout_id"], row["messages"], row["usage"]) == (once["rollout_id"], once["messages"], once["usage"])
    _folder(tmp_path / "moved", events)
    report = read_in(lake, tmp_path / "moved")
    assert report["rows"]["added"] == 0


def test_two_folders_are_two_conversations_and_an_archive_too(samples: Path, tmp_path: Path, lake: Path) -> None:
    events = _events(samples)
    other = [{**event, "id": event["id"].replace("0c0ffee0", "0c0ffee1")} for event in events]
    _folder(tmp_path / "one", events)
    _folder(tmp_path / "two", other)
    with zipfile.ZipFile(tmp_path / "both.zip", "w") as archive:
        for path in sorted(tmp_path.rglob("*.json")):
            archive.write(path, path.relative_to(tmp_path))
    read_in(lake, tmp_path / "one", tmp_path / "two")
    read_in(tmp_path / "zipped", tmp_path / "both.zip")
    assert len(rows(lake)) == 2
    assert {row["rollout_id"] for row in rows(lake)} == {row["rollout_id"] for row in rows(tmp_path / "zipped")}


def test_an_action_and_its_result_find_each_other_without_a_folder(samples: Path, tmp_path: Path, lake: Path) -> None:
    events = _events(samples)
    for name, number in (("a", 2), ("b", 4)):
        (tmp_path / f"{name}.json").write_text(json.dumps(events[number]), encoding="utf-8")
        read_in(lake, tmp_path / f"{name}.json")
    assert [(step["tool"], step["status"]) for step in _row(lake)["steps"]] == [("terminal", "ok")]


def test_the_older_stream_counts_each_response_once(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "openhands" / "stream.json")
    row = _row(lake)
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"], row["usage"]["cost_usd"]) == (300, 19, 0.003)
    assert [(s["tool"], s["status"]) for s in row["steps"]] == [
        ("execute_bash", "ok"),
        ("execute_bash", "error"),
        ("str_replace_editor", "error"),
        ("finish", "missing"),
    ]
    assert (row["prompt"], row["status"]) == ("What does the log say?", "completed")


def test_events_in_files_and_pages_are_read_once(samples: Path, tmp_path: Path, lake: Path) -> None:
    stream = json.loads((samples / "openhands" / "stream.json").read_text(encoding="utf-8"))
    for folder in ("events", "event_cache"):
        (tmp_path / "session" / folder).mkdir(parents=True)
    for event in stream:
        (tmp_path / "session" / "events" / f"{event['id']}.json").write_text(json.dumps(event), encoding="utf-8")
    (tmp_path / "session" / "event_cache" / "0-25.json").write_text(json.dumps(stream), encoding="utf-8")
    read_in(lake, tmp_path / "session")
    row = _row(lake)
    read_in(tmp_path / "once", samples / "openhands" / "stream.json")
    assert (row["messages"], row["usage"]) == (_row(tmp_path / "once")["messages"], _row(tmp_path / "once")["usage"])


def test_a_benchmark_says_whether_the_task_was_solved(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "openhands" / "output.jsonl")
    found = {row["conversation_id"]: row for row in rows(lake)}
    assert {name: row["judgments"][0]["value"] for name, row in found.items()} == {
        "harbour__log-7": 1.0,
        "harbour__log-8": 0.0,
    }
    assert found["harbour__log-8"]["status"] == "error"
    assert len(said(lake)) == 2
