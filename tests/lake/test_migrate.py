"""Lakes that older versions of the product wrote, kept in `past/`: refused in one line, read, and brought to the
present version.

Each was made by the code of its time from sample logs read under /logs: chats with rejects, tau_bench, OTLP traces, a
Claude Code session that grew between two batches while replaced files were kept, and a label. A new version
(`etl/lake/migrations/`) brings its predecessor's lake here, and changes SCHEMAS below.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import json
import shutil
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest

import etl as product
from etl.adapter import adapters
from etl.cli.exits import DONE, FAILED
from etl.errors import LakeError
from etl.lake import Lake, migrate
from etl.lake.log import mark_present
from etl.lake.migrations import brought_up, changed_since, migrations, present_version
from etl.lake.place import Place
from etl.lake.version import stamp
from etl.schema import TABLES, arrow_schema
from tests.lakes import NOW, REPO, rows, table

PAST = Path(__file__).parent / "past"
VERSIONS = range(1, present_version())

SCHEMAS = {2: "c7c4d425"}
"""Of the present version: what its columns sum up to. Other columns make another version."""


def unpacked(version: int, folder: Path) -> Path:
    with tarfile.open(PAST / f"v{version}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(params=VERSIONS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A lake of each past version."""
    return unpacked(request.param, tmp_path / "old")


def everything(lake: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: rows(lake, name) for name in TABLES}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def logs(folder: Path) -> Path:
    """The logs that the lakes of the past were made from."""
    folder.mkdir()
    samples = REPO / "sample_logs"
    for name in ("openai_messages/broken.jsonl", "openai_messages/chat.jsonl", "tau_bench/lines.json",
                 "tau_bench/torn.json", "claude_code/houses.jsonl", "otlp/agents.otlp.json"):  # fmt: skip
        shutil.copy(samples / name, folder)
    return folder


def test_other_columns_make_another_version() -> None:
    said = "\n".join(f"{name}: {arrow_schema(name)}" for name in TABLES)
    summed = hashlib.sha256(said.encode()).hexdigest()[:8]
    assert {present_version(): summed} == SCHEMAS, "columns changed: add a file to etl/lake/migrations/, and see above"


def test_each_version_has_its_migration_and_its_lake() -> None:
    assert [migration.about for migration in migrations(1)]
    assert len(migrations(1)) == present_version() - 1
    assert sorted(path.name for path in PAST.iterdir()) == [f"v{version}.tar.xz" for version in VERSIONS]


def test_no_lake_says_where_it_was_made() -> None:
    for path in PAST.iterdir():
        with tarfile.open(path) as archive:
            for member in archive:
                stored = archive.extractfile(member)
                said = b"" if stored is None else stored.read()
                assert not any(place in said for place in (b"/home/", b"/tmp/", b"/root/", b"/work/")), member.name


def test_what_writes_says_what_to_do(etl: Any, old: Path, tmp_path: Path) -> None:
    before = files(old)
    for command in (
        ["ingest", logs(tmp_path / "logs")],
        ["verify"],
        ["compact"],
        ["rejects", "--replay"],
        ["undo", "b"],
    ):
        code, _, err = etl(*command, "--lake", old)
        assert code == FAILED
        assert f"run `etl migrate --lake {old}`" in err
        assert err.count("\n") == 1
    with pytest.raises(LakeError, match="etl migrate"), Lake.open(old, older=True).batch("b"):
        pass
    assert files(old) == before


def test_what_reads_works(etl: Any, old: Path, tmp_path: Path) -> None:
    before = files(old)
    some = rows(old)[0]["rollout_id"]
    reading: list[list[Any]] = [
        ["sql", "SELECT count(*) AS n FROM rollouts"], ["show", some], ["sources"], ["rejects"], ["changes"],
        ["retain"], ["coverage"], ["report", "--out", tmp_path / "report.html"],
        ["export", "openai", "--out", tmp_path / "out"],
    ]  # fmt: skip
    for command in reading:
        code, _, err = etl(*command, "--lake", old)
        assert (code, err.count("etl migrate")) == (DONE, 0), (command, err)
    assert product.scan(old).collect().height == len(rows(old))
    assert files(old) == before


def test_a_dry_run_writes_nothing(etl: Any, old: Path) -> None:
    before = files(old)
    code, out, _ = etl("migrate", "--dry-run", "--json", "--lake", old)
    told = json.loads(out)
    assert (code, told["dry_run"], told["version"]) == (DONE, True, present_version())
    assert {of["table"] for of in told["tables"]} == set(TABLES)
    assert {of["table"] for of in told["tables"] if of["files"]} == changed_since(told["tables"][0]["version"])
    assert files(old) == before


