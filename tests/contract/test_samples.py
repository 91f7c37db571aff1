"""Every adapter on every sample of its own, through the whole run, without the net under an adapter's exceptions."""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from etl.adapter import Adapter, adapters
from etl.detection import LEAST_SCORE, detect
from etl.pipeline import ingest
from etl.report import Report
from tests.contract.golden import Tables, account, golden_path, write
from tests.contract.harness import SAMPLES, SampleLog, check_row, declared, each, every_sample, sample_logs, whole
from tests.lakes import NOW, rows

_FAKE = re.compile(r"(?:sk-ant-)?(?:FAKE[0-9]{4}){3,}")
"""A planted secret: made of FAKE, so that no scanner takes it for a real one."""

every_adapter = pytest.mark.parametrize("adapter", adapters().values(), ids=lambda adapter: adapter.name)


def _turns() -> dict[str, int]:
    """Name of a sample → its place among those of its adapter."""
    count = Counter[str]()
    turns = {}
    for sample in sample_logs():
        turns[sample.name] = count[sample.adapter.name]
        count[sample.adapter.name] += 1
    return turns


TURNS = _turns()
every_turn = pytest.mark.parametrize("turn", sorted({*TURNS.values()}), scope="module")
"""The tests of one turn run one after another, so that mostly one worker reads its samples."""


def _of_turn(turn: int) -> list[SampleLog]:
    """The samples of one turn, one of each adapter that has so many."""
    return [sample for sample in sample_logs() if TURNS[sample.name] == turn]


@every_adapter
def test_an_adapter_says_what_it_is_and_has_samples(adapter: Adapter) -> None:
    assert adapter.name.isidentifier()
    assert adapter.name == adapter.name.lower()
    assert adapter.version >= 1
    assert adapter.about
    assert "\n" not in adapter.about
    folder = SAMPLES / adapter.name
    names = [sample.path.relative_to(folder) for sample in sample_logs() if sample.adapter.name == adapter.name]
    assert names, f"{folder} has no sample"
    text = (folder / "README.md").read_text(encoding="utf-8")
    for name in names:
        assert any(part in text for part in (name.as_posix(), name.name)), (
            f"{folder}/README.md does not speak of {name}"
        )


@every_sample
def test_only_its_own_adapter_claims_a_sample(sample: SampleLog) -> None:
    detection = detect(sample.path)
    assert detection.adapter.name == sample.adapter.name
    others = {name: score for name, score in detection.scores.items() if name != sample.adapter.name}
    assert not {name: score for name, score in others.items() if score >= LEAST_SCORE}


class Ingested(NamedTuple):
    """A lake with samples of many adapters in it, one of each, and all that the run wrote and said as one text."""

    tables: Tables
    report: Report
    written: str


@pytest.fixture(scope="session")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Ingested]:
    """Reads a sample with those of other adapters, once for all tests that only look at what came of it.

    The n-th samples of all adapters share a lake; those of one adapter, which may be parts or copies of each other, do
    not.
    """

    @functools.cache
    def once(turn: int) -> Ingested:
        lake = tmp_path_factory.mktemp("samples") / "lake"
        paths = [sample.path for sample in _of_turn(turn)]
        report = ingest(paths, lake=lake, now=NOW, strict=True)
        tables = Tables.of(lake)
        return Ingested(tables, report, repr([*tables, rows(lake, "events"), report]))

    return once


@every_turn
def test_planted_secrets_reach_no_table(turn: int, ingested: Callable[[int], Ingested]) -> None:
    def keeps_its_own(sample: SampleLog) -> None:
        planted = set(_FAKE.findall(sample.data().decode("utf-8", "replace")))
        assert not {secret for secret in planted if secret in written}

    written = ingested(turn).written
    each(_of_turn(turn), keeps_its_own)


@every_adapter
def test_the_samples_of_an_adapter_plant_faults(adapter: Adapter) -> None:
    samples = [sample for sample in sample_logs() if sample.adapter.name == adapter.name]
    logs, found = [sample.data() for sample in samples], [whole(sample) for sample in samples]
    assert _FAKE.search(b"".join(logs).decode("utf-8", "replace")), "a secret"
    assert any(reading.rejects for reading in found), "a torn line"
    parsed = [row for reading in found for row in reading.parsed]
    without_calls = not any(row.steps for row in parsed)
    assert without_calls or any("missing_result" in row.flags for row in parsed), "a missing result"


@every_turn
def test_golden(turn: int, ingested: Callable[[int], Ingested], pytestconfig: pytest.Config) -> None:
    def gives_its_golden(sample: SampleLog) -> None:
        if pytestconfig.getoption("--write-golden"):
            write(sample)
        found = json.loads(json.dumps(account(sample, tables)))
        assert found == json.loads(golden_path(sample).read_text(encoding="utf-8"))

    tables = ingested(turn).tables
    each(_of_turn(turn), gives_its_golden)


@every_turn
def test_rows_and_accounts_are_sound(turn: int, ingested: Callable[[int], Ingested]) -> None:
    def is_sound(sample: SampleLog) -> None:
        its = tables.about(sample)
        for row in its.rollouts:
            check_row(row)
        (file,) = its.sources
        ignored = json.loads(file["ignored"] or "{}")
        assert file["state"] in ("done", "growing")
        assert file["records_in"] == file["records_used"] + file["rejects"] + sum(ignored.values())
        assert file["rejects"] == len(its.rejects)
        assert file["rows"] >= len(its.rollouts) > 0 or file["rejects"] == file["records_in"]
        assert all(declared(sample.adapter, rule) for rule in ignored)

    tables, report, _ = ingested(turn)
    each(_of_turn(turn), is_sound)
    assert report.to_json()["records_in"] == sum(each["records_in"] for each in tables.sources)


def test_samples_read_again_elsewhere_and_backwards_change_nothing(tmp_path: Path, thorough: bool) -> None:
    """All samples with `--thorough`, else one of every second adapter, which alone gives a row."""
    asked = [*adapters()] if thorough else [*adapters()][::2]
    chosen = [sample for sample in sample_logs() if sample.adapter.name in asked]
    if not thorough:
        chosen = [*{sample.adapter.name: sample for sample in reversed(chosen) if whole(sample).parsed}.values()]
    paths = [sample.path for sample in chosen]
    lake, backwards = (
        _ingested(paths, tmp_path / f"{name}", order) for name, order in (("a", list), ("b", _backwards))
    )
    once = _said(lake)
    assert {name for name, _ in once} == {*asked}
    assert once == _said(backwards)
    again = ingest([tmp_path / "a" / "logs"], lake=lake, now=NOW, strict=True, reparse=True).to_json()
    assert (again["rows"]["added"], again["rows"]["replaced"], again["rows"]["removed"]) == (0, 0, 0)
    assert _said(lake) == once


def _said(lake: Path) -> list[tuple[str, str]]:
    """What the rows of each adapter say."""
    return sorted((row["adapter"], row["row_hash"]) for row in rows(lake))


def _backwards(paths: list[Path]) -> list[Path]:
    return paths[::-1]


def _ingested(paths: list[Path], folder: Path, order: Callable[[list[Path]], list[Path]]) -> Path:
    """A lake with copies of the files, each in a folder of its own, read in the order given."""
    for number, path in enumerate(order(paths)):
        copy = folder / "logs" / f"{number:03}" / path.name
        copy.parent.mkdir(parents=True)
        shutil.copy(path, copy)
    ingest([folder / "logs"], lake=folder / "lake", now=NOW, strict=True)
    return folder / "lake"
