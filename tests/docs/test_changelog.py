"""CHANGELOG.md: newest first, one line per outcome, each a sentence."""

import re
from pathlib import Path

CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")


def test_it_begins_with_what_is_unreleased():
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading) for heading in headings[1:])


def test_each_entry_is_one_line_and_one_sentence():
    _, _, body = CHANGELOG.partition("\n## ")
    lines = [line for line in body.splitlines()[1:] if line and not line.startswith("## ")]
    assert lines
    for line in lines:
        assert re.fullmatch(r"- [A-Z`].*[.]", line), line
