"""What goes wrong under a lake is one clear line, and the lake stays as it was."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, Schema

from etl.errors import EtlError, LakeError, UsageError
from etl.lake import Lake
from etl.lake.errors import one_line
from etl.pipeline import ingest
from etl.query import connect
from etl.schema import PARTITIONS, arrow_schema
from tests.lake.rows import put, rollout, rows_of, stage
from tests.lakes import REPO
from tests.reading.nights import span


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")


def refused(root: Path, kind: type[EtlError] = LakeError) -> str:
    """The one line with which opening and creating refuse."""
    with pytest.raises(kind) as opening:
        Lake.open(root)
    with pytest.raises(kind) as creating:
        Lake.create(root)
    assert str(opening.value) == str(creating.value)
    assert "\n" not in str(opening.value)
    return str(opening.value)


def rewrite_log(lake: Lake, table: str, **changes: dict[str, Any]) -> None:
    """Writes a version into the log of a table as another program would."""
    version = lake.version(table) + 1
    log = Path(lake.root, table, "_delta_log")
    lines = [json.dumps({action: values}) for action, values in changes.items()]
    (log / f"{version:020}.json").write_text("\n".join(lines) + "\n")


def metadata(lake: Lake, table: str) -> dict[str, Any]:
    """The metaData action of a table."""
    first = Path(lake.root, table, "_delta_log", f"{0:020}.json").read_text()
    return next(action["metaData"] for action in map(json.loads, first.splitlines()) if "metaData" in action)


def test_a_newer_delta_protocol(lake: Lake) -> None:
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
    rewrite_log(lake, "rejects", protocol=features | {"writerFeatures": ["deletionVectors"]})
    assert "upgrade rollout-etl" in refused(Path(lake.root))


def test_an_unknown_delta_feature(lake: Lake) -> None:
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timeMachine"]}
    rewrite_log(lake, "rollouts", protocol=features | {"writerFeatures": ["timeMachine"]})
    assert "rollouts" in refused(Path(lake.root))


@pytest.mark.parametrize(
    ("version", "advice"),
    [("rollout.v2", "upgrade rollout-etl"), ("lake.v99", "upgrade rollout-etl"), ("something", "choose another lake")],
)
def test_another_schema_version(lake: Lake, version: str, advice: str) -> None:
    changed = metadata(lake, "rollouts")
    changed["configuration"] = {"etl.schema_version": version}
    rewrite_log(lake, "rollouts", metaData=changed)
    views = Path(lake.root, "views.sql").read_text()
    Path(lake.root, "views.sql").write_text("the views of that version")
    said = refused(Path(lake.root))
    assert version in said
    assert advice in said
    assert Path(lake.root, "views.sql").read_text() == "the views of that version" != views


def test_columns_that_another_program_added(lake: Lake) -> None:
    changed = metadata(lake, "sources")
    fields = json.loads(changed["schemaString"])
    fields["fields"].append({"name": "mood", "type": "string", "nullable": True, "metadata": {}})
    changed["schemaString"] = json.dumps(fields)
    rewrite_log(lake, "sources", metaData=changed)
    assert "mood" in refused(Path(lake.root))


def test_a_delta_table_of_somebody_else(tmp_path: Path) -> None:
    for table in PARTITIONS:
        DeltaTable.create(str(tmp_path / "lake" / table), Schema.from_arrow(arrow_schema(table)))
    assert "of another program" in refused(tmp_path / "lake")


def test_no_lake(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="no lake at"):
        Lake.open(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file" / "lake", tmp_path / "file"):
        with pytest.raises(LakeError, match="not a folder"):
            Lake.create(root)


def test_lakes_elsewhere(tmp_path: Path) -> None:
    assert "ftp://" in refused("ftp://host/lake", UsageError)  # type: ignore[arg-type]
    assert "no name" in refused("", UsageError)  # type: ignore[arg-type]
    made = Lake.create(f"file://{tmp_path}/a%20lake")
    assert made.root == f"{tmp_path}/a lake"


def test_a_live_file_that_is_gone(lake: Lake) -> None:
    put(lake, [rollout("r1")])
    [file] = lake.live("rollouts")
    Path(file.path).unlink()
    with pytest.raises(LakeError, match="`etl verify` says whether the lake is whole"):
        put(lake, [rollout("r1", n_records=9)])
    assert lake.version("rollouts") == 1
    assert [finding.code for finding in lake.verify()] == ["missing_file"]


def test_a_staged_file_that_is_no_longer_what_it_was(lake: Lake) -> None:
    with lake.batch("b"):
        [staged] = stage(lake, "b", "rollouts", [rollout("r1")])
        with pytest.raises(LakeError, match=r"not 2 in"):
            lake.commit_rollouts([staged._replace(rows=2)])
        with pytest.raises(LakeError):
            lake.commit_rollouts([staged._replace(path=f"{staged.path}.gone")])
        assert rows_of(lake) == []
        assert lake.verify() == []
        assert lake.commit_rollouts([staged]).added == 1


@pytest.mark.parametrize(
    "fault",
    ["lake", "full", *(pytest.param(fault, marks=pytest.mark.slow) for fault in ("log", "partition", "staging"))],
)
def test_a_disk_that_cannot_be_written(fault: str) -> None:
    """As a user without rights, or with a limit on the size of files in the place of a full disk."""
    with tempfile.TemporaryDirectory() as folder:  # one that other users may enter
        arguments = [sys.executable, "-m", "tests.lake.unwritable", folder, fault]
        process = subprocess.run(arguments, cwd=REPO, capture_output=True, text=True, timeout=600)
    assert process.returncode == 0, process.stderr
    said = process.stdout.strip()
    assert said.startswith("cannot ")
    assert ("file grew past" if fault == "full" else "permission denied") in said
    assert "\n" not in said


def test_a_file_that_another_program_added(lake: Lake) -> None:
    add = {"path": "source=support/a.parquet", "partitionValues": {"source": "support"}, "size": 1}
    rewrite_log(lake, "sources", add=add | {"modificationTime": 0, "dataChange": True})
    assert "without a row count" in refused(Path(lake.root))


@pytest.mark.parametrize("reached", ["commit_events", "replace_rejects", "upsert_sources", "write_report"])
def test_a_lake_that_goes_in_the_middle_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: str) -> None:
    """It is said to be gone, wherever that is noticed, and no part of it is made anew."""
    log, lake, real = tmp_path / "spans.jsonl", tmp_path / "lake", getattr(Lake, reached)
    log.write_bytes(span(1, 0) + b"\n")

    def gone(*given: Any, **more: Any) -> Any:
        shutil.rmtree(lake)
        return real(*given, **more)

    monkeypatch.setattr(Lake, reached, gone)
    with pytest.raises(LakeError, match="was removed or moved while"):
        ingest([log], lake=lake)
    assert not lake.exists()


def test_a_lake_that_is_not_there_is_worded_one_way(tmp_path: Path) -> None:
    """Whoever looks for it: what writes, what reads and what only lists."""
    said = set()
    for looks in (Lake.open, connect, lambda root: Lake.open(root, older=True)):
        with pytest.raises(LakeError) as error:
            looks(tmp_path / "nothing")
        said.add(str(error.value))
    assert said == {f"there is no lake at {tmp_path}/nothing; make one with: etl ingest PATH --lake {tmp_path}/nothing"}


def test_a_lake_that_cannot_be_written_is_no_fault_of_an_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "chats.jsonl"
    turns = [{"role": "user", "content": "ask"}, {"role": "assistant", "content": "answer"}]
    log.write_text("".join(json.dumps({"id": f"c{n}", "messages": turns}) + "\n" for n in range(5)))
    tried: list[object] = []

    def full(_writer: object, redacted: object) -> None:
        tried.append(redacted)
        raise LakeError("cannot write: the disk is full" if len(tried) == 1 else "cannot write: closed file")

    monkeypatch.setattr("etl.staging.FLUSH_BYTES", 1)
    monkeypatch.setattr("etl.lake.staging.StagingWriter.write", full)
    with pytest.raises(LakeError, match="the disk is full"):
        ingest([log], lake=tmp_path / "lake")
    assert len(tried) == 1


@pytest.mark.parametrize(
    ("doing", "advice"),
    [("read the tables of /lake", "let this user read"), ("write to the lake /lake", "make the folder writable")],
)
def test_what_is_denied_says_what_for(doing: str, advice: str) -> None:
    with pytest.raises(LakeError, match=advice), one_line(doing):
        raise PermissionError(errno.EACCES, "Permission denied")
