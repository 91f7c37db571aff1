"""A second look at suspicious texts before any rule is asked: what one sees in the whole of a column is not enough.

The signs of rules are words that any program has. What a rule asks of their neighbourhood costs too much to be sought
in all that is read, but little in what has a sign: the views of these texts are joined, and Hyperscan reads them once
for all that any `Closer` of a kind asks. Where it is not there, the signs alone decide.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np

from etl.redact.families import Closer, Kind, Shown
from etl.redact.sieve import Sieve
from etl.redact.texts import BETWEEN, Texts


class Suspect(NamedTuple):
    """A text that may hold something."""

    sought: frozenset[str]
    """The kinds of secrets and the families of personal data that may be in it."""
    data: bytes
    """What its view shows."""


class Closely:
    """What the kinds ask of texts that have their signs. Cheap to make, as a `Sieve` is."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = frozenset(name for name, kind in kinds.items() if kind.closer)
        asked: list[tuple[str, Closer]] = [(name, each) for name, kind in kinds.items() for each in kind.closer]
        self._names = [name for name, _ in asked]
        self._holds = [closer.holds for _, closer in asked]
        self._sieve = Sieve({str(number): closer.pattern for number, (_, closer) in enumerate(asked)})

    def kept(self, texts: Texts, found: Mapping[int, frozenset[str]]) -> dict[int, Suspect]:
        """By place, the kinds that are still worth asking, of those whose signs are there."""
        if not found:
            return {}
        places = list(found)
        data, starts = texts.shown(places)
        held = self._held(places, found, data, starts) if self._sieve.one_pass else found
        return {
            place: Suspect(frozenset(held[place]), data[start : stop - BETWEEN])
            for place, (start, stop) in zip(places, itertools.pairwise(starts), strict=True)
            if held[place]
        }

    def _held(
        self, places: Sequence[int], found: Mapping[int, frozenset[str]], data: bytes, starts: Sequence[int]
    ) -> Mapping[int, Set[str]]:
        hits = self._sieve.hits(data)
        indices = (np.searchsorted(starts, [end - 1 for _, end in hits], "right") - 1).tolist() if hits else []
        ends: defaultdict[int, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for (number, end), index in zip(hits, indices, strict=True):
            if self._names[number] in found[places[index]]:
                ends[index][number].append(end - starts[index])
        left = {place: set(names - self._kinds) for place, names in found.items()}
        for index, by_number in ends.items():
            shown, names = Shown(data[starts[index] : starts[index + 1] - BETWEEN]), left[places[index]]
            for number, each in by_number.items():
                name, holds = self._names[number], self._holds[number]
                if name not in names and (holds is None or holds(shown, each)):
                    names.add(name)
        return left
