"""SQL reads the tables of the lake, and there is nothing else it can do: in a page, in `etl sql`, in `etl shell`."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import pytest

from etl.cli import run
from etl.errors import UsageError
from etl.locked import FOLDERS, only_select, time_limit
from etl.query import connect, execute, open_views
from etl.schema import TABLES
from etl.serve.asked import answer_on, ask
from tests.query.support import add_files, make_lake, refund


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("locked")
    (folder / "secret.csv").write_text("a,b\n1,2\n")
    add_files(make_lake(folder / "lake", [refund()]), "/logs/a.jsonl")
    return folder / "lake"


READS = [
    "SELECT count(*) FROM rollouts",
    "FROM messages LIMIT 3",
    "WITH failed AS (FROM failures) SELECT tool FROM failed",
    "DESCRIBE rollouts",
    "SUMMARIZE steps",
    "SHOW TABLES",
    "SELECT * FROM pass_at(1)",
    "FROM transcript('r_refund')",
    "FROM tool_rates; -- a comment",
]


def test_what_reads_is_run(lake: Path) -> None:
    connection = connect(lake, locked=True)
    for sql in READS:
        table = answer_on(connection, sql)
        assert table.error is None, sql


ATTACKS = [
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/proc/self/environ')",
    "FROM '/etc/passwd'",
    "SELECT * FROM read_csv('{folder}/secret.csv')",
    "FROM '{folder}/secret.csv'",
    "SELECT * FROM read_text('{lake}/README.md')",
    "SELECT * FROM read_text('{lake}/../secret.csv')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM read_parquet('https://example.org/x.parquet')",
    "SELECT * FROM read_json('s3://bucket/x.json')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT getenv('HOME')",
    "SELECT * FROM query('COPY (SELECT 1) TO ''{folder}/out''')",
    "COPY (SELECT 1) TO '{folder}/out'",
    "COPY (SELECT 1) TO '{live}'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/out'",
    "EXPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/out.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "RESET allowed_paths",
    "PRAGMA profiling_output = '{folder}/out'",
    "CALL enable_logging(storage_path = '{folder}/out')",
    "CREATE TABLE t AS SELECT 1",
    "DROP VIEW rollouts",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP VIEW rollouts",
    "SELEC 1",
    "",
]


def every_file(folder: Path) -> dict[Path, bytes]:
    """What a folder holds."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_nothing_else_is(lake: Path) -> None:
    folder = lake.parent
    (live,) = lake.glob("rollouts/source=*/day=*/*.parquet")
    before = every_file(folder)
    connection = connect(lake, locked=True)
    for sql in ATTACKS:
        table = answer_on(connection, sql.format(folder=folder, lake=lake, live=live))
        assert table.error is not None, sql
        assert "\n" not in table.error
        assert table.rows == []
    assert every_file(folder) == before


def test_the_database_itself_refuses_to_write_and_to_look_elsewhere(lake: Path) -> None:
    """Also where a statement came past `only_select` and `only_in_memory`."""
    connection = connect(lake, locked=True)
    before = every_file(lake.parent)
    for sql in filter(None, ATTACKS):
        if "{live}" in sql:
            continue  # the tables can be opened: that they are not written, the kind of the statement says
        try:
            connection.execute(sql.format(folder=lake.parent, lake=lake)).fetchall()
        except duckdb.Error:
            continue
        assert sql.startswith(("CREATE TABLE t", "DROP VIEW", "SELECT 1;")), "what stays in memory harms nobody"
    assert every_file(lake.parent) == before


