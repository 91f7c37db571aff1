"""What an export did: the content of `export.json`, from which it can be repeated exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any, NamedTuple

import duckdb

from etl.exports.reasons import DROPS, REPAIRS
from etl.exports.request import Request
from etl.exports.target import File
from etl.schema import SCHEMA_VERSION


class ExportReport(NamedTuple):
    """Counts of rows, by what became of them. `selected = used + the sum of dropped`."""

    target: str
    folder: str
    lake: str
    lake_version: int
    """Version of the Delta table `rollouts` that was read."""
    request: Request
    in_lake: int
    selected: int
    used: int
    """Rows that are in the files: for a pair two."""
    simulated: int
    """Of these."""
    records: int
    dropped: dict[str, int]
    repaired: dict[str, int]
    splits: dict[str, dict[str, int]]
    """Split → records, tasks and files."""
    bands: list[dict[str, Any]]
    """Tasks in the files by pass rate, with the number of scored attempts behind it."""
    files: list[File]

    def to_json(self) -> dict[str, Any]:
        """As in `export.json`. Holds no time and no place of its own, so that the same export gives the same bytes."""
        return {
            "target": self.target,
            "written_by": f"rollout-etl {metadata.version('rollout-etl')}",
            "schema_version": SCHEMA_VERSION,
            "lake": self.lake,
            "lake_version": self.lake_version,
            "sql": f"SELECT * FROM rollouts WHERE {self.request.where or 'true'}",
            "options": {name: value for name, value in self.request._asdict().items() if value not in (None, ())},
            "rows": {
                "in_lake": self.in_lake,
                "selected": self.selected,
                "used": self.used,
                "simulated": self.simulated,
                "dropped": self.dropped,
                "repaired": self.repaired,
            },
            "records": self.records,
            "splits": self.splits,
            "difficulty": self.bands,
            "files": [file._asdict() for file in self.files],
        }


def dropped(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Reason → rows of the table `plan`, in the order of the rules."""
    counts = dict(
        connection.execute("SELECT reason, count(*) FROM plan WHERE reason IS NOT NULL GROUP BY reason").fetchall()
    )
    return {reason: counts[reason] for reason in DROPS if reason in counts}


def in_order(repairs: Mapping[str, int]) -> dict[str, int]:
    """Repairs in the order of the rules."""
    return {name: repairs[name] for name in REPAIRS if repairs.get(name)}


def split_counts(connection: duckdb.DuckDBPyConnection, files: Sequence[File]) -> dict[str, dict[str, int]]:
    """Records, distinct tasks and files of every split."""
    found = connection.execute(
        """SELECT split, count(*), count(DISTINCT split_key) FROM arranged JOIN plan USING (unit)
           WHERE reason IS NULL AND side = 0 GROUP BY split ORDER BY split"""
    ).fetchall()
    return {
        split: {"records": records, "tasks": tasks, "files": sum(file.split == split for file in files)}
        for split, records, tasks in found
    }


def difficulty(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Bands of pass rate among the tasks of the files: tasks and scored attempts."""
    found = connection.execute(
        """
        SELECT CASE WHEN passed = 0 THEN 'none passed' WHEN passed = n THEN 'all passed'
            WHEN passed < n / 3 THEN 'up to a third' WHEN passed < 2 * n / 3 THEN 'up to two thirds'
            ELSE 'most passed' END AS band, count(*), sum(n)::BIGINT
        FROM tallies WHERE n > 0 AND task_key IN (SELECT task_key FROM plan WHERE reason IS NULL)
        GROUP BY band ORDER BY min(passed / n), band
        """
    ).fetchall()
    return [{"band": band, "tasks": tasks, "attempts": attempts} for band, tasks, attempts in found]
