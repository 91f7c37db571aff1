"""A toy format whose conversations span files: pieces over files and nights give the rows that one file gives."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from etl import ingest
from etl.adapter import adapters
from tests.contract.harness import check_row, read
from tests.lakes import NOW, rows, said

pytestmark = pytest.mark.usefixtures("toy_adapters")
HOTEL: list[dict[str, Any]] = [
    {"thread": "room-7", "n": 0, "at": "2026-03-30T21:00:00Z", "who": "guest", "says": "Is breakfast included?"},
    {"thread": "room-7", "n": 1, "at": "2026-03-30T21:00:05Z", "who": "desk", "says": "Yes, from seven."},
    {"thread": "room-9", "n": 0, "at": "2026-03-30T22:10:00Z", "who": "guest", "says": "A late checkout, please."},
    {"heartbeat": 1},
    {"thread": "room-7", "n": 2, "at": "2026-03-31T06:58:00Z", "who": "guest", "says": "And coffee to go?"},
    {"thread": "room-9", "n": 1, "at": "2026-03-31T07:30:00Z", "who": "desk", "says": "Until one o'clock."},
    {"thread": "room-7", "n": 3, "at": "2026-03-31T06:58:09Z", "who": "desk", "says": "At the bar."},
]


def _night(lake: Path, number: int, *files: Path) -> dict[str, Any]:
    return ingest(files, lake=lake, now=NOW + dt.timedelta(days=number), strict=True).to_json()


def _log(path: Path, utterances: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(utterance) + "\n" for utterance in utterances), encoding="utf-8")
    return path


def test_one_conversation_over_two_files_and_two_nights(tmp_path: Path) -> None:
    evening, morning = _log(tmp_path / "evening.jsonl", HOTEL[:4]), _log(tmp_path / "morning.jsonl", HOTEL[4:])
    lake = tmp_path / "lake"
    first = _night(lake, 0, evening)
    half = {row["conversation_id"]: row for row in rows(lake)}
    second = _night(lake, 1, evening, morning)
    whole = {row["conversation_id"]: row for row in rows(lake)}
    assert (first["rows"]["added"], second["rows"]["added"], second["rows"]["replaced"]) == (2, 0, 2)
    assert {key: row["rollout_id"] for key, row in half.items()} == {
        key: row["rollout_id"] for key, row in whole.items()
    }
    assert [len(row["messages"]) for row in half.values()] < [len(row["messages"]) for row in whole.values()]
    texts = [message["content"] for message in whole["room-7"]["messages"]]
    assert texts == ["Is breakfast included?", "Yes, from seven.", "And coffee to go?", "At the bar."]
    assert whole["room-7"]["n_records"] == 4
    assert first["ignored"] == {"heartbeat": 1}
    for row in whole.values():
        check_row(row)


def test_many_nights_give_the_rows_of_one(tmp_path: Path, thorough: bool) -> None:
    one = tmp_path / "one"
    _night(one, 0, _log(tmp_path / "all.jsonl", HOTEL))
    for seed in range(3 if thorough else 1):
        dealt, lake = HOTEL[:], tmp_path / f"dealt{seed}"
        random.Random(seed).shuffle(dealt)
        for night in range(3):
            _night(lake, night, _log(tmp_path / f"dealt{seed}.{night}.jsonl", dealt[night::3]))
        assert said(lake) == said(one)


def test_a_night_again_and_a_copy_change_nothing(tmp_path: Path) -> None:
    lake, log = tmp_path / "lake", _log(tmp_path / "all.jsonl", HOTEL)
    _night(lake, 0, log)
    before = rows(lake)
    again = _night(lake, 1, log)
    copied = _night(lake, 2, _log(tmp_path / "copy.jsonl", HOTEL[::-1]))
    for report in (again, copied):
        assert (report["rows"]["added"], report["rows"]["replaced"], report["rows"]["removed"]) == (0, 0, 0)
    assert rows(lake) == before
    assert len(rows(lake, "events")) == 6


def test_the_contract_holds_for_the_toy_too(tmp_path: Path) -> None:
    log = _log(tmp_path / "all.jsonl", [*HOTEL, {"thread": 7}])
    reading = read(log.read_bytes(), adapters()["notebook"])
    assert len(reading.rows) == 2
    assert reading.rejects == {"no_utterance": 1}
    report = _night(tmp_path / "lake", 0, log)
    assert report["rejects"] == {"no_utterance": 1}
    assert report["records_in"] == report["records_used"] + 1 + report["ignored"]["heartbeat"]
