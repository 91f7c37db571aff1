"""Formats whose records are JSON objects that each stand alone: what their adapters have in common, once."""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec

from etl.adapter import Adapter, FileContext, Sample
from etl.conversation import Conversation, Outcome, Record, Unusable


class ClaimAdapter(Adapter):
    """An adapter that tells its files by what each record looks like."""

    scores_share = True

    @abc.abstractmethod
    def claim(self, value: dict[str, Any]) -> float:
        """How sure it is, 0 to 1, that one record is of its format."""

    def score(self, sample: Sample) -> float:
        """The mean claim over the records of the sample."""
        if not sample.values:
            return 0.0
        return sum(map(self.claim, sample.objects())) / len(sample.values)


class RecordAdapter(ClaimAdapter):
    """An adapter that reads a file record by record as well."""

    expects: ClassVar[str]
    """What a record of the format is, in one line: the message of the reject where one is no object."""

    @abc.abstractmethod
    def read(self, record: Record, value: dict[str, Any]) -> Iterable[Outcome]:
        """What one record, whose value is `value`, holds."""

    def lines_apart(self, sample: Sample) -> bool:
        """Where nothing is counted over the file, and a record is one row, named by all of it."""
        return type(self).parse is RecordAdapter.parse and not self.splits

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """Record by record; what is no JSON object is rejected."""
        for record in records:
            if isinstance(record.value, dict):
                yield from self.read(record, record.value)
            else:
                yield Unusable(record, "not_an_object", f"{self.expects}; this is none")


def numbered(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """Numbers the attempts of each group in the order of the file, where the log does not."""
    seen = Counter[str]()
    for outcome in outcomes:
        if isinstance(outcome, Conversation) and outcome.group is not None and outcome.sample_index is None:
            outcome.sample_index = seen[outcome.group]
            seen[outcome.group] += 1
        yield outcome


def part(record: Record, value: Any) -> Record:
    """One of several conversations that a record holds, as a record of its own."""
    return Record(value, msgspec.json.encode(value), record.line, record.offset, record.notes, record.mended)


def left(value: dict[str, Any], held: Iterable[str]) -> dict[str, Any] | None:
    """What of a record no column holds, for `extra`: nulls say nothing.

    >>> left({"id": 1, "lang": "en", "note": None}, {"id"})
    {'lang': 'en'}
    """
    taken = frozenset(held)
    return {key: item for key, item in value.items() if key not in taken and item is not None} or None
