"""OTLP as protobuf says what its JSON says, in every layout; what is cut off or none is told of with its place."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl import ingest
from etl.adapter import FileContext, Sample
from etl.adapters._otlp_protobuf import layout
from etl.adapters.otlp import Otlp
from etl.conversation import Fragment, Ignored, Record
from etl.framing import Broken, Framed, Limits
from tests.adapters.traces import asks, batch, chat, gives, log, logs, parsed, text, tool, write_lines
from tests.adapters.wire import part, request, varint
from tests.lakes import NOW, rows, said

HI = text("user", "Hi")
LOOK = asks("k", "look", x=1)
BATCHES = [
    batch(
        [
            chat(2, 1, 2, [HI], [LOOK]),
            tool(3, 2, 3, "look", call_id="k", result={"a": [1, 2.5, True, None]}, error="no"),
        ]
    ),
    logs([log(9, 1, "gen_ai.user.message", {"content": ["é", {"b": -7}]}, gen_ai__system="demo")]),
    batch([chat(4, 4, 5, [HI, LOOK, gives("k", "found")], [text("assistant", "Here.")])], service="other"),
]
LAYOUTS = {
    "plain": b"".join(request(value) for value in BATCHES),
    "prefixed": b"".join(struct.pack(">I", len(request(value))) + request(value) for value in BATCHES),
    "delimited": b"".join(varint(len(request(value))) + request(value) for value in BATCHES),
}


def _framed(data: bytes, block: int = 97, **limits: int) -> list[Framed]:
    return list(Otlp().records((data[at : at + block] for at in range(0, len(data), block)), Limits(**limits)))


@pytest.mark.parametrize("how", LAYOUTS)
def test_protobuf_says_what_json_says(how: str, tmp_path: Path) -> None:
    data = LAYOUTS[how]
    assert layout(data) == how
    assert Otlp().score(Sample("/logs/a.pb", data, [])) > 0.9
    records = [item for item in _framed(data) if isinstance(item, Record)]
    forms = [made.payload for made in Otlp().parse(records, FileContext("/a")) if isinstance(made, Fragment)]
    assert forms == [made.payload for made in parsed(*BATCHES) if isinstance(made, Fragment)]
    offsets = [record.offset or 0 for record in records]
    assert offsets == sorted(set(offsets))
    (tmp_path / "a.pb").write_bytes(data)
    ingest([tmp_path / "a.pb"], lake=tmp_path / "one", now=NOW, strict=True)
    ingest([write_lines(tmp_path / "a.jsonl", BATCHES)], lake=tmp_path / "two", now=NOW, strict=True)
    assert said(tmp_path / "one") == said(tmp_path / "two")
    assert len(rows(tmp_path / "one")) == 2


@pytest.mark.parametrize("how", LAYOUTS)
def test_a_file_that_is_cut_off_ends_in_a_torn_tail(how: str) -> None:
    data = LAYOUTS[how]
    whole = [record.raw for record in _framed(data) if isinstance(record, Record)]
    for end in range(1, len(data), 13):
        if layout(data[:end]) is None:
            continue
        *before, last = _framed(data[:end], block=1_000)
        assert [record.raw for record in before if isinstance(record, Record)] == whole[: len(before)]
        assert isinstance(last, Record) or last.tail


def test_what_is_no_span_inside_costs_its_group_alone() -> None:
    bad = part(
        1,
        part(1, part(1, part(1, "service.name")))
        + part(2, part(2, part(1, b"\x00" * 16) + part(2, b"\x00" * 8 + b"\x01"))),
    )
    worse = part(1, part(2, part(2, part(1, b"\x01" * 16) + part(2, b"\x02" * 8) + part(9, b"\xff\xff"))))
    data = request(BATCHES[0]) + worse + request(BATCHES[2])
    good, broken, also_good = _framed(data)
    assert isinstance(good, Record)
    assert isinstance(also_good, Record)
    assert isinstance(broken, Broken)
    assert (broken.reason, broken.offset, broken.raw) == ("bad_message", len(request(BATCHES[0])), worse)
    (again,) = _framed(broken.raw)
    assert isinstance(again, Broken)
    (metrics,) = _framed(bad)
    assert isinstance(metrics, Record)
    (outcome,) = Otlp().parse([metrics], FileContext("/a"))
    assert isinstance(outcome, Ignored)


def test_a_group_beyond_the_limit_is_told_of_unread() -> None:
    (broken,) = _framed(request(BATCHES[0]), record_bytes=100)
    assert isinstance(broken, Broken)
    assert (broken.reason, broken.length > 100, len(broken.raw) <= 1024) == ("too_long", True, True)


@given(st.binary(max_size=60), st.integers(0, 400))
def test_no_bytes_raise(junk: bytes, place: int) -> None:
    data = LAYOUTS["plain"]
    at = min(place, len(data))
    for spoiled in (junk, data[:at] + junk + data[at:], data[:at] + junk + data[at + len(junk) :]):
        records = [item for item in _framed(spoiled) if isinstance(item, Record)]
        assert len(list(Otlp().parse(records, FileContext("/a")))) >= len(records)


def test_text_is_not_taken_for_protobuf() -> None:
    for head in ("\n\n{}", '\n{"resourceSpans": []}', "[1]", "", "\n", "plain text\n", "\x00\x00\x00\x05hello"):
        assert layout(head.encode()) is None
    for size in itertools.chain(range(40), range(100, 130)):
        assert layout(b"\n" + b"x" * size) is None
