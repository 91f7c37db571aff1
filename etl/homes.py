"""Where coding agents keep their sessions on a person's own machine: the usual places, and what moves them.

Nothing here reads the environment or the clock; who calls says where home is and what is set.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Antigravity", "Kiro")
_TASKS = (
    ("cline", "saoudrizwan.claude-dev"),
    ("cline", "rooveterinaryinc.roo-cline"),
    ("cline", "kilocode.kilo-code"),
)
"""Extensions that keep task folders, by the adapter that reads them."""


class Machine(NamedTuple):
    """A person's machine: home folder, environment, `sys.platform`, and the folder they are in."""

    home: Path
    environ: Mapping[str, str]
    platform: str = "linux"
    here: Path = Path()

    def placed(self, variable: str, *default: str) -> list[Path]:
        """The folders that a variable names (a list, split at commas), else the default ones below home."""
        named = [part.strip() for part in self.environ.get(variable, "").split(",")]
        if any(named):
            return [Path(part).expanduser() for part in named if part]
        return [self.home / part for part in default]

    @property
    def data(self) -> Path:
        """Where programs keep data."""
        return self.placed("XDG_DATA_HOME", ".local/share")[0]

    @property
    def config(self) -> Path:
        """Where programs keep settings."""
        return self.placed("XDG_CONFIG_HOME", ".config")[0]

    @property
    def support(self) -> list[Path]:
        """Where programs with windows keep both."""
        if self.platform == "darwin":
            return [self.home / "Library" / "Application Support"]
        if self.platform == "win32":
            return self.placed("APPDATA", "AppData/Roaming")
        return [self.config]

    @property
    def editors(self) -> list[Path]:
        """The `User` folders of VS Code and its kin."""
        found = [root / name / "User" for root in self.support for name in _EDITORS]
        servers = (".vscode-server", ".vscode-server-insiders", ".cursor-server", ".vscode-remote")
        return [*found, *(self.home / name / "data" / "User" for name in servers)]


class AgentHome(NamedTuple):
    """A place with sessions: the adapter that reads them, a folder or a glob, and how many files it has."""

    agent: str
    path: str
    files: int


def agent_homes(machine: Machine) -> list[AgentHome]:
    """The places that are there and hold files, by agent; none twice."""
    found: dict[str, AgentHome] = {}
    for agent, place in _places(machine):
        count = _count(place)
        if count and place not in found:
            found[place] = AgentHome(agent, place, count)
    return sorted(found.values())


