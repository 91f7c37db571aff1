"""Valid rows of every table, made from the few values that a test is about."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from etl.lake import Lake, RowCounts, StagedFile, StagingWriter
from etl.lake.log import NewFile, commit, snapshot
from etl.lake.place import Place
from etl.redact import Redacted, Redactor
from etl.schema import arrow_schema

EPOCH = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


def rollout(rollout_id: str, **values: Any) -> dict[str, Any]:
    """One rollout of one exchange; every column can be given."""
    messages = [{"role": "user", "content": f"ask {rollout_id}"}, {"role": "assistant", "content": "done"}]
    row: dict[str, Any] = {
        "rollout_id": rollout_id,
        "origin": "traffic",
        "adapter": "openai_messages",
        "conversation_id": f"c-{rollout_id}",
        "prompt": f"ask {rollout_id}",
        "messages": messages,
        "message_info": [{"inherited": False, "synthetic": False} for _ in values.get("messages", messages)],
        "prompt_len": 1,
        "steps": [],
        "final_text": "done",
        "status": "completed",
        "judgments": [],
        "model": "demo",
        "started_at": EPOCH,
        "ended_at": EPOCH,
        "n_turns": 1,
        "n_steps": 0,
        "flags": [],
        "n_records": 2,
        "content_hash": f"content-{rollout_id}",
        "row_hash": f"hash-{rollout_id}",
        "source_uri": "/logs/a.jsonl",
        "source_line": 1,
        "source_offset": 0,
        "adapter_version": 1,
        "schema_version": "rollout.v1",
        "batch_id": "b",
        "ingested_at": EPOCH,
        "source": "support",
        "day": "2026-03-01",
    }
    return row | values


def reject(reject_id: str, **values: Any) -> dict[str, Any]:
    """One reject."""
    row: dict[str, Any] = {
        "reject_id": reject_id,
        "source": "support",
        "source_uri": "/logs/a.jsonl",
        "source_line": 3,
        "source_offset": 77,
        "length": 5,
        "reason": "bad_json",
        "message": "line 3 is no JSON",
        "raw": b"{oops",
        "batch_id": "b",
        "ingested_at": EPOCH,
    }
    return row | values


def source_file(uri: str, **values: Any) -> dict[str, Any]:
    """One file that was read."""
    row: dict[str, Any] = {
        "source": "support",
        "uri": uri,
        "size": 100,
        "modified_at": EPOCH,
        "sha256": "00" * 32,
        "adapter": "openai_messages",
        "adapter_version": 1,
        "state": "done",
        "records_in": 5,
        "records_used": 3,
        "rows": 1,
        "rejects": 1,
        "ignored": json.dumps({"blank": 1}),
        "batch_id": "b",
        "ingested_at": EPOCH,
    }
    return row | values


def event(record_key: str, **values: Any) -> dict[str, Any]:
    """One stored event."""
    row: dict[str, Any] = {
        "source": "traces",
        "day": "2026-03-01",
        "conversation_key": "trace-1",
        "record_key": record_key,
        "at": EPOCH,
        "adapter": "otlp",
        "payload": json.dumps({"span": record_key}),
        "source_uri": "/logs/spans.jsonl",
        "source_line": 1,
        "source_offset": 0,
        "batch_id": "b",
    }
    return row | values


def redacted(table: str, rows: Iterable[Mapping[str, Any]]) -> Redacted:
    """The rows as a table of the one schema, past redaction."""
    data = pa.Table.from_pylist(list(rows), schema=arrow_schema(table))
    return Redactor("none").table(table, data)


def stage(lake: Lake, batch_id: str, table: str, *groups: Iterable[Mapping[str, Any]]) -> list[StagedFile]:
    """Stages each group of rows with a writer of its own; the batch must be open."""
    staged: list[StagedFile] = []
    for group in groups:
        writer = StagingWriter(lake.root, batch_id, table)
        writer.write(redacted(table, group))
        staged += writer.close()
    return staged


def put(lake: Lake, *groups: Iterable[Mapping[str, Any]], **options: Any) -> RowCounts:
    """Commits rollouts in a batch of their own."""
    batch_id = f"b-{uuid4()}"
    with lake.batch(batch_id):
        return lake.commit_rollouts(stage(lake, batch_id, "rollouts", *groups), **options)


def rows_of(lake: Lake, table: str = "rollouts") -> list[dict[str, Any]]:
    """Every live row."""
    tables = [pq.ParquetFile(file.path).read() for file in lake.live(table)]
    return [row for data in tables for row in data.to_pylist()]


def smuggle(lake: Lake, table: str, rows: pa.Table, folder: str, partition: dict[str, str]) -> None:
    """Adds a file to the log without any look at its rows."""
    place = Place(lake.root)
    name = f"{uuid4()}.parquet"
    path = place.data_file(table, f"{folder}/{name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)
    new = NewFile(f"{folder}/{name}", partition, rows.num_rows, path.stat().st_size)
    commit(place, snapshot(place, table), [new], [], info={}, now_ms=0)
