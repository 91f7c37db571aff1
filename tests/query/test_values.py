"""Values as JSON, CSV and text: exact, and harmless on a terminal."""

import csv
import datetime as dt
import decimal
import io
import json
import math
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.values import cell, csv_line, json_text, plain

UTC = dt.UTC
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals(allow_nan=False)
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**80, 2**80),
        (0.1, 0.1),
        (math.nan, None),
        (-math.inf, None),
        (decimal.Decimal("1.50"), 1.5),
        (decimal.Decimal("0.12345678901234567890123"), "0.12345678901234567890123"),
        (dt.datetime(2026, 1, 2, 3, 4, 5, 6, UTC), "2026-01-02T03:04:05.000006Z"),
        (dt.datetime(2026, 1, 2, 3, 0, tzinfo=dt.timezone(dt.timedelta(hours=2))), "2026-01-02T01:00:00Z"),
        (dt.datetime(2026, 1, 2, 3), "2026-01-02T03:00:00"),  # noqa: DTZ001  a time without zone is the case
        (dt.date(2026, 1, 2), "2026-01-02"),
        (dt.time(1, 2), "01:02:00"),
        (b"a\xff", "a\\xff"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"a": (1, {"b": b"x"})}, {"a": [1, {"b": "x"}]}),
    ],
)
def test_plain(value, expected):
    assert plain(value) == expected


@given(VALUES)
def test_whatever_comes_is_valid_json(value):
    json.loads(json_text(value), parse_constant=pytest.fail)


@given(st.lists(st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_csv_reads_back_and_keeps_null_apart_from_empty(values):
    line = csv_line(tuple(values))
    (row,) = csv.reader(io.StringIO(line, newline=""))
    cells = [cell.removeprefix("'") if cell[1:2] in tuple("=+-@\t\r＝＋－＠") else cell for cell in row]
    assert [value or "" for value in values] in (row, cells) or (values == [None] and row == [])
    if values == [""]:
        assert line == '""\n'
    if values == [None]:
        assert line == "\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "true"), ("", ""), ({"a": None}, '{"a":null}'), (math.nan, "nan"), (1.0, "1.0")],
)
def test_cell(value, text):
    assert cell(value) == text
