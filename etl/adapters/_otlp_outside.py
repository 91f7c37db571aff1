"""What is said of spans from outside: annotations (feedback, scores, notes) and the records of whole traces.

Their stored forms, beside those of spans and logs (`_otlp_shapes.py`):

    signal "annotation"   of (span, trace or session), id, name, kind, value, label, status, reason, rest
    signal "trace"        trace, info, and, where one record holds a whole trace, spans and annotations (forms)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from etl.adapters._otlp_values import put
from etl.conversation import Record, StoredEvent, Verdict

EVALUATION = "gen_ai.evaluation.result"
JUDGED = frozenset(f"gen_ai.evaluation.{key}" for key in ("name", "score.value", "score.label", "explanation")) | {
    "error.type"
}
"""What of an evaluation event a judgment holds."""
KINDS = {
    "LLM": "judge",
    "LLM_JUDGE": "judge",
    "AI_JUDGE": "judge",
    "HUMAN": "human",
    "CODE": "rule",
    "HEURISTIC": "rule",
}
"""Who annotated, in the words of the tools → the kind of a judgment."""
_REWARDS = frozenset({"reward", "task_reward", "episode_reward"})
"""Names by which a source calls a measurement the reward."""


class Annotation(msgspec.Struct, eq=False):
    """One verdict on a span, a trace or a session."""

    of: str
    id: str
    verdict: Verdict
    left: dict[str, Any]
    """What the verdict has no place for."""
    record: Record


class TraceRecord(msgspec.Struct, eq=False):
    """What a tracing tool says of a whole trace."""

    info: dict[str, Any]
    record: Record


def forms(event: StoredEvent) -> Iterator[dict[str, Any]]:
    """The forms that a stored event holds: one, or those of a trace and the trace's own after them."""
    value = event.record.value
    if not isinstance(value, dict):
        return
    if value.get("signal") == "trace":
        for key in ("spans", "annotations"):
            held = value.get(key)
            yield from (form for form in held if isinstance(form, dict)) if isinstance(held, list) else ()
    yield value


def annotation(form: Mapping[str, Any], record: Record) -> Annotation:
    """An annotation from its stored form."""
    verdict = Verdict(
        _text(form.get("name")) or "annotation",
        _text(form.get("kind")) or "marker",
        number(form.get("value")),
        _text(form.get("label")),
        _text(form.get("status")),
        _text(form.get("reason")),
    )
    left: dict[str, Any] = {}
    put(left, **{"of": form.get("of"), "id": form.get("id"), "rest": form.get("rest")})
    return Annotation(str(form.get("of") or "trace"), str(form.get("id") or ""), verdict, left, record)


def annotation_form(of: str, target: str, name: Any, who: Any, **said: Any) -> dict[str, Any]:
    """The stored form of an annotation; `who` is a person, a model or code, in the tool's own word.

    A value that is no number (a yes, a grade, an object) becomes the label.
    """
    form: dict[str, Any] = {"signal": "annotation", "of": of, "id": target}
    value, label = said.pop("value", None), said.pop("label", None)
    if number(value) is None and value is not None and label is None:
        label = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        value = None
    kind = KINDS.get(who.upper(), "marker") if isinstance(who, str) else "marker"
    put(form, name=name if isinstance(name, str) else None, kind=kind, label=label, **said)
    if value is not None:
        form["value"] = value
    return form


def evaluation(fields: Mapping[str, Any]) -> Verdict:
    """A judgment from the attributes of an evaluation event (`gen_ai.evaluation.…`)."""
    told = {key.removeprefix("gen_ai.evaluation."): value for key, value in fields.items()}
    label = told.get("score.label", told.get("label"))
    reason = told.get("explanation", told.get("reasoning"))
    return Verdict(
        _text(told.get("name")) or "evaluation",
        "judge",
        number(told.get("score.value", told.get("score"))),
        _text(label),
        _text(fields.get("error.type")),
        _text(reason),
    )


def reward_of(verdicts: list[Verdict]) -> float | None:
    """The reward, where the source calls one of its measurements that; None where none or several are."""
    found = {verdict.value for verdict in verdicts if verdict.name.lower() in _REWARDS and verdict.value is not None}
    return found.pop() if len(found) == 1 else None


def number(value: Any) -> float | None:
    """A measurement as a finite number, also from text and from yes and no."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, (int, float)) and abs(value) < 1e300 and math.isfinite(value):
        return float(value)
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
