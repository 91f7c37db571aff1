"""`etl ingest --agent-homes`: what lies in the usual places is found, said, and read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from etl.cli import run
from etl.homes import Machine, agent_homes
from tests.lakes import REPO, rows

SAMPLES = REPO / "sample_logs"


def _put(sample: str, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(SAMPLES / sample, to)


def _home(home: Path) -> None:
    _put("grok_cli/tide.jsonl", home / ".grok" / "sessions" / "a" / "chat_history.jsonl")
    _put("opencode/opencode.db", home / ".local" / "share" / "opencode" / "opencode.db")
    _put("aider/history.md", home / ".aider.chat.history.md")
    _put("cursor/store.db", home / ".cursor" / "chats" / "0" / "1" / "store.db")
    for user in (".config/Code/User", "Library/Application Support/Code/User"):
        task = home / user / "globalStorage" / "saoudrizwan.claude-dev" / "tasks" / "1"
        _put("cline/xml/api_conversation_history.json", task / "api_conversation_history.json")
        _put("vscode_copilot/session.json", home / user / "workspaceStorage" / "0" / "chatSessions" / "1.json")
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "history.jsonl").write_text('{"session_id":"s","ts":1,"text":"Hi"}\n', encoding="utf-8")


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_usual_places_that_hold_files_are_found(platform: str, tmp_path: Path) -> None:
    _home(tmp_path)
    found = agent_homes(Machine(tmp_path, {}, platform, tmp_path / "nowhere"))
    assert [home.agent for home in found] == ["aider", "cline", "cursor", "grok_cli", "opencode", "vscode_copilot"]
    assert all(home.files == 1 for home in found)


@pytest.mark.parametrize(
    ("platform", "zed", "kept", "kiro_cli"),
    [
        ("linux", ".local/share/zed", ".config", ".local/share/kiro-cli"),
        (
            "darwin",
            "Library/Application Support/Zed",
            "Library/Application Support",
            "Library/Application Support/kiro-cli",
        ),
        ("win32", "AppData/Roaming/Zed", "AppData/Roaming", "AppData/Roaming/kiro-cli"),
    ],
)
def test_places_that_differ_by_system_are_found(
    platform: str, zed: str, kept: str, kiro_cli: str, tmp_path: Path
) -> None:
    _put("zed/threads.db", tmp_path / zed / "threads" / "threads.db")
    _put("llm_logs/logs.db", tmp_path / kept / "io.datasette.llm" / "logs.db")
    kiro = tmp_path / kept / "Kiro" / "User" / "globalStorage" / "kiro.kiroagent" / "workspace-sessions"
    _put("continue_dev/session.json", kiro / "d29yaw__" / "1.json")
    _put("continue_dev/session.json", tmp_path / ".continue" / "sessions" / "1.json")
    _put("amazon_q/data.sqlite3", tmp_path / kiro_cli / "data.sqlite3")
    _put("crush/crush.db", tmp_path / "here" / ".crush" / "crush.db")
    found = agent_homes(Machine(tmp_path, {}, platform, tmp_path / "here"))
    assert [home.agent for home in found] == ["amazon_q", "continue_dev", "continue_dev", "crush", "llm_logs", "zed"]


def test_variables_of_the_agents_move_their_places(tmp_path: Path) -> None:
    _put("grok_cli/tide.jsonl", tmp_path / "moved" / "projects" / "p" / "1.jsonl")
    _put("opencode/opencode.db", tmp_path / "data" / "opencode" / "opencode.db")
    environ = {
        "CLAUDE_CONFIG_DIR": f"{tmp_path / 'moved'},{tmp_path / 'not-there'}",
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    found = agent_homes(Machine(tmp_path / "home", environ, "linux", tmp_path))
    assert [home.agent for home in found] == ["claude_code", "opencode"]


def test_the_command_says_what_it_found_and_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, lake = tmp_path / "home", tmp_path / "lake"
    _home(home)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    assert run(["ingest", "--agent-homes", "--lake", str(lake)]) == 0
    out = capsys.readouterr().out
    assert out.index("found     grok_cli: 1 file in ") < out.index("Read ")
    assert {row["adapter"] for row in rows(lake)} >= {"aider", "cursor", "grok_cli", "opencode"}
    assert run(["ingest", "--agent-homes", "--lake", str(lake), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["files"]["unchanged"] == told["files"]["seen"] == sum(home["files"] for home in told["agent_homes"])


def test_a_machine_without_agents_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run(["ingest", "--agent-homes", "--lake", str(tmp_path / "lake")]) == 2
    assert "no agent keeps sessions" in capsys.readouterr().err
