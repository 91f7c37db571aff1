"""What Harbor says of a trial, in the `result.json` above the trajectory of its agent: task, rewards, how it failed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from etl.adapter import FileContext
from etl.adapters._rollouts import numbers, obj, text
from etl.conversation import Conversation, Verdict
from etl.decode import JsonError, decode

_LARGEST = 8 << 20
"""Bytes of a result."""
_HELD = frozenset({"task_name", "source", "config", "agent_info", "agent_result", "verifier_result", "exception_info"})


def trial_above(file: FileContext) -> dict[str, Any]:
    """The result of the trial in whose folder a trajectory lies, or in the one above; {} where there is none."""
    if file.path is None or "!" in file.uri:
        return {}
    folder = Path(os.path.abspath(file.path)).parent  # noqa: PTH100 (a link keeps its own folder)
    for place in (folder, folder.parent):
        path = place / "result.json"
        try:
            value = decode(path.read_bytes()).value if path.stat().st_size <= _LARGEST else None
        except (OSError, JsonError):
            continue
        if isinstance(value, dict) and {"trial_name", "task_name"} <= value.keys():
            return value
    return {}


def judge(made: Conversation, trial: dict[str, Any]) -> None:
    """Say of a trajectory what the result of its trial says."""
    task, failure = text(trial.get("task_name")), obj(trial, "exception_info")
    found = numbers(obj(obj(trial, "verifier_result"), "rewards"))
    if task is not None:
        made.task = (f"harbor:{text(trial.get('source')) or ''}", task)
    if found:
        made.rewards = dict(found)
        made.reward = found.get("reward", next(iter(found.values())) if len(found) == 1 else None)
        made.judgments = [*(made.judgments or ()), *(Verdict(name, "rule", float(n)) for name, n in found.items())]
    if failure:
        made.status = "error"
        made.error = text(failure.get("exception_message")) or text(failure.get("exception_type")) or "exception"
    rest = {key: item for key, item in trial.items() if key not in _HELD and item not in (None, {}, [])}
    if failure:
        rest["exception_info"] = failure
    made.extra = {**(made.extra or {}), "trial": rest}
