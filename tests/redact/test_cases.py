"""What must be masked and what must not, case by case; as many of one kind as of the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl.redact import Redactor
from etl.redact.spans import LABEL

CUT = "~~"
"""Stands inside every secret of the case files, so that no scanner takes them for real ones."""


def _cases() -> list[Any]:
    found: list[Any] = []
    for path in sorted((Path(__file__).parent / "cases").glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            found.append(pytest.param(case, id=f"{path.stem}: {case['label']}"))
    return found


CASES = _cases()


@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, str]) -> None:
    original, expected = (case[key].replace(CUT, "") for key in ("original", "expected"))
    text, counts = Redactor().text(original)
    assert text == expected
    assert sum(counts.values()) == len(LABEL.findall(expected)) - len(LABEL.findall(original))
    assert Redactor().text(text) == (text, {})


@pytest.mark.parametrize("case", CASES)
def test_case_inside_json_inside_json(case: dict[str, str]) -> None:
    """The same text as a value two levels down is masked the same way."""
    original, expected = (case[key].replace(CUT, "") for key in ("original", "expected"))
    wrapped = json.dumps({"n": 1, "output": json.dumps({"text": original})})
    text, _ = Redactor().text(wrapped)
    assert json.loads(json.loads(text)["output"])["text"] == expected


def test_as_many_negatives_as_positives() -> None:
    unchanged = sum(case.values[0]["original"] == case.values[0]["expected"] for case in CASES)
    assert unchanged >= len(CASES) - unchanged
