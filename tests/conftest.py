"""What every test may use: the clock, a fresh lake, the sample logs, and the shared case folder where there is one."""

from __future__ import annotations

import datetime as dt
import fcntl
import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from tests.lakes import NOW, REPO

settings.register_profile(
    "thorough", deadline=None, max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=10)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-golden", action="store_true", help="write tests/golden/ anew")
    parser.addoption("--thorough", action="store_true", help="all of each test, the slow tests, and the shared cases")


def pytest_configure(config: pytest.Config) -> None:
    """Properties are tried with fewer examples in `make test`; see `tests.examples` for those that say how many.

    What is compiled once for a machine (seven seconds) is found also by tests that give their user another home.
    """
    settings.load_profile("thorough" if config.getoption("--thorough") else "quick")
    os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(parent: pytest.Collector) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Looking for examples in the docstrings of the tests, which have none, takes a second in each worker."""
    found = yield
    is_thorough = parent.config.getoption("--thorough")
    return [each for each in found if is_thorough or not isinstance(each, DoctestModule)]


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
def thorough(pytestconfig: pytest.Config) -> bool:
    """Whether all of a test is to run, as in `make check`, and not the part of it that `make test` has time for."""
    return bool(pytestconfig.getoption("--thorough"))


@pytest.fixture(scope="session")
def shared(thorough: bool) -> Path:
    """The folder of cases and real files beside the repository, or the one that ETL_SHARED names; none in `make test`,
    which reads nothing outside the repository.
    """
    if not thorough:
        pytest.skip("reads the shared folder: runs with --thorough, as in make check")
    folder = Path(os.environ.get("ETL_SHARED", REPO.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no shared folder at {folder}; ETL_SHARED can name it")
    return folder


@pytest.fixture(scope="session")
def sample_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake that `etl demo` leaves, made once by the worker that needs it first. Read it, never write to it."""
    from etl.demo import demo

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / "sample_lake.made").open("a+") as made:
        fcntl.flock(made, fcntl.LOCK_EX)
        made.seek(0)
        if not made.read():
            demo(folder / "sample_lake", now=NOW)
            made.write("made")
    return folder / "sample_lake"


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
