"""Braintrust: spans of logs and experiments, as its API, its UI and its exports give them, into conversations.

A row is a span: `{span_id, root_span_id, span_parents, span_attributes{name, type}, input, output, metrics, scores}`,
alone on a line, in a page (`events`, `objects`, `rows`), or in a table. It is told as the run that it was (see
`_langsmith_forms.py`); its scores are judgments. The key is the root span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._langchain import opened_all
from etl.adapters._langsmith_forms import units
from etl.adapters._rollouts import obj, text
from etl.adapters._run_fragments import Unit, fragments
from etl.adapters._runs import rows_of
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable

_PAGES = ("events", "objects", "rows", "data")
_TYPES = {"llm": "llm", "tool": "tool"}
_HELD = frozenset({
    "id", "span_id", "root_span_id", "span_parents", "span_attributes", "input", "output", "metrics", "scores",
    "metadata", "error", "created", "is_root", "_xact_id", "_pagination_key", "org_id", "project_id", "experiment_id",
    "dataset_id", "log_id", "comments", "audit_data", "_async_scoring_state", "facets", "classifications",
})  # fmt: skip
"""Keys that a run holds under other names, and those of the store itself."""


class Braintrust(Adapter):
    """Spans with their scores."""

    name = "braintrust"
    version = 3
    about = "Braintrust logs and experiments: spans {span_id, root_span_id, span_attributes, input, output}, scores"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "empty_page": "a page without spans",
        "not_told": "a span of a trace without model, agent or tool",
        "scorer": "a span of a scorer: what it found is in the scores of what it scored",
    }

    def score(self, sample: Sample) -> float:
        """Sure of spans by their keys; the share of the values that hold one."""
        if not sample.values:
            return 0.0
        return sum(0.95 for value in sample.values if any(map(_is_span, _spans(value)))) / len(sample.values)

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every span and every score."""
        for record in records:
            spans = list(_spans(record.value))
            scorers = [span for span in spans if _is_span(span) and _type(span) == "score"]
            yield from (Ignored("scorer") for _ in scorers)
            others = [span for span in spans if span not in scorers]
            if others or not scorers:
                yield from fragments(record, _units(others), "braintrust", "no span of Braintrust")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of one trace."""
        yield from rows_of(family)


def _is_span(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"span_id", "root_span_id"} <= value.keys()
        and bool(value.keys() & {"input", "output", "span_attributes"})
    )


def _spans(value: Any) -> Iterator[Any]:
    """The rows of a page; a value that is none as it is."""
    if isinstance(value, dict) and not _is_span(value):
        page = next((value[key] for key in _PAGES if isinstance(value.get(key), list)), None)
        yield from [value] if page is None else page
    else:
        yield value


def _type(span: dict[str, Any]) -> str | None:
    about = opened_all(span.get("span_attributes"))
    return text(about.get("type")) if isinstance(about, dict) else None


def _units(spans: Iterable[Any]) -> Iterator[Unit]:
    for span in spans:
        if not _is_span(span):
            yield Unit(None, span)
            continue
        told = {key: opened_all(value) for key, value in span.items()}
        yield from (unit._replace(item=span) for unit in units(_run(told)))
        scores = told.get("scores")
        for name, value in scores.items() if isinstance(scores, dict) else ():
            if value is not None:
                feedback = {"key": name, "score": value, "run_id": told["span_id"], "trace_id": told["root_span_id"]}
                yield from (unit._replace(item=feedback) for unit in units(feedback))


def _run(span: dict[str, Any]) -> dict[str, Any]:
    """The span as a run of LangSmith has it."""
    metrics, metadata = obj(span, "metrics"), dict(obj(span, "metadata"))
    parents = span.get("span_parents")
    parent = parents[0] if isinstance(parents, list) and parents else text(parents)
    model = metadata.pop("model", None)
    usage = {name: metrics[key] for name, key in _COUNTS.items() if metrics.get(key) is not None}
    for group, names in _DETAILS.items():
        told = {name: metrics[key] for name, key in names.items() if metrics.get(key) is not None}
        if told:
            usage[group] = told
    extra = {
        "metadata": {
            **metadata,
            **({"ls_model_name": model} if model else {}),
            **({"usage_metadata": usage} if usage else {}),
        },
        **{key: value for key, value in span.items() if key not in _HELD},
    }
    error = span.get("error")
    return {
        "id": span["span_id"], "trace_id": span["root_span_id"], "parent_run_id": parent,
        "name": obj(span, "span_attributes").get("name"), "run_type": _TYPES.get(str(_type(span)), "chain"),
        "start_time": metrics.get("start", span.get("created")), "end_time": metrics.get("end"),
        "inputs": span.get("input"), "outputs": span.get("output"), "extra": extra,
        "error": error if isinstance(error, str) or error is None else str(obj(span, "error").get("message", error)),
        "total_cost": metrics.get("estimated_cost"),
    }  # fmt: skip


_COUNTS = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
_DETAILS = {
    "input_token_details": {"cache_read": "prompt_cached_tokens", "cache_creation": "prompt_cache_creation_tokens"},
    "output_token_details": {"reasoning": "completion_reasoning_tokens"},
}
"""Group of details → its counts, each with the metric that holds it; all are parts of prompt or completion."""
