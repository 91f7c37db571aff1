"""OpenTelemetry traces of agents: spans and log records, in whatever shape and dialect, into conversations.

A conversation's spans lie in any files, in any order, over any number of nights. Its key is the id that a model, agent
or tool span names (`gen_ai.conversation.id`, a session id; see `CONVERSATION_IDS`), else the trace; the trace is the
link, so that a trace of which only some spans name the conversation stays together with it. Everything is put together
from the set of spans alone (`_otlp_rows.py`): the same spans give the same rows, however they were split and shuffled.

`_otlp_shapes.py` reads the shapes, `_otlp_dialects.py` lists the dialects in order of precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters import _otlp_agents_sdk as agents_sdk
from etl.adapters._otlp_family import DETAILS
from etl.adapters._otlp_parts import note, part
from etl.adapters._otlp_protobuf import layout
from etl.adapters._otlp_protobuf import records as protobuf_records
from etl.adapters._otlp_shapes import is_batch, is_span, units
from etl.adapters._otlp_span import conversation_id, kind_of
from etl.adapters._otlp_stored import assembled, has_parents
from etl.adapters._otlp_values import fingerprint
from etl.adapters._phoenix_records import claim as phoenix_claim
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.framing import Framed, Limits, frame

_MODEL_EVENTS = ("gen_ai.",)


class Otlp(Adapter):
    """Spans and log records of OpenTelemetry, by its GenAI conventions and the dialects around them."""

    name = "otlp"
    version = 7
    about = "OpenTelemetry spans and logs of agents: OTLP JSON or protobuf, SDK dumps; GenAI, OpenInference, …"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "empty_batch": "a batch without spans or log records",
        "metrics": "a batch of metrics: numbers over time, no conversation",
        "log_without_message": "a log record that is no GenAI event: what a program wrote beside the conversation",
        "not_a_model_span": "a span that is no model, agent or tool (HTTP, SQL): it only holds the tree together",
    }

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """JSON in any layout, or protobuf."""
        first = next(blocks, b"")
        how = layout(first)
        whole = chain([first], blocks)
        return frame(whole, limits) if how is None else protobuf_records(whole, how, limits)

    def score(self, sample: Sample) -> float:
        """Sure of batches and of spans with their trace; the share of the values that are one."""
        if not sample.values:
            return 0.0 if layout(sample.head) is None else 0.95
        found = sum(_claim(value) for value in sample.values)
        return found / len(sample.values)

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return layout(sample.head) is None

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every span and every log record that is a GenAI event."""
        for record in records:
            yield from _fragments(record)

    def is_whole(self, family: Sequence[StoredEvent]) -> bool:
        """Whether every span that another names as its parent is there."""
        return has_parents(family)

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of one family; what tells nothing but the tree is ignored by name."""
        yield from assembled(family, "not_a_model_span", "not_a_model_span")


def _claim(value: Any) -> float:
    """How sure one value is of this format."""
    if is_batch(value) or _is_metrics(value):
        return 1.0
    if phoenix_claim(value):  # the columns of another tool; `--format otlp` reads them too
        return 0.0
    if agents_sdk.is_span(value) or agents_sdk.is_trace(value):
        return 0.95
    if is_span(value):
        return 0.0 if _is_mlflow(value) else 0.95
    if isinstance(value, (dict, list)):
        first = next(units(value), None)
        if first is not None and isinstance(first.item, dict) and not _is_mlflow(first.item):
            return 0.9
    return 0.0


def _is_metrics(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("resourceMetrics"), list)


def _is_mlflow(value: dict[str, Any]) -> bool:
    """MLflow's own trace files, whose attributes are all JSON text, are another format."""
    attributes = value.get("attributes")
    return isinstance(attributes, dict) and any(str(key).startswith("mlflow.") for key in attributes)


def _fragments(record: Record) -> Iterator[Outcome]:
    value = record.value
    found = False
    bad = 0
    for unit in units(value):
        found = True
        if unit.form is None:
            yield Unusable(
                part(record, unit.item, bad), "not_a_span", "an item of a batch that is no span; see what wrote it"
            )
            bad += 1
        else:
            yield _fragment(record, unit.form)
    if not found:
        if is_batch(value):
            yield Ignored("empty_batch")
        elif _is_metrics(value):
            yield Ignored("metrics")
        else:
            yield Unusable(
                record, "not_a_span", "neither a span nor a batch of spans or log records; see what wrote it"
            )


def _fragment(record: Record, form: dict[str, Any]) -> Fragment | Ignored:
    """The stored form of one span or log record, under the key of its conversation."""
    attributes = form.get("attributes", {})
    if form["signal"] == "log" and not _is_model_event(form):
        return Ignored("log_without_message")
    note(record, form)
    trace = form.get("trace")
    if form["signal"] == "trace":
        session, trace = form.pop("session", None), form["trace"]
        return Fragment(record, session or trace, trace, None, form, aliases=(trace,) if session else ())
    named = conversation_id(attributes) if form["signal"] == "log" or kind_of(attributes) != "other" else None
    link = trace if trace is not None else f"untraced {fingerprint(form)}"
    return Fragment(record, named or link, link, form.get("start"), form)


def _is_model_event(form: dict[str, Any]) -> bool:
    name = form.get("name", "")
    return name.startswith(_MODEL_EVENTS) or name in DETAILS
