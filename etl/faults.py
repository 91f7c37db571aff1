"""What is wrong with a settings file, as people read it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

UNKNOWN, MISSING, WRONG = "unknown", "missing", "wrong"
"""What may be wrong: a key that no table has, one that is not there, and a value that cannot be."""


class Fault(NamedTuple):
    """One thing that is wrong."""

    kind: str
    place: tuple[int | str, ...]
    """The keys and numbers that lead to it."""
    message: str = ""


def said(faults: Sequence[Fault], tables: Mapping[str, Sequence[str]]) -> str:
    """All that is wrong, in one line: unknown keys first, since others then seem to be missing.

    `tables` are those of the file with their keys; that of the file itself has no name.
    """
    return "; ".join(_said(*fault, tables) for fault in sorted(faults, key=lambda fault: fault.kind != UNKNOWN))


def _said(kind: str, place: tuple[int | str, ...], message: str, tables: Mapping[str, Sequence[str]]) -> str:
    *table, key = place or ("",)
    inside = f"{'.'.join(str(part) for part in table)}: " if table else ""
    if kind == UNKNOWN:
        return f"{inside}unknown key `{key}`{_meant(str(key), table, tables)}"
    if kind == MISSING:
        return f"{inside}`{key}` is missing"
    where = ".".join(str(part) for part in place)
    return f"{where}: {message}" if where else message


def _meant(key: str, table: Sequence[int | str], tables: Mapping[str, Sequence[str]]) -> str:
    """What was meant by an unknown key: a key of another table, or one that is spelt nearly so."""
    here = ".".join(part for part in table if isinstance(part, str))
    if at := [name for name, keys in tables.items() if key in keys and name != here]:
        return f", it is a key of {f'[{at[0]}]' if at[0] else 'the file itself, above all tables'}"
    alike = difflib.get_close_matches(key, tables.get(here, ()), n=1)
    return f", did you mean `{alike[0]}`?" if alike else f"; there are: {', '.join(tables.get(here, ()))}"
