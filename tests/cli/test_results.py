"""SQL results as tables, CSV and JSON, on a plain DuckDB connection."""

import io
import json

import duckdb
import pytest
from rich.console import Console

from etl.cli.results import print_csv, print_json_answer, print_table
from etl.cli.tables import PIPE_CELL, print_listing, print_rows
from etl.query import Answer, execute


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        opened.execute("SET TimeZone = 'UTC'")
        opened.execute("CREATE TABLE t AS SELECT range AS n, 'text ' || range AS s FROM range(10)")
        yield opened


def test_the_last_statement_gives_the_result(connection, capsys):
    print_csv(execute(connection, "CREATE VIEW v AS SELECT 1 AS a; SELECT a, '' AS b, NULL AS c, 'x,y' AS d FROM v"))
    assert capsys.readouterr().out == 'a,b,c,d\n1,"",,"x,y"\n'


def test_a_statement_without_result_prints_nothing(connection, capsys):
    print_table(execute(connection, "CREATE VIEW w AS SELECT 1"), None)
    assert capsys.readouterr().out == ""
    print_json_answer(execute(connection, "SET threads = 1"))
    assert json.loads(capsys.readouterr().out)["row_count"] == 0


def test_json_keeps_columns_of_one_name_apart(connection, capsys):
    print_json_answer(execute(connection, "SELECT * FROM (SELECT 1 AS a), (SELECT 2 AS a), (SELECT 3 AS a_2)"))
    printed = json.loads(capsys.readouterr().out)
    assert [list(row.values()) for row in printed["rows"]] == [[1, 2, 3]]
    assert printed["columns"][0] == {"name": "a", "type": "INTEGER"}


def test_json_of_nested_and_wide_values(connection, capsys):
    print_json_answer(
        execute(
            connection,
            "SELECT sum(9223372036854775807) AS big, {'x': [1, NULL]} AS nested, 'NaN'::DOUBLE AS nan FROM t",
        )
    )
    assert json.loads(capsys.readouterr().out)["rows"] == [
        {"big": 92233720368547758070, "nested": {"x": [1, None]}, "nan": None}
    ]


def test_cells_in_a_pipe_have_a_bounded_length(connection, capsys):
    late = "CASE WHEN range >= 1000 THEN repeat('x', 9999) ELSE 'x' END"
    for query, rows in (("SELECT repeat(s, 100) AS long, n FROM t", 10), (f"SELECT {late}, 1 FROM range(1010)", 1010)):
        print_table(execute(connection, query), None)
        out, err = capsys.readouterr()
        lines = out.splitlines()
        assert len(lines) == rows + 2
        assert max(map(len, lines)) < PIPE_CELL + 10
        assert sum("…" in line for line in lines) == 10
        assert not any(line.endswith(" ") for line in lines)
        assert err == f"cells are cut at {PIPE_CELL} characters; --csv, --json and --out give them whole\n"


def test_a_single_column_in_a_pipe_is_whole(connection, capsys):
    print_table(execute(connection, "SELECT repeat(s, 100) AS long FROM t"), None)
    out, err = capsys.readouterr()
    assert out.count("text 9") == 100
    assert err == ""


def test_numbers_of_a_table_are_rounded_for_people(connection, capsys):
    query = "SELECT 0.8021290531846266::DOUBLE, 12345.678901::DOUBLE, 1e-7 / 3, 'inf'::DOUBLE, 1 / 3, 2.0::DOUBLE"
    print_table(execute(connection, query), None)
    assert capsys.readouterr().out.splitlines()[-1].split() == [
        "0.8021",
        "12345.6789",
        "3.333e-08",
        "inf",
        "0.3333",
        "2.0",
    ]
    print_csv(execute(connection, query))
    assert capsys.readouterr().out.splitlines()[-1].startswith("0.8021290531846266,12345.678901,")


def test_a_table_that_was_cut_says_so(connection, capsys):
    print_table(execute(connection, "SELECT n FROM t"), 3)
    out, err = capsys.readouterr()
    assert [line.strip() for line in out.splitlines()] == ["n", "─", "0", "1", "2"]
    assert "first 3 rows" in err


