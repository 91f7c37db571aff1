"""What every test may use: the clock, a fresh lake, the sample logs, and the shared case folder where there is one."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.lakes import NOW, REPO

settings.register_profile(
    "quick", deadline=None, max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-golden", action="store_true", help="write tests/golden/ anew")
    parser.addoption("--thorough", action="store_true", help="every kind of junk in every field, and the slow tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `slow` (servers, browsers, clusters, large inputs) run in `make check` and `make slow` only."""
    if config.getoption("--thorough"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: runs with --thorough, as in make check"))


@pytest.fixture
def now() -> dt.datetime:
    """The night of the ingest."""
    return NOW


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Where a lake may be made."""
    return tmp_path / "lake"


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of sample logs."""
    return REPO / "sample_logs"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of cases and real files beside the repository, or the one that ETL_SHARED names."""
    folder = Path(os.environ.get("ETL_SHARED", REPO.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no shared folder at {folder}; ETL_SHARED can name it")
    return folder


@pytest.fixture
def etl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line; gives its exit code, stdout and stderr."""
    monkeypatch.delenv("ETL_LAKE", raising=False)
    monkeypatch.delenv("ETL_DEBUG", raising=False)

    def runs(*args: object) -> tuple[int, str, str]:
        from etl.cli import run

        code = run([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return code, out, err

    return runs
