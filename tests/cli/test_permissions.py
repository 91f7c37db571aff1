"""Whatever a command writes is its owner's alone; a lake in a setgid folder is its group's too."""

import os
import stat
import subprocess
import sys

import pytest

from etl.query import run_sql
from tests.lakes import make_many

ENOUGH = '{"messages": [{"role": "user", "content": "hi %d"}, {"role": "assistant", "content": "hello"}]}\n'


def _etl(*arguments, umask, home):
    environment = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    environment.pop("ETL_LAKE", None)
    subprocess.run(
        [sys.executable, "-m", "etl", *map(str, arguments)],
        env=environment, umask=umask, check=True, capture_output=True, cwd=home,
    )  # fmt: skip


def _modes(*folders):
    return {
        str(path): stat.S_IMODE(path.lstat().st_mode)
        for folder in folders
        for path in [folder, *folder.rglob("*")]
        if not path.is_symlink()
    }


@pytest.fixture
def home(tmp_path):
    """A home with a few logs."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(3):
        (logs / f"{number}.jsonl").write_text(ENOUGH % number + "{torn")
    make_many(logs / "many")
    return tmp_path


def _use(home, lake, umask):
    """All that writes: ingests with workers, labels, compaction, forgetting, exports, pages, answers."""
    _etl("ingest", "logs", "--lake", lake, "--workers", 2, "--redact", "pii", umask=umask, home=home)
    (home / "logs" / "more.jsonl").write_text(ENOUGH % 7)
    _etl("ingest", "logs", "--lake", lake, umask=umask, home=home)
    first, second = sorted(row[0] for row in run_sql(lake, "SELECT rollout_id FROM rollouts LIMIT 2").rows)
    _etl("label", first, "good", "--lake", lake, umask=umask, home=home)
    _etl("compact", "--lake", lake, umask=umask, home=home)
    _etl("forget", second, "--yes", "--lake", lake, umask=umask, home=home)
    _etl("export", "sft", "--out", "sft", "--lake", lake, umask=umask, home=home)
    _etl("report", "--out", "report.html", "--lake", lake, umask=umask, home=home)
    _etl("sql", "FROM rollouts", "--out", "rows.parquet", "--lake", lake, umask=umask, home=home)


@pytest.mark.slow
def test_files_are_their_owners_alone(home, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)  # what is compiled lies in this home
    lake = home / "lake"
    _use(home, lake, umask=0o022)
    written = _modes(*(path for path in home.iterdir() if path.name != "logs"))
    assert len(written) > 20
    assert any("keys" in path for path in written)
    assert {path: oct(mode) for path, mode in written.items() if mode & 0o077} == {}


@pytest.mark.slow
def test_a_lake_in_a_setgid_folder_is_its_groups_too(home):
    lake = home / "lake"
    lake.mkdir()
    lake.chmod(0o2770)
    _use(home, lake, umask=0o002)
    modes = _modes(lake)
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o007 or mode & 0o060 != 0o060} == {}


def test_a_stricter_umask_is_kept(home):
    lake = home / "lake"
    lake.mkdir()
    lake.chmod(0o2770)
    _etl("ingest", "logs", "--lake", lake, umask=0o027, home=home)
    assert not any(mode & 0o027 for path, mode in _modes(lake).items() if path != str(lake))
