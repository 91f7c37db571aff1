"""Near duplicates: MinHash over word trigrams, candidates by locality-sensitive hashing, greedily thinned out.

Which of two alike texts stays does not depend on the order in which they were read, only on the order of their keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rensa import RMinHash, RMinHashLSH

SHINGLE = 3
"""Words of a shingle."""
_PERMUTATIONS = 128
_BANDS = {0.9: 8, 0.7: 16, 0.5: 32, 0.0: 64}
"""Least similarity → bands of the index: more bands find pairs that are less alike."""
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Words in lower case, without punctuation.

    >>> words("Don't panic, Zoë!")
    ['don', 't', 'panic', 'zoë']
    """
    return _WORD.findall(text.casefold())


class NearDuplicates:
    """Finds pairs of texts whose trigrams have at least this Jaccard similarity (as MinHash estimates it)."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        bands = next(count for least, count in _BANDS.items() if threshold >= least)
        self._index = RMinHashLSH(threshold, _PERMUTATIONS, bands)
        self._keys: list[str] = []
        self._hashes: list[RMinHash] = []
        self._seen: set[str] = set()
        self._pairs: list[tuple[int, int]] = []

    def add(self, key: str, text: str) -> None:
        """A text under a key; a key that is known already is the same text."""
        if key in self._seen:
            return
        self._seen.add(key)
        found = words(text)
        shingles = [" ".join(found[at : at + SHINGLE]) for at in range(max(1, len(found) - SHINGLE + 1))]
        made = RMinHash(_PERMUTATIONS, 42)
        made.update(shingles)
        number = len(self._keys)
        for other in self._index.query(made):
            if made.jaccard(self._hashes[other]) >= self._threshold:
                self._pairs.append((other, number))
        self._index.insert(number, made)
        self._keys.append(key)
        self._hashes.append(made)

    def surplus(self, order: Mapping[str, str]) -> set[str]:
        """Keys to leave out so that no two that stay are alike: in this order, each stays unless one like it does.

        Keys without an order were left out before, and stand in nobody's way.
        """
        alike: dict[str, set[str]] = {}
        for one, other in self._pairs:
            alike.setdefault(self._keys[one], set()).add(self._keys[other])
            alike.setdefault(self._keys[other], set()).add(self._keys[one])
        return _thinned(sorted((key for key in alike if key in order), key=lambda key: (order[key], key)), alike)


def _thinned(keys: Iterable[str], alike: Mapping[str, set[str]]) -> set[str]:
    kept: set[str] = set()
    surplus: set[str] = set()
    for key in keys:
        if alike[key].isdisjoint(kept):
            kept.add(key)
        else:
            surplus.add(key)
    return surplus
