"""Arize Phoenix: spans as its client, its data frames and its database hold them, and the annotations on them.

Spans are OpenInference's, read and put together like those of any trace (`_otlp_rows.py`). Annotations, which may lie
in other files and name nothing but a span, a trace or a session, become judgments of the row that tells of it.
`_phoenix_records.py` says which record is what.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._otlp_parts import note
from etl.adapters._otlp_span import conversation_id, kind_of
from etl.adapters._otlp_stored import assembled
from etl.adapters._otlp_values import fingerprint
from etl.adapters._phoenix_database import is_phoenix, rows
from etl.adapters._phoenix_records import HOLDERS, claim, is_annotation, judgments, spans
from etl.adapters._sqlite import MAGIC
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.framing import Framed, Limits, frame


class Phoenix(Adapter):
    """Spans and annotations of Phoenix."""

    name = "phoenix"
    version = 5
    about = "Arize Phoenix: spans (JSON, data frames as Parquet or CSV, its SQLite database) and annotations"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "empty_page": "a page of an export with nothing on it",
        "not_a_model_span": "a span that is no model, agent, tool or retrieval (a step of a pipeline, a check)",
        "nothing_annotated": "an annotation of a span, trace or session that no row tells of (yet): kept in `events`",
    }

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """JSON in any layout, or the rows of a SQLite database."""
        first = next(blocks, b"")
        whole = chain([first], blocks)
        return rows(whole, limits) if first and MAGIC.startswith(first[: len(MAGIC)]) else frame(whole, limits)

    def score(self, sample: Sample) -> float:
        """Sure of spans with Phoenix's own columns, and of annotations."""
        if not sample.values:
            return 0.9 if is_phoenix(sample.head) else 0.0
        return sum(map(claim, sample.values)) / len(sample.values)

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return not sample.head.startswith(MAGIC)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every span and every annotation."""
        for record in records:
            yield from _fragments(record)

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of one family; what no row tells of is ignored by name."""
        yield from assembled(family, "not_a_model_span", "nothing_annotated")


def _fragments(record: Record) -> Iterator[Outcome]:
    value = record.value
    found = False
    if isinstance(value, dict) and is_annotation(value):
        forms = judgments(value)
        found = bool(forms)
        yield from (_said(record, form) for form in forms)
    for form, inside in spans(value):
        found = True
        yield _span(record, form)
        yield from (_said(record, each) for each in inside)
    if not found:
        if isinstance(value, dict) and any(value.get(key) == [] for key in HOLDERS):
            yield Ignored("empty_page")
        else:
            yield Unusable(record, "not_a_span", "neither a span nor an annotation of Phoenix; see what wrote it")


def _span(record: Record, form: dict[str, Any]) -> Fragment:
    """A span under its session or trace; an annotation may know it by its id alone."""
    note(record, form)
    attributes = form.get("attributes", {})
    trace, own = form.get("trace"), form.get("id")
    named = conversation_id(attributes) if kind_of(attributes) != "other" else None
    link = trace or (f"span {own}" if own else None)
    aliases = (*((f"span {own}",) if own else ()), *((trace,) if trace and named else ()))
    key = named or link or f"untraced {fingerprint(form)}"
    return Fragment(record, key, link, form.get("start"), form, aliases=aliases)


def _said(record: Record, form: dict[str, Any]) -> Fragment:
    """An annotation under what it is about. It may come long after: no day bounds the search for it."""
    about = f"span {form['id']}" if form["of"] == "span" else str(form["id"])
    return Fragment(record, about, about, None, form)
