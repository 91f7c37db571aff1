"""LangSmith: runs and feedback into conversations.

Exports of runs (JSON, JSON Lines, bulk exports as Parquet with JSON as text), what the SDK sends (`post` and `patch` of
one run, merged by its id), trees with `child_runs`, and feedback. The key is the trace; traces of one thread are put
together as one family, and one that goes on where an earlier one ended continues its row. `_langsmith_forms.py` reads
the records, `_langchain.py` LangChain's messages, `_runs.py` makes the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._langsmith_forms import units, what
from etl.adapters._run_fragments import fragments
from etl.adapters._runs import rows_of
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable

_SURE = {"run": 0.95, "feedback": 0.9, "holder": 0.95, "parts": 0.95}


class LangSmith(Adapter):
    """Runs with their inputs and outputs, and feedback."""

    name = "langsmith"
    version = 5
    about = "LangSmith runs and feedback: run exports, bulk exports as Parquet, post and patch of the SDK"
    scores_share = True
    spans_files = True
    splits = True
    ignores: ClassVar[dict[str, str]] = {
        "empty_page": "a page or batch without runs or feedback",
        "not_told": "a run of a trace without model, agent or tool, or feedback on a run that has not arrived",
    }

    def score(self, sample: Sample) -> float:
        """Sure of runs and feedback; the share of the values that are one."""
        if not sample.values:
            return 0.0
        return sum(_SURE.get(what(value) or "", 0.0) for value in sample.values) / len(sample.values)

    def lines_apart(self, sample: Sample) -> bool:
        """Nothing is kept from one record to the next."""
        return True

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for every run and feedback."""
        for record in records:
            yield from fragments(record, units(record.value), "langsmith", "no run or feedback of LangSmith")

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation | Unusable | Ignored]:
        """The rows of one family of traces."""
        yield from rows_of(family)
