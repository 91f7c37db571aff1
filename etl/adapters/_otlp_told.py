"""Which of many calls that gave the same answer to the same history tells of the same response as another one.

A trace can hold the same run thousands of times, so a call is not compared with every other: responses are found by
their id, spans by their times in a tree over all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etl.adapters._otlp_threads import Call

_NEVER = -1
_EVER = 1 << 80


class Told:
    """Calls that gave one answer to one history, in order of time, and which of them are placed."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._number = {id(call): number for number, call in enumerate(calls)}
        self._by_id: dict[str, list[Call]] = {}
        """Response id → the first placed call, and the first one of another span."""
        self._named = _Times(calls)
        self._nameless = _Times(calls)

    def place(self, call: Call) -> None:
        """This call is placed from now on."""
        number, response = self._number[id(call)], call.facts.response_id
        if response is None:
            self._nameless.add(number)
            return
        self._named.add(number)
        first = {id(each.span): each for each in sorted([*self._by_id.get(response, ()), call], key=self._order)[::-1]}
        self._by_id[response] = sorted(first.values(), key=self._order)[:2]

    def _order(self, call: Call) -> int:
        return self._number[id(call)]

    def same(self, call: Call) -> Call | None:
        """The first placed call of another span that tells of the same response: the same id, or, where one has none,
        a time within the other's.
        """
        response = call.facts.response_id
        found = [self._nameless.first(call)]
        if response is None:
            found.append(self._named.first(call))
        else:
            found += [other for other in self._by_id.get(response, ()) if other.span is not call.span]
        return min((other for other in found if other is not None), key=self._order, default=None)


class _Times:
    """The times of calls; of each span only the first call that was added."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._starts: list[int] = []
        """Of all calls; those without a time come last, and never lie within another."""
        self._size = 1 << max(len(calls) - 1, 0).bit_length()
        self._latest: list[int] = []
        self._earliest: list[int] = []
        """The last and first end of those added, at [1] of all, at [2n] and [2n + 1] of the halves of what [n] has."""
        self._of_span: dict[int, int] = {}

    def add(self, number: int) -> None:
        """Take in a call, by its number."""
        span = self._calls[number].span
        if span.start is None or span.end is None:
            return
        if not self._starts:
            self._starts = [call.span.at()[0] for call in self._calls]
            self._latest, self._earliest = [_NEVER] * (2 * self._size), [_EVER] * (2 * self._size)
        known = self._of_span.get(id(span))
        if known is not None and known < number:
            return
        if known is not None:
            self._put(known, _NEVER, _EVER)
        self._of_span[id(span)] = number
        self._put(number, span.end, span.end)

    def _put(self, number: int, latest: int, earliest: int) -> None:
        place = self._size + number
        self._latest[place], self._earliest[place] = latest, earliest
        while place > 1:
            place //= 2
            self._latest[place] = max(self._latest[2 * place], self._latest[2 * place + 1])
            self._earliest[place] = min(self._earliest[2 * place], self._earliest[2 * place + 1])

    def first(self, call: Call) -> Call | None:
        """The first one of another span whose time the call's lies in, or that lies in the call's."""
        span = call.span
        if span.start is None or span.end is None or not self._of_span:
            return None
        own = self._of_span.get(id(span), -1)
        around, within = bisect_right(self._starts, span.start), bisect_left(self._starts, span.start)
        found = self._search(0, around, span.end, None)
        if found == own:
            found = self._search(own + 1, around, span.end, None)
        inner = self._search(within, self._size, None, span.end)
        if inner == own:
            inner = self._search(own + 1, self._size, None, span.end)
        numbers = [number for number in (found, inner) if number is not None]
        return self._calls[min(numbers)] if numbers else None

    def _search(self, low: int, high: int, ends_from: int | None, ends_by: int | None) -> int | None:
        """The first number from `low` to before `high` whose time ends no earlier than `ends_from`, or no later than
        `ends_by`.
        """
        waiting = [(1, 0, self._size)]
        while waiting:
            place, start, end = waiting.pop()
            if end <= low or start >= high:
                continue
            if ends_from is not None and self._latest[place] < ends_from:
                continue
            if ends_by is not None and self._earliest[place] > ends_by:
                continue
            if end - start == 1:
                return start
            middle = (start + end) // 2
            waiting += [(2 * place + 1, middle, end), (2 * place, start, middle)]
        return None
