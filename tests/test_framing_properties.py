"""Framing, whatever the bytes: places are true, block borders change nothing, nothing is lost, nothing raises."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from etl.framing import Broken, Framed, frame
from tests.contract.harness import SampleLog, every_sample

_SAID = st.fixed_dictionaries({"role": st.just("user"), "content": st.text(max_size=20)})
_LEAF = st.none() | st.booleans() | st.floats(allow_nan=False)
RECORD = st.fixed_dictionaries(
    {"id": st.integers() | st.text(max_size=8)},
    optional={
        "messages": st.lists(_SAID, max_size=3),
        "nested": st.recursive(_LEAF, lambda inner: st.lists(inner, max_size=3)),
        "data": st.sampled_from(['{"a": [', '}{"b": 1}', "\u2028", "\\", '"', "]", "\u0000"]),
    },
)
DEBRIS = st.sampled_from([b"", b"garbage", b'{"torn": [1, {"x": "y', b"<PLACEHOLDER>", b"\x00\x00", b"   ", b"[", b"}"])


def _blocks(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(places)]


def _summary(framed: list[Framed]) -> list[tuple[Any, ...]]:
    return [
        (item.reason, item.raw, item.line, item.offset)
        if isinstance(item, Broken)
        else (item.value, item.line, item.offset)
        for item in framed
    ]


@given(st.lists(RECORD, min_size=1, max_size=6), st.sampled_from([None, 2]), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_every_layout_gives_the_same_records(records: list[dict[str, Any]], indent: int | None, between: str) -> None:
    one_by_one = between.join(json.dumps(record, indent=indent) for record in records)
    for text in (one_by_one, one_by_one + between, "\ufeff" + one_by_one, json.dumps(records, indent=indent)):
        framed = list(frame(iter([text.encode()])))
        assert [item.value for item in framed if not isinstance(item, Broken)] == records
        assert len(framed) == len(records)


@given(
    st.lists(RECORD, max_size=4),
    st.lists(DEBRIS, max_size=4),
    st.lists(st.integers(0, 10_000), max_size=6),
    st.randoms(),
)
def test_block_borders_change_nothing(records: list[Any], debris: list[bytes], cuts: list[int], order: Any) -> None:
    lines = [json.dumps(record).encode() for record in records] + debris
    order.shuffle(lines)
    data = b"\n".join(lines)
    whole = list(frame(iter([data])))
    assert _summary(list(frame(iter(_blocks(data, cuts))))) == _summary(whole)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    for item in frame(iter([data])):
        assert item.offset is not None
        assert 0 <= item.offset <= len(data)


@every_sample
def test_places_are_true(sample: SampleLog) -> None:
    data = sample.data()
    end = 0
    for item in frame(iter([data])):
        assert item.offset is not None
        assert data[item.offset : item.offset + len(item.raw)] == item.raw
        assert item.line == data[: item.offset].count(b"\n") + 1
        assert not data[end : item.offset].strip(b" \t\r\n\x00,[]\xef\xbb\xbf"), "bytes between records belong to none"
        end = item.offset + len(item.raw)
    assert not data[end:].strip(b" \t\r\n\x00,[]")


@every_sample
def test_small_blocks_give_the_same_records(sample: SampleLog) -> None:
    data = sample.data()[:20_000]
    at_once = _summary(list(frame(iter([data]))))
    for size in (1, 7, 4096):
        small = frame(data[start : start + size] for start in range(0, len(data), size))
        assert _summary(list(small)) == at_once, f"blocks of {size}"
