"""Which rules of redaction the rows of a data file went through, as the footer of the file says.

A version names rule sets and what they hang on: `secrets-3+kingfisher-secret-scanner-1.5.0+personal-2`. Files of
several runs are merged, so a file has one version or more. A file of a product that noted none has the empty one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.parquet as pq

from etl.lake.errors import one_line, reading
from etl.lake.parquet import open_parquet
from etl.schema import TABLES

if TYPE_CHECKING:
    from etl.lake.lake import Lake
    from etl.lake.log import LiveFile

_KEY = "etl.redaction"
_NOTHING = "none"
"""The version of rows that were written as they came, on purpose."""
_STRICTER = {"people": "strict", "personal": "pii"}
"""Rule sets that only a stricter policy than `secrets` has, the strictest first."""
FROM_MILD = ("none", "secrets", "pii", "strict")
"""Policies, each with all rules of those before it."""


class Seen(NamedTuple):
    """How much of a lake went through one version of the rules."""

    table: str
    version: str
    files: int
    rows: int
    """In files with these rows; where runs with other rules were merged with them, with theirs."""
    is_older: bool
    """Whether the present rules are others."""
    sources: tuple[str, ...]
    """Whose rows these are."""


def note_rules(writer: pq.ParquetWriter, versions: Iterable[str]) -> None:
    """Writes the versions into the footer of a file that is about to be closed."""
    writer.add_key_value_metadata({_KEY: json.dumps(sorted(set(versions)))})


def rules_of(path: str | Path) -> frozenset[str]:
    """The versions that the rows of a data file went through."""
    with open_parquet(path) as file:
        noted = (file.metadata.metadata or {}).get(_KEY.encode())
    return frozenset(json.loads(noted)) if noted else frozenset({""})


def covers(seen: str, wanted: str) -> bool:
    """Whether rows that went through some rules need not go through others.

    >>> covers("secrets-3+personal-2", "secrets-3"), covers("secrets-3", "secrets-3+personal-2")
    (True, False)
    """
    return {*wanted.split("+")} <= {*seen.split("+")}


def with_rules(seen: str, added: str) -> str:
    """The version of rows that went through further rules: of each set the later one.

    >>> with_rules("secrets-2+personal-2", "secrets-3")
    'secrets-3+personal-2'
    """
    sets = {_set_of(part): part for part in seen.split("+") if part not in ("", _NOTHING)}
    sets.update({_set_of(part): part for part in added.split("+")})
    return "+".join(sets.values())


def is_older(seen: str, present: Mapping[str, str]) -> bool:
    """Whether rows went through another version of a rule set than the present one (set → version)."""
    if seen == _NOTHING:
        return False
    return not seen or any(present.get(_set_of(part), part) != part for part in seen.split("+"))


def rules_in(lake: Lake, present: Iterable[str]) -> Iterator[Seen]:
    """What the rows of a lake went through; `present` are the versions of today's policies."""
    now = {_set_of(part): part for version in present for part in version.split("+")}
    for table in TABLES:
        for version, files in sorted(reading(partial(_versions, lake, table)).items()):
            sources = tuple(sorted({file.partition["source"] for file in files}))
            yield Seen(table, version, len(files), sum(file.rows for file in files), is_older(version, now), sources)


def policy_of(version: str) -> str:
    """The policy whose rules rows went through; `none` where nothing is known of it.

    >>> policy_of("secrets-3+personal-2"), policy_of("secrets-1"), policy_of("")
    ('pii', 'secrets', 'none')
    """
    if version in ("", _NOTHING):
        return "none"
    sets = {_set_of(part) for part in version.split("+")}
    return next((policy for name, policy in _STRICTER.items() if name in sets), "secrets")


def policies_in(lake: Lake, sources: Set[str] | None = None, *, most: int | None = None) -> dict[str, set[str]]:
    """Source → the policies that its rows went through; of so many files of each at most."""

    def found() -> dict[str, set[str]]:
        policies: dict[str, set[str]] = {}
        with one_line(f"read the tables of {lake.root}"):
            looked_at: Counter[str] = Counter()
            for file in (file for table in TABLES for file in lake.live(table)):
                source = file.partition["source"]
                looked_at[source] += 1
                if (sources is None or source in sources) and (most is None or looked_at[source] <= most):
                    policies.setdefault(source, set()).update(map(policy_of, rules_of(file.path)))
        return policies

    return reading(found)


def strictest(policies: Iterable[str]) -> str:
    """The policy that has the rules of all of these."""
    return max(policies, key=FROM_MILD.index, default=_NOTHING)


def _versions(lake: Lake, table: str) -> dict[str, list[LiveFile]]:
    """Version → the files that have it."""
    found: dict[str, list[LiveFile]] = {}
    with one_line(f"read the table {table} of {lake.root}"):
        for file in lake.live(table):
            for version in rules_of(file.path):
                found.setdefault(version, []).append(file)
    return found


def _set_of(part: str) -> str:
    """`secrets` of `secrets-3`."""
    return part.rpartition("-")[0]
