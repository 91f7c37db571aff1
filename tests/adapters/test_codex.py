"""Codex sessions: forks, sub-agents, rollbacks, compactions, aborted turns, growing files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.adapters._codex_text import is_harness
from etl.adapters._codex_tokens import Totals
from tests.adapters.codex_rollouts import Rollout
from tests.cases.reading import read_in
from tests.lakes import rows, said


def _file(folder: Path, name: str, rollout: Rollout) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("\n".join(rollout.lines) + "\n", encoding="utf-8")
    return path


def _parent() -> Rollout:
    parent = Rollout("parent", dual=False)
    parent.said("user", "Weave a rug.")
    parent.call("p1", cmd="yarn")
    parent.said("assistant", "Woven.")
    parent.used((100, 0, 10, 0))
    return parent


def _fork(parent: Rollout, meta: dict[str, Any]) -> Rollout:
    fork = Rollout("fork", dual=False, **meta)
    del fork.lines[1]
    fork.later(600)
    for line in parent.lines:
        fork.copied(line)
    fork.later(9)
    fork.turn("loom-1", turn="own")
    fork.said("user", "In blue.")
    fork.said("assistant", "Blue.")
    fork.used((150, 0, 25, 0))
    return fork


def _texts(row: dict[str, Any]) -> list[tuple[str, bool]]:
    return [
        (message["content"], bool(info["inherited"]))
        for message, info in zip(row["messages"], row["message_info"], strict=True)
    ]


@pytest.mark.parametrize(
    "meta",
    [
        {"forked_from_id": "parent"},
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "agent_role": "dyer"}}}},
    ],
    ids=["fork", "sub-agent"],
)
def test_copied_history_is_inherited_and_counts_once(meta: dict[str, Any], tmp_path: Path, lake: Path) -> None:
    parent = _parent()
    logs = [_file(tmp_path, "b.jsonl", parent), _file(tmp_path, "a.jsonl", _fork(parent, meta))]
    read_in(lake, *logs)
    by_key = {row["conversation_id"]: row for row in rows(lake)}
    assert by_key["fork"]["parent_id"] == by_key["parent"]["rollout_id"]
    assert _texts(by_key["fork"]) == [
        ("Weave a rug.", True),
        ("", True),
        ("ok", True),
        ("Woven.", True),
        ("In blue.", False),
        ("Blue.", False),
    ]
    assert by_key["fork"]["prompt_len"] == 5
    assert (by_key["parent"]["usage"]["output_tokens"], by_key["fork"]["usage"]["output_tokens"]) == (10, 15)
    assert by_key["fork"]["agent"] == ("dyer" if "source" in meta else "codex")


def test_a_fork_without_its_parent_goes_by_the_times_of_its_turns(tmp_path: Path, lake: Path) -> None:
    old, own = "019b0000-0000-7000-8000-000000000001", "019cd203-9800-7000-8000-000000000002"
    fork = Rollout("fork", dual=False, forked_from_id="gone")
    del fork.lines[1]
    fork.line("session_meta", {"id": "gone"})
    fork.turn("loom-1", turn_id=old)
    fork.said("user", "Weave a rug.")
    fork.said("assistant", "Woven.")
    fork.used((100, 0, 10, 0))
    fork.turn("loom-1", turn_id=own)
    fork.said("user", "In blue.")
    fork.said("assistant", "Blue.")
    fork.used((150, 0, 25, 0))
    read_in(lake, _file(tmp_path, "fork.jsonl", fork))
    (row,) = rows(lake)
    assert _texts(row) == [("Weave a rug.", True), ("Woven.", True), ("In blue.", False), ("Blue.", False)]
    assert row["usage"]["output_tokens"] == 15
    assert "ambiguous_parent" in row["flags"]


def test_a_parent_that_comes_a_night_later_changes_what_is_inherited(tmp_path: Path, lake: Path) -> None:
    parent = _parent()
    fork = _file(tmp_path, "fork.jsonl", _fork(parent, {"forked_from_id": "parent"}))
    read_in(lake, fork)
    (alone,) = rows(lake)
    assert not any(inherited for _, inherited in _texts(alone))
    read_in(lake, fork, _file(tmp_path, "parent.jsonl", parent))
    whole = tmp_path / "whole"
    read_in(whole, fork, tmp_path / "parent.jsonl")
    assert said(lake) == said(whole)
    assert len(rows(lake)) == 2


def test_turns_that_were_rolled_back_are_a_row_of_their_own(tmp_path: Path, lake: Path) -> None:
    rollout = Rollout("rolled")
    rollout.said("user", "Warp?")
    rollout.said("assistant", "Linen.")
    rollout.used((10, 0, 1, 0))
    rollout.said("user", "Weft, in wool.")
    rollout.said("assistant", "Wool.")
    rollout.used((30, 0, 3, 0))
    rollout.event("thread_rolled_back", num_turns=1)
    rollout.said("user", "Weft, in silk.")
    rollout.said("assistant", "Silk.")
    rollout.used((60, 0, 6, 0))
    read_in(lake, _file(tmp_path, "rolled.jsonl", rollout))
    left, main = sorted(rows(lake), key=lambda row: row["parent_id"] is None)
    assert [text for text, _ in _texts(main)] == ["Warp?", "Linen.", "Weft, in silk.", "Silk."]
    assert _texts(left) == [("Warp?", True), ("Linen.", True), ("Weft, in wool.", False), ("Wool.", False)]
    assert left["parent_id"] == main["rollout_id"]
    assert "abandoned" in left["flags"]
    assert (main["usage"]["input_tokens"], left["usage"]["input_tokens"]) == (40, 20)


def test_a_compaction_repeats_nothing_and_its_summary_is_no_turn(tmp_path: Path, lake: Path) -> None:
    rollout = Rollout("compact")
    rollout.said("user", "Dye it.")
    rollout.said("assistant", "Dyed.")
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        for text in ("Dye it.", "So far: it was dyed.")
    ]
    rollout.line("compacted", {"message": "", "replacement_history": history})
    rollout.said("user", "Dry it.")
    rollout.said("assistant", "Dried.")
    read_in(lake, _file(tmp_path, "compact.jsonl", rollout))
    (row,) = rows(lake)
    assert [text for text, _ in _texts(row)] == ["Dye it.", "Dyed.", "So far: it was dyed.", "Dry it.", "Dried."]
    assert [info["synthetic"] for info in row["message_info"]] == [False, False, True, False, False]
    assert (row["n_turns"], row["flags"]) == (2, ["compacted"])


def test_an_aborted_turn_leaves_its_call_open(tmp_path: Path, lake: Path) -> None:
    rollout = Rollout("aborted")
    rollout.said("user", "Shear the sheep.")
    rollout.call("c1", output=None, cmd="shear")
    rollout.event("turn_aborted", reason="interrupted")
    path = _file(tmp_path, "aborted.jsonl", rollout)
    read_in(lake, path)
    (row,) = rows(lake)
    assert (row["status"], row["finish_reason"], row["steps"][0]["status"]) == ("aborted", "interrupted", "missing")
    rollout.said("user", "Go on.")
    rollout.said("assistant", "Shorn.")
    read_in(lake, _file(tmp_path, "aborted.jsonl", rollout))
    (row,) = rows(lake)
    assert (row["status"], row["final_text"]) == ("completed", "Shorn.")


def test_the_events_alone_tell_a_session_too(tmp_path: Path, lake: Path) -> None:
    rollout = Rollout("events")
    rollout.event("user_message", message="Card the wool.", images=["data:image/png;base64,AAAA"])
    rollout.event("agent_reasoning", text="It is matted.")
    rollout.event(
        "mcp_tool_call_end",
        call_id="m1",
        invocation={"server": "mill", "tool": "card", "arguments": {"kilos": 2}},
        duration={"secs": 2, "nanos": 0},
        result={"Err": "belt off"},
    )
    rollout.event("agent_message", message="The belt is off.")
    read_in(lake, _file(tmp_path, "events.jsonl", rollout))
    (row,) = rows(lake)
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert (row["steps"][0]["tool"], row["steps"][0]["status"], row["steps"][0]["duration_ms"]) == (
        "mcp__mill__card",
        "error",
        2000.0,
    )
    assert (row["messages"][1]["reasoning_content"], row["final_text"]) == ("It is matted.", "The belt is off.")


def test_a_file_that_holds_two_sessions_gives_two_rows(tmp_path: Path, lake: Path) -> None:
    first, second = Rollout("first"), Rollout("second")
    for rollout in (first, second):
        rollout.said("user", "Spin.")
        rollout.said("assistant", "Spun.")
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join([*first.lines, *second.lines]) + "\n", encoding="utf-8")
    read_in(lake, path)
    assert sorted(row["conversation_id"] for row in rows(lake)) == ["first", "second"]
    assert {row["n_turns"] for row in rows(lake)} == {1}


def test_a_session_that_grows_over_nights_gives_the_row_of_one(tmp_path: Path, samples: Path, thorough: bool) -> None:
    lines = (samples / "codex" / "lamp.jsonl").read_bytes().splitlines(keepends=True)
    nights, once = tmp_path / "nights", tmp_path / "once"
    path = tmp_path / "lamp.jsonl"
    for end in (5, 17, 30, len(lines)) if thorough else (17, len(lines)):
        path.write_bytes(b"".join(lines[:end]))
        read_in(nights, path)
    read_in(once, path)
    assert said(nights) == said(once)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12), st.integers(0, 2**32))
def test_the_sum_of_what_totals_add_is_the_last_total(adds: list[tuple[int, int]], seed: int) -> None:
    pick = random.Random(seed)
    totals, read, written = Totals(), 0, 0
    found = []
    for more_read, more_written in adds:
        read, written = read + more_read, written + more_written
        total = {"input_tokens": read, "output_tokens": written}
        found += [totals.add(total) for _ in range(pick.randint(1, 3))]
    assert sum(new.input_tokens or 0 for new in found if new) == read
    assert sum(new.output_tokens or 0 for new in found if new) == written


@given(st.text(max_size=60))
def test_a_person_may_write_tags_of_their_own(text: str) -> None:
    assert not is_harness(f"Why does {text} fail?")
    assert is_harness(f"<environment_context>{text}</environment_context>")
    assert not is_harness(f"<instructions>{text}</instructions>")


def test_sample_secrets_and_unknown_lines(samples: Path, lake: Path) -> None:
    report = read_in(lake, samples / "codex")
    assert report["ignored"] == {"record_type": 2, "unknown_type:tide_report": 1, "world_state": 1}
    assert "FAKE0000" not in json.dumps([row["messages"] for row in rows(lake)])


def test_the_labels_around_an_image_are_not_typed(tmp_path: Path, lake: Path) -> None:
    rollout = Rollout("labels")
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    texts = ["<image name=[Image #1]>", "</image>", "Which thread is [Image #1]?"]
    blocks = [{"type": "input_text", "text": text} for text in texts]
    rollout.item("message", role="user", content=[blocks[0], image, *blocks[1:]])
    rollout.event("user_message", message=texts[2], images=[image["image_url"]])
    rollout.call("c1", "mcp__loom__look", "tool call error: timed out awaiting tools/call after 60s")
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(f"{line}\n" for line in rollout.lines), encoding="utf-8")
    read_in(lake, path)
    (row,) = rows(lake)
    assert (row["prompt"], row["n_turns"]) == ("Which thread is [Image #1]?", 1)
    assert json.loads(row["message_info"][0]["parts"]) == [{**image, "label": "[Image #1]"}]
    assert [step["condition"] for step in row["steps"]] == ["timeout"]


@pytest.mark.parametrize("dual", [True, False])
def test_what_an_editor_puts_before_a_request_is_not_typed(dual: bool, tmp_path: Path, lake: Path) -> None:
    rollout = Rollout("editor", dual=dual)
    context = "# Context from my IDE setup:\n\n## Active file: loom.py\n\n## My request for Codex:\n"
    rollout.said("user", '<codex_internal_context source="goal">Weave.</codex_internal_context>', dual=False)
    rollout.said("user", f"{context}Mend the loom.\n")
    rollout.said("assistant", "Mended.")
    path = tmp_path / "editor.jsonl"
    path.write_text("".join(f"{line}\n" for line in rollout.lines), encoding="utf-8")
    read_in(lake, path)
    (row,) = rows(lake)
    assert (row["prompt"], row["n_turns"], row["final_text"]) == ("Mend the loom.", 1, "Mended.")
    assert [message["content"] for message in row["messages"]].count("Mend the loom.") == 1


def test_an_event_alone_tells_what_an_editor_puts_before_a_request(tmp_path: Path, lake: Path) -> None:
    rollout = Rollout("event")
    rollout.line("turn_context", {"turn_id": "t1", "effort": "low"})
    rollout.event(
        "user_message", message="# Files mentioned by the user:\n\n## a.py\n\n## My request for Codex:\nMend it."
    )
    rollout.event("agent_message", message="Mended.")
    path = tmp_path / "event.jsonl"
    path.write_text("".join(f"{line}\n" for line in rollout.lines), encoding="utf-8")
    read_in(lake, path)
    (row,) = rows(lake)
    assert (row["prompt"], row["n_turns"]) == ("Mend it.", 1)
    assert any("turn_context" in (info["extra"] or "") for info in row["message_info"])


def _item(rollout: Rollout, kind: str, **item: Any) -> None:
    rollout.event("item_completed", thread_id="own", turn_id="t1", item={"type": kind, **item})


def test_numbered_lines_tell_what_was_copied_or_lies_elsewhere(samples: Path, lake: Path) -> None:
    read_in(lake, *sorted((samples / "codex").glob("sluice*.jsonl")))
    by_agent = {(row["agent"], row["status"]): row for row in rows(lake)}
    main, again = by_agent["codex", "error"], by_agent["codex", "completed"]
    mender = by_agent["mender", "completed"]
    assert [row["usage"]["input_tokens"] for row in (main, again, mender)] == [1500, 550, 300]
    assert [text for text, inherited in _texts(again) if not inherited] == [
        "Then take the test out.",
        "I would rather mend the gate.",
    ]
    assert again["messages"][:5] == main["messages"][:5]
    assert _texts(mender)[:2] == [("Do the tests of the gate pass?", True), ("Mend the gate.", False)]
    assert {again["parent_id"], mender["parent_id"]} == {main["rollout_id"]}
    assert ("The hinge was bent; the gate shuts.", False) in _texts(main)
    assert [step["tool"] for step in main["steps"]] == ["exec", "spawn_agent"]
    assert [(step["status"], step["duration_ms"]) for step in mender["steps"]] == [("error", 800.0)]


def test_what_is_told_as_items_of_turns_alone_is_told(tmp_path: Path, lake: Path) -> None:
    rollout = Rollout("own", history_mode="paginated")
    _item(rollout, "UserMessage", id="u", content=[{"type": "text", "text": "Dye it."}])
    _item(rollout, "Reasoning", id="r", summary_text=["In a vat."], raw_content=[])
    _item(rollout, "CommandExecution", id="c", command=["dye"], status="failed", aggregated_output="dry", exit_code=3)
    _item(rollout, "McpToolCall", id="m", server="vat", tool="fill", arguments={"l": 9}, status="completed")
    _item(rollout, "AgentMessage", id="a", content=[{"type": "Text", "text": "Dyed."}])
    usage = {"input_tokens": 9, "output_tokens": 2}
    for _ in range(2):
        rollout.line("token_usage_record", {"thread_id": "own", "response_id": "r1", "usage": usage})
    read_in(lake, _file(tmp_path, "own.jsonl", rollout))
    (row,) = rows(lake)
    assert (row["prompt"], row["final_text"], row["usage"]["input_tokens"]) == ("Dye it.", "Dyed.", 9)
    assert [message["reasoning_content"] for message in row["messages"]].count("In a vat.") == 1
    assert [(step["tool"], step["status"]) for step in row["steps"]] == [
        ("command_execution", "error"),
        ("mcp__vat__fill", "ok"),
    ]


def test_a_later_file_of_a_session_goes_back_behind_what_it_leaves(tmp_path: Path, lake: Path) -> None:
    def numbered(rollout: Rollout, first: int) -> Rollout:
        lines = (json.loads(line) for line in rollout.lines)
        rollout.lines = [json.dumps({**line, "ordinal": number}) for number, line in enumerate(lines, first)]
        return rollout

    before = Rollout("own", dual=False)
    for text in ("Warp?", "Linen.", "Weft?", "Wool."):
        before.said("user" if text.endswith("?") else "assistant", text)
    after = Rollout("own", dual=False)
    after.lines.clear()
    after.later(100)
    after.line("session_meta", {"id": "own", "history_base": {"thread_id": "own", "end_ordinal_exclusive": 4}})
    after.said("user", "Weft, in silk?")
    after.said("assistant", "Silk.")
    logs = [_file(tmp_path, "b.jsonl", numbered(before, 0)), _file(tmp_path, "a.jsonl", numbered(after, 4))]
    read_in(lake, *logs)
    texts = {tuple(text for text, _ in _texts(row)): row for row in rows(lake)}
    assert set(texts) == {("Warp?", "Linen.", "Weft, in silk?", "Silk."), ("Warp?", "Linen.", "Weft?", "Wool.")}
    assert texts["Warp?", "Linen.", "Weft?", "Wool."]["flags"] == ["abandoned"]
