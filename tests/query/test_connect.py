"""Opening a lake: fresh, shared by cursors, without traces, loud when a file is gone, and errors of one line."""

from __future__ import annotations

import datetime as dt
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from etl.errors import EtlError, LakeError, UsageError
from etl.query import Relative, connect, execute, find_kin, find_rollout, open_views, run_sql
from tests.lake.rows import rollout, stage
from tests.query.engines import ask_program, needs_program
from tests.query.support import attempts, make_lake, refund


def files(folder: Path) -> dict[str, float]:
    """Every file below a folder, with its time."""
    return {str(path): path.stat().st_mtime for path in sorted(folder.rglob("*"))}


def test_reading_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_lake(tmp_path / "lake", [refund()])
    monkeypatch.chdir(tmp_path)
    before = files(tmp_path)
    with connect("lake") as connection:
        connection.execute("SELECT * FROM rollouts ORDER BY rollout_id").fetchall()
    assert files(tmp_path) == before


def test_cursors_see_the_views_in_utc(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [refund()])
    found: list[Any] = []
    with connect(tmp_path / "lake") as connection:
        cursor = connection.cursor()
        query = "SELECT started_at, started_at::VARCHAR, (SELECT count(*) FROM rejects) FROM rollouts"
        thread = threading.Thread(target=lambda: found.extend(cursor.execute(query).fetchall()))
        thread.start()
        thread.join()
    ((moment, text, rejects),) = found
    assert moment == dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
    assert (text, rejects) == ("2026-03-01 12:00:00+00", 0)


def test_views_open_anew_show_what_came_since(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [rollout("r_1")])
    with connect(tmp_path / "lake") as connection:
        with lake.batch("more"):
            lake.commit_rollouts(stage(lake, "more", "rollouts", [rollout("r_2", source="other")]))
        assert connection.execute("SELECT count(*) FROM rollouts").fetchall() == [(1,)]
        open_views(connection, tmp_path / "lake")
        assert connection.execute("SELECT count(*) FROM rollouts").fetchall() == [(2,)]


def test_a_replaced_file_is_loud_and_the_second_try_reads_the_new_one(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [rollout("r_1")])
    with connect(tmp_path / "lake") as connection:
        with lake.batch("more"):
            lake.commit_rollouts(stage(lake, "more", "rollouts", [rollout("r_1", n_records=9, row_hash="longer")]))
        with pytest.raises(LakeError, match="No files found"):
            execute(connection, "SELECT n_records FROM rollouts")
        answer = execute(connection, "SELECT n_records FROM rollouts", lake=tmp_path / "lake")
        assert list(answer.records()) == [{"n_records": 9}]


def test_an_answer_has_names_types_and_rows(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [refund()])
    answer = run_sql(tmp_path / "lake", "SELECT rollout_id AS id, n_steps, usage, flags FROM rollouts")
    assert answer.names == ["id", "n_steps", "usage", "flags"]
    assert answer.types[:2] == ["VARCHAR", "INTEGER"]
    ((name, n_steps, usage, flags),) = answer.rows
    assert (name, n_steps, usage["input_tokens"], flags) == ("r_refund", 3, 450, ["missing_result"])


def test_a_long_answer_is_fetched_in_portions(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake")
    rows = run_sql(tmp_path / "lake", "FROM range(10000) t(i) ORDER BY i").rows
    assert [row[0] for row in rows] == list(range(10000))


def test_the_last_statement_answers(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake")
    assert list(run_sql(tmp_path / "lake", "SELECT 1; SELECT 2").rows) == [(2,)]
    assert list(run_sql(tmp_path / "lake", "  ;").rows) == []


@pytest.mark.parametrize(
    ("sql", "kind", "says"),
    [
        ("SELEC 1", UsageError, 'Parser Error: syntax error at or near "SELEC" (line 1)'),
        ("SELECT rewards_ FROM rollouts", UsageError, 'Candidate bindings: "rewards"'),
        ("SELECT 1 FROM rollout", UsageError, "Table with name rollout does not exist"),
        ("SELECT 1\nFROM answer", UsageError, "Table with name answer does not exist"),
        ("SELECT 'a'::INTEGER", EtlError, "Could not convert string 'a'"),
        ("FROM read_parquet('nowhere/*.parquet')", UsageError, "SQL reads this lake alone unless --unsafe is given"),
    ],
)
def test_errors_are_one_line_with_the_hint(sql: str, kind: type[EtlError], says: str, tmp_path: Path) -> None:
    make_lake(tmp_path / "lake")
    answer = "no Python variable is taken for a table"
    with pytest.raises(kind) as raised:
        run_sql(tmp_path / "lake", sql)
    assert type(raised.value) is kind
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
    assert answer not in str(raised.value)


def test_no_lake_is_said(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"there is no lake at .*nothing; make one with: etl ingest"):
        connect(tmp_path / "nothing")
    with pytest.raises(UsageError):
        connect("")
    with pytest.raises(UsageError, match="ftp"):
        connect("ftp://host/lake")


def test_a_lake_with_a_broken_log_is_an_error_of_one_line(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [refund()])
    (newest,) = (tmp_path / "lake" / "rollouts" / "_delta_log").glob("*01.json")
    newest.write_text("{oops")
    with pytest.raises(LakeError, match="cannot be read") as raised:
        connect(tmp_path / "lake")
    assert "\n" not in str(raised.value)


@needs_program
def test_the_program_finds_the_lake_in_its_folder_and_says_where_none_is(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [refund()])
    here = ask_program(Path("views.sql"), "SELECT rollout_id FROM rollouts", cwd=tmp_path / "lake")
    assert (here.returncode, here.stdout.strip()) == (0, "r_refund")
    nowhere = ask_program(tmp_path / "lake" / "views.sql", "SELECT 1", cwd=tmp_path)
    assert nowhere.returncode != 0
    assert "no lake at '.'" in nowhere.stderr


@needs_program
def test_the_program_keeps_nothing_in_a_database_of_the_user(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [refund()])
    own, nothing = tmp_path / "own.db", tmp_path / "nothing.sql"
    nothing.write_text("")
    ask_program(nothing, "CREATE TABLE labels AS SELECT 'r_refund' AS rollout_id, 'bad' AS label", database=own)
    join = "SELECT label, model FROM rollouts JOIN labels USING (rollout_id)"
    asked = ask_program(tmp_path / "lake" / "views.sql", join, database=own, ETL_LAKE=str(tmp_path / "lake"))
    assert asked.stdout.strip() == "bad|demo"
    assert ask_program(nothing, "SHOW TABLES", database=own).stdout.strip() == "labels"


WHOSE = {"rollout_id", "source", "day", "group_id", "conversation_id", "prompt_len"}
"""What says which row a call is of: small columns all."""
ONCE = WHOSE | {"parent_id"}


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT count(*) FROM messages", {"message_info"}),
        ("SELECT sum(output_tokens) FROM messages", {"message_info"}),
        ("SELECT tool, status, count(*) FROM steps GROUP BY ALL", {"steps"} | WHOSE),
        ("FROM tool_rates", {"steps", "origin"} | ONCE),
        ("SELECT task_id, avg(reward) FROM rollouts GROUP BY ALL", {"task_id", "reward"}),
        ("SELECT tool, count(*) FROM failures GROUP BY ALL", {"steps"} | ONCE),
        ("SELECT result FROM steps", {"steps", "messages"} | WHOSE),
    ],
)
def test_a_query_reads_only_what_it_needs(sql: str, reads: set[str], tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [refund()])
    with connect(tmp_path / "lake") as connection:
        plan = json.loads(connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()[0][1])
    assert scanned(plan) == reads


