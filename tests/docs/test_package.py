"""The package as others get it: its public names, its lock, its wheel."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import etl
from etl.cli import run

REPO = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text())
LOCK = (REPO / "requirements.lock").read_text()


def test_public_names_are_those_of_all():
    assert list(etl.__all__) == sorted(etl.__all__)
    for name in etl.__all__:
        value = getattr(etl, name)
        assert value.__name__ == name
        assert value.__doc__, f"etl.{name} has no docstring"
    assert set(etl.__all__) <= set(dir(etl))


def test_other_names_are_missing():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = etl.nonsense  # type: ignore[attr-defined]


def test_the_lock_pins_each_dependency_inside_its_range():
    packaging = pytest.importorskip("packaging.requirements", reason="packaging reads version ranges")
    pinned = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", LOCK, re.MULTILINE))
    for text in [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]:
        wanted = packaging.Requirement(text)
        assert wanted.specifier.contains(pinned[wanted.name.lower()]), f"{text}: run make lock"


def test_the_lock_has_hashes_and_names_no_host():
    for requirement in re.split(r"\n(?=[a-z0-9])", LOCK.partition("make lock\n")[2]):
        assert "--hash=sha256:" in requirement
    assert "://" not in LOCK
    assert "--index-url" not in LOCK
    assert "--find-links" not in LOCK


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=REPO, check=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_ships_schemas_and_sample_logs_and_nothing_of_the_workshop(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for folder in ("schemas", "sample_logs"):
        here = {file for file in (REPO / folder).rglob("*") if file.is_file()}
        assert {f"etl/_shipped/{file.relative_to(REPO)}" for file in here} <= names
    assert {"etl/py.typed", "etl/cli/__init__.py"} <= names
    assert not [name for name in names if name.split("/")[0] not in ("etl", "rollout_etl-0.1.0.dist-info")]


@pytest.mark.slow
def test_the_demo_runs_from_the_wheel(wheel, tmp_path):
    """Unpacked on a path of its own, far from the checkout."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\nfrom etl.cli import run; sys.exit(run(['demo']))"
    )
    command = [sys.executable, "-c", code]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert str(tmp_path / "site" / "etl" / "_shipped" / "sample_logs") in ran.stdout


def test_the_version_is_the_same_everywhere(capsys):
    if not any(found.name == "rollout-etl" for found in importlib.metadata.distributions()):
        pytest.skip("rollout-etl is not installed here, only on the path")
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"etl {PROJECT['project']['version']}\n"
