"""What adapters of session files share: names, order, notes; and that pieces of a file in any order are the whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.adapters._session import Naming, in_order, noted, sessions, stored, summed
from etl.conversation import Fragment, Message, Record, StoredEvent, Tokens
from etl.times import instant
from tests.cases.reading import read_in
from tests.lakes import said


def _records(values: list[Any]) -> list[Record]:
    return [Record(value, repr(value).encode(), number + 1, number * 10) for number, value in enumerate(values)]


def _event(fragment: Fragment) -> StoredEvent:
    record = fragment.record
    payload = record.value if fragment.payload is None else fragment.payload
    kept = Record(payload, record.raw, record.line, record.offset)
    return StoredEvent(fragment.key, kept, fragment.link, instant(fragment.at).micros)


@given(st.lists(st.sampled_from(["yes", "no", "go on"]), min_size=1, max_size=12))
def test_equal_records_without_a_time_stay_as_many_as_they_are(texts: list[str]) -> None:
    naming = Naming()
    records = _records([{"text": text} for text in texts])
    fragments = [*naming.begin("s"), *(each for record in records for each in naming.take(record))]
    events = [_event(fragment) for fragment in fragments]
    assert len({str(event.record.value) for event in events}) == len(events)
    assert [stored(event)["text"] for event in sessions(events)["s"]] == texts


def test_a_name_is_waited_for_and_else_made_of_the_first_record() -> None:
    naming = Naming()
    first, second = _records([{"n": 1}, {"n": 2}])
    assert list(naming.take(first)) == []
    assert [fragment.key for fragment in naming.begin("s")] == ["s"]
    assert [fragment.key for fragment in naming.take(second)] == ["s"]
    unnamed, longer = Naming(), Naming()
    assert list(unnamed.take(first)) == list(longer.take(first)) == list(longer.take(second)) == []
    names = {fragment.key for fragment in [*unnamed.end(), *longer.end()]}
    assert len(names) == 1


@given(st.permutations(range(6)))
def test_places_order_the_records_of_one_file(order: list[int]) -> None:
    records = _records([{"n": number} for number in range(6)])
    events = [StoredEvent("s", records[number], at=5) for number in order]
    assert [event.record.value["n"] for event in in_order(events)] == list(range(6))


def test_notes_leave_what_the_log_says_as_it_is() -> None:
    logged = [1]
    message = Message("user", extra={"notes": logged})
    noted(message, "notes", 2)
    noted(message, "notes", 3)
    assert (message.extra, logged) == ({"notes": [1, 2, 3]}, [1])


@given(st.lists(st.builds(Tokens, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=6))
def test_a_sum_of_counts_knows_what_any_of_them_knows(counts: list[Tokens]) -> None:
    found = summed(counts)
    read = [tokens.input_tokens for tokens in counts if tokens.input_tokens is not None]
    assert (None if found is None else found.input_tokens) == (sum(read) if read else None)


@pytest.mark.parametrize(
    "sample",
    [
        "codex/lamp.jsonl",
        *(pytest.param(sample, marks=pytest.mark.slow) for sample in ("gemini_cli/rye.jsonl", "pi/sail.jsonl")),
    ],
)
def test_a_session_in_parts_over_nights_is_the_session(sample: str, samples: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    source = samples / sample
    read_in(whole, source)
    lines = source.read_bytes().splitlines(keepends=True)
    grown = tmp_path / f"grown{source.suffix}"
    for end in (*sorted(random.Random(len(lines)).sample(range(1, len(lines)), 2)), len(lines)):
        grown.write_bytes(b"".join(lines[:end]))
        read_in(parts, grown)
    assert said(parts) == said(whole)