IN_MEMORY = [
    "CREATE TABLE t AS FROM rollouts; INSERT INTO t FROM t; SELECT count(*) FROM t",
    "CREATE MACRO twice(x) AS 2 * x; SELECT twice(3)",
    "SET VARIABLE least = 2; SELECT * FROM pass_rates WHERE n > getvariable('least')",
    "SET TimeZone = 'Europe/Berlin'; SELECT started_at FROM rollouts",
    "EXPLAIN /* ü */ ANALYZE (FORMAT json) SELECT count(*) FROM steps",
    "PIVOT rollouts ON status USING count(*) GROUP BY source",
    "BEGIN; DROP VIEW failures; ROLLBACK; FROM failures",
    "PRAGMA table_info('rollouts')",
]
REFUSED = [
    *(sql for sql in ATTACKS if sql.strip() and not sql.startswith(("CREATE", "DROP", "SELECT 1;", "SELEC "))),
    "COPY (SELECT 1) TO '{live}' (USE_TMP_FILE false)",
    "COPY rollouts TO '{lake}/rollouts/more.parquet'",
    "EXPLAIN ANALYZE -- no comment\n COPY (SELECT 1) TO '{lake}/rollouts/more.parquet'",
    "EXPLAIN (ANALYZE, FORMAT json) COPY (SELECT 1) TO '{lake}/rollouts/more.parquet'",
    "PREPARE p AS COPY (SELECT 1) TO '{lake}/rollouts/more.parquet'; EXECUTE p",
    "SELECT 1; COPY (SELECT 1) TO '{lake}/rollouts/more.parquet'; SELECT 2",
    "ATTACH ':memory:' AS other",
    "IMPORT DATABASE '{folder}'",
    "CREATE SECRET (TYPE s3)",
    "CREATE PERSISTENT SECRET (TYPE http)",
    "SET allowed_directories = ['/']",
    "SET lock_configuration = false",
    "SET temp_directory = '{folder}'",
    "SET log_query_path = '{folder}/log'",
    "UPDATE EXTENSIONS",
    "FROM '{lake}/../secret.csv'",
    "FROM read_csv('{lake}/rollouts/../../secret.csv')",
    "FROM read_csv('{lake}/rollouts/out/secret.csv')",
]


@pytest.mark.parametrize("sql", IN_MEMORY)
def test_the_command_line_runs_all_that_stays_in_memory(lake: Path, sql: str) -> None:
    execute(connect(lake, locked=True), sql, lake=lake)


def test_the_command_line_runs_nothing_else(lake: Path, capsys: pytest.CaptureFixture[str], thorough: bool) -> None:
    """All that is refused with `--thorough`, else one in five."""
    folder = lake.parent
    (live,) = lake.glob("rollouts/source=*/day=*/*.parquet")
    (lake / "rollouts" / "out").symlink_to(folder)
    before = every_file(folder)
    for sql in REFUSED if thorough else REFUSED[::5]:
        code = run(["sql", sql.format(folder=folder, lake=lake, live=live), "--lake", str(lake)])
        out, err = capsys.readouterr()
        assert (code, out, err.count("\n")) == (2, "", 1), sql
        assert "--unsafe" in err or "getenv" in sql or "query(" in sql, err
    (lake / "rollouts" / "out").unlink()
    before.pop(lake / "rollouts" / "out", None)
    assert every_file(folder) == before


