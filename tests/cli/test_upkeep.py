"""Taking back a batch, keeping what is replaced, and mending a lake that lost a file."""

import datetime as dt
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import etl as product
from etl.cli.exits import DONE, FAILED, WRONG_USAGE
from etl.lake import Lake
from tests.lakes import NOW, REPO, rows, said


def _chat(number, more=""):
    messages = [{"role": "user", "content": f"hi {number}"}, {"role": "assistant", "content": f"yo{more}"}]
    return json.dumps({"id": f"c{number}", "messages": messages})


def _night(lake, folder, day):
    return product.ingest([folder], lake=lake, now=NOW + dt.timedelta(days=day)).batch_id


def _everything(lake):
    """All rows of all tables, which batch wrote them included."""
    return {name: rows(lake, name) for name in ("rollouts", "rejects", "sources", "events")}


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory):
    """A folder of Claude Code sessions and chats that grows, the lake, and what it held after the first night; with a
    copy of both.
    """
    folder = tmp_path_factory.mktemp("nights") / "now"
    logs, lake = folder / "logs", folder / "lake"
    folder.mkdir()
    logs.mkdir()
    session = (REPO / "sample_logs/claude_code/houses.jsonl").read_text().splitlines(keepends=True)
    (logs / "session.jsonl").write_text("".join(session[: len(session) // 2]))
    (logs / "a.jsonl").write_text(f"{_chat(1)}\n{_chat(2)}\n")
    first = _night(lake, logs, 0)
    before = _everything(lake)
    opened = Lake.open(lake)
    with opened.batch("retain"):
        opened.retain(7 * 86_400_000)
    (logs / "session.jsonl").write_text("".join(session))
    (logs / "b.jsonl").write_text(f'{_chat(3)}\n{{"torn": \n{_chat(4)}\n')
    second = _night(lake, logs, 1)
    shutil.copytree(folder, folder.with_name("kept"))
    return logs, lake, (first, second), before


@pytest.fixture
def nights(two_nights):
    """The same for a test to change, always in one place: a lake knows files by where they lie."""
    folder = two_nights[0].parent
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("kept"), folder)
    return two_nights


def test_a_batch_is_taken_back_and_read_again(etl, nights):
    logs, lake, (_first, second), before = nights
    after = _everything(lake)
    assert after != before
    code, out, _err = etl("undo", second, "--lake", lake, "--json")
    assert code == DONE
    assert json.loads(out)["tables"]["rollouts"]["removed"] > 0
    assert _everything(lake) == before
    assert not Lake.open(lake).verify()
    _night(lake, logs, 2)
    again = _everything(lake)
    assert sorted(row["row_hash"] for row in again["rollouts"]) == sorted(row["row_hash"] for row in after["rollouts"])
    assert [len(table) for table in again.values()] == [len(table) for table in after.values()]


def test_what_a_later_batch_did_stays(etl, nights):
    logs, lake, (_first, second), before = nights
    (logs / "c.jsonl").write_text(f"{_chat(5)}\n")
    third = _night(lake, logs, 2)
    assert etl("undo", second, "--lake", lake)[0] == DONE
    left = {row["row_hash"]: row["batch_id"] for row in rows(lake)}
    assert left.items() >= {row["row_hash"]: row["batch_id"] for row in before["rollouts"]}.items()
    assert [batch for batch in left.values() if batch == third] == [third]
    assert len(left) == len(before["rollouts"]) + 1


def test_rows_come_back_from_a_file_that_a_later_batch_has_read_again(etl, tmp_path):
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    logs.mkdir()
    (logs / "a.jsonl").write_text(f"{_chat(1)}\n")
    first = _night(lake, logs, 0)
    (logs / "a.jsonl").write_text(f"{_chat(1)}\n{_chat(2)}\n")
    _night(lake, logs, 1)
    whole = said(lake)
    assert etl("undo", first, "--lake", lake)[0] == DONE
    assert len(said(lake)) == 1
    _night(lake, logs, 2)
    assert said(lake) == whole
    assert not Lake.open(lake).verify()


def test_a_grown_file_of_a_named_source_is_one_row_of_sources(tmp_path):
    log, lake = tmp_path / "a.jsonl", tmp_path / "lake"
    log.write_text("not yet a log\n")
    product.ingest([log], lake=lake, now=NOW)
    for said_so_far in (f"{_chat(1)}\n", f"{_chat(1)}\n{_chat(2)}\n"):
        log.write_text(said_so_far)
        (tmp_path / "b.jsonl").write_text(said_so_far)
        product.ingest([log, tmp_path / "b.jsonl"], lake=lake, source="nightly", now=NOW)
    told = {(row["source"], Path(row["uri"]).name): row["error"] for row in rows(lake, "sources")}
    assert told.keys() == {("nightly", "a.jsonl"), ("nightly", "b.jsonl"), ("unknown", "a.jsonl")}
    assert told["unknown", "a.jsonl"].endswith("read as openai_messages under the source nightly now")


def test_without_retention_only_a_batch_that_replaced_nothing_is_taken_back(etl, tmp_path):
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    logs.mkdir()
    (logs / "a.json").write_text(f"[{_chat(1)}]")
    first = _night(lake, logs, 0)
    session = (REPO / "sample_logs/claude_code/houses.jsonl").read_text().splitlines(keepends=True)
    (logs / "s.jsonl").write_text("".join(session[: len(session) // 2]))
    _night(lake, logs, 1)
    (logs / "s.jsonl").write_text("".join(session))
    third = _night(lake, logs, 2)
    held = said(lake)
    code, _out, err = etl("undo", third, "--lake", lake)
    assert code == FAILED
    assert "etl retain" in err
    assert said(lake) == held
    assert etl("undo", first, "--lake", lake)[0] == DONE
    code, _out, err = etl("undo", "b_nothing", "--lake", lake)
    assert (code, len(err.splitlines())) == (WRONG_USAGE, 1)


def test_changes_tell_what_an_undo_did(etl, nights):
    _logs, lake, (_first, second), _before = nights
    tables = json.loads(etl("undo", second, "--lake", lake, "--json")[1])["tables"]
    *_, last = json.loads(etl("changes", "--lake", lake, "--json")[1])["batches"]
    assert last["undid"] == second
    assert (last["added"], last["removed"]) == (tables["rollouts"]["restored"], tables["rollouts"]["removed"])
    assert last["added"] > 0


def test_a_night_whose_file_says_retain_can_be_taken_back_the_morning_after(etl, tmp_path):
    (tmp_path / "logs").mkdir()
    session = (REPO / "sample_logs/claude_code/houses.jsonl").read_text().splitlines(keepends=True)
    config = tmp_path / "etl.toml"
    config.write_text('lake = "lake"\nretain = "1d"\n[[sources]]\nname = "a"\npaths = ["logs"]\n')
    for end in (len(session) // 2, len(session)):
        (tmp_path / "logs/s.jsonl").write_text("".join(session[:end]))
        batch = json.loads(etl("ingest", "--config", config, "--json")[1])["batch_ids"][0]
    assert json.loads(etl("retain", "--lake", tmp_path / "lake", "--json")[1]) == {"retain_ms": 86_400_000}
    assert etl("undo", batch, "--lake", tmp_path / "lake")[0] == DONE
    config.write_text(config.read_text().replace("1d", "1 year"))
    code, _out, err = etl("ingest", "--config", config)
    assert (code, "retain: 1 year: give a duration such as 24h or 7d" in err) == (WRONG_USAGE, True)


def test_replaced_files_stay_as_long_as_they_are_retained(etl, nights):
    _logs, lake, _batches, _before = nights
    live = {file.path for file in Lake.open(lake).live("rollouts")}
    on_disk = {str(path) for path in (lake / "rollouts").glob("*/*/*.parquet")}
    kept = on_disk - live
    assert kept
    assert not Lake.open(lake).verify()
    assert Lake.open(lake, clock=lambda: NOW.timestamp()).sweep().files == []
    later = Lake.open(lake, clock=lambda: dt.datetime.now(dt.UTC).timestamp() + 8 * 86_400)
    assert {*later.sweep().files} >= kept
    assert etl("retain", "--lake", lake)[1].strip() == "replaced data files stay for 7d"
    assert etl("retain", "0", "--lake", lake)[0] == DONE
    assert json.loads(etl("retain", "--lake", lake, "--json")[1]) == {"retain_ms": 0}
    for wrong in ("31d", "x", "-1h"):
        assert etl("retain", "--lake", lake, "--", wrong)[0] == WRONG_USAGE


def test_changes_since_a_batch_are_the_rows_of_later_ones(etl, nights):
    _logs, lake, (first, second), _before = nights
    batches = json.loads(etl("changes", "--lake", lake, "--json")[1])["batches"]
    assert [batch["batch_id"] for batch in batches] == [first, second]
    assert batches[0]["added"] == 3
    found = json.loads(etl("changes", "--since", first, "--lake", lake, "--json")[1])["rollouts"]
    assert {row["rollout_id"] for row in found} == {
        row["rollout_id"] for row in rows(lake) if row["batch_id"] == second
    }
    assert json.loads(etl("changes", "--since", second, "--lake", lake, "--json")[1]) == {"rollouts": []}
    assert etl("changes", "--since", "b_nothing", "--lake", lake)[0] == WRONG_USAGE


def test_an_export_since_a_batch_has_the_rows_of_later_ones(etl, nights, tmp_path):
    _logs, lake, (first, second), _before = nights
    code, _out, _err = etl(
        "export", "openai", "--out", tmp_path / "new", "--since", first, "--where", "source <> 'x'", "--lake", lake
    )
    assert code == DONE
    (file,) = (tmp_path / "new").glob("*.jsonl")
    later = [row for row in rows(lake) if row["batch_id"] == second and row["adapter"] == "openai_messages"]
    assert len(later) == 2
    assert all(row["prompt"] in file.read_text() for row in later)
    assert '"hi 1"' not in file.read_text()
    assert etl("export", "openai", "--out", tmp_path / "none", "--since", second, "--lake", lake)[0] != DONE
    assert etl("export", "openai", "--out", tmp_path / "none", "--since", "b_x", "--lake", lake)[0] == WRONG_USAGE


def test_compacting_changes_files_and_no_row(etl, tmp_path):
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    logs.mkdir()
    for number in range(3):
        (logs / f"{number}.jsonl").write_text(f"{_chat(number)}\n")
        _night(lake, logs, number)
    held = rows(lake)
    assert json.loads(etl("compact", "--lake", lake, "--json")[1])["merged"] >= 3
    assert rows(lake) == held
    assert len(Lake.open(lake).live("rollouts")) == 1
    assert json.loads(etl("compact", "--lake", lake, "--json")[1]) == {"merged": 0}


@pytest.mark.parametrize(
    "table", ["rollouts", *(pytest.param(table, marks=pytest.mark.slow) for table in ("events", "rejects", "sources"))]
)
def test_a_lost_file_is_taken_out_and_its_rows_come_back(etl, nights, table):
    logs, lake, _batches, _before = nights
    held = _everything(lake)
    lost = Lake.open(lake).live(table)[0]
    path = lake / lost.path
    path.unlink()
    code, out, _err = etl("verify", "--lake", lake, "--json")
    assert code == FAILED
    assert [found["code"] for found in json.loads(out)["findings"]] == ["missing_file"]
    code, out, _err = etl("verify", "--repair", "--lake", lake, "--json")
    assert code == DONE
    assert [found["repaired"] for found in json.loads(out)["findings"]] == [True]
    assert not Lake.open(lake).verify()
    _night(lake, logs, 3)
    for name, mine in _everything(lake).items():
        assert [_without_batch(row) for row in mine] == [_without_batch(row) for row in held[name]]


def _without_batch(row):
    """A file that is read within a tick of its writing is kept without its time."""
    return {key: value for key, value in row.items() if key not in ("batch_id", "ingested_at", "modified_at")}


def test_what_is_forgotten_is_gone_for_good(etl, nights):
    logs, lake, (_first, _second), _before = nights
    (logs / "d.jsonl").write_text(f"{_chat(7, ' of somebody who wants to be forgotten')}\n")
    _night(lake, logs, 2)
    (logs / "d.jsonl").write_text(f"{_chat(8)}\n{_chat(7, ' of somebody who wants to be forgotten')}\n")
    _night(lake, logs, 3)
    held = rows(lake)
    session = next(
        row["conversation_id"] for row in held if row["adapter"] == "claude_code" and row["parent_id"] is None
    )
    where = f"final_text LIKE '%forgotten%' OR conversation_id = '{session}'"
    code, _out, err = etl("forget", "--where", where, "--lake", lake)
    assert code != DONE
    assert rows(lake) == held, err
    code, out, _err = etl("forget", "--where", where, "--lake", lake, "--yes", "--json")
    assert code == DONE
    gone = json.loads(out)["forgotten"]
    kept = [row for row in held if row["adapter"] != "claude_code" and "forgotten" not in (row["final_text"] or "")]
    assert gone["rollouts"] == len(held) - len(kept) > 1
    assert gone["events"] > 0
    for night in range(4, 6):
        assert [row["rollout_id"] for row in rows(lake)] == [row["rollout_id"] for row in kept]
        assert not [event for event in rows(lake, "events") if event["conversation_key"] == session]
        assert Lake.open(lake).verify() == []
        _night(lake, logs, night)
        product.ingest([logs], lake=lake, now=NOW + dt.timedelta(days=night), reparse=True)
    for path in lake.rglob("*.parquet"):
        if ".staging" not in path.parts and "_delta_log" not in path.parts:
            table = pq.ParquetFile(path).read()
            assert "wants to be forgotten" not in str(table.to_pylist()), path
    assert etl("forget", "r_nothing", "--lake", lake, "--yes")[0] == WRONG_USAGE
    assert etl("forget", "--lake", lake, "--yes")[0] == WRONG_USAGE
    assert json.loads(etl("forget", "--where", "false", "--lake", lake, "--json")[1])["forgotten"]["rollouts"] == 0


def test_a_lake_is_redacted_after_the_fact(etl, tmp_path, monkeypatch):
    monkeypatch.setattr("etl.keys.KEYS", tmp_path / "keys")
    (tmp_path / "a.jsonl").write_text(f'{_chat(1, " to jane@example.com")}\n{_chat(2)}\n{{"torn": "jane@example.com"\n')
    lake = tmp_path / "lake"
    with_retention = Lake.create(lake)
    with with_retention.batch("r"):
        with_retention.retain(86_400_000)
    product.ingest([tmp_path / "a.jsonl"], lake=lake, now=NOW)
    hashes = said(lake)
    code, out, _err = etl("redact", "--check", "--dry-run", "--redact", "pii", "--lake", lake, "--json")
    assert (code, json.loads(out)["found"]["rollouts"], json.loads(out)["older"]["rollouts"]) == (DONE, 1, 1)
    assert "jane" in str(rows(lake))
    code, out, _err = etl("redact", "--check", "--redact", "pii", "--lake", lake, "--json")
    assert (code, json.loads(out)["found"]) == (DONE, {"rollouts": 1, "rejects": 1, "sources": 0, "events": 0})
    assert json.loads(out)["rewritten"] == {"rollouts": 1, "rejects": 1, "sources": 1, "events": 0}
    assert said(lake) == hashes
    assert not any(b"jane@" in path.read_bytes() for path in lake.rglob("*") if path.is_file())
    assert len([*lake.glob("rollouts/*/*/*.parquet")]) == 1
    assert json.loads(rows(lake)[0]["redactions"] or rows(lake)[1]["redactions"]) == {"email": 1}
    for policy in ("pii", "secrets"):
        done = json.loads(etl("redact", "--check", "--redact", policy, "--lake", lake, "--json")[1])
        assert not any(done["rewritten"].values())
    assert etl("redact", "--check", "--redact", "none", "--lake", lake)[0] == WRONG_USAGE
    assert Lake.open(lake).verify() == []
    assert product.ingest([tmp_path / "a.jsonl"], lake=lake, now=NOW, redact="pii", reparse=True).rows.unchanged == 2
    assert etl("redact", "--lake", lake)[0] == WRONG_USAGE


def test_settings_that_cannot_be_read_are_one_line(etl, nights):
    logs, lake, _batches, _before = nights
    (lake / "settings.json").write_text("garbage")
    (logs / "new.jsonl").write_text(f"{_chat(8)}\n")
    code, _out, err = etl("ingest", logs, "--lake", lake)
    assert (code, len(err.strip().splitlines())) == (FAILED, 1)
    assert "settings.json holds no settings" in err
