"""Made-up sessions of an agent that reads and edits real code: the library that comes with Python, where this runs.

Text of drawn words has none of what makes rules for secrets look closer: names such as `token` and `password`, long
identifiers, URLs, calls, tables. Code and its documentation have all of it, and hardly a secret.
"""

from __future__ import annotations

import itertools
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LINES = 400
"""The most that a tool shows at once."""


def sessions(seed: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Claude Code sessions, endless: files are shown with line numbers, searched, and written to."""
    dice = random.Random(seed)
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("**/*.py"))
    for number in itertools.count():
        yield list(_session(dice, files, f"code-{seed}-{number}"))


def _session(dice: random.Random, files: list[Path], session: str) -> Iterator[dict[str, Any]]:
    numbers = itertools.count()

    def line(kind: str, message: dict[str, Any]) -> dict[str, Any]:
        number = next(numbers)
        return {
            "type": kind,
            "uuid": f"{session}-{number}",
            "parentUuid": f"{session}-{number - 1}" if number else None,
            "sessionId": session,
            "cwd": "/srv/demo",
            "version": "2.1.80",
            "isSidechain": False,
            "timestamp": f"2026-03-02T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z",
            "message": message,
        }

    yield line("user", {"role": "user", "content": f"Find out what {dice.choice(files).stem} does, and tidy it up."})
    for turn in range(dice.randint(5, 30)):
        name, arguments, result = _call(dice, dice.choice(files))
        call = f"toolu_{session}_{turn}"
        used = {"type": "tool_use", "id": call, "name": name, "input": arguments}
        usage = {"input_tokens": 9, "cache_read_input_tokens": 4_000, "output_tokens": 80}
        head = {"id": f"msg_{session}_{turn}", "type": "message", "role": "assistant", "model": "claude-demo"}
        yield line("assistant", {**head, "content": [used], "stop_reason": "tool_use", "usage": usage})
        shown = {"type": "tool_result", "tool_use_id": call, "content": result}
        yield line("user", {"role": "user", "content": [shown]})
    end = {"id": f"msg_{session}_end", "type": "message", "role": "assistant", "model": "claude-demo"}
    yield line("assistant", {**end, "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"})


def _call(dice: random.Random, file: Path) -> tuple[str, dict[str, Any], str]:
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    start = dice.randrange(max(1, len(lines) - 20))
    piece = lines[start : start + dice.randint(20, _LINES)]
    path = f"/srv/demo/{file.name}"
    kind = dice.random()
    if kind < 0.6:
        shown = "\n".join(f"{start + number:6}\t{text}" for number, text in enumerate(piece, 1))
        return "Read", {"file_path": path, "offset": start}, shown
    if kind < 0.8:
        word = dice.choice(("def ", "import", "return", "self.", "raise"))
        found = "\n".join(f"{path}:{number}:{text}" for number, text in enumerate(lines, 1) if word in text)
        return "Bash", {"command": f"grep -n '{word}' {path}"}, found
    return "Write", {"file_path": path, "content": "\n".join(piece)}, f"File created successfully at: {path}"
