"""τ-bench results: one JSON array, one element an attempt at one task, `{task_id, trial, reward, info, traj}`.

What the records do not say stays unsaid: there is no model, no time and no usage in them. The domain (airline, retail)
is not named either, but each has its own policy, so the system prompt tells tasks of equal number apart. Call ids are
used again within one conversation, so results are paired in order. Attempts at one task are a group whichever file they
lie in: sets of runs by different models, which only the file names tell apart, want a `--source` each.

The benchmark's few-shot file (JSON Lines of `{"messages_display": text}`) is recognised and refused, record by record:
it is a transcript in one string where `assistant: None` stands for a call, so neither calls nor speakers can be had
back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, NamedTuple

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, read
from etl.adapters._chat import chat_messages
from etl.conversation import Conversation, Message, Outcome, Record, Unusable, Verdict
from etl.decode import encode
from etl.identity import digest

_DISPLAY = "messages_display"
_ERROR = re.compile(r"Error: |Unknown action ")
_NOT_FOUND = re.compile(r"Error: .*\bnot found\b")
_MODEL_IN_NAME = (
    re.compile(r"(?:\A|_)(?:orchestrated-tool-calling|tool-calling|act|react|few-shot)-(.+)-\d+\.\d+_range_-?\d+-"),
    re.compile(r"(?:\A|_)([A-Za-z0-9.:-]+)-(?:airline|retail)\.jsonl?(?:\.\w+)?\Z"),
)
"""How the benchmark names result files: `<strategy>-<model>-<temperature>_range_…` and `<model>-<domain>.json`."""


class TauBench(Adapter):
    """Results of τ-bench runs (airline, retail, and what was forked from them)."""

    name = "tau_bench"
    version = 1
    about = "τ-bench results: one JSON array, one element {task_id, trial, reward, info, traj} an attempt"

    def score(self, sample: Sample) -> float:
        """Sure of `traj` beside `task_id` and `trial` or `reward`; sure of the few-shot file too, to refuse it."""
        objects = sample.objects()
        if not objects:
            return 0.0
        attempts = sum(_is_attempt(value) for value in objects)
        displays = sum(len(value) == 1 and isinstance(value.get(_DISPLAY), str) for value in objects)
        return max(attempts, displays) / len(sample.values)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a record.

        An attempt that failed before it began has no messages; the system prompt of the others tells its domain, so it
        waits for the first of them.
        """
        model = _model_of(file.uri)
        policy = ""
        waiting: list[Record] = []
        for record in records:
            policy = _policy(record.value) or policy
            waiting.append(record)
            if policy or not _is_empty(record.value):
                yield from (_attempt(each, model, policy) for each in waiting)
                waiting.clear()
        yield from (_attempt(each, model, policy) for each in waiting)


def _is_attempt(value: dict[str, Any]) -> bool:
    return "task_id" in value and isinstance(value.get("traj"), list) and ("trial" in value or "reward" in value)


def _is_empty(value: Any) -> bool:
    return isinstance(value, dict) and value.get("traj") == []


def _model_of(uri: str) -> str | None:
    """The model, where the file has the name that the benchmark gave it.

    >>> _model_of("/runs/tool-calling-gpt-4o-0.0_range_0--1_user-gpt-4o-llm_0612093042.json"), _model_of("/runs/a.json")
    ('gpt-4o', None)
    """
    name = PurePath(uri).name
    for pattern in _MODEL_IN_NAME:
        found = pattern.search(name)
        if found:
            return found[1]
    return None


def _policy(value: Any) -> str:
    """The system prompt of an attempt, which is the policy of its domain; empty where it has none."""
    turns = value.get("traj") if isinstance(value, dict) else None
    first = turns[0] if isinstance(turns, list) and turns else None
    if not isinstance(first, dict) or first.get("role") != "system":
        return ""
    return read(first.get("content")).text


def _attempt(record: Record, model: str | None, policy: str) -> Conversation | Unusable:
    value = record.value
    if not isinstance(value, dict):
        return Unusable(record, "not_an_object", "an attempt is a JSON object; this element is none: see what wrote it")
    if _DISPLAY in value and "traj" not in value:
        return Unusable(
            record,
            "calls_not_logged",
            "a few-shot transcript in one string has lost its tool calls; ingest the results JSON of the run instead",
        )
    turns = value.get("traj")
    if not isinstance(turns, list):
        return Unusable(record, "no_messages", "`traj` is not a list of messages; is this a τ-bench results file?")
    messages: list[Message] = []
    for index, turn in enumerate(turns):
        read_as = chat_messages(turn)
        if isinstance(read_as, str):
            return Unusable(record, read_as, f"`traj[{index}]` is no message with a known role; see what wrote it")
        messages += map(_told, read_as)
    return _conversation(record, value, messages, model, policy)


