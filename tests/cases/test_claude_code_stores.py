"""Claude Code sessions that meet again: resumed, grown, copied, and with secrets in them (B03, B53, B55)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import Given, Ours, Shared, given, read_in, told
from tests.cases.session import Session
from tests.lakes import rows, said

__all__ = ["given"]


def _resumed() -> tuple[Ours, Ours]:
    """A session, and another that begins with a copy of it."""
    first, second = Session("s-first"), Session("s-second")
    for session in (first, second):
        session.user("u1", "Plan the garden.")
        session.response("m1", ["a1"], [{"type": "text", "text": "Plan: dig, sow."}], (10, 0, 0, 10), stop="end_turn")
        session.user("u2", "Begin with beans.")
        session.response("m2", ["a2"], [{"type": "text", "text": "Beans sown."}], (20, 0, 0, 20), stop="end_turn")
    second.user("u3", "Now peas.")
    second.response("m3", ["a3"], [{"type": "text", "text": "Peas sown."}], (30, 0, 0, 30), stop="end_turn")
    return first.log(), second.log()


@pytest.mark.parametrize(
    ("logs", "sessions", "finals"),
    [
        (
            (Shared("B03/s-b03-a.jsonl"), Shared("B03/s-b03-b.jsonl")),
            ("s-b03-a", "s-b03-b"),
            ("Step one written.", "Step two written."),
        ),
        (_resumed(), ("s-first", "s-second"), ("Beans sown.", "Peas sown.")),
    ],
    ids=["B03", "ours"],
)
@pytest.mark.parametrize("nights", ["together", "forwards", "backwards"])
def test_a_resumed_session_owns_only_what_it_adds(
    logs: tuple[Shared | Ours, ...],
    sessions: tuple[str, str],
    finals: tuple[str, str],
    nights: str,
    given: Given,
    lake: Path,
) -> None:
    paths = [given(log) for log in logs]
    if nights == "together":
        read_in(lake, *paths)
    else:
        for path in paths if nights == "forwards" else paths[::-1]:
            read_in(lake, path)
    found = {row["conversation_id"]: row for row in rows(lake)}
    first, second = (found[session] for session in sessions)
    assert (first["final_text"], second["final_text"]) == finals
    for name in ("input_tokens", "output_tokens"):
        assert sum(row["usage"][name] for row in found.values()) == 60
    assert second["parent_id"] == first["rollout_id"]
    assert [info["inherited"] for info in second["message_info"]] == [True] * 4 + [False] * 2
    own = [
        message["content"]
        for row in found.values()
        for message, info in zip(row["messages"], row["message_info"], strict=True)
        if message["role"] == "assistant" and not info["inherited"]
    ]
    assert sorted(own) == sorted({*own})
    assert finals[0] in own
    assert second["prompt_len"] == 5


def _grown() -> tuple[list[str], list[str]]:
    """A session on its first evening, its last line torn, and on the next morning."""
    session = Session("s-grown")
    session.user("u1", "Go.")
    session.response("m1", ["a1"], [{"type": "text", "text": "Going."}], (5, 0, 0, 5), stop="end_turn")
    session.user("u2", "Further.")
    session.response("m2", ["a2"], [{"type": "text", "text": "Nearly"}], (6, 0, 0, 6))
    session.response(
        "m2", ["a2"], [{"type": "text", "text": "Nearly there. There."}], (6, 0, 0, 16), parent="u2", stop="end_turn"
    )
    return [*session.lines[:3], session.lines[3][:88]], session.lines


@pytest.fixture(params=["B53", "ours"])
def days(request: pytest.FixtureRequest, given: Given, tmp_path: Path) -> list[Path]:
    """The same session on two days, and a copy of the second under another name."""
    if request.param == "B53":
        folder = given(Shared("B53"))
        return [
            folder / "day1" / "s-b53.jsonl",
            folder / "day2" / "s-b53.jsonl",
            folder / "day3" / "renamed-copy.jsonl",
        ]
    evening, morning = _grown()
    paths = [tmp_path / name for name in ("evening.jsonl", "morning.jsonl", "copy.jsonl")]
    for path, lines in zip(paths, (evening, morning, morning), strict=True):
        path.write_text("\n".join(lines) + ("" if lines is evening else "\n"), encoding="utf-8")
    return paths


def _state(lake: Path) -> tuple[int, int, dict[str, Any]]:
    """How many messages and rejects, and the one row."""
    (row,) = rows(lake)
    return len(row["messages"]), len(rows(lake, "rejects")), told(row)


def test_a_session_that_grows_is_replaced_and_its_torn_line_is_whole(
    days: list[Path], lake: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log" / "session.jsonl"
    log.parent.mkdir()
    shutil.copy(days[0], log)
    read_in(lake, log)
    messages, rejects, row = _state(lake)
    assert (messages, rejects) == (3, 1)
    assert "incomplete" in row["flags"]
    assert [source["state"] for source in rows(lake, "sources")] == ["growing"]
    shutil.copy(days[1], log)
    report = read_in(lake, log)
    assert report["files"]["grown"] == 1
    messages, rejects, row = _state(lake)
    assert (messages, rejects) == (4, 0)
    assert (row["usage"]["input_tokens"], row["usage"]["output_tokens"]) == (11, 21)
    assert row["final_text"].split()[-1] in ("done.", "There.")
    assert row["final_text"].count("Half way") <= 1
    assert [source["state"] for source in rows(lake, "sources")] == ["done"]


def test_copies_change_nothing_and_a_shorter_one_takes_nothing(days: list[Path], lake: Path) -> None:
    for day in days[:2]:
        read_in(lake, day)
    assert _state(lake)[:2] == (4, 1)
    before = said(lake)
    again = read_in(lake, days[1])
    assert again["files"]["unchanged"] == 1
    for day in (days[2], days[0]):
        report = read_in(lake, day)
        assert (report["rows"]["added"], report["rows"]["removed"]) == (0, 0)
    assert said(lake) == before
    assert _state(lake)[:2] == (4, 1)


def test_the_order_of_days_changes_nothing(days: list[Path], tmp_path: Path, thorough: bool) -> None:
    lakes = []
    for number, order in enumerate(((0, 1, 2), (2, 1, 0), *([(1, 0, 2)] if thorough else []))):
        lakes.append(tmp_path / f"lake{number}")
        for day in order:
            read_in(lakes[-1], days[day])
    assert all(said(lake) == said(lakes[0]) for lake in lakes[1:])


KEY = "sk-ant-" + "FAKE1111" * 4
COMMIT = "3f786850e387550fdab836ed7e6dc881de23001b"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def _leaking() -> Ours:
    session = Session("s-leaking")
    session.user("7c311c86-7836-4f47-bffc-aa8c3cbf2611", f"My key is {KEY} please test it")
    command = 'psql "host=db.example user=app password=swordfish7fake sslmode=require" -c "select 1"'
    call = session.call(
        "toolu_01B9xQv7ZkLm3PqRs5TuVwXyZ", "Bash", command=command, env={"API_TOKEN": "plain-fake-token"}
    )
    session.response("msg_cb99a444f001Ftd3kTVmr8XQHA", ["a1"], [call], (5, 0, 0, 5), stop="tool_use")
    echoed = {
        "cmd": 'psql "password=swordfish7fake"',
        "commit": COMMIT,
        "sha256": DIGEST,
        "account": "pub-1234567890123457",
    }
    session.results("u2", session.result(call["id"], json.dumps(echoed)))
    session.response(
        "msg_2", ["a2"], [{"type": "text", "text": f"Connected at commit {COMMIT}."}], (5, 0, 0, 5), stop="end_turn"
    )
    return session.log()


@pytest.mark.parametrize(
    ("log", "secrets", "kept", "call_id"),
    [
        (
            Shared("B55.jsonl"),
            ("sk-ant-" + "FAKE0000" * 4, "hunter2fake", "low-entropy-fake-token"),
            (
                "9fceb02d0ae598e95dc970b74767f19372d61af8",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                "pub-1234567890123456",
            ),
            "toolu_01A9xQv7ZkLm3PqRs5TuVwXyZ",
        ),
        (
            _leaking(),
            (KEY, "swordfish7fake", "plain-fake-token"),
            (COMMIT, DIGEST, "pub-1234567890123457"),
            "toolu_01B9xQv7ZkLm3PqRs5TuVwXyZ",
        ),
    ],
    ids=["B55", "ours"],
)
def test_secrets_go_and_everything_else_stays_whole(
    log: Shared | Ours, secrets: tuple[str, ...], kept: tuple[str, ...], call_id: str, given: Given, tmp_path: Path
) -> None:
    path = given(log)
    report = read_in(tmp_path / "lake", path)
    (row,) = rows(tmp_path / "lake")
    everything = repr([rows(tmp_path / "lake", name) for name in ("rollouts", "events", "rejects", "sources")]) + repr(
        report
    )
    assert [secret for secret in secrets if secret in everything] == []
    assert [text for text in kept if text not in row["messages"][2]["content"]] == []
    assert kept[0] in row["final_text"]
    (step,) = row["steps"]
    assert (step["call_id"], step["result_index"], len(row["messages"])) == (call_id, 2, 4)
    assert json.loads(step["arguments"])["env"].keys() == {"API_TOKEN"}
    assert json.loads(row["messages"][2]["content"]).keys() == {"cmd", "commit", "sha256", "account"}
    assert sum(json.loads(row["redactions"]).values()) >= 4
    read_in(tmp_path / "open", path, redact="none")
    assert [secret for secret in secrets if secret not in repr(rows(tmp_path / "open"))] == []


def test_secrets_do_not_stay_in_rejects(given: Given, lake: Path) -> None:
    torn = '{"type": "user", "message": {"role": "user", "content": "my key is ' + KEY
    read_in(lake, given(Ours("torn.jsonl", (*_leaking().lines, torn))))
    (reject,) = rows(lake, "rejects")
    assert reject["raw"].startswith(b'{"type": "user"')
    assert KEY not in repr(reject)
    assert reject["length"] == len(torn)
