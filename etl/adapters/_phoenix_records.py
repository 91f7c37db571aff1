"""Which record of Phoenix is a span and which an annotation, in every form that its exports give them.

Spans: objects of the API and the client (`context`, `span_kind`, `attributes` flat or nested), rows of a data frame
(`context.span_id`, `attributes.llm.…` as columns, values possibly as Python's text of them), traces with `spans`.
Annotations: objects of the API (`annotator_kind`, `result`), rows of an annotation frame (`result.label`), rows of an
evaluation frame (`label`, `score`, `explanation` beside a span's id).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from etl.adapters._otlp_outside import annotation_form
from etl.adapters._otlp_shapes import is_span, units
from etl.adapters._otlp_span import opened
from etl.adapters._otlp_values import identifier, literal, put

HOLDERS = ("data", "spans", "traces")
"""Keys under which pages and traces keep what they hold."""
SPAN_ID, TRACE_ID = "context.span_id", "context.trace_id"
_STRUCTURED = ("events", "links", "attributes")
_TARGETS = (("span", ("span_id", SPAN_ID)), ("trace", ("trace_id", TRACE_ID)), ("session", ("session_id",)))
_RESULT = ("label", "score", "explanation")
_NAMES = ("name", "annotation_name")
_EVALUATION = frozenset({*_RESULT, *_NAMES, "annotator_kind", "metadata", SPAN_ID, TRACE_ID, "span_id"})
_INDEX = "__index_level_0__"
_ABSENT = frozenset({"None", "nan", "NaN", "NaT", "<NA>"})


def claim(value: Any) -> float:
    """How sure one value is of Phoenix: sure of spans with its own columns and of annotations with their annotator."""
    if not isinstance(value, dict):
        return 0.0
    if _is_row(value):
        return 0.97
    if is_annotation(value):
        return 0.95 if "annotator_kind" in value else 0.85
    held = next((value[key] for key in HOLDERS if isinstance(value.get(key), list) and value[key]), None)
    if held is None:
        held = next((item for item in value.values() if isinstance(item, list) and any(map(_is_row, item))), None)
    return claim(held[0]) if held else 0.0


def _is_row(value: Any) -> bool:
    """A span with Phoenix's own names: its kind beside its context, or columns of its data frame."""
    if not isinstance(value, dict):
        return False
    if SPAN_ID in value or TRACE_ID in value:
        return "name" in value or "span_kind" in value or any(key.startswith("attributes.") for key in value)
    context = value.get("context")
    named = isinstance(context, dict) and "span_id" in context
    return named and isinstance(value.get("span_kind"), str) and "status_code" in value


def is_annotation(value: Mapping[str, Any]) -> bool:
    """Whether an object judges a span, a trace or a session."""
    if _target(value) is None or is_span(value) or "span_kind" in value:
        return False
    if "annotator_kind" in value:
        return True
    return "score" in value and "label" in value and value.keys() - {_INDEX} <= _EVALUATION


def _target(value: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """What an annotation is of: span, trace or session; the key that says so; the id."""
    for of, keys in _TARGETS:
        for key in keys:
            found = value.get(key)
            if isinstance(found, str) and found:
                return of, key, found
    return None


def judgments(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The stored form of an annotation."""
    target = _target(value)
    return [] if target is None else [_annotation(value, *target)]


def _annotation(value: Mapping[str, Any], of: str, key: str, target: str) -> dict[str, Any]:
    result = opened(value.get("result"))
    held = result if isinstance(result, dict) else {}
    said = {name: held.get(name, value.get(f"result.{name}", value.get(name))) for name in _RESULT}
    said = {name: None if isinstance(item, str) and item in _ABSENT else item for name, item in said.items()}
    name = value.get("name", value.get("annotation_name"))
    used = {key, _INDEX, "name", "annotation_name", "annotator_kind", "result", *_RESULT}
    used |= {f"result.{each}" for each in _RESULT}
    rest: dict[str, Any] = {}
    put(rest, **{each: opened(item) for each, item in value.items() if each not in used})
    put(rest, result={each: item for each, item in held.items() if each not in _RESULT})
    about = target if of == "session" else identifier(target) or target
    return annotation_form(
        of,
        about,
        name,
        value.get("annotator_kind", "LLM"),
        value=said["score"],
        label=said["label"] if isinstance(said["label"], str) else None,
        reason=said["explanation"] if isinstance(said["explanation"], str) else None,
        rest=rest,
    )


def spans(value: Any) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The stored forms of the spans that a record holds, each with those of the annotations inside it."""
    for unit in units(_read(value)):
        if unit.form is None:
            continue
        form = unit.form
        rest = form.get("rest", {})
        inside: list[dict[str, Any]] = []
        listed = rest.pop("annotations", None)
        if isinstance(listed, list) and form.get("id"):
            inside = [
                _annotation({**item, "span_id": form["id"]}, "span", "span_id", form["id"])
                for item in listed
                if isinstance(item, dict)
            ]
        rest.pop(_INDEX, None)
        if not rest:
            form.pop("rest", None)
        yield form, inside


def _read(value: Any) -> Any:
    """A row with its columns as values: text of JSON or of Python opened, what a frame writes for nothing left out."""
    if not isinstance(value, dict):
        return value
    if _is_row(value):
        return {key: _cell(key, item) for key, item in value.items() if not _is_absent(item)}
    return {
        key: [_read(item) for item in held] if isinstance(held, list) and key != "attributes" else held
        for key, held in value.items()
    }


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value in _ABSENT)


def _cell(key: str, value: Any) -> Any:
    """A column's value; messages and other structures may stand as text."""
    if not isinstance(value, str) or not (key in _STRUCTURED or key.startswith("attributes.")):
        return value
    if key.endswith((".value", ".template", ".content")):
        return value
    return literal(opened(value))
