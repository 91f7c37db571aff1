"""aider: who speaks in the Markdown, sections as sessions, and requests that repeat what was said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from etl.adapters._aider_text import Said, turns
from tests.cases.reading import agrees, read_in, told, told_by_id
from tests.lakes import rows, said


def _by_prompt(lake: Path) -> dict[str, dict[str, Any]]:
    return {row["prompt"]: row for row in rows(lake)}


def test_a_section_is_a_session(samples: Path, lake: Path) -> None:
    report = read_in(lake, samples / "aider" / "history.md")
    assert (report["rejects"], report["ignored"]) == ({"no_session": 1}, {"silent_session": 1})
    found = _by_prompt(lake)
    row = found["Why is the thread red?\nIt was blue."]
    assert [(m["role"], i["synthetic"]) for m, i in zip(row["messages"], row["message_info"], strict=True)] == [
        ("user", True),
        ("user", False),
        ("assistant", False),
        ("user", True),
        ("user", False),
        ("assistant", False),
    ]
    assert "> blue is boring" in row["messages"][2]["content"]
    assert "#### colours" in row["messages"][2]["content"]
    assert (row["model"], row["usage"]["input_tokens"], row["usage"]["cost_usd"]) == ("demo/loom-1", 2610, 0.02)
    assert {"usage_partial", "interrupted", "naive_time"} <= set(row["flags"])
    assert found["Weave on."]["status"] == "unknown"


def test_a_growing_history_keeps_its_sessions(samples: Path, tmp_path: Path, lake: Path) -> None:
    data = (samples / "aider" / "history.md").read_bytes()
    path = tmp_path / ".aider.chat.history.md"
    for end in (data.index(b"The dye is wrong"), data.index(b"#### /ask"), len(data)):
        path.write_bytes(data[:end])
        read_in(lake, path)
    read_in(tmp_path / "once", samples / "aider" / "history.md")
    assert said(lake) == said(tmp_path / "once")


def test_requests_that_repeat_the_answer_are_one_conversation(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "aider" / "llm.history")
    found = {row["prompt"]: told(row) for row in rows(lake)}
    agrees(found["Why is the thread red?\n\nIt was blue."], {"final_text": "Done."})
    assert found["-red\n+blue"]["final_text"] == "fix: Dye the thread blue"
    assert len(told_by_id(lake)) == 2


PAGE = """---
parent: Transcripts
---

# A loom

<div class="chat-transcript" markdown="1">

> $ aider

#### dye it

Blue it is.

> Applied edit to loom.py

</div>
"""


def test_a_published_page_is_read_alike(tmp_path: Path, lake: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    read_in(lake, tmp_path / "page.md")
    (row,) = rows(lake)
    assert [(m["role"], m["content"]) for m in row["messages"]] == [("user", "dye it"), ("assistant", "Blue it is.")]
    assert "A loom" in row["extra"]


def test_a_readme_is_no_history(tmp_path: Path, lake: Path) -> None:
    (tmp_path / "README.md").write_text("# Title\n\n#### Part\n\n> A quotation\n", encoding="utf-8")
    assert read_in(lake, tmp_path)["files"]["skipped"] == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#### a  \n#### b  \n", [Said("person", "a\nb")]),
        ("#### a  \n\nb\n\n> c  \n", [Said("person", "a"), Said("model", "b"), Said("program", "c")]),
        ("#### a  \n\n```\n#### b\n```\n", [Said("person", "a"), Said("model", "```\n#### b\n```")]),
        ("#### a  \n\n```\nopen\n\n#### b  \n", [Said("person", "a"), Said("model", "```\nopen"), Said("person", "b")]),
        (">  \n> ^C again to exit  \n", [Said("program", "^C again to exit")]),
    ],
)
def test_who_speaks(text: str, expected: list[Said]) -> None:
    assert list(turns(text, False)) == expected
