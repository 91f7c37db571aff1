"""Claude Code sessions, one file each: responses over lines, trees, torn lines (B01, B04, B07, B09, B12, B14, B15)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import Given, Ours, Shared, given, read_in, told
from tests.cases.session import Session
from tests.lakes import rows

__all__ = ["given"]


def _only(lake: Path) -> dict[str, Any]:
    """The one row, with what an expectation asks of it beside the columns."""
    (row,) = rows(lake)
    return row


def _usage(row: dict[str, Any]) -> tuple[int, int]:
    return row["usage"]["input_tokens"], row["usage"]["output_tokens"]


SPREAD = Session("s-spread")
SPREAD.user("u1", "How many chapters are in book?")
SPREAD.response("m1", ["a1"], [{"type": "thinking", "thinking": "Look first.", "signature": "c2ln"}], (20, 50, 700, 9))
SPREAD.response("m1", ["a2"], [{"type": "text", "text": "One moment."}], (20, 50, 700, 41))
SPREAD.response("m1", ["a3"], [SPREAD.call("t1", "Bash", command="ls book")], (20, 50, 700, 77), stop="tool_use")
SPREAD.results("u2", SPREAD.result("t1", "1.md\n2.md", is_error=False))
SPREAD.response("m2", ["a4"], [{"type": "text", "text": "Two chapters."}], (3, 0, 750, 6), stop="end_turn")


@pytest.mark.parametrize(
    ("log", "prompt", "command", "result", "said", "usage"),
    [
        (
            Shared("B01.jsonl"),
            "List the files in src and tell me how many there are.",
            "ls src",
            "a.py\nb.py\nc.py",
            ("I'll look.", "There are 3 files."),
            {"input_tokens": 8617, "output_tokens": 99, "cached_tokens": 8300, "cache_write_tokens": 300},
        ),
        (
            SPREAD.log(),
            "How many chapters are in book?",
            "ls book",
            "1.md\n2.md",
            ("One moment.", "Two chapters."),
            {"input_tokens": 1523, "output_tokens": 83, "cached_tokens": 1450, "cache_write_tokens": 50},
        ),
    ],
    ids=["B01", "ours"],
)
def test_one_response_over_several_lines_counts_once(
    log: Shared | Ours,
    prompt: str,
    command: str,
    result: str,
    said: tuple[str, str],
    usage: dict[str, int],
    given: Given,
    lake: Path,
) -> None:
    read_in(lake, given(log))
    row = _only(lake)
    found = told(row)
    assert found["prompt"] == prompt
    assert found["messages"] == [("user", prompt), ("assistant", said[0]), ("tool", result), ("assistant", said[1])]
    assert row["messages"][1]["reasoning_content"]
    assert found["steps"] == [("Bash", {"command": command}, result, "ok")]
    assert found["final_text"] == said[1]
    assert {key: found["usage"].get(key) for key in usage} == usage
    if isinstance(log, Shared):
        assert row["model"] == "claude-demo-4"
        assert (row["started_at"].isoformat(), row["ended_at"].isoformat()) == (
            "2026-02-03T10:00:00+00:00",
            "2026-02-03T10:00:05+00:00",
        )


FORKED = Session("s-forked")
FORKED.user("u1", "Write both poems.")
FORKED.response("m1", ["a1"], [{"type": "text", "text": "Writing."}], (7, 0, 0, 30))
FORKED.response("m1", ["a2"], [FORKED.call("tA", "Write", file_path="a.md", content="A")], (7, 0, 0, 30))
FORKED.response(
    "m1", ["a3"], [FORKED.call("tB", "Write", file_path="b.md", content="B")], (7, 0, 0, 30), stop="tool_use"
)
FORKED.results("r1", FORKED.result("tA", "wrote a.md"), parent="a2")
FORKED.results("r2", FORKED.result("tB", "wrote b.md"), parent="a3")
FORKED.response("m2", ["a4"], [{"type": "text", "text": "Both written."}], (8, 0, 0, 5), stop="end_turn")


@pytest.mark.parametrize(
    ("log", "ids", "texts", "usage"),
    [
        (
            Shared("B04.jsonl"),
            ["toolu_A", "toolu_B"],
            ["Create one.md and two.md.", "Creating both.", "created one.md", "created two.md", "Both files exist."],
            (17, 67),
        ),
        (
            FORKED.log(),
            ["tA", "tB"],
            ["Write both poems.", "Writing.", "wrote a.md", "wrote b.md", "Both written."],
            (15, 35),
        ),
    ],
    ids=["B04", "ours"],
)
def test_parallel_calls_keep_both_results(
    log: Shared | Ours, ids: list[str], texts: list[str], usage: tuple[int, int], given: Given, lake: Path
) -> None:
    read_in(lake, given(log))
    row = _only(lake)
    found = told(row)
    assert found["messages"] == list(zip(["user", "assistant", "tool", "tool", "assistant"], texts, strict=True))
    assert found["calls"] == [ids]
    assert [(result, status) for _, _, result, status in found["steps"]] == [(texts[2], "ok"), (texts[3], "ok")]
    assert [step["error"] for step in row["steps"]] == [None, None]
    assert _usage(row) == usage


def _damaged() -> Ours:
    session = Session("s-damaged")
    session.user("u1", "Count the notes.")
    session.response("m1", ["a1"], [session.call("t1", "Grep", pattern="NOTE")], (4, 0, 0, 4), stop="tool_use")
    session.results("u2", session.result("t1", "2 matches"))
    session.response("m2", ["a2"], [{"type": "text", "text": "Two."}], (5, 0, 0, 2), stop="end_turn")
    session.user("u3", "And warnings?")
    session.response("m3", ["a3"], [{"type": "text", "text": "None."}], (6, 0, 0, 3), stop="end_turn")
    one, two, three, four, five, six = session.lines
    return Ours(
        "damaged.jsonl",
        (
            one,
            '{"type":"pr-link","sessionId":"s-damaged","prUr' + two,
            three + four,
            "\0" * 300 + five,
            "",
            six,
            six[:61],
        ),
    )


@pytest.mark.parametrize(
    ("log", "texts", "usage", "torn"),
    [
        (
            Shared("B07.jsonl"),
            ["Count the TODO marks.", "", "3 matches", "Three.", "And FIXME?", "None."],
            (18, 10),
            [
                '{"type":"pr-link","sessionId":"s-b07","prNu',
                '{"parentUuid":"a3","type":"assistant","message":{"role":"assi',
            ],
        ),
        (_damaged(), ["Count the notes.", "", "2 matches", "Two.", "And warnings?", "None."], (15, 9), None),
    ],
    ids=["B07", "ours"],
)
def test_a_damaged_file_loses_two_fragments_and_nothing_else(
    log: Shared | Ours, texts: list[str], usage: tuple[int, int], torn: list[str] | None, given: Given, lake: Path
) -> None:
    path = given(log)
    if isinstance(log, Ours):
        path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    report = read_in(lake, path)
    row = _only(lake)
    assert [text for _, text in told(row)["messages"]] == texts
    assert told(row)["final_text"] == texts[-1]
    assert _usage(row) == usage
    rejects = sorted(rows(lake, "rejects"), key=lambda reject: reject["source_offset"])
    assert len(rejects) == sum(report["rejects"].values()) == 2
    assert [reject["source_line"] for reject in rejects] == [2, 7]
    assert rejects[1]["reason"] == "torn_tail"
    assert torn is None or [reject["raw"].decode() for reject in rejects] == torn


HALF = Session("s-half")
HALF.user("u1", "Draw a house.")
HALF.response(
    "m1",
    ["a1"],
    [HALF.call("toolu_1", "Bash", command="echo 🏠 done"), HALF.call("toolu_2", "Bash", command='ls "\ud83cfes box"')],
    (4, 0, 0, 4),
    stop="tool_use",
)
HALF.results(
    "u2",
    HALF.result("toolu_1", "🏠 done"),
    HALF.result("toolu_2", '<tool_use_error>Cancelled: Bash(ls "\ud83c…) errored</tool_use_error>', is_error=True),
)
HALF.response("m2", ["a2"], [{"type": "text", "text": "Drawn."}], (5, 0, 0, 2), stop="end_turn")


@pytest.mark.parametrize(
    ("log", "whole", "half", "final"),
    [
        (Shared("B09.jsonl"), "🚀 done", 'ls "\ufffdade9 box"', "Printed."),
        (HALF.log(), "🏠 done", 'ls "\ufffdfes box"', "Drawn."),
    ],
    ids=["B09", "ours"],
)
def test_half_an_emoji_is_replaced_and_its_escape_kept(
    log: Shared | Ours, whole: str, half: str, final: str, given: Given, lake: Path
) -> None:
    read_in(lake, given(log))
    row = _only(lake)
    assert len(row["messages"]) == 5
    first, second = told(row)["steps"]
    assert first == ("Bash", {"command": f"echo {whole}"}, whole, "ok")
    assert second[1] == {"command": half}
    assert "\ufffd" in second[2]
    assert [step["error"] is None for step in row["steps"]] == [True, False]
    assert "lone_surrogate" in row["flags"]
    kept = [info["extra"] is not None and "lone_surrogates" in info["extra"] for info in row["message_info"]]
    assert kept == [False, True, False, True, False]
    assert row["final_text"] == final
    assert rows(lake, "rejects") == []


META = Session("s-meta")
META.raw({"type": "file-history-snapshot", "messageId": "x0", "snapshot": {}, "isSnapshotUpdate": False})
META.user("m1", "<local-command-caveat>Caveat: local commands follow.</local-command-caveat>", isMeta=True)
META.user(
    "m2", "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"
)
META.user("m3", "<local-command-stdout>Cleared</local-command-stdout>")
META.user(
    "u1",
    [
        {"type": "text", "text": "Explain the cache"},
        {"type": "text", "text": "<system-reminder>No tasks are open.</system-reminder>"},
    ],
)
META.response("a", ["a1"], [{"type": "text", "text": "It keeps ten pages."}], (9, 0, 0, 6), stop="end_turn")


@pytest.mark.parametrize(
    ("log", "prompt", "reminder", "final"),
    [
        (
            Shared("B12.jsonl"),
            "Explain the retry loop in net.py",
            "The todo list is empty.",
            "It retries three times.",
        ),
        (META.log(), "Explain the cache", "No tasks are open.", "It keeps ten pages."),
    ],
    ids=["B12", "ours"],
)
def test_what_a_harness_wrote_is_not_the_ask(
    log: Shared | Ours, prompt: str, reminder: str, final: str, given: Given, lake: Path
) -> None:
    read_in(lake, given(log))
    row = _only(lake)
    assert (row["prompt"], row["n_turns"], row["final_text"]) == (prompt, 1, final)
    assert reminder not in row["prompt"]
    assert row["usage"]["output_tokens"] == 6
    spoken = [
        message["content"]
        for message, info in zip(row["messages"], row["message_info"], strict=True)
        if message["role"] == "user" and not info["synthetic"]
    ]
    assert spoken == [prompt]


def _windows() -> Session:
    session = Session("s-windows")
    session.user("u1", "Traduis « déjà vu » — 中文 🧵")
    session.response("m1", ["a1"], [{"type": "text", "text": "既视感"}], (9, 0, 0, 6), stop="end_turn")
    return session


@pytest.mark.parametrize(
    ("log", "prompt", "final"),
    [
        (Shared("B14.jsonl"), "Übersetze „naïve café“ — 日本語 bitte 🧩", "素朴なカフェ"),
        (_windows().log(), "Traduis « déjà vu » — 中文 🧵", "既视感"),
    ],
    ids=["B14", "ours"],
)
def test_a_byte_order_mark_and_crlf(log: Shared | Ours, prompt: str, final: str, given: Given, lake: Path) -> None:
    path = given(log)
    if isinstance(log, Ours):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n")
    assert read_in(lake, path)["rejects"] == {}
    row = _only(lake)
    assert (row["prompt"], row["final_text"]) == (prompt, final)


LOST = Session("s-lost")
LOST.user("u1", "Check a, b and c.")
TASKS = [LOST.call(f"toolu_{number}", "Task", area=area) for number, area in enumerate("abc", 1)]
LOST.response("m1", ["a1"], TASKS, (9, 0, 0, 9), stop="tool_use")
LOST.results("u2", LOST.result("toolu_2", "b: fine"))
LOST.response(
    "m2",
    ["a2"],
    [LOST.call("toolu_4", "Bash", command="grep -c x a.py"), LOST.call("toolu_5", "Bash", command="pwd")],
    (9, 0, 0, 9),
    stop="tool_use",
)
CANCELLED = "<tool_use_error>Cancelled: parallel tool call Bash(grep -c x a.py) errored</tool_use_error>"
LOST.results(
    "u3",
    LOST.result("toolu_4", "Exit code 1\n0", is_error=True),
    LOST.result("toolu_5", CANCELLED, is_error=True),
)
LOST.response("m3", ["a3"], [{"type": "text", "text": "Only b was checked."}], (9, 0, 0, 9), stop="end_turn")


@pytest.mark.parametrize(
    ("log", "areas", "fine", "final"),
    [
        (Shared("B15.jsonl"), ["api", "db", "ui"], "db: fine", "Only db was reviewed."),
        (LOST.log(), ["a", "b", "c"], "b: fine", "Only b was checked."),
    ],
    ids=["B15", "ours"],
)
def test_a_missing_result_is_missing_and_a_cancelled_call_is_cancelled(
    log: Shared | Ours, areas: list[str], fine: str, final: str, given: Given, lake: Path
) -> None:
    read_in(lake, given(log))
    row = _only(lake)
    steps = told(row)["steps"]
    assert [(tool, arguments, result) for tool, arguments, result, _ in steps[:3]] == [
        ("Task", {"area": areas[0]}, None),
        ("Task", {"area": areas[1]}, fine),
        ("Task", {"area": areas[2]}, None),
    ]
    assert [status for *_, status in steps] == ["missing", "ok", "missing", "error", "cancelled"]
    assert [step["error"] is not None for step in row["steps"][3:]] == [True, True]
    assert steps[3][2] == "Exit code 1\n0"
    assert "Cancelled" in steps[4][2]
    assert [message["role"] for message in row["messages"]].count("tool") == 3
    assert "missing_result" in row["flags"]
    assert row["final_text"] == final
    assert json.loads(row["redactions"] or "{}") == {}
