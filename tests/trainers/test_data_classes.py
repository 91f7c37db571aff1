"""The data classes and validators of other trainers take the files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.trainers.conversations import ALL, PARALLEL
from tests.trainers.test_trl import CHATS, SCORED, rendered

_INVENTED = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.\n\n"
"""The system prompt that Qwen 2.5 makes up where there is none; with the tools written out there is one."""


def lines(folder: Path, name: str = "train-00000-of-00001.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def test_verl_reads_prompts(exported: Callable[..., Path], with_template: Callable[[str], Any]) -> None:
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    folder = exported("verl-rl", where=SCORED, ground_truth="'berth'")
    config = OmegaConf.create({"max_prompt_length": 4096, "filter_overlong_prompts": True, "return_raw_chat": True})
    rows = RLHFDataset(str(folder / "train-00000-of-00001.parquet"), with_template("qwen3"), config)
    assert len(rows) == 4
    row = rows[0]
    assert row["reward_model"]["ground_truth"] == "berth"
    assert row["extra_info"]["index"] in range(4)
    assert [message["role"] for message in row["raw_prompt"]] == ["system", "user"]


@pytest.mark.parametrize("template", ["qwen2_5", "qwen3_training"])
def test_verl_trains_what_it_would_natively(
    template: str, exported: Callable[..., Path], with_template: Callable[[str], Any]
) -> None:
    from omegaconf import OmegaConf
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    tokenizer = with_template(template)
    folder = exported("verl-sft", where=CHATS)
    config = OmegaConf.create({"max_length": 8192, "pad_mode": "no_padding", "truncation": "error"})
    rows = MultiTurnSFTDataset(str(folder / "train-00000-of-00001.parquet"), tokenizer, config)
    ours = sorted(tokenizer.decode(rows[place]["input_ids"]) for place in range(len(rows)))
    told = [rendered(tokenizer, c["messages"], c.get("tools")) for c in ALL]
    assert ours == sorted(text.replace(_INVENTED, "") for text in told)
    for place in range(len(rows)):
        trained = tokenizer.decode(rows[place]["input_ids"][rows[place]["loss_mask"].bool()])
        assert "<tool_response>" not in trained
        assert "harbour desk" not in trained


def test_openrlhf_trains_every_turn(exported: Callable[..., Path], with_template: Callable[[str], Any]) -> None:
    from datasets import load_dataset
    from openrlhf.datasets.sft_dataset import SFTDataset

    tokenizer = with_template("qwen2_5")
    args = SimpleNamespace(data=SimpleNamespace(input_key="messages", output_key=None, apply_chat_template=True))
    rows = load_dataset(str(exported("openrlhf", where=CHATS)), split="train")
    made = SFTDataset(rows, tokenizer, 8192, SimpleNamespace(args=args), num_processors=1, multiturn=True)
    assert len(made) == len(ALL)
    trained = [tokenizer.decode(ids[0][mask[0].bool()]) for ids, _, mask in (made[place] for place in range(len(made)))]
    assert any("See you." in text and "I look at both." in text for text in trained)
    assert not any("booked" in text for text in trained)


def test_llama_factory_converts_every_row(exported: Callable[..., Path]) -> None:
    from datasets import load_dataset
    from llamafactory.data.converter import get_dataset_converter
    from llamafactory.data.parser import DatasetAttr

    folder = exported("llamafactory", where=CHATS)
    described = json.loads((folder / "dataset_info.json").read_text(encoding="utf-8"))
    assert list(described) == ["rollouts_train_00000_of_00001"]
    attributes = DatasetAttr("file", dataset_name="rollouts", formatting="sharegpt")
    attributes.join(described["rollouts_train_00000_of_00001"])
    convert = get_dataset_converter("sharegpt", attributes, SimpleNamespace(media_dir=""))
    rows = load_dataset(str(folder), split="train")
    assert len(rows) == len(ALL)
    for row in rows:
        made = convert(row)
        assert made["_prompt"], "an abnormal example, which LLaMA-Factory would skip"
        assert made["_response"][0]["role"] == "assistant"
        if "Compare" in made["_prompt"][0]["content"]:
            calls = json.loads(made["_prompt"][1]["content"])
            assert [call["arguments"] for call in calls] == [{"berth": "3"}, {"berth": "4", "tide": "low"}]
            assert json.loads(made["_tools"]) == PARALLEL["tools"]


def test_openai_types_take_every_line(exported: Callable[..., Path]) -> None:
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import ConfigDict, TypeAdapter

    message = TypeAdapter(ChatCompletionMessageParam, config=ConfigDict(arbitrary_types_allowed=True))
    for line in lines(exported("openai", where=CHATS)):
        for said in line["messages"]:
            read: Any = message.validate_python(said, extra="forbid")
            for call in read.get("tool_calls") or ():  # lazily checked: it must be consumed
                assert isinstance(call["function"]["arguments"], str)


def test_together_takes_the_files(
    exported: Callable[..., Path], with_template: Callable[[str], Any], tmp_path: Path
) -> None:
    from together.lib.utils.files import check_file

    chats = check_file(exported("openai", where=CHATS) / "train-00000-of-00001.jsonl")
    assert chats["is_check_passed"], chats["message"]
    with_template("qwen2_5").save_pretrained(tmp_path / "tokenizer")
    columns = ("input_ids", "attention_mask", "labels")
    ids = exported("tokens", where=CHATS, tokenizer=str(tmp_path / "tokenizer"), columns=columns)
    tokens = check_file(ids / "train-00000-of-00001.parquet")
    assert tokens["is_check_passed"], tokens["message"]


def test_verifiers_takes_the_traces(exported: Callable[..., Path]) -> None:
    from verifiers.v1 import WireEpisode

    found = lines(exported("verifiers"), "train/traces.jsonl")
    assert len(found) == 16
    for line in found:
        episode = WireEpisode.model_validate(line)
        (trace,) = episode.traces
        assert [node.message.role for node in trace.nodes if node.sampled] == [
            node.message.role for node in trace.nodes if node.message.role == "assistant"
        ]
        assert len(trace.branches) == 1
    scored = [WireEpisode.model_validate(line).traces[0].reward for line in found if line["traces"][0]["rewards"]]
    assert sorted(scored) == sorted([1.0, 0.5, 0.0] * 4)


def test_ray_reads_lake_and_export(lake: Path, exported: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    try:
        paths = [str(path) for path in sorted((lake / "rollouts").glob("source=*/day=*/*.parquet"))]
        rows = ray.data.read_parquet(paths, partitioning=None).take_all()
        assert len(rows) == 16
        assert all(isinstance(row["messages"][0]["content"], str) for row in rows)
        assert ray.data.read_parquet(str(exported("sft") / "train-00000-of-00001.parquet")).count() == 16
    finally:
        ray.shutdown()


def test_every_reader_reads_the_lake(lake: Path) -> None:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds
    from datasets import load_dataset

    pattern = str(lake / "rollouts" / "source=*" / "day=*" / "*.parquet")
    files = [str(path) for path in sorted((lake / "rollouts").glob("source=*/day=*/*.parquet"))]
    assert duckdb.execute("SELECT count(*) FROM read_parquet($1)", [pattern]).fetchall() == [(16,)]
    assert pl.scan_parquet(pattern).select(pl.len()).collect().item() == 16
    assert ds.dataset(files, format="parquet").count_rows() == 16
    assert sum(len(pd.read_parquet(file)) for file in files) == 16
    rows = load_dataset(str(lake), split="train")
    assert len(rows) == 16
    calls = [call for row in rows for message in row["messages"] for call in message["tool_calls"] or ()]
    assert {type(call["function"]["arguments"]) for call in calls} == {dict}
    assert load_dataset(str(lake), "text", split="train")[0]["messages"][0]["role"] in ("system", "user")
    assert next(iter(load_dataset(str(lake), split="train", streaming=True)))["rollout_id"].startswith("r_")
