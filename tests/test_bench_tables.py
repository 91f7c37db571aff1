"""What the tables of the benchmarks say, also of a peer that is missing, fails or turns nothing out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.bench import peers, results

COST = {"cpu": 2.0, "wall": 3.0, "peak": 50_000_000, "out": 7}


@pytest.fixture
def chats(tmp_path: Path) -> peers.Input:
    path = tmp_path / "chats.jsonl"
    path.write_bytes(b"x" * 10_000_000)
    return peers.Input("openai_messages", "7 chats", path)


def _peer(package: str) -> peers.Peer:
    return peers.Peer("toy", package, "nothing", {}, {})


def _environment(folder: Path, script: str) -> Path:
    """An environment whose Python is a script."""
    python = folder / "toy" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return python


def test_a_speed_is_bytes_over_cpu_and_a_share_of_ours(chats: peers.Input) -> None:
    costs: dict[str, peers.Cost | str] = {"floor": {**COST, "cpu": 0.5, "out": None}, "etl": COST, "dlt": COST}
    assert peers.lines(chats, costs) == [
        ["openai_messages, 7 chats", "floor", "20.0", "4.00", "3.0", "50", ""],
        ["openai_messages, 7 chats", "etl", "5.0", "1.00", "3.0", "50", "7"],
        ["openai_messages, 7 chats", "dlt", "5.0", "1.00", "3.0", "50", "7"],
    ]


def test_who_turns_nothing_out_has_no_speed(chats: peers.Input) -> None:
    costs: dict[str, peers.Cost | str] = {"etl": COST, "whileai": {**COST, "out": 0}}
    assert peers.lines(chats._replace(name="otlp"), costs)[1] == [
        "otlp, 7 chats", "whileai", "", "", "", "",
        "nothing: it reads neither messages in `parts` nor calls whose arguments were not logged",
    ]  # fmt: skip


def test_why_a_tool_has_no_figure_stands_in_its_place(chats: peers.Input) -> None:
    costs: dict[str, peers.Cost | str] = {"etl": "failed: out of | memory", "dlt": COST}
    ours, theirs = peers.lines(chats, costs)
    assert ours[2:] == ["", "", "", "", "failed: out of   memory"]
    assert theirs[2:4] == ["5.0", ""]


@pytest.mark.slow
def test_a_peer_that_is_not_there_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    said = peers.installed(_peer(f"toy @ file://{tmp_path}/nowhere"), tmp_path / "peers")
    assert isinstance(said, str)
    assert said.startswith("not installed: ")
    assert not (tmp_path / "peers" / "toy").exists()


def test_what_a_peer_says_as_it_fails_is_kept(tmp_path: Path) -> None:
    python = _environment(tmp_path, "echo one >&2; echo two >&2; exit 3")
    assert peers.installed(_peer("toy"), tmp_path) == python
    assert peers.took([str(python)]) == "failed: two"
    _environment(tmp_path / "quiet", "exit 1")
    assert peers.took([str(tmp_path / "quiet" / "toy" / "bin" / "python")]) == "failed: no message"


def test_every_input_has_a_figure_or_a_reason_for_every_tool(tmp_path: Path) -> None:
    names = {given.name for given in peers.inputs(0, tmp_path)}
    for peer in peers.PEERS:
        assert {*peer.cannot, *peer.notes} <= names
        assert len(peer.cannot) < len(names)


@pytest.mark.slow
def test_the_section_is_whole_where_no_peer_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for peer in peers.PEERS:
        _environment(tmp_path / "made", "echo nothing here >&2; exit 1")
        (tmp_path / "made" / "toy").rename(tmp_path / "made" / peer.name)
    text = peers.section(1, tmp_path / "inputs", tmp_path / "made")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 4 * (len(peers.OURS) + len(peers.PEERS))
    for row in rows:
        if row[1] in peers.OURS:
            assert all(row[2:6]), row
        else:
            assert row[-1].startswith(("failed: nothing here", "cannot read it")), row


def test_sections_that_nobody_measured_stay(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    results.keep({"Simulation": "fast\n", "What the time is spent on": "| a |\n"}, path)
    results.keep({"Speed": "| b |", "Simulation": "faster"}, path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Benchmarks\n")
    assert results.sections(text) == {"Speed": "| b |", "Simulation": "faster", "What the time is spent on": "| a |"}
    assert list(results.sections(text)) == ["Speed", "Simulation", "What the time is spent on"]
    results.keep({}, path)
    assert path.read_text(encoding="utf-8") == text
    assert results.kept("Speed", path) == "| b |"
    assert results.kept("Speed", tmp_path / "none.md") == ""


def test_the_committed_results_are_what_keeping_them_gives() -> None:
    text = results.RESULTS.read_text(encoding="utf-8")
    assert results.merged(text, {}) == text
    assert results.sections(text).keys() >= {*results.MADE}


def test_a_machine_is_named_with_its_load() -> None:
    assert f"{os.cpu_count()} cores" in results.machine()
    assert f"Python {sys.version.split()[0]}" in results.machine()
    assert "load" in results.machine()
