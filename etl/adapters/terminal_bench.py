"""Terminal-Bench results: one trial a file, or a run with all of its trials in `results`.

A trial says what was asked and how it ended; what the agent did lies in a recording of the terminal, which the row
names. A trial that is in both files is one row. Nobody scored a trial whose `is_resolved` is null. Token counts of zero
were never counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from etl.adapters._blocks import identifier
from etl.adapters._records import RecordAdapter, part
from etl.adapters._rollouts import count, obj, text
from etl.conversation import Conversation, Message, Outcome, Record, Tokens, Unusable, Verdict

_TRIAL = frozenset({"task_id", "is_resolved"})
_ATTEMPT = re.compile(r"\.(\d{1,6})-of-\d{1,6}\.(.+)\Z", re.DOTALL)
_HELD = frozenset(
    {"task_id", "instruction", "is_resolved", "failure_mode", "parser_results", "total_input_tokens",
     "total_output_tokens", "trial_started_at", "trial_ended_at"}
)  # fmt: skip
_STATUS = {"agent_timeout": "truncated", "unset": "completed", "none": "completed"}


class TerminalBench(RecordAdapter):
    """Results of Terminal-Bench runs."""

    name = "terminal_bench"
    version = 1
    about = "Terminal-Bench results: {task_id, is_resolved, parser_results, …} a trial, or a run's list of them"
    expects = "a trial, or a run of them, is a JSON object"
    splits = True

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of a trial, or of results that are trials."""
        return 0.95 if _is_trial(value) or _is_run(value) else 0.0

    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """A conversation for each trial."""
        if isinstance(value.get("results"), list):
            yield from _trials(record, value)
        elif value.keys() >= _TRIAL:
            yield _trial(record, value, {})
        else:
            yield Unusable(record, "no_trial", "neither a trial nor a run of Terminal-Bench; see what wrote it")


def _is_trial(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return value.keys() >= _TRIAL and not value.keys().isdisjoint({"parser_results", "failure_mode", "recording_path"})


def _is_run(value: dict[str, Any]) -> bool:
    results = value.get("results")
    if not isinstance(results, list):
        return False
    return any(map(_is_trial, results[:8])) or (not results and {"n_resolved", "n_unresolved"} <= value.keys())


def _trials(record: Record, value: dict[str, Any]) -> Iterator[Outcome]:
    results = value["results"]
    if not results:
        yield Unusable(record, "no_trial", "the run holds no trial; was it cut off before the first?")
    about = {key: item for key, item in value.items() if key != "results"}
    for trial in results:
        own = part(record, trial)
        if isinstance(trial, dict):
            yield _trial(own, trial, about)
        else:
            yield Unusable(own, "not_an_object", "a trial is a JSON object; this element is none")


def _trial(record: Record, value: dict[str, Any], about: dict[str, Any]) -> Conversation:
    native = text(value.get("id")) or text(value.get("uuid"))
    task, name = identifier(value.get("task_id")), text(value.get("trial_name"))
    attempt = _ATTEMPT.search(name or "")
    failure = text(value.get("failure_mode"))
    instruction = text(value.get("instruction"))
    checks = obj(value, "parser_results")
    used = Tokens(count(value.get("total_input_tokens")) or None, count(value.get("total_output_tokens")) or None)
    resolved = value.get("is_resolved")
    status = _STATUS.get(failure or "", "error" if failure else None)
    return Conversation(
        [Message("user", instruction)] if instruction is not None else [],
        (record,),
        native_id=native,
        local_id=name or task,
        conversation_id=name or native or task,
        task=None if task is None else ("terminal_bench", task),
        group=f"terminal_bench/{attempt[2]}/{task}" if attempt and task else None,
        sample_index=int(attempt[1]) - 1 if attempt else None,
        status=status,
        finish_reason=failure,
        error=failure if status == "error" else None,
        reward=resolved if isinstance(resolved, bool) else None,
        judgments=[_check(test, result) for test, result in checks.items()] or None,
        started_at=value.get("trial_started_at"),
        ended_at=value.get("trial_ended_at"),
        usage=used if used != Tokens() else None,
        flags={"content_not_captured"},
        extra=_extra(value, about),
    )


def _check(test: str, result: Any) -> Verdict:
    passed = {"passed": 1.0, "failed": 0.0}.get(result) if isinstance(result, str) else None
    return Verdict(test, "rule", passed, text(result))


def _extra(value: dict[str, Any], about: dict[str, Any]) -> dict[str, Any] | None:
    """Paths, further times and whatever was not readable; the name of the run, but not its means over all trials."""
    rest = {key: item for key, item in value.items() if key not in _HELD}
    odd = {
        "is_resolved": None if isinstance(value.get("is_resolved"), bool) else value.get("is_resolved"),
        "parser_results": None if isinstance(value.get("parser_results"), dict) else value.get("parser_results"),
        "instruction": None if text(value.get("instruction")) else value.get("instruction"),
        "run": identifier(about.get("id")),
    }
    return {key: item for key, item in {**rest, **odd}.items() if item not in (None, "", [], {})} or None
