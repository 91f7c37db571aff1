"""Codex rollouts of our own, line by line."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

_START = dt.datetime(2026, 3, 9, 8, 0, tzinfo=dt.UTC)
_COUNTS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")


class Rollout:
    """A session being written, a second a line; `dual` repeats what is said as an event."""

    def __init__(self, session_id: str, *, dual: bool = True, model: str = "loom-1", **meta: Any) -> None:
        self.lines: list[str] = []
        self.dual = dual
        self._at = _START
        self._before = (0, 0, 0, 0)
        self.line("session_meta", {"id": session_id, "timestamp": self.now(), "cwd": "/srv/loom", **meta})
        self.turn(model)

    def now(self) -> str:
        """The time of the next line."""
        return self._at.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self._at += dt.timedelta(seconds=seconds)

    def line(self, kind: str, payload: dict[str, Any]) -> None:
        """Any line."""
        self.lines.append(json.dumps({"timestamp": self.now(), "type": kind, "payload": payload}))
        self.later(1)

    def copied(self, line: str) -> None:
        """A line of another session, with a new time."""
        self.line(json.loads(line)["type"], json.loads(line)["payload"])

    def turn(self, model: str, **more: Any) -> None:
        """The settings of a turn."""
        self.line("turn_context", {"cwd": "/srv/loom", "model": model, **more})

    def item(self, kind: str, **payload: Any) -> None:
        """An item of the Responses API."""
        self.line("response_item", {"type": kind, **payload})

    def event(self, kind: str, **payload: Any) -> None:
        """An event."""
        self.line("event_msg", {"type": kind, **payload})

    def said(self, role: str, text: str, *, dual: bool | None = None) -> None:
        """A message of a person or of the model."""
        block = "input_text" if role == "user" else "output_text"
        self.item("message", role=role, content=[{"type": block, "text": text}])
        if self.dual if dual is None else dual:
            self.event("user_message" if role == "user" else "agent_message", message=text)

    def thought(self, text: str) -> None:
        """Reasoning."""
        self.item("reasoning", summary=[{"type": "summary_text", "text": text}], encrypted_content="AAAA")
        if self.dual:
            self.event("agent_reasoning", text=text)

    def call(self, call_id: str, tool: str = "shell", output: str | None = "ok", **arguments: Any) -> None:
        """A call, with its output unless that is None."""
        self.item("function_call", name=tool, arguments=json.dumps(arguments), call_id=call_id)
        if output is not None:
            self.item("function_call_output", call_id=call_id, output=output)

    def used(self, total: tuple[int, int, int, int]) -> None:
        """A token count: the running total (input, cached, output, reasoning)."""
        last = [now - before for now, before in zip(total, self._before, strict=True)]
        self._before = total
        counts = [dict(zip(_COUNTS, values, strict=True)) for values in (total, last)]
        self.event("token_count", info={"total_token_usage": counts[0], "last_token_usage": counts[1]})
