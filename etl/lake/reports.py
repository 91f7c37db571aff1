"""The reports of runs, which lie beside the tables."""

from __future__ import annotations

from etl.lake.batch import Batch
from etl.lake.errors import one_line
from etl.lake.place import Place


def write_report(place: Place, batch: Batch, text: str) -> None:
    """Keeps what a batch did, as JSON."""
    with one_line(f"write a report to {place.root}"):
        place.write_report(batch.id, text, batch.folder)


def read_reports(place: Place, newest: int = 500) -> list[str]:
    """The reports of the newest runs, as JSON, oldest first."""
    with one_line(f"read the reports of {place.root}"):
        return place.read_reports(newest)
