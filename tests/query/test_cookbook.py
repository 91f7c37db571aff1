"""Every question of the cookbook finds an answer in the sample logs, the same through each way of asking."""

from __future__ import annotations

from pathlib import Path

import pytest

from etl.shipped import schema_text
from tests.docs.markdown import blocks
from tests.query.engines import ENGINES, Ask, through_connect

COOKBOOK = schema_text("cookbook.md")
QUESTIONS = blocks(COOKBOOK, "sql")


def test_it_has_twenty_questions() -> None:
    assert len(QUESTIONS) >= 20
    assert COOKBOOK.count("\n### ") == len(QUESTIONS)


@pytest.mark.parametrize("ask", ENGINES)
def test_every_question_is_answered(ask: Ask, sample_lake: Path, thorough: bool) -> None:
    """In every way with `--thorough`, else all of them through `etl.connect`, and one in six through the others. A rate
    has its interval and its number.
    """
    for question in QUESTIONS if thorough or ask is through_connect else QUESTIONS[::6]:
        found = ask(sample_lake, question.text.strip().rstrip(";"))
        assert found, f"cookbook.md line {question.line} finds nothing"
        names = list(found[0])
        for rate in (name for name in names if name.endswith(("_rate", "share", "pass_at_1"))):
            assert {"low", "high"} <= set(names), f"cookbook.md line {question.line}: {rate} has no interval"
            assert {"n", "calls"} & set(names), f"cookbook.md line {question.line}: {rate} has no number"
            for row in found:
                if row["low"] is not None and row[rate] is not None:
                    assert row["low"] - 1e-9 <= row[rate] <= row["high"] + 1e-9, f"cookbook.md line {question.line}"
