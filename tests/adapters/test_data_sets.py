"""Folders of data sets as Hugging Face saves them: rows are read from any container, what describes them is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from etl.adapter import adapter_named
from etl.pipeline import ingest
from tests.contract.harness import read
from tests.lakes import NOW, rows

_TURNS = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]


def _saved(folder: Path) -> Path:
    """A folder with Parquet, an Arrow stream, and all that `datasets` writes beside them."""
    value = {"dtype": "string", "_type": "Value"}
    info = {"features": {"messages": [{"role": value, "content": value}]}, "citation": "", "splits": {"train": {}}}
    for name, content in {
        "README.md": "---\nlicense: mit\n---\n# A set\n",
        "train/dataset_info.json": json.dumps(info),
        "train/state.json": json.dumps({"_data_files": [{"filename": "data.arrow"}], "_fingerprint": "ab"}),
        "dataset_dict.json": json.dumps({"splits": ["train"]}),
        "dataset_infos.json": json.dumps({"default": info}),
        "data/prompts.jsonl": json.dumps({"id": 1, "prompt": "Translate this.", "meta": {"lang": "no"}}) + "\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    table = pa.table({"messages": [_TURNS], "source": ["a"]})
    with pa.OSFile(str(folder / "train" / "data.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
        out.write_table(table)
    chat = [{**turn, "toxic": False, "country": None} for turn in _TURNS]
    wild = pa.table({"conversation_hash": ["h1"], "model": ["m"], "conversation": [chat], "state": pa.nulls(1)})
    pq.write_table(wild, folder / "data" / "wild.parquet")
    return folder


def test_a_folder_is_read_or_listed_with_a_reason(tmp_path: Path) -> None:
    report = ingest([_saved(tmp_path / "set")], lake=tmp_path / "lake", now=NOW, strict=True)
    files = report.to_json()["files"]
    assert {name: count for name, count in files.items() if count} == {"seen": 8, "new": 2, "skipped": 6}
    reasons = {Path(row["uri"]).name: row["error"] for row in rows(tmp_path / "lake", "sources") if row["error"]}
    assert "description of a data set" in reasons["dataset_info.json"]
    assert "without an answer" in reasons["prompts.jsonl"]
    assert {row["conversation_id"] for row in rows(tmp_path / "lake")} == {"h1", None}


def _read(value: dict[str, Any]) -> dict[str, Any]:
    (row,) = read(json.dumps(value).encode(), adapter_named("openai_messages")).rows
    return row


def test_turns_that_are_lists_of_messages_follow_one_another() -> None:
    row = _read({"id": "n", "messages": [_TURNS, [{"role": "user", "content": "More"}]]})
    assert [message["content"] for message in row["messages"]] == ["Hi", "Yes", "More"]


@pytest.mark.parametrize("number", [1, 2])
def test_files_beside_the_turns_go_where_their_parts_stand(number: int) -> None:
    content = [{"type": "image"}, {"type": "text", "text": "What is it?"}]
    row = _read({"messages": [{"role": "user", "content": content}], "images": ["a.png", "b.png"][:number]})
    parts = json.loads(row["message_info"][0]["parts"])
    assert parts == ([{"type": "image", "image": "a.png"}] if number == 1 else [{"type": "image"}])
    assert (row["extra"] is None) == (number == 1)


def test_results_that_stand_in_one_text_answer_each_its_call() -> None:
    calls = [{"name": name, "arguments": "{}"} for name in ("area", "volume")]
    results = [{"tool_call_id": f"c{n}", "name": call["name"], "content": str(n)} for n, call in enumerate(calls)]
    turns = [*_TURNS[:1], {"role": "assistant", "tool_calls": calls}, {"role": "tool", "content": json.dumps(results)}]
    row = _read({"messages": turns})
    found = [(step["tool"], row["messages"][step["result_index"]]["content"]) for step in row["steps"]]
    assert found == [("area", "0"), ("volume", "1")]
    plain = [{"title": "a"}, {"title": "b"}]
    assert len(_read({"messages": [*turns[:2], {"role": "tool", "content": json.dumps(plain)}]})["messages"]) == 3


def test_a_result_of_a_call_that_was_answered_is_no_result_of_another() -> None:
    calls = [{"id": "c1", "name": "a", "arguments": "{}"}, {"name": "b", "arguments": "{}"}]
    answers = [{"role": "tool", "tool_call_id": "c1", "content": "1"}] * 2
    row = _read({"messages": [*_TURNS[:1], {"role": "assistant", "tool_calls": calls}, *answers]})
    assert [step["status"] for step in row["steps"]] == ["ok", "missing"]
    assert row["flags"] == ["incomplete", "missing_result", "orphan_result"]


def test_glued_records_and_padding_are_told() -> None:
    line = json.dumps({"messages": _TURNS}).encode()
    found = read(line + line + b"\n" + b"\0" * 9 + line + b"\n" + line + b"\n", adapter_named("openai_messages")).rows
    assert [row["flags"] for row in found] == [["glued_record"], ["glued_record"], ["nul_padding"], []]


def test_placeholders_are_named(tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_text("<PLACEHOLDER ROW>\n" * 3)
    (tmp_path / "some.jsonl").write_text(json.dumps({"messages": _TURNS}) + "\n<PLACEHOLDER ROW>\n")
    report = ingest([tmp_path], lake=tmp_path / "lake", now=NOW, strict=True).to_json()
    assert (report["files"]["skipped"], report["rejects"]) == (1, {"placeholder": 1})
    assert "placeholders" in next(row["error"] for row in rows(tmp_path / "lake", "sources") if row["error"])
