"""`etl ingest --config etl.toml`: every source of the file, what each run leaves, and what it does differently."""

import http.server
import json
import threading

import pytest

from etl.cli.exits import DONE, DONE_WITH_FAILURES, WRONG_USAGE
from etl.intervals import Rate
from etl.report import FileResult, Report
from etl.runs import SourceRun, drift
from etl.telemetry import _sums
from tests.lakes import rows


def _chat(number):
    return json.dumps(
        {"messages": [{"role": "user", "content": f"hi {number}"}, {"role": "assistant", "content": "yo"}]}
    )


@pytest.fixture
def night(tmp_path):
    """A folder with two sources and their etl.toml."""
    for source in ("support", "sales"):
        (tmp_path / "logs" / source).mkdir(parents=True)
        (tmp_path / "logs" / source / "a.jsonl").write_text("".join(f"{_chat(n)}\n" for n in range(40)))
    config = tmp_path / "etl.toml"
    config.write_text(
        """
        lake = "lake"
        report = "out/last.json"
        [defaults]
        redact = "secrets"
        exclude = ["old*"]
        [[sources]]
        name = "support"
        paths = ["logs/support"]
        [[sources]]
        name = "sales"
        paths = ["logs/sales/*.jsonl"]
        format = "openai_messages"
        """
    )
    return config


def test_a_night_reads_every_source_and_leaves_reports(etl, night):
    folder = night.parent
    (folder / "logs/support/old.jsonl").write_text(_chat(99))
    code, out, _err = etl("ingest", "--config", night, "--json")
    told = json.loads(out)
    assert code == DONE
    assert told == json.loads((folder / "out/last.json").read_text())
    assert told["rows"]["added"] == told["records_in"] == 80
    assert {row["source"] for row in rows(folder / "lake")} == {"support", "sales"}
    assert sorted(path.stem for path in (folder / "lake/reports").iterdir()) == sorted(told["batch_ids"])
    kept = json.loads((folder / f"lake/reports/{told['batch_ids'][0]}.json").read_text())
    assert kept["by_source"]["support"]["adapters"] == {"openai_messages": 1}
    code, out, _err = etl("ingest", "--config", night, "--json")
    files = json.loads(out)["files"]
    assert {name: count for name, count in files.items() if count} == {"seen": 2, "unchanged": 2}


