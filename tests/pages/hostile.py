"""A lake whose every text is an attack, and a look at a page for anything that got through."""

from __future__ import annotations

import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from etl.lake import Lake
from tests.lake.rows import reject, source_file, stage
from tests.query.support import make_lake, refund

ATTACK = (
    '<script>alert(1)</script><img src=x onerror=alert(2)>"\' onmouseover="alert(3)">'
    '<a href="javascript:alert(4)">x</a></textarea></title></style><svg onload=alert(5)>'
    "\x1b[2J\x07\u202egnp.exe\u2066\u200b\x9b31m{{ 7*7 }}{% raw %}&lt;b&gt;"
)
"""What a log may hold: markup, attributes, a script link, terminal codes, direction marks, template code."""
_JSON = ("arguments", "extra", "rewards", "faults")
JSON_ATTACK = '{"a": "</script><script>alert(6)</script>\\u202e", "url": "javascript:alert(7)"}'
_KEPT = {
    "rollout_id", "task_id", "group_id", "parent_id", "role", "actor", "status", "kind", "type", "origin", "day",
    "content_hash", "row_hash", "schema_version", "call_id", "id", "tool_call_id", "source", "condition",
}  # fmt: skip
"""Fields whose values are a closed set, or that tests look rows up by."""


def hostile(value: Any, name: str = "") -> Any:
    """The same value with every text in it replaced by an attack; JSON stays JSON."""
    if isinstance(value, str):
        return (
            value if name in _KEPT else JSON_ATTACK if name in ("arguments", "extra", "rewards", "faults") else ATTACK
        )
    if isinstance(value, list):
        return [hostile(item, name) for item in value]
    return {key: hostile(item, key) for key, item in value.items()} if isinstance(value, dict) else value


def hostile_lake(folder: Path) -> Lake:
    """Two attempts at one task, one with a planted mistake and a parent, a reject, a source."""
    verdict = {"name": "x", "kind": "judge", "label": "x", "reason": "x"}
    more = {"seeded": ["x"], "error": "x", "finish_reason": "x", "agent": "x", "rewards": "{}", "faults": "{}"}
    first = hostile(refund("r_one", judgments=[verdict], task_id="t_<one>", source="<b>&\"'", **more))
    second = hostile(refund("r_two", task_id="t_<one>", source="<b>&\"'", parent_id="r_one", reward=1.0))
    for row in (first, second):
        row["adapter"] = "openai_messages"
        row["tools"] = JSON_ATTACK
    lake = make_lake(folder, [first, second])
    place = {"source": "<b>&\"'", "source_uri": ATTACK}
    bad = reject("x1", message=ATTACK, reason="<script>", raw=ATTACK.encode() + b"\xff\x00", **place)
    with lake.batch("files"):
        lake.replace_rejects(stage(lake, "files", "rejects", [bad]), {("<b>&\"'", ATTACK)})
        lake.upsert_sources(stage(lake, "files", "sources", [source_file(ATTACK, source="<b>&\"'", error=ATTACK)]))
    return lake


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in ("script", "img", "iframe", "object", "embed", "base") and given != {"src": "/page.js", "defer": ""}:
            self.wrong.append(f"<{tag} {given}>")
        self.wrong += [f"{name}={value}" for name, value in given.items() if name.startswith("on")]
        for name in ("href", "src", "action", "formaction", "xlink:href"):
            value = given.get(name)
            if value is not None and not value.startswith(("/", "#", "data:,")) and value != "":
                self.wrong.append(f"{name}={value}")
            if value is not None and value.startswith("//"):
                self.wrong.append(f"{name}={value}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def check_page(html: str) -> str:
    """Its text; AssertionError where it holds a script, a handler, a link out, a character that hides or reorders."""
    reader = _Reader()
    reader.feed(html)
    assert reader.wrong == []
    bad = {char for char in html if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - set("\n\t")
    assert bad == set(), [hex(ord(char)) for char in bad]
    return "".join(reader.text)
