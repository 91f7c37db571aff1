"""Inspect AI logs: one JSON object a run, or an `.eval` archive (or its unpacked folder) with a file a sample.

One sample of one epoch is one attempt. What the log says of the whole run (task, model, configuration) is in the JSON
object itself, or in `header.json` beside the samples; a run that crashed has only `_journal/start.json`. Headers,
summaries and reductions repeat what the samples say, and are left out by name.

The reward is the value of the first scorer, where that is a number, a boolean or one of Inspect's letters: C is 1,
P a half, I and N are 0. A value of another kind, or none, gives no reward; all scores are judgments.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._blocks import identifier, plain
from etl.adapters._inspect_samples import extra_of, prompt_of, read_messages, reward_of, tools_of, verdicts_of
from etl.adapters._rollouts import obj, text
from etl.conversation import Conversation, Ignored, Outcome, Record, Unusable
from etl.decode import JsonError, decode, encode
from etl.errors import SourceError
from etl.opening import blocks

_SAMPLE = frozenset({"id", "epoch", "input", "target"})
_UNIQUE = 16
"""Characters from which on a sample's uuid is taken for a random one."""
_HEADERS = ("header.json", "_journal/start.json")
_HEADER_BYTES = 64 << 20
_LIMITS = {"max_tokens": "truncated", "model_length": "truncated"}


class InspectAI(Adapter):
    """Logs of evaluations with Inspect."""

    name = "inspect_ai"
    version = 1
    about = "Inspect AI logs: a JSON object a run, .eval archives and their members; epochs are attempts"
    scores_share = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "log_header": "what the log says of a whole run, without samples: each sample's row has it from there",
        "sample_summary": "the summary of a sample that the log holds in full",
        "reduction": "scores of a sample's epochs put together, which its rows hold one by one",
    }

    def score(self, sample: Sample) -> float:
        """Sure of a log (version, eval, plan or samples), of a sample with its epoch, and of what lies beside it."""
        objects = sample.objects()
        hits = sum(_kind(value) != "" for value in objects)
        return 0.95 * hits / len(sample.values) if hits else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """One conversation a sample of an epoch."""
        for record in records:
            value = record.value
            kind = _kind(value) if isinstance(value, dict) else ""
            if kind == "log":
                yield from _samples(record, value)
            elif kind == "sample":
                yield _sample(record, value, _header_beside(file))
            elif kind:
                yield Ignored(kind)
            else:
                yield Unusable(record, "no_samples", "neither an Inspect log nor a sample of one; see what wrote it")


def _kind(value: dict[str, Any]) -> str:
    if isinstance(value.get("eval"), dict) and "version" in value:
        return "log" if value.get("samples") else "log_header"
    if value.keys() >= _SAMPLE:
        if isinstance(value.get("messages"), list) or isinstance(value.get("events"), list):
            return "sample"
        return "sample_summary" if "scores" in value or "error" in value else ""
    return "reduction" if value.keys() == {"scorer", "samples"} else ""


def _samples(record: Record, value: dict[str, Any]) -> Iterator[Outcome]:
    """Every sample of a JSON log, each with what the log says of all of them."""
    header = {key: item for key, item in value.items() if key != "samples"}
    samples = value["samples"]
    for sample in samples if isinstance(samples, list) else [samples]:
        raw = msgspec.json.encode(sample)
        notes = tuple(note for note in record.notes if note != "nan" or b'"NaN"' in raw or b'Infinity"' in raw)
        own = Record(sample, raw, record.line, record.offset, notes, record.mended)
        if isinstance(sample, dict):
            yield _sample(own, sample, header)
        else:
            yield Unusable(own, "not_an_object", "a sample is a JSON object; this element is none: see what wrote it")


def _header_beside(file: FileContext) -> dict[str, Any]:
    """The header of the archive or folder that a sample lies in; {} where it cannot be had."""
    if file.path is None:
        return {}
    try:
        changed = file.path.stat().st_mtime_ns
        if "!" in file.uri.removeprefix(str(file.path)):
            return _header_in(file.path, changed, True)
        return _header_in(file.path.parent.parent, changed, False)
    except OSError:
        return {}


@functools.lru_cache(maxsize=8)
def _header_in(place: Path, changed: int, archive: bool) -> dict[str, Any]:
    for name in _HEADERS:
        read = bytearray()
        try:
            for block in blocks(place, name) if archive else blocks(place / name):
                read += block
                if len(read) > _HEADER_BYTES:
                    break
            value = decode(bytes(read)).value
        except (SourceError, JsonError, KeyError, OSError):
            continue
        if isinstance(value, dict) and isinstance(value.get("eval"), dict):
            return value
    return {}


def _sample(record: Record, value: dict[str, Any], header: dict[str, Any]) -> Conversation | Unusable:
    run = obj(header, "eval")
    reading = read_messages(value, text(run.get("model")))
    if isinstance(reading, str):
        return Unusable(record, reading, "a message of the sample is none with a known role; see what wrote it")
    error = obj(value, "error")
    failure = text(error.get("message")) or (plain(value["error"]) if value.get("error") else None)
    key, name, epoch = _run_key(run), identifier(value.get("id")), value.get("epoch")
    uuid = text(value.get("uuid"))
    place = f"{name}/{identifier(epoch)}"
    native = uuid if uuid and len(uuid) >= _UNIQUE else f"{key}/{place}" if key and name else None
    reason = text(obj(value, "limit").get("type")) or reading.stop_reason
    model = text(run.get("model")) or text(obj(value, "output").get("model"))
    flags = {"content_not_captured"} if not reading.messages else {"incomplete"} if failure else None
    return Conversation(
        reading.messages,
        (record,),
        native_id=native,
        local_id=place,
        conversation_id=f"{key}/{place}" if key else place,
        task=None if name is None else (f"inspect_ai:{text(run.get('task')) or ''}", name),
        group=f"inspect_ai/{key}/{name}" if key and name else None,
        sample_index=epoch - 1 if type(epoch) is int and epoch > 0 else None,
        prompt=prompt_of(value, reading),
        tools=tools_of(value),
        status="error" if failure else "truncated" if value.get("limit") else _LIMITS.get(reason or ""),
        finish_reason=reason,
        error=failure,
        reward=reward_of(value.get("scores")),
        rewards=_rewards(value.get("scores")),
        judgments=list(verdicts_of(value.get("scores"))) or None,
        model=model,
        provider=model.partition("/")[0] if model and "/" in model else None,
        agent=text(run.get("solver")),
        started_at=value.get("started_at") or reading.started_at or run.get("created"),
        ended_at=value.get("completed_at"),
        usage=reading.usage,
        flags=flags,
        extra=extra_of(value, reading, header) or None,
    )


def _run_key(run: dict[str, Any]) -> str:
    """What names a run: its id in newer logs, else the ids of run and task."""
    named = text(run.get("eval_id"))
    if named:
        return named
    older = [text(run.get(key)) for key in ("run_id", "task_id", "created")]
    return encode(older) if older[0] else ""


def _rewards(scores: Any) -> dict[str, Any] | None:
    """Every scorer's value: letters as numbers, whatever else as logged."""
    if not isinstance(scores, dict):
        return None
    found = {}
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        number = reward_of({name: score})
        found[name] = value if number is None else number
    return {name: value for name, value in found.items() if value is not None} or None