def test_a_source_that_is_not_there_costs_itself_alone(etl, night):
    night.write_text(night.read_text().replace("logs/support", "logs/nowhere"))
    code, out, _err = etl("ingest", "--config", night, "--json")
    assert code == DONE_WITH_FAILURES
    told = json.loads(out)
    assert "nowhere" in told["failed"]["support"]
    assert told["rows"]["added"] == 40
    code, out, _err = etl("ingest", "--config", night)
    assert code == DONE_WITH_FAILURES
    assert "support: not read: " in out


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("sources = 1", "not valid TOML"),
        ('[defaults]\nworkers = "many"', "defaults.workers: "),
        ("[defaults]\nwork = 1", "defaults: unknown key `work`, did you mean `workers`?"),
        ('[defaults]\nredact = "some"', "no redaction policy is called 'some'"),
        ('[defaults]\nengine = "some"', "no engine is called 'some'; use one of: local, ray"),
        ('[[sources]]\nname = "a"\npaths = ["x"]\nmax_nesting = 9999', "sources.0.max_nesting: "),
        ('[[sources]]\nname = "a"\npaths = []', "sources.0.paths: "),
        ('[[sources]]\nname = "a"\npaths = ["x"]\nformat = "nothing"', "no format is called 'nothing'"),
        (
            '[[sources]]\nname = "a"\npaths = ["x"]\n[[sources]]\nname = "a"\npaths = ["y"]',
            "two sources are called 'a'",
        ),
        ('lake = "l"', "`sources` is missing"),
        (
            '[[sources]]\npath = ["x"]',
            "sources.0: unknown key `path`, did you mean `paths`?; sources.0: `name` is missing; sources.0: `paths` is",
        ),
        (
            '[[sources]]\nname = "a"\npaths = ["x"]\nreport = "r"',
            "unknown key `report`, it is a key of the file itself",
        ),
    ],
)
def test_a_wrong_file_is_named_in_one_line_and_nothing_is_written(etl, night, wrong, said):
    text = wrong if wrong != "sources = 1" else "sources = = 1"
    night.write_text(
        text if "sources" in text or "lake" in text else night.read_text().partition("[defaults]")[0] + text
    )
    code, out, err = etl("ingest", "--config", night)
    assert (code, out) == (WRONG_USAGE, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not (night.parent / "lake").exists()


def test_what_the_file_says_nothing_else_says(etl, night, tmp_path):
    for option in (("--source", "x"), ("--workers", "2"), ("--redact", "none"), (str(tmp_path),)):
        code, _out, err = etl("ingest", "--config", night, *option)
        assert code == WRONG_USAGE
        assert "change it there" in err
    assert etl("ingest")[0] == WRONG_USAGE


def test_a_source_that_suddenly_differs_is_told(etl, night):
    support = night.parent / "logs/support"
    etl("ingest", "--config", night)
    (support / "b.jsonl").write_text("".join(f'{_chat(n)}\n{{"torn\n' for n in range(100, 130)))
    _code, out, _err = etl("ingest", "--config", night, "--json")
    assert [(found["source"], found["kind"]) for found in json.loads(out)["drift"]] == [("support", "rejects")]
    for number in range(3):
        (support / f"c{number}.jsonl").write_text("".join(f"{_chat(1000 * number + n)}\n" for n in range(500, 560)))
        etl("ingest", "--config", night)
    (support / "d.jsonl").write_text(f"{_chat(200)}\n")
    _code, out, _err = etl("ingest", "--config", night)
    assert "drift     support: 1 records read, in the runs before 60 (median of 5)" in out
    _code, out, err = etl("sources", "--lake", night.parent / "lake")
    assert "drift in support" in err
    _code, out, _err = etl("sources", "--lake", night.parent / "lake", "--json")
    assert [found["kind"] for found in json.loads(out)["drift"]] == ["less"]


def _run(number, records_in=100, rejects=0, ignored=0, failed=0, adapters=("openai_messages",)):
    return SourceRun(
        f"b{number}", f"{number}", "s", 1, records_in, records_in, rejects, ignored, failed, dict.fromkeys(adapters, 1)
    )


@pytest.mark.parametrize(
    ("last", "kinds"),
    [
        ({}, []),
        ({"rejects": 2}, []),
        ({"rejects": 20}, ["rejects"]),
        ({"ignored": 30}, ["ignored"]),
        ({"records_in": 49}, ["less"]),
        ({"records_in": 500}, []),
        ({"adapters": ("codex",)}, ["formats"]),
        ({"adapters": ("codex", "openai_messages")}, ["formats"]),
        ({"failed": 1}, ["failed"]),
    ],
)
def test_drift_is_what_the_runs_before_do_not_explain(last, kinds):
    before = [_run(number) for number in range(5)]
    assert [found.kind for found in drift([*before, _run(9, **last)])] == kinds
    assert drift([_run(9, **last)]) == []


def test_new_files_of_which_none_is_a_log_are_told(etl, night):
    """Also a source's first ones; what is known to be no log is not said again."""
    support = night.parent / "logs/support"
    (support / "a.jsonl").unlink()
    (support / "1.csv").write_text("chat_id,when,who,said\nA1,2026-03-01T10:00:00Z,customer,Hello\n")
    for kinds in (["unread"], []):
        _code, out, _err = etl("ingest", "--config", night, "--json")
        assert [(found["source"], found["kind"]) for found in json.loads(out)["drift"]] == [
            ("support", kind) for kind in kinds
        ]
    (support / "b.jsonl").write_text(f"{_chat(1)}\n")
    (support / "README.md").write_text("# Logs")
    assert "drift" not in etl("ingest", "--config", night)[1]
    (support / "2.csv").write_text("chat_id,when,who,said\nA2,2026-03-01T10:00:00Z,customer,Hello\n")
    assert "drift     support: 1 new, and none is a conversation log: " in etl("ingest", "--config", night)[1]
    assert "none is a conversation log" in etl("sources", "--lake", night.parent / "lake")[2]
    folder = night.parent / "mixed"
    folder.mkdir()
    (folder / "README.md").write_text("# Logs")
    assert "1 new, and none is a conversation log" in etl("ingest", folder, "--lake", night.parent / "other")[1]
    (folder / "notes.md").write_text("# Notes")
    (folder / "a.jsonl").write_text(f"{_chat(1)}\n")
    assert "drift" not in etl("ingest", folder, "--lake", night.parent / "other")[1]


def test_a_file_that_was_read_in_the_moment_of_its_writing_is_not_new_twice(etl, night, monkeypatch):
    """It is kept without its time, and told with it the night after."""
    support = night.parent / "logs/support"
    (support / "a.jsonl").unlink()
    (support / "1.csv").write_text("chat_id,when,who,said\nA1,2026-03-01T10:00:00Z,customer,Hello\n")
    with monkeypatch.context() as patched:
        patched.setattr("etl.waves.is_recent", lambda *_: True)
        assert [found["kind"] for found in json.loads(etl("ingest", "--config", night, "--json")[1])["drift"]] == [
            "unread"
        ]
    monkeypatch.setattr("etl.waves.is_recent", lambda *_: False)
    assert json.loads(etl("ingest", "--config", night, "--json")[1])["drift"] == []


def test_a_night_that_reads_only_what_changed_is_no_drift():
    """After a backfill of everything, one file grows; a format may rest for weeks and come again."""
    backfill = _run(10, records_in=11_000, adapters=("atif", "codex", "phoenix"))
    nights = [_run(number, records_in=25, adapters=("codex",)) for number in range(11, 30)]
    for last in range(1, len(nights) + 1):
        assert drift([backfill, *nights[:last]]) == []
    again = _run(30, records_in=25, adapters=("codex", "phoenix"))
    assert drift([backfill, *nights, again]) == []


def test_a_format_that_came_every_night_and_does_not_is_told():
    nights = [_run(number, adapters=("atif", "codex")) for number in range(10, 15)]
    (found,) = drift([*nights, _run(15, adapters=("codex",))])
    assert (found.kind, found.message) == ("formats", "no new file of atif, of which the 5 runs before had some")
    assert drift([*nights[:4], _run(15, adapters=("codex",))]) == []


@pytest.mark.parametrize(
    ("heard", "silent", "kinds"),
    [
        ("1111111", 1, ["silent"]),
        ("1111111", 2, ["silent"]),
        ("1101111", 1, ["silent"]),
        ("1101101", 1, []),
        ("1111", 1, []),
        ("1111111", 8, []),
        ("", 9, []),
    ],
)
def test_a_source_that_falls_silent_is_told(heard, silent, kinds):
    runs = [
        _run(n, records_in=200 * int(each), adapters=("codex",) if each == "1" else ())._replace(silence_is_kept=True)
        for n, each in enumerate(heard + "0" * silent, 10)
    ]
    assert [found.kind for found in drift(runs)] == kinds
    assert drift([run._replace(silence_is_kept=False) for run in runs]) == []


def test_ingest_tells_of_silence(etl, tmp_path):
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    logs.mkdir()
    told = []
    for number in range(7):
        if number < 6:
            lines = (_chat(100 * number + n) for n in range(30))
            (logs / f"{number}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        _code, out, _err = etl("ingest", logs, "--lake", lake, "--json")
        told.append([found["kind"] for found in json.loads(out)["drift"]])
    assert told == [[]] * 6 + [["silent"]]
    assert "nothing new, in the runs before 30 records" in etl("ingest", logs, "--lake", lake)[1]


def test_a_night_without_news_is_no_drift(etl, night):
    """A file that is no log and one that fails are looked at every night, and say nothing of the others."""
    support = night.parent / "logs/support"
    (support / "README.md").write_text("No log.")
    (support / "b.jsonl").write_text("".join(f"{_chat(n)}\n" for n in range(100, 130)))
    (support / "broken.jsonl").write_text('{"messages": [')
    lake = night.parent / "lake"
    for _ in range(2):
        _code, out, _err = etl("ingest", "--config", night, "--json")
        assert json.loads(out)["drift"] == []
        assert "drift" not in etl("sources", "--lake", lake)[2]


def test_a_rate_has_its_wilson_interval():
    assert [round(bound, 4) for bound in (Rate(0, 10).low, Rate(0, 10).high)] == [0.0, 0.2775]
    assert [round(bound, 4) for bound in (Rate(10, 10).low, Rate(10, 10).high)] == [0.7225, 1.0]
    assert (Rate(0, 0).value, Rate(0, 0).low, Rate(0, 0).high) == (None, 0.0, 1.0)


def test_metrics_reach_an_endpoint_and_a_refusal_is_a_note(etl, night, monkeypatch):
    pytest.importorskip("opentelemetry.sdk")
    taken, answers = [], [400, 200]

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            taken.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(answers.pop())
            self.end_headers()

        def log_message(self, *_args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        told = [etl("ingest", "--config", night), etl("ingest", "--config", night)]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert [code for code, _out, _err in told] == [DONE, DONE]
    assert told[0][2] == ""
    assert "metrics were not sent" in told[1][2]
    (path, body), _refused = taken
    assert path == "/v1/metrics"
    for name in (b"etl.rows", b"etl.records", b"etl.files", b"openai_messages", b"rollout-etl"):
        assert name in body


def test_metrics_name_the_source():
    report = Report("b")
    report.add(FileResult("/a", "support", 10, adapter="openai_messages", records_in=3))
    told = list(_sums(report))
    assert all(attributes.get("source") == "support" for _name, attributes, _value in told)
    assert ("records", {"source": "support", "adapter": "openai_messages"}, 3) in told
    report.add(FileResult("/b", "other", 10, adapter="openai_messages", records_in=4))
    told = list(_sums(report))
    assert ("records", {"source": "other", "adapter": "openai_messages"}, 4) in told
    assert ("bytes_read", {}, 0) in told
