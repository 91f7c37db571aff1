"""Intervals of rates: a share is never told without them and its n."""

from __future__ import annotations

import math
from typing import NamedTuple

Z95 = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""


class Rate(NamedTuple):
    """`k` of `n`, with its 95 % Wilson interval (Wilson 1927): [0, 1] where n is 0."""

    k: int
    n: int

    @property
    def value(self) -> float | None:
        """The share; None where n is 0."""
        return self.k / self.n if self.n else None

    @property
    def low(self) -> float:
        """Lower bound.

        >>> round(Rate(5, 10).low, 4), round(Rate(5, 10).high, 4)
        (0.2366, 0.7634)
        """
        return max(0.0, self._middle - self._half) if self.n else 0.0

    @property
    def high(self) -> float:
        """Upper bound."""
        return min(1.0, self._middle + self._half) if self.n else 1.0

    @property
    def _middle(self) -> float:
        return (self.k + Z95**2 / 2) / (self.n + Z95**2)

    @property
    def _half(self) -> float:
        return Z95 / (self.n + Z95**2) * math.sqrt(self.k * (self.n - self.k) / self.n + Z95**2 / 4)

    def __str__(self) -> str:
        """As people read it.

        >>> str(Rate(3, 200))
        '1.5 % [0.5, 4.3] of 200'
        """
        if self.value is None:
            return "none of 0"
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}] of {self.n:,}"
