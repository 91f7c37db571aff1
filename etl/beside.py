"""What lies beside conversation logs and is none: told by content, so that it is skipped with its name.

Agents keep the prompts a person typed, lists of tasks, indexes and recordings of the terminal next to their sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_TRIAL = "train_trial_index"
_TASK = frozenset({"content", "status", "activeForm", "priority", "id", "dependencies"})


def lies_beside(values: Sequence[Any]) -> str | None:
    """What a file with these first values is, where it is known to be no conversation log.

    >>> lies_beside([{"display": "fix it", "pastedContents": {}, "timestamp": 1, "project": "/srv"}])
    'the prompts typed into Claude Code; its sessions hold them'
    """
    if not values:
        return None
    if _is_recording(values):
        return "a recording of a terminal (asciinema), without messages"
    objects = [value for value in values if isinstance(value, dict)]
    if len(objects) != len(values):
        return None
    return next((what for what, known in _KNOWN if all(known(value) for value in objects)), None)


def _is_recording(values: Sequence[Any]) -> bool:
    first, *rest = values
    header = isinstance(first, dict) and first.get("version") in (1, 2, 3) and bool({"width", "term"} & first.keys())
    if not header:
        return False
    return all(isinstance(value, list) and len(value) == 3 for value in rest) and ("stdout" in first or bool(rest))


def _has(*keys: str) -> Callable[[dict[str, Any]], bool]:
    return lambda value: all(key in value for key in keys)


def _only(*keys: str) -> Callable[[dict[str, Any]], bool]:
    return lambda value: value.keys() == set(keys)


def _is_task(value: dict[str, Any]) -> bool:
    return {"content", "status"} <= value.keys() <= _TASK and len(value) > 2


def _is_stat(value: dict[str, Any]) -> bool:
    return isinstance(value.get("name"), dict) and {"name", "count", "sum"} <= value.keys()


def _is_typed(value: dict[str, Any]) -> bool:
    return {"sessionId", "messageId", "message"} <= value.keys() and value.get("type") == "user"


_KNOWN: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
    ("the prompts typed into Claude Code; its sessions hold them", _has("display", "pastedContents")),
    ("the prompts typed into Claude Code; its sessions hold them", _has("display", "project", "timestamp")),
    ("the prompts typed into Codex; its sessions hold them", _only("session_id", "ts", "text")),
    ("the prompts typed into Gemini CLI; its chats hold them", _is_typed),
    ("an index of Codex sessions", _has("id", "thread_name", "updated_at")),
    ("a list of tasks of an agent; its sessions hold the calls that wrote it", _is_task),
    ("the members of a Slack workspace; its channels hold the messages", _has("id", "name", "profile", "is_bot")),
    ("an index of Cline tasks", _has("ts", "task", "tokensIn", "tokensOut")),
    ("what HELM found or shows of each instance; the state of the run has what was said", _has("instance_id", _TRIAL)),
    (
        "the instances that HELM asked about; the state of the run has what was said",
        _has("input", "references", "split"),
    ),
    ("the result of a Harbor trial, read with the trajectory below it", _has("trial_name", "task_name", "agent_info")),
    ("projects of Claude.ai; its conversations hold the messages", _has("uuid", "name", "docs", "prompt_template")),
    ("what Claude.ai remembers of its user", _has("conversations_memory")),
    ("votes on ChatGPT's messages", _has("conversation_id", "rating", "content", "evaluation_name")),
    ("links to shared ChatGPT conversations", _only("id", "conversation_id", "title", "is_anonymous")),
    ("the numbers of a HELM run", _is_stat),
    ("usage events of aider, without messages", _has("event", "properties", "user_id", "time")),
)
"""What it is, and how each of its values is known."""
