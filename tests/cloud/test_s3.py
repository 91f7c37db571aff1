"""A lake and its sources on a real S3 server (moto's, in a process of its own): the same rows as on disk."""

import datetime as dt
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from importlib.util import find_spec

import pytest

import etl as product
from etl.cli.exits import DONE, DONE_WITH_FAILURES, FAILED, WRONG_USAGE
from etl.lake import Lake
from etl.lake.migrations import present_version
from etl.remote import remote_path
from tests.lakes import NOW, REPO, said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (find_spec("moto") and find_spec("obstore")), reason="needs moto and obstore"),
]

BUCKET = "rollouts-of-tests"


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def store():
    """A bucket of a server that ends with the tests."""
    port = _free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {
                "AWS_ACCESS_KEY_ID": "testing",
                "AWS_SECRET_ACCESS_KEY": "testing",
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_ALLOW_HTTP": "true",
            }.items():
                patch.setenv(name, value)
            _make_bucket(endpoint, server)
            yield f"s3://{BUCKET}"
    finally:
        server.terminate()
        server.wait(120)


def _make_bucket(endpoint, server):
    for _ in range(1200):
        assert server.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT"), timeout=5).read()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server does not answer")


@pytest.fixture
def place(store, request):
    """A prefix of its own for each test."""
    return f"{store}/{request.node.name.replace('[', '-').strip(']')}"


def _put(uri, data):
    remote_path(uri).write_bytes(data if isinstance(data, bytes) else data.encode())


def _hashes(lake):
    return sorted(row for (row,) in product.connect(lake).execute("SELECT row_hash FROM rollouts").fetchall())


def _samples(tmp_path):
    """Logs of every kind of reading: lines, an array, a session with a sub-agent, traces that span files, a table."""
    folder = tmp_path / "logs"
    for name in ("openai_messages", "claude_code", "otlp", "tau_bench"):
        shutil.copytree(REPO / "sample_logs" / name, folder / name)
    return folder


def test_a_lake_in_a_store_has_the_rows_of_one_on_disk(place, tmp_path):
    logs = _samples(tmp_path)
    for night in range(2):
        for lake in (f"{place}/lake", tmp_path / "lake"):
            report = product.ingest([logs], lake=lake, now=NOW + dt.timedelta(days=night))
            assert bool(report.rows.added) == (night == 0)
            assert report.rows.replaced == report.rows.removed == 0
    assert _hashes(f"{place}/lake") == said(tmp_path / "lake")
    opened = Lake.open(f"{place}/lake")
    assert opened.verify() == []
    assert sorted(product.scan(f"{place}/lake").select("row_hash").collect()["row_hash"]) == said(tmp_path / "lake")


@pytest.mark.parametrize("version", range(1, present_version()))
def test_an_older_lake_in_a_store_is_migrated(place, etl, tmp_path, version):
    """As on disk: no row is lost, what replaced files leave goes, and doing it again changes nothing."""
    with tarfile.open(REPO / f"tests/lake/past/v{version}.tar.xz") as archive:
        archive.extractall(tmp_path / "old", filter="data")
    lake, old = f"{place}/lake", tmp_path / "old"
    for path in sorted(old.rglob("*")):
        if path.is_file():
            _put(f"{lake}/{path.relative_to(old)}", path.read_bytes())
    before = _hashes(lake)
    assert etl("ingest", _samples(tmp_path), "--lake", lake)[0] == FAILED
    told = json.loads(etl("migrate", "--dry-run", "--json", "--lake", lake)[1])
    assert sum(of["files"] for of in told["tables"]) > 0
    for left in (len(told["tables"]), 0):
        code, out, err = etl("migrate", "--json", "--lake", lake)
        assert (code, err) == (DONE, "")
        assert len(json.loads(out)["tables"]) == left
        assert json.loads(out)["findings"] == []
    assert etl("migrate", "--lake", old)[0] == DONE
    assert _hashes(lake) == before == said(old)
    assert Lake.open(lake).verify() == []
    product.ingest([tmp_path / "logs"], lake=lake, now=NOW)
    product.ingest([tmp_path / "logs"], lake=old, now=NOW)
    assert _hashes(lake) == said(old)


def test_sources_in_a_store_are_read_like_files(place, tmp_path):
    logs = _samples(tmp_path)
    for path in logs.rglob("*"):
        if path.is_file():
            _put(f"{place}/logs/{path.relative_to(logs)}", path.read_bytes())
    remote = product.ingest([f"{place}/logs/"], lake=tmp_path / "a", now=NOW, workers=2)
    local = product.ingest([logs], lake=tmp_path / "b", now=NOW)
    assert remote.rows.added == local.rows.added
    assert {file.uri for file in remote.files} == {
        f"{place}/logs/{path.relative_to(logs)}" for path in logs.rglob("*") if path.is_file()
    }
    again = product.ingest([f"{place}/logs"], lake=tmp_path / "a", now=NOW)
    assert again.state_counts()["unchanged"] == remote.state_counts()["new"]
    by_glob = product.ingest([f"{place}/logs/*/*.jsonl"], lake=tmp_path / "c", now=NOW)
    assert 0 < by_glob.state_counts()["seen"] < remote.state_counts()["seen"]


