"""Every question of the cookbook finds an answer in the sample logs, the same through each way of asking."""

from __future__ import annotations

from pathlib import Path

import pytest

from etl.shipped import schema_text
from tests.docs.markdown import Block, blocks
from tests.query.engines import ENGINES, Ask, through_connect

COOKBOOK = schema_text("cookbook.md")
QUESTIONS = blocks(COOKBOOK, "sql")


def test_it_has_twenty_questions() -> None:
    assert len(QUESTIONS) >= 20
    assert COOKBOOK.count("\n### ") == len(QUESTIONS)


@pytest.mark.parametrize("ask", ENGINES)
def test_every_question_is_answered(ask: Ask, sample_lake: Path, thorough: bool) -> None:
    """In every way with `--thorough`, else all of them through `etl.connect`, and one in six through the others."""
    for question in QUESTIONS if thorough or ask is through_connect else QUESTIONS[::6]:
        assert ask(sample_lake, question.text.strip().rstrip(";")), f"cookbook.md line {question.line} finds nothing"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda block: f"line {block.line}")
def test_a_rate_has_its_interval_and_its_number(sample_lake: Path, question: Block) -> None:
    found = through_connect(sample_lake, question.text.strip().rstrip(";"))
    names = list(found[0])
    rates = [name for name in names if name.endswith(("_rate", "share", "pass_at_1"))]
    for rate in rates:
        assert {"low", "high"} <= set(names), f"{rate} has no interval"
        assert {"n", "calls"} & set(names), f"{rate} has no number"
        for row in found:
            if row["low"] is not None and row[rate] is not None:
                assert row["low"] - 1e-9 <= row[rate] <= row["high"] + 1e-9
