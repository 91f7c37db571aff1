"""Labels stay with their row: through reading again, growing, a newer adapter, another partition and other writers."""

from __future__ import annotations

import datetime as dt
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import etl
from etl.errors import UsageError
from etl.lake import Label, Lake
from tests.lake.rows import put, rollout, rows_of
from tests.lakes import NOW

GOOD = Label("quality", "good", 1.0, "polite")
SESSION = "well.jsonl"
NIGHT = dt.timedelta(days=1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")


def give(lake: Lake, rollout_id: str, label: Label, batch: str = "labels") -> bool:
    with lake.batch(batch):
        return lake.label(rollout_id, label)


def judgments(lake: Lake, rollout_id: str = "a") -> list[tuple[str, str | None, str | None]]:
    (row,) = [row for row in rows_of(lake) if row["rollout_id"] == rollout_id]
    return [(judgment["name"], judgment["label"], judgment["status"]) for judgment in row["judgments"]]


RULE = {"name": "format", "kind": "rule", "value": 1.0}


def test_a_label_joins_the_judgments_of_its_row_and_changes_nothing_else(lake: Lake) -> None:
    put(lake, [rollout("a", judgments=[RULE]), rollout("b")])
    before = {row["rollout_id"]: row for row in rows_of(lake)}
    assert give(lake, "a", GOOD)
    after = {row["rollout_id"]: row for row in rows_of(lake)}
    assert after["b"] == before["b"]
    assert after["a"]["judgments"][1:] == [GOOD.judgment()]
    assert {**after["a"], "judgments": before["a"]["judgments"]} == before["a"]
    assert lake.verify() == []


def test_a_second_label_of_one_name_takes_the_place_of_the_first(lake: Lake) -> None:
    put(lake, [rollout("a")])
    assert give(lake, "a", GOOD)
    assert not give(lake, "a", GOOD), "it says so already"
    assert give(lake, "a", Label("quality", "bad"))
    assert give(lake, "a", Label("tone", "kind"))
    assert judgments(lake) == [("quality", "bad", "labelled"), ("tone", "kind", "labelled")]
    with lake.batch("back"):
        assert lake.take_back_label("a", "quality")
        assert not lake.take_back_label("a", "quality")
    assert judgments(lake) == [("tone", "kind", "labelled")]


def test_an_unknown_row_is_named(lake: Lake) -> None:
    with pytest.raises(UsageError, match="'nobody'"):
        give(lake, "nobody", GOOD)


@pytest.mark.parametrize(
    "newer",
    [
        {"n_records": 3, "row_hash": "grown"},
        {"adapter_version": 2, "row_hash": "read otherwise"},
        {"n_records": 3, "row_hash": "dated", "day": "2026-03-02"},
        {"row_hash": "zzz: a tie of all but the hash"},
    ],
    ids=["grown", "newer adapter", "another day", "larger hash"],
)
def test_the_row_that_replaces_it_takes_the_label_over(lake: Lake, newer: dict[str, Any]) -> None:
    put(lake, [rollout("a", row_hash="first", judgments=[RULE]), rollout("b")])
    give(lake, "a", GOOD)
    put(lake, [rollout("a", judgments=[RULE], **newer), rollout("c")])
    assert judgments(lake) == [("format", None, None), ("quality", "good", "labelled")]
    (row,) = [row for row in rows_of(lake) if row["rollout_id"] == "a"]
    assert row["row_hash"] == newer["row_hash"]
    assert sorted(row["rollout_id"] for row in rows_of(lake)) == ["a", "b", "c"]
    assert lake.verify() == []


def test_a_label_is_no_reason_to_keep_a_row(lake: Lake) -> None:
    """Its leaves do not count: else the order of labelling and reading would matter."""
    put(lake, [rollout("a", row_hash="x", reward=None)])
    give(lake, "a", GOOD)
    put(lake, [rollout("a", row_hash="w", reward=0.5)])
    (row,) = rows_of(lake)
    assert (row["reward"], judgments(lake)) == (0.5, [("quality", "good", "labelled")])


def test_a_human_judgment_of_the_log_is_the_logs_to_change(lake: Lake) -> None:
    thumb = {"name": "thumb", "kind": "human", "label": "up", "status": "ok"}
    put(lake, [rollout("a", judgments=[thumb])])
    give(lake, "a", GOOD)
    put(lake, [rollout("a", judgments=[], n_records=3, row_hash="grown")])
    assert judgments(lake) == [("quality", "good", "labelled")]


def test_rows_of_a_conversation_that_was_put_together_again_keep_labels(lake: Lake) -> None:
    put(lake, [rollout("a", conversation_id="k", n_records=9)])
    give(lake, "a", GOOD)
    put(lake, [rollout("a", conversation_id="k", n_records=1, row_hash="whole")], conversations={"support": {"k"}})
    (row,) = rows_of(lake)
    assert (row["row_hash"], judgments(lake)) == ("whole", [("quality", "good", "labelled")])


def test_many_people_label_at_once(lake: Lake) -> None:
    put(lake, [rollout("a")])
    names = [f"n{number}" for number in range(6)]

    def one(name: str) -> None:
        give(Lake.open(lake.root), "a", Label(name, "x"), batch=f"batch-{name}")

    threads = [threading.Thread(target=one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(name for name, _label, _status in judgments(lake)) == names
    assert len(rows_of(lake)) == 1


def test_a_file_that_is_read_again_or_has_grown_keeps_its_labels(tmp_path: Path) -> None:
    """From the log's side: unchanged, read again on demand, then grown by a turn."""
    log, root = tmp_path / "chat.jsonl", tmp_path / "lake"
    turns = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    log.write_text(json.dumps({"id": "chat-1", "messages": turns}) + "\n")
    etl.ingest([log], lake=root, now=NOW)
    lake = Lake.open(root)
    ((rollout_id,),) = [(row["rollout_id"],) for row in rows_of(lake)]
    give(lake, rollout_id, GOOD)
    again = etl.ingest([log], lake=root, now=NOW + NIGHT)
    forced = etl.ingest([log], lake=root, now=NOW + NIGHT, reparse=True)
    assert (again.rows.replaced, forced.rows.replaced, forced.rows.unchanged) == (0, 0, 1)
    assert judgments(lake, rollout_id) == [("quality", "good", "labelled")]


def test_a_session_that_has_grown_keeps_its_labels(tmp_path: Path, samples: Path) -> None:
    whole = (samples / "claude_code" / SESSION).read_bytes().splitlines(keepends=True)
    log = tmp_path / "session.jsonl"
    log.write_bytes(b"".join(whole[: len(whole) // 2]))
    root = tmp_path / "lake"
    etl.ingest([log], lake=root, now=NOW)
    lake = Lake.open(root)
    first = rows_of(lake)
    for row in first:
        give(lake, row["rollout_id"], GOOD, batch=f"batch-{row['rollout_id']}")
    log.write_bytes(b"".join(whole))
    report = etl.ingest([log], lake=root, now=NOW + NIGHT)
    assert report.rows.replaced >= 1
    for row in first:
        assert ("quality", "good", "labelled") in judgments(lake, row["rollout_id"])
