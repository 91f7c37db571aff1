"""What fuzzing found stays mended, and a few inputs of every target are tried anew in CI; `make fuzz` runs for hours.

A failure of a long run is copied from `.fuzz/crashes/TARGET/` to `regressions/TARGET/`, under a name that says what it
is.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.targets import LONGEST, REGRESSIONS, mutated, run, seeds, targets

TRIED = 20
"""Inputs of a target in CI."""

_FOUND = sorted(file for file in REGRESSIONS.rglob("*") if file.is_file())


@pytest.mark.parametrize("file", _FOUND, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_fuzzing_found_once_is_read_or_rejected_by_name(file: Path, tmp_path: Path) -> None:
    run(targets()[file.parent.name], file.read_bytes(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", targets())
def test_inputs_of_every_target_raise_nothing_and_cost_little(name: str, tmp_path: Path) -> None:
    target, rng = targets()[name], random.Random(name)
    pool = seeds(target)
    for text in pool:
        run(target, text, tmp_path)
    for _ in range(TRIED):
        run(target, mutated(target, rng.choice(pool), rng, pool)[:LONGEST], tmp_path)