def scanned(plan: Any) -> set[str]:
    """The columns that the scans of a plan read."""
    found: set[str] = set()
    for node in plan if isinstance(plan, list) else [plan]:
        if "PARQUET" in node.get("name", "").upper():
            columns = node["extra_info"].get("Projections", [])
            found |= {columns} if isinstance(columns, str) else set(columns)
        found |= scanned(node.get("children", []))
    return found


def test_a_rollout_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [refund("r_abc"), rollout("r_abd"), rollout("r_ab", parent_id="r_abc")])
    with connect(tmp_path / "lake") as connection:
        row = find_rollout(connection, "r_abc")
        assert row["steps"][0]["result"] == '{"status":"delivered"}'
        assert find_rollout(connection, "r_ab")["parent_id"] == "r_abc"
        with pytest.raises(UsageError, match="beginning of more than one id: r_ab, r_abc, r_abd"):
            find_rollout(connection, "r_a")
        with pytest.raises(UsageError, match="no rollout has the id 'x'"):
            find_rollout(connection, "x")
        (child,) = find_kin(connection, row).children
        assert child == Relative("r_ab", None, "completed", None, "ask r_ab")
        parent = find_kin(connection, find_rollout(connection, "r_ab")).parent
        assert parent is not None
        assert parent.rollout_id == "r_abc"


def test_a_rollout_is_found_by_the_id_of_its_conversation(tmp_path: Path) -> None:
    one, two, three = (rollout(f"r_{n}", conversation_id=f"c{n // 2}") for n in (1, 2, 3))
    make_lake(tmp_path / "lake", [one, two, three])
    with connect(tmp_path / "lake") as connection:
        assert find_rollout(connection, "c0")["rollout_id"] == "r_1"
        with pytest.raises(UsageError, match="'c1' has more than one row: r_2, r_3; name one of them"):
            find_rollout(connection, "c1")


def test_kin_are_children_and_other_attempts(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", attempts([0.0, 1.0, None], task="t", group="g"), [rollout("r_alone")])
    with connect(tmp_path / "lake") as connection:
        kin = find_kin(connection, find_rollout(connection, "r_t_1"))
        assert (kin.children, [(other.rollout_id, other.reward) for other in kin.siblings]) == (
            [],
            [("r_t_0", 0.0), ("r_t_2", None)],
        )
        assert find_kin(connection, find_rollout(connection, "r_alone")) == (None, [], [])


def test_a_data_file_that_is_no_parquet_is_no_fault_of_the_question(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [refund()])
    connection = connect(lake.root)
    (file,) = lake.live("rollouts")
    Path(file.path).write_bytes(b"no Parquet at all")
    with pytest.raises(LakeError, match="etl verify"):
        execute(connection, "SELECT count(prompt) FROM rollouts")


@pytest.mark.parametrize("view", ["rollouts", "messages", "steps", "failures", "rollouts_stored"])
def test_filters_on_source_and_day_open_only_their_files(tmp_path: Path, view: str) -> None:
    rows = [refund(f"r_{day}_{source}", day=f"2026-03-0{day}", source=source) for day in (1, 2, 3) for source in "ab"]
    make_lake(tmp_path / "lake", rows)
    with connect(tmp_path / "lake") as connection:
        asked = f"EXPLAIN SELECT count(*) FROM {view} WHERE source = 'a' AND day >= '2026-03-02'"
        ((_, plan),) = connection.execute(asked).fetchall()
    assert "Scanning Files: 2/6" in plan
