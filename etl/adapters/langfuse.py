"""Langfuse: traces, observations and scores, in every shape in which they leave it, into conversations.

The API's and the UI's JSON (a trace with its observations, which the UI holds twice; pages of observations), blob
storage and batch exports as JSON, JSON Lines, CSV and Parquet, where traces, observations and scores lie in files of
their own, and batches of the ingestion API. The key is the trace; traces of one session are put together as one family,
and one that goes on where an earlier one ended continues its row. `_langfuse_forms.py` reads the records, `_runs.py`
makes the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._langfuse_forms import units, what
from etl.adapters._run_fragments import fragments
from etl.adapters._runs import rows_of
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable

_SURE = {"observation": 0.95, "score": 0.9, "trace": 0.9, "event": 0.95, "readings": 0.9}


class Langfuse(Adapter):
    """Traces with observations and scores."""

    name = "langfuse"
    version = 6
    about = "Langfuse traces, observations and scores: API and UI JSON, blob storage and batch exports, CSV, Parquet"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "empty_page": "a page or batch without traces, observations or scores",
        "not_told": "a span of a trace without model, agent or tool, or a score of a trace that has not arrived",
    }

    def score(self, sample: Sample) -> float:
        """Sure of observations, scores and traces; the share of the values that are one."""
        if not sample.values:
            return 0.0
        return sum(_claim(value) for value in sample.values) / len(sample.values)

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every observation, score and trace."""
        for record in records:
            yield from fragments(record, units(record.value), "langfuse", "no observation, trace or score of Langfuse")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of one family of traces."""
        yield from rows_of(family)


def _claim(value: Any) -> float:
    """How sure one value is of this format."""
    kind = what(value)
    if kind == "holder":
        inner = value.get("trace") if isinstance(value.get("trace"), dict) else None
        if inner is not None:
            return 1.0
        held = [
            items
            for key in ("data", "batch", "traces", "observations", "scores")
            if isinstance(items := value.get(key), list)
        ]
        return max((_claim(item) for items in held for item in items[:3]), default=0.0)
    return _SURE.get(kind, 0.0) if kind is not None else 0.0
