"""MLflow traces: `Trace.to_json` lines, artifact files of spans, rows of `search_traces`, with their assessments.

One trace is one record. Its spans are put together like those of any trace (`_otlp_rows.py`), traces of one session
(`mlflow.trace.session`) as one conversation; a trace of which only request and response are there speaks with these.
`_mlflow_records.py` reads the forms of several versions, `_mlflow_values.py` the attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._mlflow_records import claim, forms
from etl.adapters._otlp_parts import note
from etl.adapters._otlp_stored import assembled
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Unusable


class Mlflow(Adapter):
    """Traces and assessments of MLflow."""

    name = "mlflow"
    version = 6
    about = "MLflow traces: JSON, artifact files, search_traces data frames; assessments"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "empty_page": "a page of an export without traces",
        "no_conversation": "a trace without a model, an agent or a request that is one (a bare function)",
        "nothing_assessed": "an assessment of a trace that no row tells of (yet): kept in `events`",
    }

    def score(self, sample: Sample) -> float:
        """Sure of traces with MLflow's own names."""
        return sum(map(claim, sample.values)) / len(sample.values) if sample.values else 0.0

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every trace, and for every assessment that stands alone."""
        for record in records:
            found = forms(record.value)
            for form in found:
                yield _fragment(record, form)
            if not found:
                held = record.value.get("traces") if isinstance(record.value, dict) else None
                if held == []:
                    yield Ignored("empty_page")
                else:
                    yield Unusable(record, "not_a_trace", "no trace and no assessment of MLflow; see what wrote it")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of one family; traces that speak of no conversation are ignored by name."""
        yield from assembled(family, "no_conversation", "nothing_assessed")


def _fragment(record: Record, form: dict[str, Any]) -> Fragment:
    note(record, form)
    if form["signal"] == "annotation":
        return Fragment(record, form["id"], form["id"], None, form)
    session, trace = form.pop("session", None), form["trace"]
    return Fragment(record, session or trace, trace, form.get("start"), form, aliases=(trace,) if session else ())
