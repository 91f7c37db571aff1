"""aider: who speaks in the Markdown, sections as sessions, and requests that repeat what was said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from etl.adapters._aider_shown import shown
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
        ("user", True),
        ("user", False),
        ("assistant", False),
    ]
    assert row["messages"][4]["content"].endswith("1 failed")
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


def test_what_the_program_sent_stands_in_the_users_place(samples: Path, lake: Path) -> None:
    read_in(lake, samples / "aider" / "history.md")
    row = _by_prompt(lake)["Use the shuttle of shuttle.py."]
    sent = [m["content"] for m, i in zip(row["messages"], row["message_info"], strict=True) if i["synthetic"]]
    assert [text.split("\n")[0] for text in sent] == [
        "# 1 SEARCH/REPLACE block failed to match!",
        "# Fix any errors below, if possible.",
        "/git log --oneline",
        "/test make test",
        "1 failed: the reed is bent",
        "/run make all",
    ]
    assert sent[0].endswith(">>>>>>> REPLACE\n\nThe SEARCH section must exactly match an existing block of lines.")
    assert [m["content"].split("\n")[0] for m in row["messages"] if m["role"] == "assistant"] == [
        "I need to see that file.",
        "shuttle.py",
        "It says `throw(2)`. Mended.",
        "Now it is imported.",
        "The reed was bent.",
        "It is woven.",
    ]
    assert "content_not_captured" in row["flags"], "31 lines were added that are not shown"


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

```html
<br/>
</div>
```

</div>
<div class="chat-transcript" markdown="1">
#### /run make

>```
>1 passed
>```
>
> Add the output to the chat? y

It passes.
</div>

![the loom](loom.png)
"""


def test_a_published_page_is_read_alike(tmp_path: Path, lake: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    read_in(lake, tmp_path / "page.md")
    (row,) = rows(lake)
    assert [(m["role"], m["content"]) for m in row["messages"]] == [
        ("user", "dye it"),
        ("assistant", "Blue it is."),
        ("assistant", "```html\n<br/>\n</div>\n```"),
        ("user", "/run make"),
        ("user", "```\n1 passed\n```"),
        ("assistant", "It passes."),
    ]
    extra = json.loads(row["extra"])
    assert extra["preamble"].endswith("# A loom")
    assert extra["afterword"] == "![the loom](loom.png)"


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
        (
            "#### /git  \n> b\nc\n\nd  \n\ne\n",
            [Said("person", "/git"), Said("program", "b\nc\n\nd"), Said("model", "e")],
        ),
        ("> b  \nc\n\nd\n\n> e  \n", [Said("program", "b\nc"), Said("model", "d"), Said("program", "e")]),
        ("a\n\n> b\n\nc  \nd\n", [Said("model", "a\n\n> b\n\nc  \nd")]),
    ],
)
def test_who_speaks(text: str, expected: list[Said]) -> None:
    assert list(turns(text, False)) == expected


@pytest.mark.parametrize(
    ("text", "commanded", "answered", "sent"),
    [
        ("1 failed\nAdd the output to the chat? y", True, True, "1 failed"),
        ("1 failed\nAdd the output to the chat? n", True, False, ""),
        ("Add the output to the chat? y\n1 failed", True, True, "1 failed"),
        ("Added loom.py to the chat", True, True, ""),
        ("Commit 1 x\nE1 bad\nAttempt to fix test errors? (Y)es/(N)o [Yes]: y", False, True, "E1 bad"),
        ("Commit 1 x\nE1 bad\nAttempt to fix test errors? (Y)es/(N)o [Yes]: n", False, False, ""),
        (
            "The LLM did not conform to the edit format.\nFor more info see: https://a.example/b\nbad",
            False,
            True,
            "bad",
        ),
        ("The LLM did not conform to the edit format.\nbad\nOnly 3 reflections allowed, stopping.", False, False, ""),
        ("Applied edit to loom.py", False, True, ""),
    ],
)
def test_what_of_shown_text_went_to_the_model(text: str, commanded: bool, answered: bool, sent: str) -> None:
    told = shown(text, commanded, answered)
    assert told.sent == sent
    assert [line for part in told[:3] for line in part.split("\n") if line] == text.split("\n")
