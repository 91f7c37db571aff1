"""Every question of the cookbook finds an answer in the sample logs, the same through each way of asking."""

from __future__ import annotations

from pathlib import Path

import pytest

from etl.demo import demo
from etl.shipped import schema_text
from tests.docs.markdown import blocks
from tests.lakes import NOW
from tests.query.engines import ENGINES, Ask

COOKBOOK = schema_text("cookbook.md")
QUESTIONS = blocks(COOKBOOK, "sql")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cookbook") / "lake"
    demo(folder, now=NOW)
    return folder


def test_it_has_twenty_questions() -> None:
    assert len(QUESTIONS) >= 20
    assert COOKBOOK.count("\n### ") == len(QUESTIONS)


@pytest.mark.parametrize("ask", ENGINES)
def test_every_question_is_answered(ask: Ask, lake: Path) -> None:
    for question in QUESTIONS:
        assert ask(lake, question.text.strip().rstrip(";")), f"cookbook.md line {question.line} finds nothing"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda block: f"line {block.line}")
def test_a_rate_has_its_interval_and_its_number(lake: Path, question: object) -> None:
    from etl.query import run_sql
    from tests.docs.markdown import Block

    assert isinstance(question, Block)
    names, _types, rows = run_sql(lake, question.text)
    found = [dict(zip(names, row, strict=True)) for row in rows]
    rates = [name for name in names if name.endswith(("_rate", "share", "pass_at_1"))]
    for rate in rates:
        assert {"low", "high"} <= set(names), f"{rate} has no interval"
        assert {"n", "calls"} & set(names), f"{rate} has no number"
        for row in found:
            if row["low"] is not None and row[rate] is not None:
                assert row["low"] - 1e-9 <= row[rate] <= row["high"] + 1e-9
