"""Conversations put together from memory: the rows are those of stored events, however wrong the guesses were."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import etl
from etl import ahead
from etl.conversation import StoredEvent
from etl.event_store import EventStore
from etl.families import Families, FamilyRows
from etl.schema import LINEAGE
from tests.bench.corpus import sessions, spans
from tests.lakes import make_many

SOURCES = {"otlp": 8, "claude_code": 6}
"""Conversations of each format in a corpus."""


def _lines(format: str) -> list[list[str]]:
    """Conversations as lines; those of a session that was resumed share a link with the next one."""
    made: list[list[str]] = []
    for trace in spans(3) if format == "otlp" else sessions(3):
        if format == "claude_code" and len(made) % 3 == 1:
            trace[0]["parentUuid"] = json.loads(made[-1][-1])["uuid"]
            copy = {**json.loads(made[-1][-1]), "sessionId": trace[0]["sessionId"]}
            trace = [copy, *trace]
        made.append([json.dumps(each) for each in trace])
        if len(made) == SOURCES[format]:
            return made
    return made


def _rows(lake: Path) -> list[dict[str, Any]]:
    rows = etl.scan(lake).collect().sort("rollout_id").to_dicts()
    return [{name: value for name, value in row.items() if name not in LINEAGE} for row in rows]


@pytest.fixture
def stored_only(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Counts the conversations that are put together from stored events."""
    asked: list[str] = []
    families = EventStore.families

    def counted(self: EventStore, source: str, adapter: str, touched: Any) -> Any:
        asked.extend(touched.keys)
        return families(self, source, adapter, touched)

    monkeypatch.setattr(EventStore, "families", counted)
    return asked


@pytest.mark.parametrize("format", sorted(SOURCES))
@pytest.mark.parametrize(("held", "nights"), [(0, 1), pytest.param(20_000, 3, marks=pytest.mark.slow)])
def test_the_rows_are_the_same_however_the_records_arrive(
    format: str, held: int, nights: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = _lines(format)
    whole = tmp_path / "whole"
    whole.mkdir()
    for number, lines in enumerate(conversations):
        (whole / f"{number}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    etl.ingest([whole], lake=tmp_path / "lake", strict=True)
    monkeypatch.setattr(ahead, "HELD_BYTES", held)
    for night in range(nights):
        folder = tmp_path / f"night{night}"
        folder.mkdir()
        for number, lines in enumerate(conversations):
            shuffled = random.Random(number).sample(lines, len(lines))[night::nights]
            for piece in range(3):
                path = folder / f"{piece}-{number}.jsonl"
                path.write_text("\n".join(shuffled[piece::3]) + "\n", encoding="utf-8")
        etl.ingest([folder], lake=tmp_path / "pieces", format=format, strict=True)
    assert _rows(tmp_path / "pieces") == _rows(tmp_path / "lake")


def test_what_is_whole_is_not_read_back(tmp_path: Path, stored_only: list[str]) -> None:
    lines = _lines("otlp")
    (tmp_path / "one.jsonl").write_text("\n".join(line for each in lines for line in each) + "\n", encoding="utf-8")
    report = etl.ingest([tmp_path / "one.jsonl"], lake=tmp_path / "lake", strict=True)
    assert report.rows.added == len(lines)
    assert not stored_only
    late = json.loads(lines[0][1]) | {"spanId": "00000000000000ff"}
    (tmp_path / "two.jsonl").write_text(json.dumps(late) + "\n", encoding="utf-8")
    etl.ingest([tmp_path / "two.jsonl"], lake=tmp_path / "lake", format="otlp", strict=True)
    assert set(stored_only) == {late["traceId"]}


def test_workers_do_not_see_each_others_records(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    for number, lines in enumerate(_lines("otlp")):
        (tmp_path / "a" / f"{number}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for half in (0, 1):
            text = "\n".join(lines[half::2]) + "\n"
            (tmp_path / "b" / f"{half}-{number}.jsonl").write_text(text, encoding="utf-8")
    etl.ingest([tmp_path / "a"], lake=tmp_path / "whole", strict=True)
    make_many(tmp_path / "b" / "many")
    report = etl.ingest([tmp_path / "b"], lake=tmp_path / "halves", workers=2, format="otlp", strict=True)
    assert _rows(tmp_path / "halves") == _rows(tmp_path / "whole")
    assert report.rows.added == SOURCES["otlp"] == sum(result.rows for result in report.files)


def test_a_stream_that_guesses_wrong_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "HELD_BYTES", 0)
    monkeypatch.setattr(ahead, "LEAST_GUESSES", 3)
    lines = _lines("claude_code")
    for number in range(12):
        text = "\n".join(each[number] for each in lines) + "\n"
        (tmp_path / f"{number:02}.jsonl").write_text(text, encoding="utf-8")
    tried: list[str] = []
    rows = Families.rows

    def counted(self: Families, family: Sequence[StoredEvent]) -> FamilyRows:
        tried.append(family[0].key)
        return rows(self, family)

    monkeypatch.setattr(Families, "rows", counted)
    etl.ingest([tmp_path], lake=tmp_path / "lake", format="claude_code", exclude=["lake"], strict=True)
    assert len(lines) < len(tried) <= 4 * len(lines)
    assert len(_rows(tmp_path / "lake")) >= len(lines) - 1