def _places(machine: Machine) -> Iterator[tuple[str, str]]:
    """Adapter and folder (or glob) of every usual place."""
    for agent, folders, below in (
        ("claude_code", machine.placed("CLAUDE_CONFIG_DIR", ".claude"), ("projects",)),
        ("claude_code", [machine.config / "claude"], ("projects",)),
        ("codex", machine.placed("CODEX_HOME", ".codex"), ("sessions", "archived_sessions")),
        ("gemini_cli", machine.placed("GEMINI_CLI_HOME", ""), (".gemini/tmp/*/chats",)),
        ("antigravity", [machine.home], (".gemini/antigravity*/brain/*/.system_generated/logs",)),
        ("qwen_code", machine.placed("QWEN_RUNTIME_DIR", ".qwen"), ("projects/*/chats", "tmp/*/chats")),
        ("copilot_cli", machine.placed("COPILOT_HOME", ".copilot"), ("session-state", "history-session-state")),
        ("droid", machine.placed("FACTORY_HOME", ".factory"), ("sessions",)),
        ("grok_cli", machine.placed("GROK_HOME", ".grok"), ("sessions",)),
        ("hermes", machine.placed("HERMES_HOME", ".hermes"), ("sessions", "state.db")),
        ("kimi_cli", machine.placed("KIMI_SHARE_DIR", ".kimi"), ("sessions",)),
        ("kimi_cli", machine.placed("KIMI_CODE_HOME", ".kimi-code"), ("sessions",)),
        ("pi", machine.placed("PI_CODING_AGENT_DIR", ".pi/agent"), ("sessions",)),
        ("pi", machine.placed("OPENCLAW_STATE_DIR", ".openclaw"), ("agents/*/sessions",)),
        ("amp", [machine.data / "amp"], ("threads",)),
        ("goose", [machine.data / "goose" / "sessions"], ("*.jsonl", "sessions.db")),
        ("opencode", [machine.data / "opencode"], ("storage", "opencode*.db")),
        ("opencode", [machine.data / "kilo"], ("storage", "kilo*.db")),
        ("openhands", machine.placed("OPENHANDS_PERSISTENCE_DIR", ".openhands"), ("conversations", "sessions")),
        ("cursor", [machine.home / ".cursor"], ("projects/*/agent-transcripts", "chats/*/*/store.db")),
        ("cline", machine.placed("CLINE_DIR", ".cline"), ("data/tasks",)),
        ("cline_sessions", machine.placed("CLINE_DIR", ".cline"), ("data/sessions",)),
        ("continue_dev", machine.placed("CONTINUE_GLOBAL_DIR", ".continue"), ("sessions",)),
        ("zed", [machine.data / "zed", *(root / "Zed" for root in machine.support)], ("threads/threads.db",)),
        ("zed", [machine.config / "zed"], ("conversations/*.zed.json",)),
        ("kiro_cli", [machine.home / ".kiro"], ("sessions/cli",)),
        ("amazon_q", [machine.data, *machine.support], ("amazon-q/data.sqlite3", "kiro-cli/data.sqlite3")),
        ("llm_logs", _of_llm(machine), ("logs.db",)),
        ("mini_swe_agent", machine.placed("MSWEA_GLOBAL_CONFIG_DIR", ".config/mini-swe-agent"), ("*.traj.json",)),
    ):
        for folder in folders:
            yield from ((agent, f"{glob.escape(str(folder))}/{name}") for name in below)
    yield from _in_editors(machine)
    yield from _of_aider(machine)
    yield "crush", f"{glob.escape(str(machine.here.absolute()))}/.crush/crush.db"


def _in_editors(machine: Machine) -> Iterator[tuple[str, str]]:
    for user in machine.editors:
        folder = glob.escape(str(user))
        yield "vscode_copilot", f"{folder}/workspaceStorage/*/chatSessions"
        yield "vscode_copilot", f"{folder}/globalStorage/emptyWindowChatSessions"
        for agent, extension in _TASKS:
            yield agent, f"{folder}/globalStorage/{extension}/tasks"
        if user.parent.name == "Kiro":
            yield "continue_dev", f"{folder}/globalStorage/kiro.kiroagent/workspace-sessions"
        if user.parent.name == "Cursor":
            yield "cursor", f"{folder}/globalStorage/state.vscdb"


def _of_llm(machine: Machine) -> list[Path]:
    """The folder of the command `llm`."""
    return machine.placed("LLM_USER_PATH") or [root / "io.datasette.llm" for root in machine.support]


def _of_aider(machine: Machine) -> Iterator[tuple[str, str]]:
    """aider writes into the project that it runs in."""
    named = [machine.environ.get(name) for name in ("AIDER_CHAT_HISTORY_FILE", "AIDER_LLM_HISTORY_FILE")]
    usual = [
        folder / name
        for folder in (machine.here, machine.home)
        for name in (".aider.chat.history.md", ".aider.llm.history")
    ]
    for path in [*(Path(name).expanduser() for name in named if name), *usual]:
        yield "aider", glob.escape(str(path if path.is_absolute() else machine.here / path))


def _count(place: str) -> int:
    """Files at a folder or a glob, however deep."""
    count = 0
    for path in glob.iglob(place, include_hidden=True):  # noqa: PTH207 (absolute globs too)
        if os.path.isdir(path):  # noqa: PTH112
            count += sum(len(names) for _, _, names in os.walk(path))
        else:
            count += 1
    return count