def test_a_migrated_lake_says_what_it_said(etl: Any, old: Path) -> None:
    before = everything(old)
    code, out, _ = etl("migrate", "--json", "--lake", old)
    assert (code, json.loads(out)["findings"]) == (DONE, [])
    assert Lake.open(old).verify() == []
    for name, said in everything(old).items():
        found = table(old, name)
        assert found is not None
        assert found.schema.equals(arrow_schema(name))
        more = dict.fromkeys(set(arrow_schema(name).names) - set(before[name][0]))
        assert said == [{**row, **more} for row in before[name]]
    settled = files(old)
    code, out, _ = etl("migrate", "--json", "--lake", old)
    assert (code, json.loads(out)["tables"]) == (DONE, [])
    assert files(old) == settled


def test_reading_its_sources_again_is_no_news(old: Path, tmp_path: Path) -> None:
    Lake.open(old, older=True).migrate()
    folder, now = logs(tmp_path / "logs"), NOW + dt.timedelta(days=9)
    outdated = [row for row in rows(old) if row["adapter_version"] != adapters()[row["adapter"]].version]
    assert product.ingest([folder], lake=old, now=now).rows[:3] == (0, len(outdated), 0)
    assert product.ingest([folder], lake=old, now=now).to_json()["files"]["unchanged"] == 6
    product.ingest([folder], lake=tmp_path / "fresh", now=now)
    assert [row["row_hash"] for row in rows(old)] == [row["row_hash"] for row in rows(tmp_path / "fresh")]
    labels = [judgment["label"] for row in rows(old) for judgment in row["judgments"] if judgment["kind"] == "human"]
    assert labels == ["good"]
    assert Lake.open(old).verify() == []


def test_one_that_is_cut_off_is_run_again(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(at: str, place: Place, name: str) -> None:
        if name == at:
            raise KeyboardInterrupt
        mark_present(place, name)

    lake = Lake.open(old, older=True)
    before = everything(old)
    for name in TABLES:
        with monkeypatch.context() as patched:
            patched.setattr(migrate, "mark_present", functools.partial(cut, name))
            with pytest.raises(KeyboardInterrupt):
                lake.migrate()
        with pytest.raises(LakeError, match="etl migrate"):
            Lake.open(old)
        assert [len(said) for said in everything(old).values()] == [len(said) for said in before.values()]
    assert lake.migrate().findings == []
    assert Lake.open(old).verify() == []


def test_two_at_once(old: Path) -> None:
    count = {name: len(said) for name, said in everything(old).items()}
    started = [threading.Thread(target=Lake.open(old, older=True).migrate) for _ in range(3)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert Lake.open(old).verify() == []
    assert {name: len(said) for name, said in everything(old).items()} == count


def test_a_batch_from_before_can_be_taken_back(tmp_path: Path) -> None:
    """What it replaced lies in data files of the version of its time."""
    old = unpacked(1, tmp_path / "old")
    commits = Lake.open(old, older=True).commits()
    second = [commit for commit in commits if str(commit.batch_id).startswith("b_")][1]

    def clock() -> float:  # what is replaced stays for a week
        return second.at_ms / 1000 + 60

    Lake.open(old, older=True, clock=clock).migrate()
    lake = Lake.open(old, clock=clock)
    with lake.batch("u"):
        undone = {of.table: (of.removed, of.restored) for of in lake.undo(str(second.batch_id))}
    assert undone == {"sources": (2, 1), "rejects": (0, 0), "rollouts": (4, 1), "events": (10, 0)}
    [session] = [row for row in rows(old, "sources") if row["adapter"] == "claude_code"]
    assert (session["records_in"], session["read_bytes"]) == (3, None)
    assert lake.verify() == []


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_now_stay_as_they_are(name: str) -> None:
    now = arrow_schema(name).empty_table()
    assert brought_up(name, now).schema.equals(now.schema)


@pytest.mark.parametrize("written", [f"lake.v{present_version() + 1}", "rollout.v2", "lake.v99"])
def test_a_lake_of_a_newer_version_is_refused(etl: Any, lake: Path, written: str) -> None:
    Lake.create(lake)
    for name in TABLES:
        for path in (lake / name / "_delta_log").iterdir():
            if path.suffix != ".json":
                path.unlink()
            else:
                path.write_text(path.read_text().replace(stamp(), written))
    before = files(lake)
    for command in (["migrate"], ["migrate", "--dry-run"], ["verify"], ["changes"]):
        code, _, err = etl(*command, "--lake", lake)
        assert (code, err.count("\n")) == (FAILED, 1)
        assert f"has the schema {written}" in err
        assert "upgrade rollout-etl" in err
    assert files(lake) == before
