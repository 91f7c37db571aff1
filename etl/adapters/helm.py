"""HELM runs (`scenario_state.json`): one object of request states, each an instance, a request and its result.

A request may have several completions: each is a row, and they share a group. What the metrics found lies in
`per_instance_stats.json` beside the file, the scenario in `run_spec.json`; an instance that was perturbed is another.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._records import left, part
from etl.adapters._rollouts import items, numbers, obj, text, transcript
from etl.conversation import Conversation, Message, Outcome, Record, Unusable, Verdict
from etl.decode import JsonError, decode, encode

_STATE = frozenset({"instance", "request"})
_COMPLETION = ("text", "finish_reason", "thinking", "tool_calls")
_RESULT = ("success", "completions", "error", "request_time", "request_datetime", "embedding")
_LARGEST = 256 << 20
"""Bytes of what lies beside a run."""


class Helm(Adapter):
    """Runs of the Holistic Evaluation of Language Models."""

    name = "helm"
    about = "HELM scenario_state.json: {adapter_spec, request_states: [{instance, request, result}]} a run; its stats"
    splits = True

    def score(self, sample: Sample) -> float:
        """Sure of a list of request states, or of one alone."""
        if not sample.values:
            return 0.0
        return sum(0.97 for value in sample.objects() if _states(value) is not None) / len(sample.values)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A row for each completion of each request."""
        run: _Run | None = None
        for record in records:
            states = _states(record.value) if isinstance(record.value, dict) else None
            if states is None:
                yield Unusable(record, "no_request_states", "a run has a list of request states; this record has none")
                continue
            run = _beside(file) if run is None else run
            spec = obj(record.value, "adapter_spec")
            if not states:
                yield Unusable(record, "no_messages", "the run has no requests; was it cut off before the first?")
            for state in states:
                yield from _rows(record, state, spec, run)


def _states(value: dict[str, Any]) -> list[Any] | None:
    listed = value.get("request_states")
    if not isinstance(listed, list):
        return None
    known = all(isinstance(state, dict) and state.keys() >= _STATE for state in listed[:8])
    return listed if known and (listed or "adapter_spec" in value) else None


class _Run(NamedTuple):
    """What lies beside a run: its name, its scenario, and what its metrics found of each instance."""

    name: str | None = None
    scenario: str | None = None
    found: dict[str, list[Verdict]] = {}  # noqa: RUF012 (never changed)


def _beside(file: FileContext) -> _Run:
    if file.path is None or "!" in file.uri:
        return _Run()
    folder = Path(os.path.abspath(file.path)).parent  # noqa: PTH100 (a link keeps its own folder)
    spec, stats = _read(folder / "run_spec.json"), _read(folder / "per_instance_stats.json")
    scenario = text(obj(spec, "scenario_spec").get("class_name"))
    found: dict[str, list[Verdict]] = {}
    for entry in stats if isinstance(stats, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("stats"), list):
            found.setdefault(_of(entry.get("instance_id"), entry), []).extend(_verdicts(entry["stats"]))
    return _Run(text(obj({"spec": spec}, "spec").get("name")), scenario, found)


def _read(path: Path) -> Any:
    try:
        return decode(path.read_bytes()).value if path.stat().st_size <= _LARGEST else None
    except (OSError, JsonError):
        return None


def _of(instance: Any, value: dict[str, Any]) -> str:
    """What names an instance in a run: its id, the trial, how it was perturbed."""
    return encode([instance, value.get("train_trial_index"), obj(value, "perturbation").get("name")])


def _verdicts(stats: list[Any]) -> Iterator[Verdict]:
    for stat in stats:
        name = text(obj(stat, "name").get("name")) if isinstance(stat, dict) else None
        mean = numbers(stat).get("mean") if name is not None else None
        if name is not None and mean is not None:
            yield Verdict(name, "rule", float(mean))


def _unit(record: Record, state: Any, spec: dict[str, Any]) -> Record:
    """A run of one state, so that it can be read alone."""
    return part(record, {"adapter_spec": spec, "request_states": [state]})


def _rows(record: Record, state: Any, spec: dict[str, Any], run: _Run) -> Iterator[Outcome]:
    if not isinstance(state, dict) or not obj(state, "request") or not obj(state, "instance"):
        reason = "a request state has an instance and a request; this has not"
        yield Unusable(_unit(record, state, spec), "no_request", reason)
        return
    request, result = obj(state, "request"), obj(state, "result")
    asked = transcript(request.get("messages") or plain(request.get("prompt")), "user")
    if isinstance(asked, str):
        reason = "`request.messages` holds something that is no message with a known role"
        yield Unusable(_unit(record, state, spec), asked, reason)
        return
    completions = [each for each in items(result, "completions") if isinstance(each, dict)]
    for number, completion in enumerate(completions or [None]):
        own = state if completion is None else {**state, "result": {**result, "completions": [completion]}}
        made = _row(_unit(record, own, spec), own, completion, [*asked], run)
        made.model = text(request.get("model")) or text(spec.get("model"))
        if len(completions) > 1:
            instance = obj(state, "instance")
            made.group = encode([run.name, made.model, _of(instance.get("id"), {**state, **instance})])
            made.sample_index = number
        yield made


def _row(
    record: Record, state: dict[str, Any], completion: dict[str, Any] | None, messages: list[Message], run: _Run
) -> Conversation:
    instance, request, result = obj(state, "instance"), obj(state, "request"), obj(state, "result")
    at, seconds = result.get("request_datetime"), numbers(result).get("request_time")
    reason = None
    if completion is not None:
        thought = obj(completion, "thinking").get("text")
        answer = Message("assistant", plain(completion.get("text")), text(thought), at=at)
        answer.extra = left(completion, _COMPLETION)
        answer.duration_ms = seconds * 1000 if seconds is not None else None
        reason = text(obj(completion, "finish_reason").get("reason"))
        messages.append(answer)
    named = identifier(instance.get("id"))
    made = Conversation(messages, (record,), local_id=named, run=run.name or "")
    made.task = (f"helm:{run.scenario or ''}", _of(named, instance)) if named else None
    made.finish_reason, made.ended_at = reason, at
    if result.get("success") is False or (completion is None and result):
        made.status, made.error = "error", plain(result.get("error")) or "no completion"
    made.judgments = run.found.get(_of(instance.get("id"), {**state, **instance}))
    made.extra = left(
        {
            **{key: item for key, item in state.items() if key not in (*_STATE, "result")},
            "instance": left(instance, ("id",)),
            "request": left(request, ("prompt", "messages", "model")),
            "result": left(result, _RESULT),
        },
        (),
    )
    return made
