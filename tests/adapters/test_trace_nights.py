"""Phoenix and MLflow: the same records over many files and nights give the rows of one file."""

from __future__ import annotations

import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import pytest

from etl import ingest
from tests.lakes import NOW, REPO, rows, said

SAMPLES = REPO / "sample_logs"
FILES, NIGHTS = 20, 3


def _lines(path: Path) -> list[dict[str, Any]]:
    made = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            made.append(json.loads(line))
        except ValueError:
            continue
    return made


def _phoenix() -> list[dict[str, Any]]:
    """Spans and annotations of two exports, each a record."""
    return [*_lines(SAMPLES / "phoenix" / "night.jsonl"), *_lines(SAMPLES / "phoenix" / "frame.jsonl")]


def _mlflow() -> list[dict[str, Any]]:
    """What traces say of themselves, each of their spans, and assessments: as many records as there can be."""
    made: list[dict[str, Any]] = []
    for name in ("traces.jsonl", "assessments.jsonl"):
        for value in _lines(SAMPLES / "mlflow" / name):
            if "info" in value:
                made.append({"info": value["info"], "data": {"spans": []}})
                made += [{"spans": [span]} for span in value["data"]["spans"]]
            else:
                made.append(value)
    return made


@pytest.mark.parametrize("given", [_phoenix, _mlflow], ids=["phoenix", "mlflow"])
def test_records_shuffled_over_files_and_nights_give_the_rows_of_one_file(given: Any, tmp_path: Path) -> None:
    records = given()
    one = tmp_path / "one.jsonl"
    one.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    ingest([one], lake=tmp_path / "whole", now=NOW, strict=True)
    shuffled = [*records, *records[:3]]
    random.Random(7).shuffle(shuffled)
    lake = tmp_path / "nights"
    for number in range(FILES):
        night = number % NIGHTS
        folder = tmp_path / f"night{night}"
        folder.mkdir(exist_ok=True)
        part = shuffled[number::FILES]
        (folder / f"{number:02}.jsonl").write_text("".join(json.dumps(item) + "\n" for item in part), encoding="utf-8")
    for night in range(NIGHTS):
        ingest([tmp_path / f"night{night}"], lake=lake, now=NOW + dt.timedelta(days=night), strict=True)
    assert rows(lake)
    assert said(lake) == said(tmp_path / "whole")
