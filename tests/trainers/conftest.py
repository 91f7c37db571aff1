"""Real trainers on exports, in an environment of their own (`make test-trainers`); elsewhere there is no test here."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import etl
from tests.trainers.conversations import write_logs

if importlib.util.find_spec("trl") is None:
    collect_ignore_glob = ["test_*.py"]

HERE = Path(__file__).parent
_UNNEEDED = {
    "torchaudio": (),
    "verl.models.transformers.qwen2_vl": ("get_rope_index", "process_image", "process_video"),
}
"""Modules for sound and pictures that data classes of text import (LLaMA-Factory, verl), with the names they want."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What other people's packages warn of is not for us to fix."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session", autouse=True)
def _offline() -> Iterator[None]:
    """No hub: everything is made in process. What data classes import for sound and pictures is not needed for text."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
            patch.setenv(name, "1")
        for name, names in _UNNEEDED.items():
            module = types.ModuleType(name)
            module.__spec__ = importlib.machinery.ModuleSpec(name, None)
            vars(module).update(dict.fromkeys(names))
            patch.setitem(sys.modules, name, module)
        yield


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The conversations, ingested."""
    root = tmp_path_factory.mktemp("trainers")
    write_logs(root / "logs")
    report = etl.ingest([root / "logs"], lake=root / "lake")
    assert report.rows.added == 16
    return root / "lake"


@pytest.fixture
def exported(lake: Path, tmp_path: Path) -> Callable[..., Path]:
    """Exports to a target and gives the folder."""

    def export(target: str, **options: Any) -> Path:
        folder = tmp_path / target
        etl.export(target, folder, lake=lake, **options)
        return folder

    return export


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """A byte-level tokenizer trained on nothing: every byte is a token, so that no text is unknown."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<pad>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator(["berth harbour tide booked free"], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<pad>", bos_token="<|endoftext|>"
    )


@pytest.fixture(scope="session")
def templates() -> dict[str, str]:
    """The chat templates that TRL brings, by name."""
    import trl

    folder = Path(trl.__file__).parent / "chat_templates"
    return {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.jinja")}


@pytest.fixture
def with_template(tokenizer: Any, templates: dict[str, str]) -> Callable[[str], Any]:
    """The tokenizer with one of them."""

    def given(name: str) -> Any:
        tokenizer.chat_template = templates[name]
        return tokenizer

    return given


@pytest.fixture
def tiny_model(tokenizer: Any) -> Callable[[], Any]:
    """Makes models of a few thousand weights."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    def make() -> Any:
        torch.manual_seed(0)
        config = Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=8192,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
        return Qwen2ForCausalLM(config)

    return make
