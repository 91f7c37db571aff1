"""OSWorld trajectories (`traj.jsonl`): a line for each action, `{step_num, action, response, reward, done}`.

A response that acts several times is repeated on a line for each action: it is one message with several calls. The file
says neither the task nor the model; the score of the run is in `result.txt` beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapter import FileContext
from etl.adapters._blocks import plain
from etl.adapters._session import SureAdapter, canonical, noted, text_of, without
from etl.conversation import Conversation, Message, Outcome, Record, ToolCall, Unusable, Verdict
from etl.decode import encode
from etl.identity import digest

_LINE = frozenset({"step_num", "action", "done"})
_HELD = ("step_num", "action", "response", "action_timestamp", "screenshot_file", "info")
_ENDS = frozenset({"DONE", "FAIL"})
_AT = re.compile(r"(\d{4})(\d\d)(\d\d)@(\d\d)(\d\d)(\d\d)(\d{0,6})\Z")
_LARGEST = 64
"""Bytes of a score."""


class OSWorld(SureAdapter):
    """Trajectories of OSWorld and of benchmarks that run as it does."""

    name = "osworld"
    about = "OSWorld traj.jsonl: {step_num, action, response, reward, done} an action; result.txt beside it"

    def looks(self, value: Any) -> float:
        """Sure of an action with its screenshot or time."""
        if not isinstance(value, dict):
            return 0.0
        if value.keys() >= _LINE:
            return 0.95 if value.keys() & {"screenshot_file", "action_timestamp"} else 0.0
        return 0.3 if _error(value) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a file."""
        run = _Run()
        used: list[Record] = []
        for record in records:
            if isinstance(record.value, dict) and (record.value.keys() >= _LINE or _error(record.value)):
                used.append(record)
                run.take(record.value)
            else:
                yield Unusable(
                    record, "no_action", "a line is an action with its step and whether it ended; this is none"
                )
        if used:
            yield run.conversation(used, _score_beside(file))


def _error(value: dict[str, Any]) -> str | None:
    """What ended a run, as its harness writes it in the place of an action."""
    return text_of(value, "Error", "error") if len(value) <= 2 else None


class _Run:
    """The actions of one file, one after the other."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._step: str | None = None
        self._calls = 0
        self._last: dict[str, Any] = {}
        self._error: str | None = None

    def take(self, value: dict[str, Any]) -> None:
        """Read a line."""
        if not value.keys() >= _LINE:
            self._error = _error(value)
            return
        step = canonical([value["step_num"], value.get("response")])
        at = _instant(value.get("action_timestamp"))
        if step != self._step:
            response = value.get("response")
            text = response if isinstance(response, str) else plain(response)
            self._messages.append(Message("assistant", text, at=at))
            self._step = step
        self._calls += 1
        name = f"action-{self._calls}"
        asked = next(message for message in reversed(self._messages) if message.role == "assistant")
        asked.calls = [*(asked.calls or []), ToolCall("computer", value["action"], name, free_form=True, at=at)]
        info = value.get("info")
        told = encode(info) if info not in (None, {}, "") else ""
        shot = text_of(value, "screenshot_file")
        rest = without(value, *_HELD)
        self._last = value
        if told or shot:
            parts = [{"type": "image", "file": shot}] if shot else None
            self._messages.append(Message("tool", told, call_id=name, parts=parts, extra=rest or None))
        elif rest:
            noted(asked, "actions", {"call": name, **rest})

    def conversation(self, records: list[Record], score: float | None) -> Conversation:
        """The file as a conversation: it is known by its first line, which has a time."""
        action = self._last.get("action")
        ended = action if isinstance(action, str) and action in _ENDS else None
        made = Conversation(
            self._messages, records, native_id=f"osworld:{digest(canonical(records[0].value).encode())}"
        )
        made.finish_reason = ended or ("done" if self._last.get("done") is True else None)
        made.status = "completed" if self._last.get("done") is True else None
        if self._error is not None:
            made.status, made.error = "error", self._error
        made.flags = {"content_not_captured"}
        if score is not None:
            made.reward, made.judgments = score, [Verdict("result", "rule", score)]
        return made


def _instant(stamp: Any) -> Any:
    """`20260910@080001123456` as a time of the machine's own clock.

    >>> _instant("20260910@080001123456")
    '2026-09-10T08:00:01.123456'
    """
    found = _AT.match(stamp) if isinstance(stamp, str) else None
    if found is None:
        return stamp
    year, month, day, hour, minute, second, rest = found.groups()
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}.{rest or '0'}"


def _score_beside(file: FileContext) -> float | None:
    """The number in `result.txt` in the folder of the trajectory; None where there is none."""
    if file.path is None or "!" in file.uri:
        return None
    path = file.path.parent / "result.txt"
    try:
        told = path.read_text(encoding="utf-8") if path.stat().st_size <= _LARGEST else ""
        return float(told)
    except (OSError, ValueError):
        return None
