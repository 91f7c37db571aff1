"""What each commit does to its table, and to the files under it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from etl.database import open_database
from etl.errors import ConflictError, LakeError
from etl.lake import Lake, RowCounts, lookup, reading
from etl.lake.log import CHECKPOINT_EVERY
from etl.lake.plan import PILE
from tests.lake.rows import event, put, redacted, reject, rollout, rows_of, smuggle, source_file, stage


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake", clock=lambda: 1_772_366_400.0)


def ids(lake: Lake) -> list[str]:
    return sorted(row["rollout_id"] for row in rows_of(lake))


def on_disk(lake: Lake, table: str = "rollouts") -> list[str]:
    """What a plain glob sees."""
    pattern = "source=*/day=*/*.parquet" if table in ("rollouts", "events") else "source=*/*.parquet"
    return sorted(map(str, Path(lake.root, table).glob(pattern)))


def test_a_new_lake_has_all_it_needs(lake: Lake) -> None:
    root = Path(lake.root)
    assert (root / "README.md").read_text().startswith("---\n")
    assert "CREATE" in (root / "views.sql").read_text()
    for table in ("rollouts", "rejects", "sources", "events"):
        assert lake.version(table) == 0
        assert lake.live(table) == []
        assert list((root / table / "_delta_log").glob("*.checkpoint.parquet"))
    assert lake.verify() == []
    (root / "README.md").write_text("our own card")
    (root / "views.sql").write_text("of an older version")
    Lake.create(root)
    assert (root / "README.md").read_text() == "our own card"
    assert "CREATE" in (root / "views.sql").read_text()
    assert list((root / ".staging").iterdir()) == []


def test_the_same_rows_again_change_nothing(lake: Lake) -> None:
    rows = [rollout(f"r{i}", day=["unknown", "2026-03-01"][i % 2]) for i in range(6)]
    assert put(lake, rows) == RowCounts(6, 0, 0, 0)
    before = (lake.version("rollouts"), on_disk(lake))
    assert put(lake, rows[3:], rows[:4]) == RowCounts(0, 0, 0, 6, copies=1)
    assert (lake.version("rollouts"), on_disk(lake)) == before


@pytest.mark.parametrize(("rows_to_keep_open_for", "opened"), [(lookup.ROWS_TO_KEEP_OPEN_FOR, 1), (1, 2)])
def test_commits_of_a_batch_share_a_database_until_it_has_grown(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, rows_to_keep_open_for: int, opened: int
) -> None:
    databases: list[duckdb.DuckDBPyConnection] = []

    def opens(settings: dict[str, str | int | bool]) -> duckdb.DuckDBPyConnection:
        databases.append(open_database(settings))
        return databases[-1]

    monkeypatch.setattr(lookup, "open_database", opens)
    monkeypatch.setattr(lookup, "ROWS_TO_KEEP_OPEN_FOR", rows_to_keep_open_for)
    with lake.batch("b"):
        lake.commit_rollouts(stage(lake, "b", "rollouts", [rollout("r1"), rollout("r2")]))
        lake.replace_rejects([], {("a", "/logs/none")})
        lake.commit_events(stage(lake, "b", "events", [event("e")]))
        assert len(databases) == opened
    for database in databases:
        with pytest.raises(duckdb.ConnectionException):
            database.execute("SELECT 1")


def test_only_what_is_new_is_written(lake: Lake) -> None:
    put(lake, [rollout("r1"), rollout("r2")])
    [first] = on_disk(lake)
    assert put(lake, [rollout("r1"), rollout("r3"), rollout("r2")]) == RowCounts(1, 0, 0, 2)
    assert ids(lake) == ["r1", "r2", "r3"]
    assert [file.path for file in lake.live("rollouts")] == on_disk(lake)
    assert sum(file.rows for file in lake.live("rollouts")) == 3
    assert first in on_disk(lake) or len(on_disk(lake)) == 1


def test_a_longer_copy_replaces_and_a_shorter_never(lake: Lake) -> None:
    put(lake, [rollout("r1"), rollout("r2")])
    assert put(lake, [rollout("r1", n_records=5, row_hash="longer")]) == RowCounts(0, 1, 0, 0)
    assert put(lake, [rollout("r1", n_records=4, row_hash="shorter")]) == RowCounts(0, 0, 0, 1)
    assert {row["rollout_id"]: row["n_records"] for row in rows_of(lake)} == {"r1": 5, "r2": 2}
    assert [file.path for file in lake.live("rollouts")] == on_disk(lake)


def test_a_row_of_an_unknown_day_becomes_dated(lake: Lake) -> None:
    put(lake, [rollout("r1", day="unknown", started_at=None), rollout("r2", day="unknown")])
    assert put(lake, [rollout("r1", n_records=3, row_hash="dated")]) == RowCounts(0, 1, 0, 0)
    assert {row["rollout_id"]: row["day"] for row in rows_of(lake)} == {"r1": "2026-03-01", "r2": "unknown"}
    assert put(lake, [rollout("r2", n_records=3, row_hash="dated too")]) == RowCounts(0, 1, 0, 0)
    assert {file.partition["day"] for file in lake.live("rollouts")} == {"2026-03-01"}


def test_a_reward_that_arrives_later_is_seen(lake: Lake) -> None:
    put(lake, [rollout("r1")])
    assert put(lake, [rollout("r1", reward=1.0, row_hash="a")]).replaced == 1
    assert put(lake, [rollout("r1", row_hash="z")]).unchanged == 1, "fewer leaves, though the larger hash"
    assert [row["reward"] for row in rows_of(lake)] == [1.0]


def test_assembled_rows_are_the_whole_truth_of_their_conversations(lake: Lake) -> None:
    def row(name: str, **values: Any) -> dict[str, Any]:
        return rollout(name, source="traces", **values)

    put(
        lake,
        [row("a1", conversation_id="A"), row("a2", conversation_id="A", n_records=9), row("b", conversation_id="B")],
    )
    put(lake, [rollout("other", source="support", conversation_id="A")])
    made = [row("a2", conversation_id="A", n_records=3, row_hash="shorter"), row("a3", conversation_id="A")]
    assert put(lake, made, conversations={"traces": {"A"}}) == RowCounts(added=1, replaced=1, removed=1, unchanged=0)
    assert {row["rollout_id"]: row["n_records"] for row in rows_of(lake)} == {"a2": 3, "a3": 2, "b": 2, "other": 2}
    assert put(lake, made, conversations={"traces": {"A"}}) == RowCounts(0, 0, 0, 2)
    assert put(lake, conversations={"traces": {"A", "B", "none"}}) == RowCounts(0, 0, removed=3, unchanged=0)
    assert ids(lake) == ["other"]
    assert put(lake, conversations={"traces": {"A"}}) == RowCounts(0, 0, 0, 0)


def test_closed_rows_beside_assembled_ones_keep_their_own_rule(lake: Lake) -> None:
    put(lake, [rollout("r1", n_records=5), rollout("r2", n_records=5, conversation_id="A")])
    again = [rollout("r1", n_records=1, row_hash="s"), rollout("r2", n_records=1, conversation_id="A", row_hash="s")]
    assert put(lake, again, conversations={"support": {"A"}}) == RowCounts(0, 1, 0, 1)
    assert {row["rollout_id"]: row["n_records"] for row in rows_of(lake)} == {"r1": 5, "r2": 1}


def test_a_conversation_id_that_is_null_is_no_conversation(lake: Lake) -> None:
    put(lake, [rollout("r1", conversation_id=None), rollout("r2", conversation_id=None)])
    assert put(lake, [rollout("r1", conversation_id=None)], conversations={"support": {"A"}}) == RowCounts(0, 0, 0, 1)
    assert ids(lake) == ["r1", "r2"]


def test_events_that_moved_on_are_the_callers_to_assemble_again(lake: Lake) -> None:
    with lake.batch("b"):
        staged = stage(lake, "b", "rollouts", [rollout("r1")])
        with pytest.raises(ConflictError, match="events moved on"):
            lake.commit_rollouts(staged, conversations={"support": {"c"}}, still_current=lambda: False)
        assert rows_of(lake) == []
        assert lake.commit_rollouts(staged, still_current=lambda: True).added == 1


def test_events_are_appended_once(lake: Lake) -> None:
    with lake.batch("b"):
        assert lake.commit_events(stage(lake, "b", "events", [event("1"), event("2"), event("1", source_line=9)])) == 2
        again = [event("2"), event("3"), event("1", conversation_key="trace-2"), event("1", source="other")]
        assert lake.commit_events(stage(lake, "b", "events", again)) == 3
        assert lake.commit_events(stage(lake, "b", "events", again)) == 0
        assert lake.commit_events([]) == 0
    assert lake.version("events") == 2
    assert len(rows_of(lake, "events")) == 5


def test_rejects_of_a_file_are_replaced(lake: Lake) -> None:
    one, two = ("support", "/logs/a.jsonl"), ("support", "/logs/b.jsonl")
    with lake.batch("b"):
        lake.replace_rejects(
            stage(lake, "b", "rejects", [reject("1"), reject("2"), reject("3", source_uri=two[1])]), {one, two}
        )
        lake.replace_rejects(stage(lake, "b", "rejects", [reject("2"), reject("2"), reject("4")]), {one})
        assert sorted(row["reject_id"] for row in rows_of(lake, "rejects")) == ["2", "3", "4"]
        lake.replace_rejects([], {one, two, ("other", "/logs/a.jsonl")})
        lake.replace_rejects([], set())
    assert rows_of(lake, "rejects") == []
    assert on_disk(lake, "rejects") == []


def test_sources_say_the_last_of_each_file(lake: Lake) -> None:
    with lake.batch("b"):
        lake.upsert_sources(
            stage(lake, "b", "sources", [source_file("/a"), source_file("/b"), source_file("/a", source="other")])
        )
        lake.upsert_sources(stage(lake, "b", "sources", [source_file("/a", size=1)], [source_file("/a", size=2)]))
        lake.upsert_sources([])
    known = lake.known_files(["support"])["support"]
    assert {uri: file.size for uri, file in known.items()} == {"/a": 2, "/b": 100}
    said = {key: source_file("/b").get(key) for key in known["/b"]._fields}
    assert known["/b"]._asdict() == {**said, "modified_at": int(source_file("/b")["modified_at"].timestamp() * 1e6)}
    assert lake.known_files(["nobody"]) == {"nobody": {}}


def test_files_that_pile_up_are_merged(lake: Lake) -> None:
    for number in range(PILE):
        put(lake, [rollout(f"r{number}")])
        put(lake, [rollout(f"other{number}", day="2026-03-02")]) if number == 0 else None
        assert len(lake.live("rollouts")) == (number + 2 if number < PILE - 1 else 2)
    assert len(ids(lake)) == PILE + 1
    assert [file.path for file in lake.live("rollouts")] == on_disk(lake)
    assert lake.verify() == []


def test_many_staged_files_of_a_partition_become_one(lake: Lake) -> None:
    assert put(lake, *[[rollout(f"r{number}")] for number in range(PILE + 3)]).added == PILE + 3
    assert [file.rows for file in lake.live("rollouts")] == [PILE + 3]


def test_a_pile_is_left_alone_while_nothing_changes(lake: Lake) -> None:
    rows = [rollout(f"r{number}") for number in range(PILE)]
    for row in rows:
        table = redacted("rollouts", [row]).table
        smuggle(lake, "rollouts", table, "source=support/day=2026-03-01", {"source": "support", "day": "2026-03-01"})
    assert put(lake, rows[:2]) == RowCounts(0, 0, 0, 2)
    assert lake.version("rollouts") == PILE
    assert put(lake, [rollout("another")]).added == 1
    assert [file.rows for file in lake.live("rollouts")] == [PILE + 1]


def test_compaction_changes_files_and_no_row(lake: Lake) -> None:
    for number in range(3):
        put(lake, [rollout(f"r{number}"), rollout(f"s{number}", day="unknown")])
    with lake.batch("b"):
        lake.upsert_sources(stage(lake, "b", "sources", [source_file("/a")]))
    before = sorted(rows_of(lake), key=lambda row: str(row["rollout_id"]))
    with lake.batch("c"):
        assert lake.compact() == 6
        assert lake.compact() == 0
    assert len(lake.live("rollouts")) == 2
    assert sorted(rows_of(lake), key=lambda row: str(row["rollout_id"])) == before
    assert [file.path for file in lake.live("rollouts")] == on_disk(lake)
    assert lake.verify() == []


def test_checkpoints_are_made_and_read(lake: Lake) -> None:
    with lake.batch("b"):
        for number in range(CHECKPOINT_EVERY + 1):
            lake.upsert_sources(stage(lake, "b", "sources", [source_file(f"/{number % 5}", size=number)]))
    log = Path(lake.root, "sources", "_delta_log")
    assert (log / f"{CHECKPOINT_EVERY:020}.checkpoint.parquet").exists()
    known = Lake.open(lake.root).known_files(["support"])["support"]
    assert sorted(file.size for file in known.values()) == [16, 17, 18, 19, 20]
    assert [file.path for file in lake.live("sources")] == on_disk(lake, "sources")


def test_a_commit_needs_an_open_batch_and_its_own_files(lake: Lake) -> None:
    with lake.batch("b"):
        staged = stage(lake, "b", "rejects", [reject("1")])
        with pytest.raises(LakeError, match="staged for rejects cannot be committed to rollouts"):
            lake.commit_rollouts(staged)
        with pytest.raises(LakeError, match="the batch b is still open"), lake.batch("c"):
            pass
        with pytest.raises(LakeError, match="already runs"), Lake.open(lake.root).batch("b"):
            pass
    with pytest.raises(LakeError, match="needs an open batch"):
        lake.replace_rejects(staged, set())
    with pytest.raises(LakeError, match="needs an open batch"):
        lake.compact()


def test_a_reader_in_the_middle_of_a_commit_reads_again(lake: Lake) -> None:
    put(lake, [rollout("r1")])
    listed: list[int] = []

    def read() -> list[Any]:
        files = [file.path for file in lake.live("rollouts")]
        listed.append(len(files))
        if len(listed) == 1:
            put(lake, [rollout("r1", n_records=3, row_hash="new")])
        return duckdb.execute("SELECT n_records FROM read_parquet($1)", [files]).fetchall()

    assert reading(read) == [(3,)]
    assert listed == [1, 1]
    with pytest.raises(FileNotFoundError):
        reading(lambda: Path(lake.root, "nothing").read_text())
    with pytest.raises(duckdb.BinderException):
        reading(lambda: duckdb.sql("SELECT nothing"))
