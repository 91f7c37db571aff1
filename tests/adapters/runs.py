"""Runs for tests, as Langfuse and LangSmith export them, and their rows through a real ingest."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from etl import ingest
from etl.adapter import adapter_named
from tests.contract import harness
from tests.lakes import NOW, REPO, rows

SAMPLES = REPO / "sample_logs"


def at(seconds: float, minute: int = 0) -> str:
    """A time on the morning of 1 May."""
    return f"2026-05-01T08:{minute:02d}:{seconds:06.3f}Z"


def observation(sort: str, start: float, end: float, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    """An observation of Langfuse; `input` and `output` become JSON text."""
    made: dict[str, Any] = {"traceId": "t1", "type": sort, "startTime": at(start), "endTime": at(end)}
    made |= {"parentObservationId": parent, "level": "DEFAULT", "name": sort.lower(), **fields}
    for side in ("input", "output", "metadata"):
        if side in made and not isinstance(made[side], str):
            made[side] = json.dumps(made[side])
    return made


def run(sort: str, own: str, start: float, end: float, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    """A run of LangSmith in the trace `t1`."""
    made: dict[str, Any] = {"id": own, "trace_id": "t1", "parent_run_id": parent, "run_type": sort, "name": own}
    return {**made, "start_time": at(start), "end_time": at(end), "inputs": {}, "outputs": {}, **fields}


def read(format: str, records: Iterable[Any]) -> list[dict[str, Any]]:
    """The rows of records of that format, by when they began, without a lake."""
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    reading = harness.read(data, adapter_named(format))
    assert not reading.rejects
    return _in_order(reading.rows)


def ingested(tmp_path: Path, records: Iterable[Any]) -> list[dict[str, Any]]:
    """The same through a lake, the format told by content."""
    report = ingest([_write(tmp_path / "runs.jsonl", records)], lake=tmp_path / "lake", now=NOW, strict=True).to_json()
    assert report["files"]["failed"] == 0
    return _in_order(rows(tmp_path / "lake"))


def _in_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: (str(row["started_at"]), row["rollout_id"]))


def talk(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Who said what."""
    return [(message["role"], message["content"]) for message in row["messages"]]


def extra(row: dict[str, Any], index: int) -> dict[str, Any]:
    """What is kept beside a message."""
    told = row["message_info"][index]["extra"]
    return json.loads(told) if told else {}


def sample_records(name: str, apart: Callable[[Any], Sequence[Any]]) -> list[Any]:
    """Every record of the samples of a format, batches and pages taken apart."""
    found: list[Any] = []
    for path in sorted((SAMPLES / name).iterdir()):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".csv":
            found += [dict(row) for row in csv.DictReader(text.splitlines(keepends=True))]
        elif path.suffix == ".jsonl":
            found += [json.loads(line) for line in text.splitlines() if line.endswith("}")]
        elif path.suffix == ".json":
            value = json.loads(text)
            found += value if isinstance(value, list) else [value]
    return [part for record in found for part in apart(record)]


def shuffled(tmp_path: Path, records: Sequence[Any], format: str) -> tuple[list[Any], list[Any]]:
    """What rows say of records in one file, and of the same (some twice) over 20 files and 3 nights."""
    one, many = tmp_path / "one", tmp_path / "many"
    _write(tmp_path / "all.jsonl", records)
    ingest([tmp_path / "all.jsonl"], lake=one, now=NOW, source="runs", format=format, strict=True)
    dealt = [*records, *records[::5]]
    random.Random(11).shuffle(dealt)
    for night in range(3):
        files = [_write(tmp_path / f"night{night}" / f"{n}.jsonl", dealt[n::20]) for n in range(20) if n % 3 == night]
        ingest(files, lake=many, now=NOW, source="runs", format=format, strict=True)
    return _said(one), _said(many)


def _write(path: Path, records: Iterable[Any]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def _said(lake: Path) -> list[Any]:
    places = ("source_uri", "source_line", "source_offset", "batch_id", "ingested_at")
    return [{name: value for name, value in row.items() if name not in places} for row in rows(lake)]
