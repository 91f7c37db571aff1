"""`etl shell`: when a statement is whole, what completion offers, what a script in a pipe does."""

import json

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from etl.cli.prompt import Prompt, history_file
from etl.errors import UsageError


@pytest.fixture(scope="module")
def prompt(sample_lake):
    return Prompt(str(sample_lake))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT ';\n';", True),
        ('SELECT 1 AS ";', False),
        ("SELECT 1 /* ;", False),
        ("SELEC;", True),
        (".tables", True),
        ("", True),
        ("  \n", True),
    ],
)
def test_is_whole(prompt, text, whole):
    assert prompt.is_whole(text) is whole


def test_words_name_tables_columns_keywords_functions(prompt):
    offered = prompt.words()
    assert {"rollouts", "steps", "reward", "tool", "SELECT", "count(", "wilson_low(", ".tables"} <= set(offered)
    assert len(offered) == len(set(offered))
    assert offered.index("steps") < offered.index("started_at") < offered.index("SELECT") < offered.index("stats(")


def test_a_script_runs_statement_by_statement(prompt, capsys):
    prompt.run_script(
        ".tables\nSELECT 'a;\nb' AS x;\n\n.columns rollouts\n.reload\n.help\n"
        "SELECT 2 AS y; SELECT 3 AS z;\nSELECT count(*) > 100 AS last FROM rollouts"
    )
    out = capsys.readouterr().out
    assert "sources" in out
    assert "a;\u240ab" in out
    assert "final_text" in out
    assert ".columns NAME" in out
    assert out.split()[-1] == "true"


def test_quit_ends_a_script(sample_lake, capsys):
    Prompt(str(sample_lake), as_json=True).run_script("SELECT 1 AS a;\n.quit\nSELECT 2 AS b;")
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"columns": [{"name": "a", "type": "INTEGER"}], "rows": [{"a": 1}], "row_count": 1}


@pytest.mark.parametrize("script", [".nope", "SELECT * FROM nowhere;", ".columns", ".columns nowhere"])
def test_the_first_error_ends_a_script(prompt, capsys, script):
    with pytest.raises(UsageError):
        prompt.run_script(f"{script}\nSELECT 1;")
    assert capsys.readouterr().out == ""


def test_history_lies_in_the_state_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "etl" / "history"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history_file() == tmp_path / ".local" / "state" / "etl" / "history"


def test_the_prompt_goes_on_after_an_error_and_keeps_history(prompt, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with create_pipe_input() as typed, create_app_session(input=typed, output=DummyOutput()):
        typed.send_text("SELECT nope;\rSELECT\r42 AS answer;\r.quit\r")
        prompt.ask()
    out, err = capsys.readouterr()
    assert "42" in out
    assert "nope" in err
    assert "+42 AS answer;" in history_file().read_text()
    assert history_file().stat().st_mode & 0o077 == 0
