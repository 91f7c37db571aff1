"""A row's name is made of what was said: equal records of one file stay apart, other content under an equal id too."""

from __future__ import annotations

import json
from typing import Any

from etl.adapter import FileContext
from etl.conversation import Conversation
from tests.contract.harness import SampleLog, every_sample, read, whole


def _local(sample: SampleLog) -> list[bytes]:
    """The records that are a conversation each, under an id that is unique in its file at best."""
    outcomes = sample.adapter.parse(iter(whole(sample).records), FileContext("/logs/a.json"))
    return [
        json.dumps(outcome.records[0].value, ensure_ascii=False).encode()
        for outcome in outcomes
        if isinstance(outcome, Conversation) and outcome.native_id is None and len(outcome.records) == 1
    ]


def _otherwise(value: Any) -> Any:
    """The same record, its ids untouched, with everything said in it said otherwise."""
    if isinstance(value, list):
        return [_otherwise(item) for item in value]
    if isinstance(value, dict):
        return {
            key: item + " (otherwise)" if key in ("content", "text") and isinstance(item, str) else _otherwise(item)
            for key, item in value.items()
        }
    return value


@every_sample
def test_equal_local_ids_stay_two(sample: SampleLog) -> None:
    for raw in _local(sample):
        other = json.dumps(_otherwise(json.loads(raw)), ensure_ascii=False).encode()
        if other != raw:
            both = read(raw + b"\n" + other + b"\n", sample.adapter)
            assert len(set(both.keys())) == 2
            assert set(read(other + b"\n", sample.adapter).keys()) < set(both.keys())


@every_sample
def test_equal_records_are_attempts_of_their_own(sample: SampleLog) -> None:
    for raw in _local(sample):
        twice = read(raw + b"\n" + raw + b"\n", sample.adapter)
        assert len(set(twice.keys())) == 2
        assert len({row["content_hash"] for row in twice.rows}) == 1


@every_sample
def test_where_a_file_lies_names_nothing(sample: SampleLog) -> None:
    data = sample.data()
    here, there = (read(data, sample.adapter, uri) for uri in ("/logs/a.json", "/else/where/b.jsonl"))
    assert here.keys() == there.keys()
    assert here.said() == there.said()