def test_explain_keeps_its_lines(connection, capsys):
    print_table(execute(connection, "EXPLAIN SELECT * FROM t"), None)
    assert len(capsys.readouterr().out.splitlines()) > 3


def test_a_terminal_too_narrow_for_the_columns_shows_records():
    written = io.StringIO()
    out = Console(file=written, force_terminal=True, width=40, color_system=None)
    print_rows(out, [f"column_{n}" for n in range(8)], [list(range(8)), ["\x1b[2J"] * 8])
    assert "column_7  7" in written.getvalue()
    assert "\x1b[2J" not in written.getvalue()


def test_json_holds_nothing_that_a_terminal_obeys(connection, capsys):
    print_json_answer(execute(connection, 'SELECT chr(27) || chr(155) || chr(8238) || chr(127) AS "a\u202eb"'))
    out = capsys.readouterr().out
    assert json.loads(out)["rows"] == [{"a\u202eb": "\x1b\x9b\u202e\x7f"}]
    assert not set(out) & set("\x1b\x9b\u202e\x7f")


@pytest.mark.parametrize("on_a_terminal", [False, True])
def test_csv_is_harmless_on_a_terminal_and_exact_in_a_pipe(connection, capsys, monkeypatch, on_a_terminal):
    monkeypatch.setattr("sys.stdout.isatty", lambda: on_a_terminal)
    print_csv(execute(connection, "SELECT chr(27) || '[2J' AS a, 'ü' AS b"))
    assert capsys.readouterr().out == f"a,b\n{'␛' if on_a_terminal else chr(27)}[2J,ü\n"


def test_a_listing_in_a_narrow_window_shows_records():
    written = io.StringIO()
    out = Console(file=written, force_terminal=True, width=40, color_system=None)
    print_listing(out, ["source", "state", "records", "file"], [["a" * 20, "growing", 7, "/logs/" + "x" * 60]])
    assert f"   file  /logs/{'x' * 60}" in written.getvalue()


def test_a_long_table_begins_at_once_and_ends_whole(connection, capsys):
    """Rows are asked for as they are printed; a later, longer cell is not cut."""
    asked = 0

    def rows():
        nonlocal asked
        for asked in range(1, 5_001):
            yield (asked, "x" * (50 if asked == 4_000 else 3))
            if asked == 4_999:
                assert capsys.readouterr().out.count("\n") > 4_000

    answer = Answer(["n", "text"], ["INTEGER", "VARCHAR"], rows())
    print_table(answer, None)
    assert capsys.readouterr().out == "5000   xxx\n" or asked == 5_000
    print_table(Answer(["n"], ["INTEGER"], iter([(n,) for n in range(2_500)])), 2_000)
    out, err = capsys.readouterr()
    assert out.count("\n") == 2_002
    assert "first 2000 rows" in err


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.jsonl", "a.parquet"])
def test_an_answer_as_a_file(sample_lake, tmp_path, etl, name):
    out = tmp_path / name
    sql = "SET VARIABLE x = 3; SELECT range AS n, 'ü' AS s, [1, 2] AS many FROM range(getvariable('x'))"
    assert etl("sql", sql, "--out", out, "--lake", sample_lake)[:2] == (0, f"wrote 3 rows to {out}\n")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    read = {"csv": "read_csv", "parquet": "read_parquet", "jsonl": "read_json"}.get(name.rpartition(".")[2])
    if read is None:
        assert json.loads(out.read_text())["row_count"] == 3
    else:
        assert duckdb.connect().execute(f"SELECT n, s FROM {read}('{out}')").fetchall() == [(n, "ü") for n in range(3)]


@pytest.mark.parametrize(("name", "code"), [("a.xlsx", 2), ("nowhere/a.csv", 1)])
def test_a_file_that_cannot_be_written_is_one_line(sample_lake, tmp_path, etl, name, code):
    got, out, err = etl("sql", "SELECT 1", "--out", tmp_path / name, "--lake", sample_lake)
    assert (got, out, err.count("\n")) == (code, "", 1)
    assert list(tmp_path.iterdir()) == []
