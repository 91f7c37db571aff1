"""The cases as trainers get them: arguments of one value in every form, no key added, broken rows left out by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from etl.cli import run
from tests.cases.reading import Given, Ours, Shared, given, read_in

__all__ = ["given"]

_TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}


def _line(name: str, arguments: Any, *results: dict[str, Any]) -> str:
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": arguments}}
    asked = [{"role": "user", "content": f"Ask {name}"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    return json.dumps({"id": name, "tools": [_TOOL], "messages": [*asked, *results]})


_ANSWER = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
_UNIONS = Ours(
    "unions.jsonl",
    (
        _line("u1", {"city": "Oslo"}, _ANSWER), _line("u2", {"to": "x", "cc": None}, _ANSWER), _line("u3", {}, _ANSWER),
        _line("u4", {"opts": {"depth": 2}}, _ANSWER), _line("u5", '{"opts": [1, "two", null]}', _ANSWER),
    ),
)  # fmt: skip
_SPELLINGS = Ours(
    "spellings.jsonl",
    (
        _line("s1", {"n": 2}, _ANSWER), _line("s2", '{"n": 2}', _ANSWER), _line("s3", '"{\\"n\\": 2}"', _ANSWER),
        _line("s4", '"hi"', _ANSWER), _line("s5", '{"n": ', _ANSWER), _line("s6", {"n": 2}),
    ),
)  # fmt: skip


def exported(tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, *options: str) -> dict[str, Any]:
    """What the command says, with the records under `found`."""
    out = tmp_path / f"{target}{len(options)}"
    capsys.readouterr()
    assert run(["export", target, "--out", str(out), "--lake", str(tmp_path / "lake"), "--json", *options]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    found: list[Any] = []
    for file in told["files"]:
        path = out / file["name"]
        lines = path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else ()
        found += [json.loads(line) for line in lines] or pq.ParquetFile(path).read().to_pylist()
    return {**told, "found": found}


def arguments(record: dict[str, Any]) -> list[Any]:
    """What every call of a record says, as it stands there."""
    return [call["function"]["arguments"] for message in record["messages"] for call in message.get("tool_calls") or ()]


@pytest.mark.parametrize("log", [Shared("B30.jsonl"), _SPELLINGS])
def test_spellings(log: Shared | Ours, given: Given, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_in(tmp_path / "lake", given(log))
    wanted = {"city": "Paris", "n": 2} if isinstance(log, Shared) else {"n": 2}
    for target, read in (("openai", json.loads), ("sft", json.loads), ("nemo-rl", dict), ("slime", dict)):
        told = exported(tmp_path, capsys, target)
        assert told["rows"]["dropped"]["invalid_arguments"] == 2
        assert told["rows"]["dropped"]["missing_result"] == (5 if isinstance(log, Shared) else 1)
        assert [read(said) for record in told["found"] for said in arguments(record)] == [wanted] * told["records"]
    told = exported(tmp_path, capsys, "openai", "--missing-results", "allow-last", "--keep-duplicates")
    assert told["records"] == (6 if isinstance(log, Shared) else 4)
    assert [json.loads(said) for record in told["found"] for said in arguments(record)] == [wanted] * told["records"]


@pytest.mark.parametrize("log", [Shared("B31.jsonl"), _UNIONS])
def test_unions(log: Shared | Ours, given: Given, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_in(tmp_path / "lake", given(log))
    path = given(log)
    native = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    told = {}
    for row in native:
        (said,) = arguments(row)
        told[row["messages"][0]["content"]] = (json.loads(said) if isinstance(said, str) else said, row["tools"])
    for target, read in (("openai", json.loads), ("sft", json.loads), ("nemo-rl", dict), ("slime", dict)):
        found = exported(tmp_path, capsys, target)["found"]
        assert len(found) == 5
        for record in found:
            tools = record["tools"]
            got = (
                next(read(said) for said in arguments(record)),
                json.loads(tools) if isinstance(tools, str) else tools,
            )
            assert got == told[record["messages"][0]["content"]], target


@pytest.mark.parametrize("reverse", [False, True])
def test_a_late_key_is_there(reverse: bool, given: Given, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = given(Shared("B34.jsonl")).read_text(encoding="utf-8").splitlines()
    read_in(tmp_path / "lake", given(Ours("late.jsonl", tuple(reversed(lines) if reverse else lines))))
    assert exported(tmp_path, capsys, "openai")["records"] == 130
    told = exported(tmp_path, capsys, "kto", "--pass-at", "0.5")
    assert (told["records"], told["rows"]["dropped"]) == (10, {"unscored": 120})
    assert {record["label"] for record in told["found"]} == {True}


def test_scores_that_are_none(given: Given, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_in(tmp_path / "lake", given(Shared("B45.json")))
    told = exported(tmp_path, capsys, "kto")
    assert sorted(record["label"] for record in told["found"]) == [False, True]
    assert told["rows"]["dropped"] == {"no_messages": 1, "unscored": 1}
    (record,) = [
        record for record in exported(tmp_path, capsys, "sft")["found"] if record["messages"][-1]["content"] == "4"
    ]
    assert record["messages"][-1]["reasoning_content"] == "add"


def test_sharegpt(given: Given, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_in(tmp_path / "lake", given(Shared("B48.sharegpt.jsonl")))
    told = exported(tmp_path, capsys, "llamafactory")
    assert told["rows"]["dropped"] == {"no_prompt": 1}, "the agent greets, and then says nothing"
    by_first = {record["conversations"][0]["value"]: record["conversations"] for record in told["found"]}
    assert [json.loads(turn["value"]) for turn in by_first["Ages?"] if turn["from"] == "function_call"] == [
        [
            {"name": "calc_age", "arguments": {"birthdate": "1990-05-15"}},
            {"name": "calc_age", "arguments": {"birthdate": "1992-10-13"}},
        ]
    ]
    odd = json.dumps([[("human", "a"), ("human", "b"), ("gpt", "c")]])
    turns = [{"from": speaker, "value": value} for speaker, value in json.loads(odd)[0]]
    read_in(tmp_path / "lake", given(Ours("odd.jsonl", (json.dumps({"id": "odd", "conversations": turns}),))))
    told = exported(tmp_path, capsys, "llamafactory", "--where", "conversation_id <> 'sg3'")
    assert told["rows"]["dropped"] == {"no_alternation": 1}


def test_simulated_users_and_greetings(given: Given, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_in(tmp_path / "lake", given(Shared("B50.tau2.json")))
    told = exported(tmp_path, capsys, "openai")
    (record,) = told["found"]
    assert [message["role"] for message in record["messages"]] == [
        "system", "assistant", "user", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert [json.loads(said) for said in arguments(record)] == [{"line": "L1"}]
    assert told["rows"]["repaired"]["user_calls_left_out"] == 1
    (prompt,) = exported(tmp_path, capsys, "grpo")["found"]
    assert [message["role"] for message in prompt["prompt"]] == ["system", "assistant", "user"]


def test_times_of_a_vendor(given: Given, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_in(tmp_path / "lake", given(Shared("B42")))
    found = exported(tmp_path, capsys, "openai")["found"]
    assert sorted(record["messages"][-1]["content"] for record in found) == ["Oslo.", "pong"]
    assert sorted(said for record in found for said in map(json.loads, arguments(record))) == [{"q": "Norway"}]


def test_placeholders_are_in_no_file(given: Given, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_in(tmp_path / "lake", given(Shared("B44.jsonl")))
    told = exported(tmp_path, capsys, "openai")
    assert told["rows"]["dropped"].get("content_not_captured", 0) + told["rows"]["dropped"].get("no_messages", 0) > 0
    assert not any("placeholder" in json.dumps(record).lower() for record in told["found"])
