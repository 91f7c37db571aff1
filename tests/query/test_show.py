"""`etl show`: a row is there whole, marks are words, long texts are folded, and log text cannot touch a terminal."""

from __future__ import annotations

import datetime as dt
import io
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from etl.harmless import harmless, harmless_line
from etl.query import Kin, Relative, connect, find_rollout
from etl.show import render
from tests.query.support import call, info, make_lake, message, refund, step


def row(**values: Any) -> dict[str, Any]:
    """The row as the view gives it: every column there."""
    from etl.schema import arrow_schema

    return dict.fromkeys(arrow_schema("rollouts").names) | full(refund(**values))


def full(given: dict[str, Any]) -> dict[str, Any]:
    """Nested fields that a test left out are null."""
    keys = {
        "messages": ("reasoning_content", "tool_calls", "tool_call_id", "name"),
        "message_info": ("id", "at", "model", "finish_reason", "input_tokens", "output_tokens", "parts", "extra"),
        "steps": ("condition", "error", "raw_arguments", "at", "duration_ms"),
        "judgments": ("value", "label", "status", "reason"),
    }
    nested = {column: [dict.fromkeys(names) | item for item in given[column]] for column, names in keys.items()}
    counts = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "cost_usd")
    return given | nested | {"usage": dict.fromkeys(counts) | given["usage"]}


def text(shown: dict[str, Any], *, width: int = 100_000, folds: bool = True, kin: Kin | None = None) -> str:
    """What a pipe gets."""
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True, highlight=False, markup=False, emoji=False)
    console.print(render(shown, full=not folds, kin=kin))
    return out.getvalue()


def test_a_row_reads_top_to_bottom(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [refund()])
    with connect(tmp_path / "lake") as connection:
        shown = text(find_rollout(connection, "r_refund"))
    assert shown == EXPECTED


EXPECTED = """\
r_refund  completed  reward 0
  task  t_1
  model  demo
  log  traffic · openai_messages · support · 2026-03-01
  file  /logs/a.jsonl:1
  time  2026-03-01 12:00:00 UTC, 0:01:05 long
  size  1 user turn · 3 calls · 450 tokens in · 32 out · $0.01
  flag missing_result  A call has no result, and its tool does not run at the provider.

system #0
  You sell shoes.

user #1  12:00:00
  Refund my order W1, please.

assistant #2  12:00:02
    reasoning  The order first.
  Let me look.
  → 1/2 get_order {"id":"W1"}
  → 2/2 get_user {}  no result was logged

tool #3  get_order  ok 120 ms
  {"status":"delivered"}

assistant #4
  → refund {}

tool #5  refund  error permission_denied
  Error: not allowed

assistant #6
  I may not refund it.
"""


def test_nothing_trails_and_windows_wrap() -> None:
    narrow = text(row(), width=30)
    assert all(len(line) <= 30 and line == line.rstrip() for line in narrow.splitlines())
    assert "".join(EXPECTED.split()) == "".join(narrow.split())


def test_long_texts_are_folded_unless_asked_for() -> None:
    messages = [message("system", "line\n" * 50), message("user", "go"), message("tool", "x" * 5000, tool_call_id="c")]
    long = row(messages=messages, message_info=[info()] * 3, steps=[], flags=[])
    assert "… 236 more characters" in text(long)
    assert "… 3,800 more characters" in text(long)
    assert "more characters" not in text(long, folds=False)
    assert "x" * 5000 in text(long, folds=False)


def test_what_went_wrong_is_said_in_words() -> None:
    messages = [
        message("assistant", tool_calls=[call("run", "a"), call("ask", "b"), call("search", "s")]),
        message("tool", "late", tool_call_id="zzz"),
    ]
    steps = [
        step("run", "a", 0, None, "cancelled", raw_arguments="{oops", error="stopped by the user"),
        step("ask", "b", 0, None, "error", actor="user", condition="timeout", error="no answer", duration_ms=2500.0),
        step("search", "s", 0, None, "missing", actor="server"),
    ]
    shown = text(row(messages=messages, message_info=[info(), info()], steps=steps))
    assert "→ 1/3 run  cancelled stopped by the user\n    arguments are not a JSON object:\n    {oops\n" in shown
    assert "→ 2/3 ask  by the user {}  error timeout no answer 2,500 ms\n" in shown
    assert "→ 3/3 search  by the server {}  no result here: it ran at the provider\n" in shown
    assert "tool #1  answers no call\n  late\n" in shown


