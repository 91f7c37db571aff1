"""What brings a lake of an older version to the present one: a file for each version, `v<number>_<what>.py`.

A lake has one version for all of its tables. It goes up by one whenever a table changes its columns or what they mean,
and then a file comes here with the name `MIGRATION`; nothing else is to be written down. (The `schema_version` of a row
is another thing: the shape of what the row says.) A lake of each past version is kept in `tests/lake/past/`.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = re.compile(r"(v(\d+)_\w+)\.py")


class Migration(NamedTuple):
    """From the version before."""

    about: str
    """What is new, in a few words."""
    tables: Mapping[str, Callable[[pa.Table], pa.Table]]
    """How the rows of a table change. A migration that was cut off begins anew, so rows that have changed already must
    come out as they are. Types are written out, not taken from `etl/schema.py`, which goes on changing.
    """


@functools.cache
def _modules() -> tuple[tuple[int, str], ...]:
    """The version that each module leads to, and its name, in order."""
    found = map(_NAME.fullmatch, os.listdir(__path__[0]))  # noqa: PTH208  (names alone)
    return tuple(sorted((int(match[2]), match[1]) for match in found if match))


def present_version() -> int:
    """The version of the lakes that this product writes."""
    return _modules()[-1][0]


def migrations(since: int) -> list[Migration]:
    """Those that lead from a version to the present one, in order."""
    return [importlib.import_module(f"{__name__}.{name}").MIGRATION for to, name in _modules() if to > since]


def changed_since(version: int) -> set[str]:
    """The tables whose rows have changed since that version."""
    return {table for migration in migrations(version) for table in migration.tables}


def brought_up(table: str, rows: pa.Table, since: int = 1) -> pa.Table:
    """Rows that a product of that version wrote, with the columns and meaning of now."""
    for migration in migrations(since):
        if (change := migration.tables.get(table)) is not None:
            rows = change(rows)
    return rows
