"""Claude Code session files of our own, line by line."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from tests.cases.reading import Ours

_START = dt.datetime(2026, 3, 9, 8, 0, tzinfo=dt.UTC)


class Session:
    """A session being written: each record hangs on the one before unless told otherwise, ten seconds later."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.lines: list[str] = []
        self._last: str | None = None
        self._at = _START

    def log(self) -> Ours:
        """The session as a log."""
        return Ours(f"{self.session_id}.jsonl", tuple(self.lines))

    def raw(self, record: dict[str, Any]) -> None:
        """Any record, as it is."""
        self.lines.append(json.dumps(record))

    def user(self, uuid: str, content: Any, *, parent: str | None = None, **more: Any) -> None:
        """Something in the user's place."""
        self._add("user", uuid, parent, {"role": "user", "content": content}, more)

    def results(self, uuid: str, *results: dict[str, Any], parent: str | None = None) -> None:
        """Results of calls, in the user's place."""
        self.user(uuid, list(results), parent=parent)

    def response(
        self,
        message_id: str,
        uuids: list[str],
        blocks: list[dict[str, Any]],
        usage: tuple[int, int, int, int],
        *,
        stop: str | None = None,
        parent: str | None = None,
    ) -> None:
        """One line (or several equal ones) of a model's response; usage is (input, cache write, cache read, output)."""
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": "claude-demo-5",
            "content": blocks,
            "stop_reason": stop,
            "usage": dict(zip(names, usage, strict=True)),
        }
        for uuid in uuids:
            self._add("assistant", uuid, parent, message, {"requestId": f"req_{message_id}"})

    @staticmethod
    def call(call_id: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """A block that calls a tool."""
        return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}

    @staticmethod
    def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
        """A block that answers a call."""
        return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}

    def _add(self, kind: str, uuid: str, parent: str | None, message: dict[str, Any], more: dict[str, Any]) -> None:
        record = {
            "parentUuid": parent if parent is not None else self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/srv/demo",
            "sessionId": self.session_id,
            "version": "2.1.50",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": self._at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            **more,
        }
        self.raw(record)
        self._last = uuid
        self._at += dt.timedelta(seconds=10)
