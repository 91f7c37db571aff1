"""What comes out of a lake into programs that run what they show. Pages and terminals: see README.md beside."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from etl.values import csv_line
from tests.measured import GOOD

FORMULAS = ['=cmd|"/C calc"!A0', "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "＝1+1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_cell_of_csv_is_no_formula(text: str) -> None:
    ((cell, other),) = csv.reader(io.StringIO(csv_line((text, "a")), newline=""))
    assert (cell, other) == (f"'{text}", "a")


@pytest.mark.parametrize("value", ["-1", "+1.5", "-1,000.5", "1e-9", -1, -1.5, "a=1", ""])
def test_numbers_and_other_texts_stay(value: object) -> None:
    ((cell, _),) = csv.reader(io.StringIO(csv_line((value, "a"))))
    assert cell == str(value)


def test_nor_is_it_in_what_the_command_writes(
    tmp_path: Path, lake: Path, etl: Callable[..., tuple[int, str, str]]
) -> None:
    log, out = tmp_path / "log.jsonl", tmp_path / "out.csv"
    log.write_bytes(GOOD.replace(b"Is it open?", b"=HYPERLINK(1)"))
    assert etl("ingest", log, "--lake", lake)[0] == 0
    assert etl("sql", "SELECT prompt FROM rollouts", "--lake", lake, "--csv")[1] == "prompt\n'=HYPERLINK(1)\n"
    assert etl("sql", "SELECT prompt FROM rollouts", "--lake", lake, "--out", out)[0] == 0
    assert out.read_text() == "prompt\n'=HYPERLINK(1)\n"
