"""What must be masked and what must not, case by case; as many of one kind as of the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from etl.redact import Redactor
from etl.redact.spans import LABEL

CUT = "~~"
"""Stands inside every secret of the case files, so that no scanner takes them for real ones."""


class Case(NamedTuple):
    """A text, and what it becomes."""

    name: str
    original: str
    expected: str


def _cases() -> list[Case]:
    found = []
    for path in sorted((Path(__file__).parent / "cases").glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            original, expected = (case[key].replace(CUT, "") for key in ("original", "expected"))
            found.append(Case(f"{path.stem}: {case['label']}", original, expected))
    return found


CASES = _cases()


def test_every_case() -> None:
    redactor = Redactor()
    for name, original, expected in CASES:
        text, counts = redactor.text(original)
        assert text == expected, name
        assert sum(counts.values()) == len(LABEL.findall(expected)) - len(LABEL.findall(original)), name
        assert redactor.text(text) == (text, {}), name


def test_every_case_inside_json_inside_json() -> None:
    """The same text as a value two levels down is masked the same way."""
    redactor = Redactor()
    for name, original, expected in CASES:
        wrapped = json.dumps({"n": 1, "output": json.dumps({"text": original})})
        text, _ = redactor.text(wrapped)
        assert json.loads(json.loads(text)["output"])["text"] == expected, name


def test_as_many_negatives_as_positives() -> None:
    unchanged = sum(case.original == case.expected for case in CASES)
    assert unchanged >= len(CASES) - unchanged
