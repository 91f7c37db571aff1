"""The contract tests themselves: an adapter that breaks the contract is caught."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from etl.adapter import Adapter, FileContext, Sample
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Unusable
from tests.contract.harness import check_row, read

LINES = b'{"say": "a"}\n{"say": "b"}\n{"say": "c"}\n'


class _Toy(Adapter):
    name = "toy"
    about = "one text a line"

    def score(self, sample: Sample) -> float:
        return 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        for record in records:
            yield Conversation([Message("user", record.value["say"])], [record])


class _Drops(_Toy):
    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        yield from list(super().parse(records, file))[1:]


class _CountsTwice(_Toy):
    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        for conversation in super().parse(records, file):
            assert isinstance(conversation, Conversation)
            yield conversation
            yield Unusable(conversation.records[0], "twice", "also rejected")


class _IgnoresByNoRule(_Toy):
    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        yield Ignored("whim", sum(1 for _ in records))


class _MakesRecordsUp(_Toy):
    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        for _ in records:
            yield Conversation([Message("user", "x")], [Record({}, b"{}")])


def test_a_sound_adapter_passes() -> None:
    reading = read(LINES, _Toy())
    assert [row["prompt"] for row in reading.rows] == ["a", "b", "c"]
    for row in reading.rows:
        check_row(row)


@pytest.mark.parametrize(
    ("adapter", "fault"),
    [
        (_Drops(), "dropped"),
        (_CountsTwice(), "both used and unusable"),
        (_IgnoresByNoRule(), "not in its `ignores`"),
        (_MakesRecordsUp(), "was not given"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Adapter) else "",
)
def test_a_faulty_adapter_is_caught(adapter: Adapter, fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        read(LINES, adapter)


def test_an_exception_comes_out() -> None:
    with pytest.raises(KeyError):
        read(b'{"other": 1}\n', _Toy())


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("message_info", []),
        ("n_steps", 1),
        ("flags", ["b", "a"]),
        ("extra", "[]"),
        ("prompt_len", 7),
        ("status", "fine"),
        ("reward", "high"),
    ],
)
def test_an_unsound_row_is_caught(column: str, value: Any) -> None:
    (row, *_) = read(LINES, _Toy()).rows
    with pytest.raises((AssertionError, ValueError)):
        check_row({**row, column: value})
