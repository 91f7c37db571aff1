"""Whatever the text: masking never raises, changes nothing twice, and leaves JSON what it was."""

from __future__ import annotations

import itertools
import json
import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from etl.redact import Redactor
from etl.redact.escapes import View
from etl.redact.search import Window, _spans, masked_texts
from etl.redact.spans import LABEL, Span, mask, merge
from tests.redact.fragments import TOKEN, documents, shape, texts

REDACTOR = Redactor()


@given(texts)
def test_masking_twice_is_masking_once(text: str) -> None:
    once, counts = REDACTOR.text(text)
    assert REDACTOR.text(once) == (once, {})
    assert bool(counts) == (once != text)


@given(texts)
def test_tokens_never_stay(text: str) -> None:
    masked, _ = REDACTOR.text(f"{text} {TOKEN} {text}")
    assert TOKEN not in masked


@given(documents, st.booleans())
def test_json_keeps_its_shape(document: object, ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only)
    masked, _ = REDACTOR.text(text)
    assert shape(json.loads(masked)) == shape(document)


@given(st.lists(texts, max_size=12))
def test_sifting_a_column_finds_what_looking_at_every_text_finds(column: list[str]) -> None:
    found = masked_texts(pa.chunked_array([pa.array(column, pa.string())]))
    for text in column:
        closely = list(_spans(Window(text, 0, text)))
        assert bool(closely) == (text in found)


@given(texts.filter(lambda text: "\\" in text))
def test_a_view_knows_the_way_back(text: str) -> None:
    view = View(text)
    ends = [view.raw_at(position) for position in range(len(view.text) + 1)]
    assert ends[0] == 0
    assert ends[-1] == len(text)
    assert ends == sorted(set(ends))
    for position, (start, end) in enumerate(itertools.pairwise(ends)):
        first, last = view.raw_span(position, position + 1)
        assert first <= start < end <= last


@given(st.binary(max_size=40), texts)
def test_bytes_of_any_kind(noise: bytes, text: str) -> None:
    raw = noise + text.encode() + f' "api_token": "{TOKEN}"'.encode() + noise
    masked, counts = REDACTOR.text(raw.decode("latin-1"))
    assert TOKEN not in masked
    assert counts


@given(st.text(alphabet=st.characters(), max_size=20))
def test_lone_surrogates_stay(text: str) -> None:
    masked, counts = REDACTOR.text(f"{text}\ud800 password: {TOKEN}")
    assert masked.startswith(f"{text}\ud800 password: <SECRET_")
    assert sum(counts.values()) == 1


spans = st.builds(
    lambda start, length, rule, rank: Span(start, start + length, rule, rank),
    st.integers(0, 30),
    st.integers(1, 9),
    st.sampled_from(["a", "b", "c"]),
    st.integers(0, 2),
)


@given(st.lists(spans, max_size=8), st.randoms())
def test_the_order_of_rules_does_not_matter(offers: list[Span], order: random.Random) -> None:
    shuffled = offers[:]
    order.shuffle(shuffled)
    merged = merge(offers)
    assert merge(shuffled) == merged
    assert all(before.end <= after.start for before, after in itertools.pairwise(merged))
    covered = {position for span in offers for position in range(span.start, span.end)}
    assert {position for span in merged for position in range(span.start, span.end)} == covered
    text = "x" * 40
    assert len(LABEL.findall(mask(text, offers).text)) == len(merged)