def test_unsafe_lifts_it(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = f"COPY (SELECT count(*) AS n FROM rollouts) TO '{tmp_path}/n.csv'; FROM '{tmp_path}/n.csv'"
    assert run(["sql", sql, "--unsafe", "--csv", "--lake", str(lake)]) == 0
    assert capsys.readouterr().out == "n\n1\n"


def test_a_locked_connection_sees_what_came_since(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [refund()])
    connection = connect(lake.root, locked=True)
    execute(connection, "CREATE TABLE mine AS SELECT 1")
    add_files(lake, "/logs/a.jsonl")
    open_views(connection, lake.root)
    ((mine, files),) = execute(connection, "SELECT (SELECT count(*) FROM mine), count(*) FROM sources").rows
    assert (mine, files) == (1, 1)


def test_conditions_read_the_lake_alone(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = ["export", "openai", "--lake", str(lake), "--out", str(tmp_path / "out")]
    forget = ["forget", "--lake", str(lake), "--yes"]
    before = every_file(lake.parent)
    for option, text in [
        ("--where", f"rollout_id IN (SELECT a FROM read_csv('{lake.parent}/secret.csv'))"),
        ("--where", "rollout_id IN (SELECT content FROM read_text('/etc/passwd'))"),
        ("--ground-truth", "(SELECT content FROM read_text('/etc/passwd'))"),
        ("--where", f"true) mine; COPY (SELECT 1) TO '{tmp_path}/written'; FROM (SELECT 1"),
    ]:
        for command in (export, forget) if option == "--where" else (export,):
            assert run([*command, option, text]) == 2, text
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert "--unsafe" not in said
            assert "passwd" not in said or "a condition reads this lake alone" in said
    for command in (export, forget):
        assert run([*command, "--where", "nope = 1"]) == 2
        assert "(line " not in capsys.readouterr().err, "nobody typed the lines around a condition"
    assert every_file(lake.parent) == before
    assert not list(tmp_path.iterdir())
    assert run(["export", "whileai", *export[2:], "--where", "true -- all of them"]) == 0


def test_what_outgrows_memory_is_parked_in_a_folder_of_this_process_alone(lake: Path) -> None:
    connection = connect(lake, locked=True, memory_limit="120MB")
    sql = "SELECT range, repeat('x', 100) || range AS s FROM range(2_000_000) ORDER BY hash(range)"
    assert len(list(zip(execute(connection, sql).rows, range(5), strict=False))) == 5
    folder = Path(str(connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0])).parent
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_folders_are_the_tables() -> None:
    assert tuple(TABLES) == FOLDERS


def test_only_one_statement_that_reads_passes() -> None:
    connection = duckdb.connect()
    only_select(connection, "FROM range(3)")
    for sql in ("SELECT 1; SELECT 2", "SET threads = 1", "EXPLAIN SELECT 1", "", "BEGIN"):
        with pytest.raises(UsageError):
            only_select(connection, sql)


def test_a_query_of_a_page_is_interrupted() -> None:
    connection = duckdb.connect()
    began = time.monotonic()
    with pytest.raises(duckdb.InterruptException), time_limit(connection, 0.3):
        connection.execute("SELECT count(*) FROM range(10_000_000_000) AS a(i) WHERE hash(i) = 1").fetchall()
    assert time.monotonic() - began < 60


def test_a_question_is_ended_when_its_time_is_over(lake: Path) -> None:
    began = time.monotonic()
    with pytest.raises(UsageError, match="no answer within"):
        ask(str(lake), "SELECT count(*) FROM range(100_000_000_000) AS a(i) WHERE hash(i) = 1", seconds=2)
    assert time.monotonic() - began < 60


def test_an_answer_is_cut_and_says_so(lake: Path) -> None:
    found = ask(str(lake), "SELECT range AS n, NULL AS nothing, repeat('x', 3000) AS long FROM range(501)").table
    assert (len(found.rows), found.more) == (500, True)
    assert found.rows[0][:2] == ["0", None]
    assert str(found.rows[0][2]).endswith("… 1,000 more characters")
    with pytest.raises(UsageError, match="longer than"):
        ask(str(lake), "SELECT 1 -- " + "x" * 20_000)


@pytest.mark.slow
def test_a_question_that_wants_too_much_memory_is_refused(lake: Path) -> None:
    with pytest.raises(UsageError, match=r"(?i)memory|no answer within"):
        ask(str(lake), "SELECT list(repeat('x', 1000) || range) FROM range(50_000_000)")


@pytest.mark.parametrize("sql", ["INSTALL httpfs", "/* a */ force install httpfs", "EXPLAIN ANALYZE INSTALL httpfs"])
def test_what_is_refused_is_called_by_its_name(lake: Path, sql: str) -> None:
    """DuckDB has one kind for INSTALL and LOAD."""
    with pytest.raises(UsageError, match="^INSTALL is not run here" if "EXPLAIN" not in sql else "not run here|syntax"):
        execute(connect(lake, locked=True), sql)


@pytest.mark.parametrize("sql", ["SHOW TABLES", "show all tables;", "SELECT 1; SHOW TABLES"])
def test_tables_that_others_are_made_of_are_not_listed(lake: Path, sql: str) -> None:
    """They are there for who names them."""
    answer = execute(connect(lake, locked=True), sql)
    names = {row[answer.names.index("name")] for row in answer.rows}
    assert {"rollouts", "steps", "rejects"} <= names
    assert not {name for name in names if name.startswith("etl_")}
