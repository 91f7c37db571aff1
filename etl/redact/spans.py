"""Places in a text that a rule wants masked, and how the masked text is made from them.

A span is an offer of one rule; offers that overlap are joined, so that the order in which rules run never matters.
What replaces a span is its label. Labels of equal rules are equal; personal values have pseudonyms, so that equal
values still are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

LABEL = re.compile(
    r"<(?:SECRET_[a-z0-9_]+|(?:EMAIL|PHONE|CARD|IBAN|NATIONAL_ID|IP|PERSON|ADDRESS)_[0-9a-f]{8}|NAME_[0-9a-f]{12})>"
)
"""Everything `label`, `pseudonym` and `name_label` can return; no rule may match it."""


class Span(NamedTuple):
    """`text[start:end]` is secret, says a rule. `rank` is how much its name is worth where spans overlap."""

    start: int
    end: int
    rule: str
    rank: int = 0
    put: str = ""
    """What stands in its place; empty for the label of its rule."""

    def overlaps(self, other: Span) -> bool:
        """Whether both have a character in common."""
        return self.start < other.end and other.start < self.end


class Masked(NamedTuple):
    """A text without its secrets, and how often each rule replaced something."""

    text: str
    counts: Counter[str]


def label(rule: str) -> str:
    """What stands in place of a value: plain ASCII that needs no escape in JSON, shells, SQL or URLs.

    >>> label("aws_access_token")
    '<SECRET_aws_access_token>'
    """
    return f"<SECRET_{rule}>"


def pseudonym(kind: str, mark: str) -> str:
    """What stands in place of a value that has a name of its own; `mark` is hexadecimal and as good as unique.

    >>> pseudonym("email", "7f3a9c21d0")
    '<EMAIL_7f3a9c21>'
    """
    return f"<{kind.upper()}_{mark[:8]}>"


def name_label(mark: str) -> str:
    """What tells the names of two files apart that are the same once they are redacted; `mark` is as for `pseudonym`.

    >>> name_label("7f3a9c21d0b4e6aa")
    '<NAME_7f3a9c21d0b4>'
    """
    return f"<NAME_{mark[:12]}>"


def merge(spans: Iterable[Span]) -> list[Span]:
    """Disjoint spans in text order; each group of overlapping ones becomes one, named by the best of them.

    The best is the one of the highest rank, then the longest, then the first by name: never the first to be found.

    >>> merge([Span(4, 9, "token"), Span(0, 6, "password", 1), Span(20, 30, "jwt")])
    [Span(start=0, end=9, rule='password', rank=1, put=''), Span(start=20, end=30, rule='jwt', rank=0, put='')]
    """
    merged: list[Span] = []
    group: list[Span] = []
    end = -1
    for span in sorted(spans):
        if group and span.start >= end:
            merged.append(_joined(group, end))
            group = []
            end = -1
        group.append(span)
        end = max(end, span.end)
    if group:
        merged.append(_joined(group, end))
    return merged


def _joined(group: list[Span], end: int) -> Span:
    best = min(group, key=lambda span: (-span.rank, span.start - span.end, span.rule))
    return Span(group[0].start, end, best.rule, best.rank, best.put)


def mask(text: str, spans: Iterable[Span]) -> Masked:
    """The text with every span replaced by the label of its rule.

    >>> mask("pin 1234!", [Span(4, 8, "pin")])
    Masked(text='pin <SECRET_pin>!', counts=Counter({'pin': 1}))
    """
    pieces: list[str] = []
    counts: Counter[str] = Counter()
    done = 0
    for span in merge(spans):
        pieces += (text[done : span.start], span.put or label(span.rule))
        counts[span.rule] += 1
        done = span.end
    pieces.append(text[done:])
    return Masked("".join(pieces), counts)
