"""Asks that must not be written: those there are already, and those that are near copies of what traffic asked.

Traffic may be the test set, so nothing that was learnt from it may find its words in a simulated row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

import rensa

NEAR = 0.8
"""Jaccard similarity of word trigrams from which on two asks are copies of one another."""
_HASHES, _BANDS, _SEED = 128, 16, 42
_WORD = re.compile(r"\w+")


def trigrams(text: str) -> list[str]:
    """The word trigrams of a text; of a shorter one the words."""
    words = _WORD.findall(text.lower())
    return [" ".join(words[n : n + 3]) for n in range(len(words) - 2)] if len(words) > 2 else words


def minhash(text: str) -> rensa.RMinHash:
    """The MinHash of a text's trigrams."""
    made = rensa.RMinHash(_HASHES, _SEED)
    made.update(trigrams(text))
    return made


class Asked:
    """The asks there are, by digest, and those of traffic, by similarity too."""

    def __init__(self, traffic: Iterable[str] = ()) -> None:
        self._known: set[bytes] = set()
        self._near = rensa.RMinHashLSH(NEAR, _HASHES, _BANDS)
        self._hashes: list[rensa.RMinHash] = []
        self.repeated = 0
        """Asks that were drawn again because they were there already."""
        self.copies = 0
        """Asks that were drawn again because traffic had asked the like."""
        self._traffic: set[bytes] = set()
        for text in traffic:
            if text.strip():
                self._traffic.add(_digest(text))
                made = minhash(text)
                self._near.insert(len(self._hashes), made)
                self._hashes.append(made)

    def takes(self, ask: str) -> bool:
        """Whether an ask may be written; from then on it is there."""
        name = _digest(ask)
        if name in self._traffic or (self._hashes and self._is_near(ask)):
            self.copies += 1
            return False
        if name in self._known:
            self.repeated += 1
            return False
        self._known.add(name)
        return True

    def _is_near(self, ask: str) -> bool:
        made = minhash(ask)
        return any(made.jaccard(self._hashes[number]) >= NEAR for number in self._near.query(made))


def _digest(text: str) -> bytes:
    return blake2b(" ".join(text.lower().split()).encode("utf-8", "surrogatepass"), digest_size=10).digest()
