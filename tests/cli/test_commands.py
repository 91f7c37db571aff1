"""Every command, run in this process: what it prints, its one JSON object, its exit code."""

import json
import shutil

import click
import pytest

from etl import adapters as etl_adapters
from etl.adapter import adapters
from etl.cli import cli, run
from etl.cli.exits import DONE, DONE_WITH_FAILURES, FAILED, WRONG_USAGE
from etl.errors import UsageError
from etl.pipeline import replay
from tests.lakes import rows

NOTHING = dict.fromkeys(("grown", "replaced", "moved", "unchanged", "skipped", "failed", "vanished"), 0)
GOOD = '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}\n'


@pytest.fixture
def logs(tmp_path):
    """A folder with one good file."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "good.jsonl").write_text(GOOD)
    return folder


@pytest.mark.parametrize("name", list(cli.commands))
def test_every_command_explains_itself(etl, name):
    code, out, _err = etl(name, "--help")
    assert code == DONE
    command = cli.commands[name]
    assert command.get_short_help_str(limit=200).endswith(".")
    assert "--json" in out
    for parameter in command.params:
        assert isinstance(parameter, click.Argument) or parameter.help, f"{name} {parameter.name} has no help"


def test_ingest_prints_the_object_of_the_contract(etl, logs, tmp_path):
    (logs / "torn.jsonl").write_text(GOOD + GOOD[:30])
    code, out, err = etl("ingest", logs, "--lake", tmp_path / "lake", "--json")
    assert (code, err) == (DONE, "")
    told = json.loads(out)
    assert list(told) == [
        "batch_id", "files", "records_in", "records_used", "rows", "rejects", "ignored", "by_adapter", "seconds",
        "bytes_read", "copies", "drift",
    ]  # fmt: skip
    assert told["copies"] == 1, "the same conversation is in two files"
    assert told["files"] == {"seen": 2, "new": 2, **NOTHING}
    assert list(told["rows"]) == ["added", "replaced", "removed", "unchanged"]
    assert told["rejects"] == {"torn_tail": 1}


def test_ingest_tells_people_what_came_in_and_what_did_not(etl, logs, tmp_path):
    (logs / "torn.jsonl").write_text(GOOD + GOOD[:30])
    (logs / "pointer.jsonl").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    (logs / "notes.md").write_text("# notes\n")
    code, out, err = etl("ingest", logs, "--lake", tmp_path / "lake")
    assert (code, err) == (DONE_WITH_FAILURES, "")
    assert "4 seen: 2 new, 0 grown, 0 unchanged, 1 skipped, 1 failed" in out
    assert f"rejected 1 for torn_tail, first at {logs / 'torn.jsonl'}:2" in out
    assert "pointer.jsonl: a Git LFS pointer" in out
    assert f"→ etl sources --state failed --lake {tmp_path / 'lake'}" in out


def test_whatever_fails_is_named(etl, tmp_path):
    table, text = tmp_path / "table", tmp_path / "text"
    table.write_bytes(b"PAR1 and no more")
    text.write_bytes(GOOD.encode("utf-16") + b"\x00")
    for told in (etl("ingest", table, text, "--lake", tmp_path / "lake"), etl("sources", "--lake", tmp_path / "lake")):
        for path in (table, text):
            assert told[1].count(str(path)) == 1, told[1]


def test_a_dry_run_writes_nothing(etl, logs, tmp_path):
    code, out, _err = etl("ingest", logs, "--lake", tmp_path / "lake", "--dry-run")
    assert code == DONE
    assert out.startswith("Dry run, nothing written")
    assert not (tmp_path / "lake").exists()
    code, out, _err = etl("ingest", logs, "--lake", tmp_path / "lake", "--json")
    assert json.loads(out)["rows"]["added"] == 1


def test_where_no_file_is_no_lake_is_made(etl, logs, tmp_path):
    """A night without logs is no failure, and is told."""
    (tmp_path / "empty").mkdir()
    for arguments in ([tmp_path / "empty"], [logs, "--exclude", "*"]):
        code, _out, err = etl("ingest", *arguments, "--lake", tmp_path / "lake")
        assert (code, err) == (DONE, "there is no file where it was to look, or all are excluded\n")
        assert not (tmp_path / "lake").exists()
    etl("ingest", logs, "--lake", tmp_path / "lake")
    code, out, _err = etl("ingest", tmp_path / "empty", "--lake", tmp_path / "lake", "--json")
    assert (code, json.loads(out)["files"]["seen"]) == (DONE, 0)


@pytest.mark.parametrize(("arguments", "code"), [((), DONE), (("--fail-on-reject",), DONE_WITH_FAILURES)])
def test_a_reject_fails_the_run_only_where_asked(etl, logs, tmp_path, arguments, code):
    (logs / "good.jsonl").write_text(GOOD + "{\n" + GOOD)
    assert etl("ingest", logs, "--lake", tmp_path / "lake", *arguments)[0] == code


def test_the_options_of_ingest_arrive(etl, logs, tmp_path):
    (logs / "left-out.jsonl").write_text(GOOD)
    lake = tmp_path / "lake"
    code, out, _err = etl(
        "ingest", logs, "--lake", lake, "--source", "prod", "--format", "openai_messages", "--exclude", "left-*",
        "--redact", "none", "--workers", "2", "--json",
    )  # fmt: skip
    assert code == DONE
    assert json.loads(out)["files"]["seen"] == 1
    code, out, _err = etl("sql", "SELECT source, adapter FROM rollouts", "--csv", "--lake", lake)
    assert out == "source,adapter\nprod,openai_messages\n"
    code, out, _err = etl("ingest", logs / "good.jsonl", "--lake", lake, "--source", "prod", "--reparse", "--json")
    assert json.loads(out)["rows"]["added"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ingest"], "name what to read: PATH..., --agent-homes or --config etl.toml"),
        (["ingest", "nowhere/*.jsonl"], "no such file"),
        (["ingest", ".", "--format", "nonsense"], "known formats: "),
        (["ingest", ".", "--redact", "everything"], "--redact"),
        (["ingest", ".", "--workers", "0"], "--workers"),
        (["sql", "SELECT 1", "--nonsense"], "--nonsense"),
        (["sql", "  "], "no SQL given"),
        (["sql", "SELECT 1", "--csv", "--json"], "exclude each other"),
        (["detect", "nowhere.json"], "does not exist"),
        (["nonsense"], "nonsense"),
        (["--lake", "x", "sql", "SELECT 1"], "options follow the command: etl COMMAND --lake"),
        (["retain", "٣d"], "give a duration such as 24h"),
        (
            ["redact", "--redact", "pii"],
            "`etl redact --redact pii --dry-run` to only look, `etl redact --redact pii --check`",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(etl, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _out, err = etl(*arguments)
    assert code == WRONG_USAGE
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("etl: ")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELEC 1", WRONG_USAGE),
        ("SELECT nope FROM rollouts", WRONG_USAGE),
        ("SELECT prompt::INTEGER FROM rollouts", FAILED),
    ],
)
def test_wrong_sql_is_wrong_usage_and_failing_sql_a_failure(etl, sample_lake, query, code):
    got, out, err = etl("sql", query, "--lake", sample_lake)
    assert (got, out, err.count("\n")) == (code, "", 1)


@pytest.mark.parametrize(
    "command", [["sql", "SELECT 1"], ["shell"], ["show", "r_0"], ["sources"], ["rejects"], ["verify"]]
)
def test_without_a_lake_nothing_is_made(etl, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    code, out, err = etl(*command, "--json")
    assert code == FAILED
    assert json.loads(out)["error"]["kind"] == "LakeError"
    assert "etl ingest" in err
    assert list(tmp_path.iterdir()) == []


def test_the_environment_names_the_lake(etl, monkeypatch, sample_lake):
    monkeypatch.setenv("ETL_LAKE", str(sample_lake))
    code, out, _err = etl("sql", "SELECT count(*) > 100 AS many FROM rollouts", "--json")
    assert (code, json.loads(out)["rows"]) == (DONE, [{"many": True}])


def test_sql_from_stdin(etl, monkeypatch, sample_lake, tmp_path):
    script = tmp_path / "query.sql"
    script.write_text("SELECT 'ü' AS x")
    with script.open(encoding="utf-8") as opened:
        monkeypatch.setattr("sys.stdin", opened)
        assert etl("sql", "-", "--csv", "--lake", sample_lake)[1] == "x\nü\n"


def test_show_reads_a_row_by_the_beginning_of_its_id(etl, sample_lake):
    _code, out, _err = etl("sql", "SELECT min(rollout_id) AS id FROM rollouts", "--csv", "--lake", sample_lake)
    rollout_id = out.split()[1]
    code, out, _err = etl("show", rollout_id[:14], "--lake", sample_lake)
    assert code == DONE
    assert out.startswith(rollout_id)
    assert "\x1b" not in out
    code, out, _err = etl("show", rollout_id, "--lake", sample_lake, "--json")
    assert json.loads(out)["rollout_id"] == rollout_id
    code, _out, err = etl("show", "r_", "--lake", sample_lake)
    assert code == WRONG_USAGE
    assert "more than one" in err


def test_formats_and_detect(etl, samples):
    code, out, _err = etl("formats", "--json")
    names = [known["name"] for known in json.loads(out)["formats"]]
    assert code == DONE
    assert {"openai_messages", "tau_bench"} <= set(names)
    code, out, _err = etl("formats", "codex", "--json")
    assert [known["name"] for known in json.loads(out)["formats"]] == ["codex"]
    assert "known formats: " in etl("formats", "nonsense")[2]
    code, out, _err = etl("formats")
    assert all(name in out for name in names)
    code, out, _err = etl("detect", samples / "openai_messages" / "chat.jsonl", "--json")
    told = json.loads(out)
    assert (told["format"], next(iter(told["scores"]))) == ("openai_messages", "openai_messages")
    code, out, _err = etl("detect", samples / "openai_messages" / "chat.jsonl")
    assert "openai_messages" in out


def test_detect_says_why_it_cannot_tell(etl, tmp_path):
    file = tmp_path / "strange.jsonl"
    file.write_text('{"alpha": {"b": 1}}\n{"alpha": {"b": 2}}\n')
    code, _out, err = etl("detect", file)
    assert code == FAILED
    assert "--format" in err


def test_detect_tells_of_several_files_and_goes_on_after_one_that_it_cannot_tell(etl, samples, tmp_path):
    strange = tmp_path / "strange.jsonl"
    strange.write_text('{"alpha": {"b": 1}}\n{"alpha": {"b": 2}}\n')
    known = samples / "openai_messages" / "chat.jsonl"
    code, out, err = etl("detect", strange, known)
    assert (code, "--format" in err, f"{known}: openai_messages" in out) == (FAILED, True, True)
    code, out, _err = etl("detect", strange, known, "--json")
    assert [told["format"] for told in json.loads(out)["files"]] == [None, "openai_messages"]
    assert (code, etl("detect", known, known)[0]) == (FAILED, DONE)


def test_an_adapter_of_ones_own_that_cannot_be_loaded_is_named_and_no_fault_of_etl(monkeypatch, tmp_path):
    load = adapters.__wrapped__
    own = etl_adapters.__path__[0]
    (tmp_path / "phonebot.py").write_text("def score(")
    monkeypatch.setattr(etl_adapters, "__path__", [own, str(tmp_path)])
    with pytest.raises(UsageError, match=r"the adapter \S+/phonebot.py cannot be loaded: SyntaxError: .*line 1"):
        load()
    monkeypatch.setattr(etl_adapters, "__path__", [own, str(tmp_path / "gone")])
    with pytest.raises(UsageError, match=r"ETL_ADAPTERS names .*gone, which is no folder"):
        load()


def test_sources_and_rejects_account_for_every_file_and_record(etl, sample_lake):
    code, out, _err = etl("sources", "--lake", sample_lake, "--json")
    files = json.loads(out)["sources"]
    assert code == DONE
    assert {file["state"] for file in files} >= {"done", "skipped"}
    code, out, _err = etl("rejects", "--lake", sample_lake, "--json")
    rejects = json.loads(out)["rejects"]
    assert len(rejects) == sum(file["rejects"] for file in files)
    code, out, _err = etl("rejects", "--lake", sample_lake, "--reason", "torn_tail")
    assert out.count("torn_tail") >= 1
    assert "not_json" not in out
    code, out, err = etl("sources", "--lake", sample_lake, "--state", "failed")
    assert (code, out, err) == (DONE, "", "no sources\n")


def test_replay_reads_rejects_again_after_a_fix(etl, logs, tmp_path):
    lake = tmp_path / "lake"
    long = GOOD.replace("hello", "h" * (2 << 20))
    (logs / "long.jsonl").write_text(long)
    _code, out, _err = etl("ingest", logs, "--lake", lake, "--max-record-mb", "1", "--json")
    assert json.loads(out)["rejects"] == {"too_long": 1}
    code, out, _err = etl("rejects", "--replay", "--reason", "too_long", "--lake", lake, "--json")
    assert (code, json.loads(out)["rows"]["added"]) == (DONE, 1)
    code, out, err = etl("rejects", "--lake", lake)
    assert (code, out, err) == (DONE, "", "no rejects\n")
    code, out, _err = etl("rejects", "--replay", "--lake", lake)
    assert (code, "0 seen" in out) == (DONE, True)


def test_nesting_is_a_limit_that_can_be_set(etl, tmp_path):
    lake, log = tmp_path / "lake", tmp_path / "deep.jsonl"
    log.write_text(GOOD.replace('{"messages"', '{"extra": ' + "[" * 60 + "]" * 60 + ', "messages"', 1) + "\n")
    _code, out, _err = etl("ingest", log, "--lake", lake, "--max-nesting", "50", "--json")
    assert json.loads(out)["rejects"] == {"too_deep": 1}
    _code, out, _err = etl("rejects", "--lake", lake, "--json")
    assert "raise --max-nesting and give --reparse" in json.loads(out)["rejects"][0]["message"]
    _code, out, _err = etl("ingest", log, "--lake", lake, "--reparse", "--json")
    assert (json.loads(out)["rejects"], json.loads(out)["rows"]["added"]) == ({}, 1)


def test_replay_takes_back_nothing_that_was_redacted(etl, logs, tmp_path):
    lake, address = tmp_path / "lake", "eva.braun@" + "firma-berg.de"
    (logs / "mixed.jsonl").write_text(GOOD.replace("hello", address) + GOOD[:30] + "\n")
    assert etl("ingest", logs, "--source", "a", "--redact", "pii", "--lake", lake)[0] == DONE
    code, out, _err = etl("rejects", "--replay", "--lake", lake)
    assert (code, "1 new" in out) == (DONE, True)
    assert b"EMAIL" in (told := etl("sql", "SELECT final_text FROM rollouts", "--lake", lake)[1].encode())
    assert address.encode() not in told
    assert replay(lake, source="a").rejects()
    assert not any(address in str(row) for table in ("rollouts", "rejects") for row in rows(lake, table))
    assert etl("ingest", logs, "--source", "b", "--lake", lake)[0] == DONE
    code, _out, err = etl("rejects", "--replay", "--lake", lake)
    assert (code, "(a: pii, b: secrets): give --source" in err) == (WRONG_USAGE, True)
    assert etl("rejects", "--replay", "--source", "b", "--lake", lake)[0] == DONE


def test_replay_makes_no_lake(etl, tmp_path):
    assert etl("rejects", "--replay", "--lake", tmp_path / "nowhere")[0] == FAILED
    assert list(tmp_path.iterdir()) == []


def test_verify_exits_1_on_what_it_does_not_repair(etl, logs, tmp_path):
    lake = tmp_path / "lake"
    etl("ingest", logs, "--lake", lake)
    assert etl("verify", "--lake", lake) == (DONE, "", "the lake is sound\n")
    (data,) = lake.glob("rollouts/source=*/day=*/*.parquet")
    shutil.copy(data, data.with_name("left-over.parquet"))
    code, out, _err = etl("verify", "--lake", lake, "--json")
    assert (code, json.loads(out)["sound"]) == (FAILED, False)
    assert etl("verify", "--lake", lake, "--repair")[0] == DONE
    data.write_bytes(b"PAR1")
    assert etl("verify", "--lake", lake, "--repair")[0] == FAILED


@pytest.mark.slow
def test_the_demo_answers_its_questions_and_spares_a_lake_in_use(etl, logs, tmp_path):
    lake = tmp_path / "lake"
    code, out, err = etl("demo", "--lake", lake)
    assert (code, err) == (DONE, "")
    assert "What could not be used" in out
    assert f"--lake {lake}" in out
    code, out, _err = etl("demo", "--lake", lake, "--json")
    told = json.loads(out)
    assert told["ingest"]["rows"]["added"] == 0
    assert all(question["rows"] for question in told["questions"])
    etl("ingest", logs, "--lake", lake)
    code, _out, err = etl("demo", "--lake", lake)
    assert code == WRONG_USAGE
    assert "a lake of its own" in err


@pytest.fixture
def broken(monkeypatch):
    """A command with a fault of ours in it."""

    @click.command()
    def boom():
        raise ValueError("a\x1b[2J\nfault")

    monkeypatch.setitem(cli.commands, "boom", boom)


def test_a_fault_of_ours_is_one_line(etl, broken):
    code, _out, err = etl("boom")
    assert code == FAILED
    assert err.count("\n") == 1
    assert "a fault of etl" in err
    assert "ETL_DEBUG=1" in err
    assert "\x1b" not in err


def test_what_the_machine_refuses_is_no_fault_of_ours(etl, monkeypatch):
    @click.command()
    def refused():
        raise PermissionError(13, "Permission denied", "/a/lake")

    monkeypatch.setitem(cli.commands, "refused", refused)
    code, _out, err = etl("refused")
    assert (code, err) == (FAILED, "etl: /a/lake: Permission denied; nothing half-written is visible\n")


def test_debugging_shows_the_traceback(broken, monkeypatch):
    monkeypatch.setenv("ETL_DEBUG", "1")
    with pytest.raises(ValueError, match="fault"):
        run(["boom"])


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("etl ing", "plain,ingest"),
        ("etl ingest --form", "plain,--format"),
        ("etl ingest --format tau", "plain,tau_bench"),
    ],
)
def test_the_shell_completes(monkeypatch, capsys, words, offered):
    monkeypatch.setenv("_ETL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        run([])
    assert offered in capsys.readouterr().out.splitlines()