def _told(message: Message) -> Message:
    """A result with what the environment says of it: its errors begin with `Error: ` or `Unknown action `."""
    if message.role == "tool" and message.failed is None:
        message.failed = _ERROR.match(message.content) is not None
        message.condition = "not_found" if _NOT_FOUND.match(message.content) else None
    return message


def _conversation(
    record: Record, value: dict[str, Any], messages: list[Message], model: str | None, policy: str
) -> Conversation:
    logged = value.get("info")
    info = logged if isinstance(logged, dict) else {}
    task_id, trial = identifier(value.get("task_id")), identifier(value.get("trial"))
    said = value["model"] if isinstance(value.get("model"), str) else None
    task = None if task_id is None else (_namespace(value, policy), task_id)
    scored = _scored(info, value.get("reward"))
    error = info["error"] if isinstance(info.get("error"), str) else None
    return Conversation(
        messages,
        [record],
        local_id="/".join(part for part in (task_id, trial) if part) or None,
        run=said or "",
        task=task,
        group=None if task is None or trial is None else encode([*task, said]),
        sample_index=value.get("trial"),
        reward=value.get("reward"),
        rewards=scored.components or None,
        judgments=scored.verdicts or None,
        model=said or model,
        status=_status(info),
        finish_reason=info["source"] if isinstance(info.get("source"), str) else None,
        error=error,
        flags={"content_not_captured"} if error is not None and not messages else None,
        extra=_left_over(value, info, scored.left) or None,
    )


def _left_over(value: dict[str, Any], info: dict[str, Any], scored: Any) -> dict[str, Any]:
    """Keys of an attempt, and of its `info`, that no column holds; `scored` is what is left of `reward_info`."""
    held = {"traj", "trial", "reward"}
    if identifier(value.get("task_id")) is not None:
        held.add("task_id")
    if isinstance(value.get("model"), str):
        held.add("model")
    if isinstance(value.get("info"), dict):
        held.add("info")
    left = {key: item for key, item in value.items() if key not in held}
    told = {"reward_info"} | {key for key in ("source", "error") if isinstance(info.get(key), str)}
    unmodelled = {key: item for key, item in info.items() if key not in told}
    if scored is not None and scored != {}:
        unmodelled["reward_info"] = scored
    return {**left, "info": unmodelled} if unmodelled else left


def _namespace(value: dict[str, Any], policy: str) -> str:
    """Benchmark and domain: as logged (forks log `domain` or `env`), else by the policy that its tasks share."""
    domain = next((value[key] for key in ("domain", "env") if isinstance(value.get(key), str)), None)
    if domain is None:
        domain = digest(policy.encode()) if policy else ""
    return f"tau_bench:{domain}"


def _status(info: dict[str, Any]) -> str | None:
    """The environment scores an attempt when it is over; one that was never scored ran out of steps."""
    if info.get("error"):
        return "error"
    if "reward_info" not in info:
        return None
    return "truncated" if info["reward_info"] is None else "completed"


class _Scored(NamedTuple):
    """What `reward_info` says: the checks behind the reward, their numbers by name, and what no column holds."""

    verdicts: list[Verdict]
    components: dict[str, Any]
    left: Any


def _scored(info: dict[str, Any], reward: Any) -> _Scored:
    """The checks are `r_actions` (with the state it expected) or `r_outputs`, and one for each expected output."""
    scored, task = info.get("reward_info"), info.get("task")
    if not isinstance(scored, dict):
        return _Scored([], {}, scored)
    expected = task.get("actions") if isinstance(task, dict) else None
    left = {
        key: item
        for key, item in scored.items()
        if key != "info" and not (key == "reward" and item == reward) and not (key == "actions" and item == expected)
    }
    checks = scored.get("info")
    if not isinstance(checks, dict):
        return _Scored([], {}, left if checks is None else {**left, "info": checks})
    components = {name: value for name, value in checks.items() if type(value) in (int, float, bool)}
    texts = {name: value for name, value in checks.items() if isinstance(value, str)} if components else {}
    reason = encode(texts) if texts else None
    verdicts = [Verdict(name, "rule", _number(value), reason=reason) for name, value in components.items()]
    outputs = checks.get("outputs")
    told = isinstance(outputs, dict) and all(type(found) is bool for found in outputs.values())
    if isinstance(outputs, dict) and told:
        verdicts += [Verdict("output", "rule", _number(found), label=text) for text, found in outputs.items()]
    rest = {name: value for name, value in checks.items() if name not in components | texts}
    if told:
        del rest["outputs"]
    return _Scored(verdicts, components, {**left, "info": rest} if rest else left)


def _number(value: int | float | bool) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
