"""How names of people are written."""

from __future__ import annotations

import re

_CODES = (*range(0x41, 0x250), *range(0x370, 0x530), *range(0x1E00, 0x1F00))
"""Latin, Greek, Cyrillic, and the letters of Vietnamese."""
UPPER = "".join(char for char in map(chr, _CODES) if char.isupper())
LOWER = "".join(char for char in map(chr, _CODES) if char.islower())
LETTER = UPPER + LOWER

PARTICLES = frozenset(
    {
        "af", "al", "av", "ben", "bin", "bint", "d'", "da", "das", "de", "de'", "dei", "del", "della", "den", "der",
        "di", "do", "dos", "du", "e", "el", "i", "ibn", "la", "las", "le", "los", "ten", "ter", "van", "vande", "ver",
        "von", "vom", "y", "zu", "zum", "zur",
    }
)  # fmt: skip
"""Words in lower case within names."""
OF_NAMES = frozenset(
    {"af", "ben", "bin", "bint", "della", "den", "der", "di", "dos", "ibn", "ten", "ter", "van", "vom", "von", "zu"}
)
"""Those that stand nowhere but in names."""

_PIECE = rf"(?:(?:Mc|Mac|De|Di|Du|La|Le|Van|Von|Fitz)(?=[{UPPER}][{LOWER}]))?[{UPPER}](?:['’][{UPPER}])?[{LOWER}]+"
_PART = rf"{_PIECE}(?:[-'’]{_PIECE})*"
_PARTICLE = rf"(?:{'|'.join(sorted(PARTICLES, key=len, reverse=True))})"
_GAP = "[ \u00a0]"
_NEXT = rf"{_GAP}(?:{_PARTICLE}{_GAP}){{0,3}}(?:{_PART}(?!\w)|[{UPPER}](?:\.|(?={_GAP})))"
_END = r"(?![\w@\\/=]|[.:]\w|::)"

NAME = re.compile(rf"{_PART}(?!\w)(?:{_NEXT}){{0,5}}")
"""A name where one is expected: one word or more."""
RUN = re.compile(rf"(?<![\w./\\@#$%&+-])(?<!\w['’]){_PART}(?!\w)(?:{_NEXT}){{1,7}}{_END}")
"""Capitalised words in a row, two or more."""
CAPITAL = re.compile(rf"(?<=[ \n\"'(>:=,])[{UPPER}]")
"""Where a name may begin that something stands before."""
WORD = re.compile(r"(?=[^\d_]*\Z)\w['’]?\w*\.?(?:[ \u00a0'’-]{1,2}\w+\.?){0,5}")
"""What a field for names may hold: letters of any script, no digits."""
_CAPITAL = r"[A-Z\x{80}-\x{10ffff}]"
SIFT = rf"{_CAPITAL}[^ \n\x{{a0}}]*[ \x{{a0}}](?:[^ \n\x{{a0}}]+[ \x{{a0}}]){{0,4}}{_CAPITAL}"
"""What two words of a run match in a padded column (RE2)."""
