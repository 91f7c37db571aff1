"""The account of one family of traces: its rows, and by which rule what no row tells of is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etl.adapters._otlp_rows import conversations
from etl.conversation import Conversation, Ignored, StoredEvent


def has_parents(family: Sequence[StoredEvent]) -> bool:
    """Whether the parent of every span of a family is there."""
    forms = [event.record.value for event in family if isinstance(event.record.value, dict)]
    return {form.get("parent") for form in forms} <= {None, *(form.get("id") for form in forms)}


def assembled(family: Sequence[StoredEvent], of_span: str, of_annotation: str) -> Iterator[Conversation | Ignored]:
    """The rows of a family; what no row tells of is ignored under one of the two rules."""
    rows, used = conversations(family)
    yield from rows
    for event in family:
        if id(event.record) not in used:
            value = event.record.value
            judges = isinstance(value, dict) and value.get("signal") == "annotation"
            yield Ignored(of_annotation if judges else of_span, record=event.record)
