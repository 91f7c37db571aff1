"""`.ci/venv` where it cannot do its work: it says what is missing, and touches nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]


@pytest.fixture
def bare(tmp_path):
    """A PATH with next to nothing on it; gives the folder, to put a Python into."""
    (tmp_path / "dirname").symlink_to(shutil.which("dirname"))
    return tmp_path


def _python(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _set_up(folder):
    command = [shutil.which("sh") or "sh", str(REPO / ".ci" / "venv")]
    return subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True)


def test_without_a_python_it_names_what_is_needed(bare):
    _python(bare / "python3.13", "echo 'a shim without a version behind it' >&2; exit 127")
    _python(bare / "python3", "exit 1  # what an old Python answers to the question of its version")
    ran = _set_up(bare)
    assert ran.returncode == 1
    assert "no Python from 3.11 to 3.14" in ran.stderr
    assert "PYTHON=" in ran.stderr


def test_without_ensurepip_it_names_the_package(bare):
    broken = bare / "lib"
    broken.mkdir()
    (broken / "ensurepip.py").write_text("raise ImportError('left out by the distribution')\n")
    _python(bare / "python3.12", f'PYTHONPATH={broken} exec {sys.executable} "$@"')
    ran = _set_up(bare)
    assert ran.returncode == 1
    version = "{}.{}".format(*sys.version_info)
    assert f"apt-get install python{version}-venv" in ran.stderr
    assert "uv" in ran.stderr