def test_what_the_commands_say_of_a_store(place, etl, tmp_path):
    _put(f"{place}/a.jsonl", '{"messages": [{"role": "user", "content": "hi"}]}\n{"torn\n')
    lake = f"{place}/lake"
    assert etl("ingest", f"{place}/a.jsonl", "--lake", lake)[0] == DONE
    assert json.loads(etl("sql", "SELECT count(*) AS n FROM rollouts", "--lake", lake, "--json")[1])["rows"] == [
        {"n": 1}
    ]
    assert len(json.loads(etl("rejects", "--lake", lake, "--json")[1])["rejects"]) == 1
    assert etl("rejects", "--replay", "--lake", lake)[0] == DONE
    assert etl("verify", "--lake", lake)[0] == DONE
    batch = json.loads(etl("changes", "--lake", lake, "--json")[1])["batches"][0]["batch_id"]
    assert etl("retain", "7d", "--lake", lake)[0] == DONE
    assert etl("compact", "--lake", lake)[0] == DONE
    assert etl("undo", batch, "--lake", lake)[0] == DONE
    assert json.loads(etl("sql", "SELECT count(*) AS n FROM rollouts", "--lake", lake, "--json")[1])["rows"] == [
        {"n": 0}
    ]
    for wrong, code in (
        (f"{place}/nothing.jsonl", WRONG_USAGE),
        (f"{place}/*.nothing", WRONG_USAGE),
        ("ftp://x/y", WRONG_USAGE),
    ):
        said_code, _out, err = etl("ingest", wrong, "--lake", lake)
        assert (said_code, len(err.strip().splitlines())) == (code, 1)
    code, _out, err = etl("ingest", f"{place}/a.jsonl", "--lake", "s3://there-is-no-such-bucket/lake")
    assert (code, len(err.strip().splitlines())) == (FAILED, 1)


def test_a_store_that_does_not_answer_is_one_line(store, etl, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for command in (("sql", "SELECT 1"), ("verify",), ("ingest", str(REPO / "README.md"))):
        code, out, err = etl(*command, "--lake", "s3://somewhere-else/lake")
        assert (code, out) == (FAILED, "")
        assert len(err.strip().splitlines()) == 1
        assert "\x1b" not in err


def test_a_source_without_its_bucket_costs_itself_alone(store, etl, tmp_path):
    (tmp_path / "good.jsonl").write_text(
        '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}\n'
    )
    table = '[[sources]]\nname = "{}"\npaths = ["{}"]\n'
    wrong = ("s3://there-is-no-such-bucket/logs", "s3://there-is-no-such-bucket/logs/*.jsonl")
    named = [*((f"wrong{number}", path) for number, path in enumerate(wrong)), ("good", "good.jsonl")]
    (tmp_path / "etl.toml").write_text("".join(table.format(*each) for each in named))
    code, out, err = etl("ingest", "--config", tmp_path / "etl.toml", "--json")
    assert (code, err) == (DONE_WITH_FAILURES, "")
    told = json.loads(out)
    assert list(told["sources"]) == ["good"]
    assert told["failed"] == {
        name: f"{path}: the object store does not give what lies there (NoSuchBucket)" for name, path in named[:2]
    }


def test_ingests_at_once_end_in_the_rows_of_one(place, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(6):
        chats = [
            {"id": f"{number}-{n}", "messages": [{"role": "user", "content": f"hi {number} {n}"}]} for n in range(20)
        ]
        (logs / f"{number}.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    files = sorted(logs.iterdir())
    shares = [files[:4], files[2:], files[1:5]]
    code = "import sys, etl; etl.ingest(sys.argv[2:], lake=sys.argv[1])"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code, f"{place}/lake", *map(str, share)], env={**os.environ, "PYTHONPATH": str(REPO)}
        )
        for share in shares
    ]
    assert [run.wait(300) for run in runs] == [0, 0, 0]
    product.ingest([logs], lake=tmp_path / "alone", now=NOW)
    assert _hashes(f"{place}/lake") == said(tmp_path / "alone")
    assert Lake.open(f"{place}/lake").verify() == []


def test_a_killed_upload_is_nobodys_after_a_day(place, tmp_path):
    product.ingest([REPO / "sample_logs/openai_messages"], lake=f"{place}/lake", now=NOW)
    opened = Lake.open(f"{place}/lake")
    live = opened.live("rollouts")[0].path
    orphan = live.rpartition("/")[0] + "/left.parquet"
    _put(orphan, remote_path(live).read_bytes())
    assert opened.sweep().files == []
    assert Lake.open(f"{place}/lake", clock=lambda: time.time() + 90_000).sweep().files == [orphan]
    assert not remote_path(orphan).exists()
