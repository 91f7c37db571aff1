"""What lies in the folder: whole or not there, the same bytes every time, every row accounted for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import etl
from etl.cli import run
from etl.errors import UsageError
from etl.exports.request import Request
from etl.exports.target import targets
from tests.exports.talk import agent, ask, lake_of, records, row, system, tool, user


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    rows = [ask(f"r{number}", f"question {number}", f"answer {number}", reward=number % 2) for number in range(30)]
    rows.append(row("open", user("broken"), agent("", ("c1", "look", {}))))
    return lake_of(tmp_path / "lake", rows)


def test_export_json_accounts_for_every_row_and_repeats_the_export(lake: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "where": "reward >= 0 OR reward IS NULL", "split": "train=0.8,test=0.2", "shards": 3, "max_rows": 25,
    }  # fmt: skip
    etl.export("sft", tmp_path / "one", lake=lake, **options)
    told = json.loads((tmp_path / "one" / "export.json").read_text(encoding="utf-8"))
    counts = told["rows"]
    assert counts["selected"] == 31
    assert counts["dropped"] == {"missing_result": 1, "max_rows": 5}
    assert counts["used"] == told["records"] == sum(file["rows"] for file in told["files"]) == 25
    assert told["sql"].endswith(f"WHERE {options['where']}")
    assert told["lake_version"] == 1
    for file in told["files"]:
        assert hashlib.sha256((tmp_path / "one" / file["name"]).read_bytes()).hexdigest() == file["sha256"]
    again = {name: value for name, value in told["options"].items() if name in Request._fields}
    etl.export(told["target"], tmp_path / "two", lake=told["lake"], **again)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_shards_are_even_and_named_after_their_number(lake: Path, tmp_path: Path) -> None:
    report = etl.export("openai", tmp_path / "out", lake=lake, shards=4)
    assert [file.name for file in report.files] == [f"train-{shard:05}-of-00004.jsonl" for shard in range(4)]
    assert [file.rows for file in report.files] == [8, 7, 8, 7]


def test_the_card_names_files_splits_and_json(lake: Path, tmp_path: Path) -> None:
    etl.export("sft", tmp_path / "out", lake=lake, split="train=0.5,test=0.5")
    card = yaml.safe_load((tmp_path / "out" / "README.md").read_text(encoding="utf-8").split("---")[1])
    (config,) = card["configs"]
    assert {item["split"] for item in config["data_files"]} == {"train", "test"}
    assert all((tmp_path / "out" / name).is_file() for item in config["data_files"] for name in item["path"])
    features = {feature["name"]: feature for feature in card["dataset_info"]["features"]}
    assert features["tools"]["dtype"] == "json"
    etl.export("sft", tmp_path / "other", lake=lake, max_rows=3)
    other = yaml.safe_load((tmp_path / "other" / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert other["dataset_info"]["description"] != card["dataset_info"]["description"]


def test_one_clear_line_for_what_cannot_be(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def line(*args: str) -> tuple[int, str]:
        code = run(["export", *args, "--lake", str(lake)])
        (said,) = capsys.readouterr().err.splitlines()
        return code, said

    out = str(tmp_path / "out")
    code, said = line("sftt", "--out", out)
    assert (code, "known targets: atif, axolotl" in said) == (2, True)
    code, said = line("sft", "--out", out, "--where", "reward > 99")
    assert (code, "no row is selected" in said) == (1, True)
    code, said = line("sft", "--out", out, "--where", "prompt = 'broken'")
    assert (code, "1 rows selected, and all left out (missing_result 1)" in said) == (1, True)
    code, said = line("tokens", "--out", out)
    assert (code, ". no_tokens: The row" in said, "`--tokenizer NAME`" in said) == (1, True, True)
    code, said = line("dpo", "--out", out, "--where", "prompt = 'question 1'")
    assert (code, "two scored attempts at the same prompt" in said) == (1, True)
    code, said = line("--out", out)
    assert (code, "--list lists them" in said) == (2, True)
    code, said = line("sft", "--out", str(lake))
    assert (code, "is not empty" in said) == (2, True)
    code, said = line("sft", "--out", out, "--where", "rewrad > 1")
    assert (code, "rewrad" in said) == (2, True)
    code, said = line("sft", "--out", out, "--split", "train=0.9,test=0.2")
    assert (code, "add up to 1.1" in said) == (2, True)
    code, said = line("sft", "--out", out, "--columns", "reward")
    assert (code, "sft has messages, tools, rollout_id" in said) == (2, True)
    code, said = line("dpo", "--out", out, "--near-duplicates", "0.8")
    assert (code, "no effect on the target dpo" in said) == (2, True)
    code, said = line("sft", "--out", out, "--max-tokens", "10")
    assert (code, "needs a --tokenizer" in said) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake"], "nothing is left, half-written or whole"


def test_the_command_prints_what_was_left_out(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = tmp_path / "verdicts.csv"
    assert run(["export", "sft", "--out", str(tmp_path / "a"), "--lake", str(lake), "--verdicts", str(verdicts)]) == 0
    said = capsys.readouterr().out
    assert "30 records for sft" in said
    assert "- missing_result" in said
    assert verdicts.read_text(encoding="utf-8").count("exported") == 30
    assert run(["export", "kto", "--out", str(tmp_path / "b"), "--lake", str(lake), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["dropped"] == {"missing_result": 1}
    assert run(["export", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["targets"]
    assert [(told["aliases"], told["file"]) for told in listed if told["target"] == "grpo"] == [(["rl"], "parquet")]
    assert run(["export", "--list"]) == 0
    assert all(name in capsys.readouterr().out for name in ("llamafactory",))


def test_simulated_rows_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulated = ask("s", "question s", "answer s") | {"origin": "simulation"}
    lake_of(tmp_path / "mixed", [simulated, *(ask(f"r{n}", f"question {n}", f"answer {n}") for n in range(3))])
    assert run(["export", "sft", "--out", str(tmp_path / "a"), "--lake", str(tmp_path / "mixed")]) == 0
    assert "1 of them simulated; `--where \"origin = 'traffic'\"` leaves them out" in capsys.readouterr().out
    told = json.loads((tmp_path / "a" / "export.json").read_text(encoding="utf-8"))["rows"]
    assert (told["used"], told["simulated"]) == (4, 1)


def test_wherever_it_fails_nothing_is_left(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(type(targets()["openai"]), "companions", full)
    with pytest.raises(OSError, match="no space"):
        etl.export("openai", tmp_path / "out", lake=lake)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake"]


def test_empty_folder_is_taken(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    etl.export("sft", tmp_path / "out", lake=lake)
    with pytest.raises(UsageError, match="not empty"):
        etl.export("sft", tmp_path / "out", lake=lake)


def test_every_target_writes_what_it_says(tmp_path: Path) -> None:
    """One conversation with everything in it goes through every target."""
    definitions = json.dumps([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}])
    talk = (
        system(), user("Which?"), agent("Let me see.", ("c1", "look", {"a": None}), ("c2", "look", {})),
        tool("c1", "one"), tool("c2", "two"), agent("This one."),
    )  # fmt: skip
    rows = [
        row(
            f"r{n}",
            *talk[:-1],
            agent(f"This one. {n}"),
            reward=float(n),
            tools=definitions,
            token_ids=[1, 2],
            loss_mask=[0, 1],
        )
        for n in range(2)
    ]
    lake = lake_of(tmp_path / "lake", rows)
    for name, target in targets().items():
        report = etl.export(name, tmp_path / name, lake=lake)
        assert report.records == (1 if target.unit != "row" else 2), name
        text = "\n".join(
            path.read_text(errors="replace") for path in sorted((tmp_path / name).rglob("*")) if path.is_file()
        )
        if name != "tokens":
            assert "Be brief." in text, f"{name}: the system prompt goes along"
            assert "look" in text, f"{name}: the tools go along"
    (openai, _) = records(tmp_path / "openai")("train")
    assert openai["messages"][2] == {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": null}'}},
            {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ],
    }
    assert openai["messages"][3] == {"role": "tool", "content": "one", "tool_call_id": "c1"}
    (slime, _) = records(tmp_path / "slime")("train")
    assert [message["step_loss_mask"] for message in slime["messages"]] == [0, 0, 1, 0, 0, 1]
    assert slime["messages"][2]["tool_calls"][0]["function"]["arguments"] == {"a": None}
    (axolotl, _) = records(tmp_path / "axolotl")("train")
    assert [message["train"] for message in axolotl["messages"]] == [False, False, True, False, False, True]
    configured = yaml.safe_load((tmp_path / "axolotl" / "axolotl.yaml").read_text(encoding="utf-8"))
    assert configured["datasets"][0]["message_field_training"] == "train"
    (flat, _) = records(tmp_path / "verl-sft")("train")
    assert [message["role"] for message in flat["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert flat["messages"][3]["content"] == "one\n</tool_response>\n<tool_response>\ntwo"
    (shared, _) = records(tmp_path / "llamafactory")("train")
    assert [turn["from"] for turn in shared["conversations"]] == ["human", "function_call", "observation", "gpt"]
    assert json.loads(shared["conversations"][1]["value"])[0] == {"name": "look", "arguments": {"a": None}}
    (ids, _) = records(tmp_path / "tokens")("train")
    assert (ids["input_ids"], ids["labels"]) == ([1, 2], [-100, 2])
