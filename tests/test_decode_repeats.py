"""A decoder of records gives what decoding each alone gives, whatever it shares between them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from unittest.mock import patch

import numpy  # noqa: F401  (quotes are counted with it where it is loaded)
from hypothesis import given
from hypothesis import strategies as st

from etl.decode import Decoded, JsonError, RecordDecoder, decode

_LONG = "x" * 4_100
_MEMBERS = [
    text.replace("LONG", _LONG)
    for text in (
        '[{"name": "LONG", "n": 1}]',
        '[{"name": "LONG", "n": 2}]',
        '[{"name": "LONG", "n": 1, "n": 2}]',
        '{"a": ' + '{"b": ["LONG", ' * 30 + "1" + "]}" * 30 + "}",
        "[" * 401 + '"LONG"' + "]" * 401,
        '[NaN, "LONG"]',
        '["LONG\\ud800"]',
        '["\\u0022LONG"]',
        '"LONG"',
    )
]


def _decoded(by: Callable[[bytes], Decoded], raw: bytes) -> str:
    try:
        return repr(by(raw))
    except JsonError as error:
        return str(error)


def _by(decoder: RecordDecoder, raw: bytes) -> Decoded:
    """As the decoder has it, where it takes the text for plain."""
    try:
        return Decoded(decoder.plain(raw))
    except (ValueError, RecursionError):
        return decode(raw)


@given(st.lists(st.tuples(st.sampled_from(["tools", "messages"]), st.sampled_from(_MEMBERS)), max_size=100))
def test_what_is_shared_is_what_would_have_been_decoded(records: list[tuple[str, str]]) -> None:
    decoder = RecordDecoder()
    for name, member in records:
        raw = f'{{"id": 1, "{name}": {member}}}'.encode()
        expected = _decoded(decode, raw)
        assert _decoded(lambda text: _by(decoder, text), raw) == expected
        with patch.dict(sys.modules):
            del sys.modules["numpy"]  # without Arrow nobody has loaded it
            assert _decoded(decode, raw) == expected


_FORMS = [
    '{"id": 1, "tools": MEMBER}',
    '{"tools": MEMBER, "id": 1}',
    '{"tools": MEMBER, "messages": MEMBER}',
    '{"id": {"tools": MEMBER}, "tools": 1}',
    '{"tools": 1, "id": {"tools": MEMBER}}',
    '{"tools": MEMBER, "id": {"tools": MEMBER}}',
    '{"tools": MEMBER, "tools": MEMBER}',
    '{"tools": MEMBER, "tools": 2}',
    '{"tools": MEMBER2}',
    '{"tools": MEMBER, "id": 1, "id": 2}',
    '{"tools": MEMBER, "id": ["\\"tools\\": "]}',
    '{"id": 1, "tools":MEMBER}',
]


@given(st.lists(st.tuples(st.sampled_from(_FORMS), st.sampled_from(_MEMBERS)), max_size=40))
def test_a_member_that_is_known_is_taken_out_only_where_it_is_one(records: list[tuple[str, str]]) -> None:
    decoder = RecordDecoder()
    for form, member in [(_FORMS[0], _MEMBERS[0]), (_FORMS[0], _MEMBERS[0]), *records]:
        raw = form.replace("MEMBER", member).encode()
        assert _decoded(lambda text: _by(decoder, text), raw) == _decoded(decode, raw)


def test_a_member_that_is_known_is_not_decoded_again() -> None:
    decoder = RecordDecoder()
    records = [json.dumps({"id": number, "tools": [_LONG]}).encode() for number in range(3)]
    first, again = decoder.plain(records[0]), decoder.plain(records[1])
    with patch("etl.decode._members", None):
        third = decoder.plain(records[2])
    assert third == {"id": 2, "tools": [_LONG]}
    assert first["tools"] is again["tools"] is third["tools"]


def test_a_member_that_never_repeats_is_not_kept() -> None:
    decoder = RecordDecoder()
    for number in range(200):
        raw = json.dumps({"messages": [number, _LONG], "tools": [number % 20, _LONG]}).encode()
        assert decoder.plain(raw) == decode(raw).value
    kept = {name: len(repeats.values) for name, repeats in decoder._repeats.items()}
    assert kept == {"messages": 0, "tools": 20}


def test_where_nothing_repeats_records_are_decoded_whole() -> None:
    decoder = RecordDecoder()
    for number in range(200):
        raw = json.dumps({"messages": [number, _LONG], "rest": str(number) + _LONG}).encode()
        assert decoder.plain(raw) == decode(raw).value
    with patch("etl.decode._members", None):
        assert decoder.plain(raw) == decode(raw).value