def test_what_is_known_beside_the_turns() -> None:
    judgments = [{"name": "refused", "kind": "judge", "value": 0.25, "label": "no", "reason": "it\nsaid so"}]
    shown = text(
        row(
            status="error",
            error="out of turns",
            reward=None,
            judgments=judgments,
            seeded=["invented_policy"],
            seed=7,
            faults='{"get_user":"timeout"}',
            scenario={"tool": "refund", "stance": "angry", "rule": None},
            parent_id="r_before",
            group_id="g_1",
            sample_index=2,
            redactions='{"api-key":1}',
            flags=["made_up_flag"],
            ended_at=None,
        ),
        kin=Kin(
            None,
            [Relative("r_child", "helper", "completed", 0.5, "Look\nup")],
            [Relative("r_other"), Relative("r_third")],
        ),
    )
    for line in (
        "r_refund  error  not scored",
        "  end  out of turns",
        "  judge refused  0.25 · no · it␊said so",
        "  planted mistake  invented_policy",
        '  faults  {"get_user":"timeout"}',
        "  scenario  tool refund · stance angry",
        "  came from  r_before",
        "  group  g_1 · attempt 2",
        "  its sub-agent or branch  r_child · helper · completed · reward 0.5 · Look␊up",
        "  beside it  r_other",
        "  beside it  r_third",
        '  redacted  {"api-key":1}',
        "  flag made_up_flag",
        "  time  2026-03-01 12:00:00 UTC",
    ):
        assert line in shown.splitlines() or f"{line}  " in shown, line


def test_turns_of_another_row_and_of_a_harness_are_marked() -> None:
    messages = [message("user", "earlier"), message("user", "reminder"), message("assistant", "hi")]
    infos = [
        info(inherited=True),
        info(synthetic=True, parts='[{"type":"image"},{"type":"file"},{"type":"image"},3]'),
        info(model="other-model", finish_reason="length", at=dt.datetime(2026, 3, 1, 13, tzinfo=dt.UTC)),
    ]
    shown = text(row(messages=messages, message_info=infos, steps=[]))
    assert "user #0  inherited\n  earlier\n" in shown
    assert "user #1  synthetic\n  reminder\n  [2 × image, file, part]\n" in shown
    assert "assistant #2  other-model · length · 13:00:00\n" in shown


def test_long_arguments_are_laid_out_with_their_numbers_as_written() -> None:
    arguments = '{"big":12345678901234567890123,"text":"' + "y" * 90 + '"}'
    messages = [message("assistant", tool_calls=[call("run", "a", arguments)])]
    steps = [step("run", "a", 0, None, "missing", arguments=arguments)]
    shown = text(row(messages=messages, message_info=[info()], steps=steps))
    assert '  → run  no result was logged\n    {\n      "big": 12345678901234567890123,\n' in shown


def test_the_rest_of_the_log_comes_with_full() -> None:
    shown = row(tools='[{"type":"function"}]', extra='{"ticket":"T1"}')
    assert "ticket" not in text(shown)
    assert '"ticket": "T1"' in text(shown, folds=False)
    assert "tools offered" in text(shown, folds=False)


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\rover\u202egpj.exe\u2066\u200b\U000e0041\ud800 [bold]:smile:"


def hostile(value: Any) -> Any:
    """The same value with every text in it replaced by an attack."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return {key: hostile(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("folds", [True, False])
def test_no_text_of_a_log_reaches_the_terminal_as_it_is(folds: bool) -> None:
    filled = dict.fromkeys(row(), HOSTILE) | row(
        seeded=["x"], judgments=[{"name": "x", "kind": "rule", "label": "x", "reason": "x"}]
    )
    attacked = {key: hostile(value) for key, value in filled.items()}
    for item, plain in zip(attacked["messages"], filled["messages"], strict=True):
        item["role"] = plain["role"]
    child = Relative(HOSTILE, HOSTILE, HOSTILE, None, HOSTILE)
    shown = text(attacked, folds=folds, kin=Kin(None, [child], [Relative(HOSTILE)]))
    allowed = {"\n"}
    bad = {char for char in shown if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - allowed
    assert bad == set()
    assert "[bold]:smile:" in shown


@given(st.text())
def test_harmless_text_has_no_control_or_direction_characters(anything: str) -> None:
    kept = harmless(anything)
    assert not {c for c in kept if unicodedata.category(c) == "Cc"} - {"\n", "\t"}
    assert not {
        c for c in kept if unicodedata.bidirectional(c) in {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "PDI"}
    }
    assert "\n" not in harmless_line(anything)
    kept.encode()


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_ordinary_text_is_untouched(ordinary: str) -> None:
    assert harmless(ordinary) == ordinary
