"""Counting equal records, few and many."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from etl.identity import Occurrences, record_name


@given(
    numbers=st.lists(st.integers(0, 60), max_size=300),
    before=st.dictionaries(st.integers(0, 60), st.integers(1, 5), max_size=8),
    few=st.integers(0, 40),
)
def test_each_record_gets_the_number_of_its_likes_before(numbers: list[int], before: dict[int, int], few: int) -> None:
    """However many names are kept whole."""
    names = {number: record_name(b"%d" % number) for number in range(61)}
    seen = Occurrences({names[number]: count for number, count in before.items()}, few)
    expected = Counter(before)
    for number in numbers:
        assert seen.take(names[number]) == expected[number]
        expected[number] += 1


def test_a_large_table_grows() -> None:
    """Nothing is lost when it does."""
    seen = Occurrences(few=100)
    names = [record_name(b"%d" % number) for number in range(5_000)]
    assert not any(map(seen.take, names))
    assert all(seen.take(name) == 1 for name in names)
