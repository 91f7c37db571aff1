"""What pages read: one locked connection, opened anew when an ingest or a label has changed the lake."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from etl.errors import EtlError, LakeError
from etl.lake import Lake
from etl.locked import time_limit
from etl.pages.facts import Rows, ask
from etl.query import connect
from etl.remote import is_remote
from etl.schema import TABLES

T = TypeVar("T")

SECONDS = 15.0
"""How long the queries of one page may take."""
KEPT_SECONDS = 120.0
"""How long what is remembered afterwards may take."""
MEMORY = "4GB"
"""What DuckDB may hold for all pages."""


class TooSlowError(EtlError):
    """A page took longer than it may."""


class Store:
    """A lake, for many requests at a time."""

    def __init__(self, lake: str) -> None:
        self.lake = lake
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] = ()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._kept: dict[str, Any] = {}

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """The answer to a query of ours."""
        return self.read(functools.partial(ask, sql=sql, values=values))

    def read(self, reading: Callable[[duckdb.DuckDBPyConnection], T], *, seconds: float = SECONDS) -> T:
        """What `reading` makes of a cursor; once more where an ingest replaced a file meanwhile."""
        for last_try in (False, True):
            cursor = self._fresh().cursor()
            try:
                with time_limit(cursor, seconds):
                    return reading(cursor)
            except duckdb.InterruptException as error:
                said = f"no answer within {seconds:g} seconds; narrow it down by source, day or model"
                raise TooSlowError(said) from error
            except (duckdb.IOException, LakeError) as error:
                if last_try:
                    raise LakeError(" ".join(str(error).split())) from error
                self._forget()
        raise AssertionError

    def kept(self, name: str, reading: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """The same, remembered until the lake changes: for what reads all of it."""
        self._fresh()
        if name not in self._kept:
            self._kept[name] = self.read(reading, seconds=KEPT_SECONDS)
        kept: T = self._kept[name]
        return kept

    def _fresh(self) -> duckdb.DuckDBPyConnection:
        """The connection, of the lake as it is now."""
        with self._lock:
            now = tuple(self._changed(table) for table in TABLES)
            if self._connection is None or now != self._seen:
                self._connection = connect(self.lake, locked=True, memory_limit=MEMORY, spilling=False)
                self._seen, self._kept = now, {}
            return self._connection

    def _changed(self, table: str) -> int:
        """Something that changes with every commit: quickly told on disk, asked of an object store."""
        if is_remote(self.lake):
            return Lake.open(self.lake, older=True).version(table)
        return (Path(self.lake) / table / "_delta_log").stat().st_mtime_ns

    def _forget(self) -> None:
        with self._lock:
            self._connection = None
