"""Every adapter on every sample of its own, through the whole run, without the net under an adapter's exceptions."""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from etl.adapter import Adapter, adapters
from etl.detection import LEAST_SCORE, detect
from etl.pipeline import ingest
from etl.report import Report
from tests.contract.golden import account, golden_path, write
from tests.contract.harness import SAMPLES, SampleLog, check_row, declared, read, sample_logs
from tests.lakes import NOW, rows, said

_FAKE = re.compile(r"(?:sk-ant-)?(?:FAKE[0-9]{4}){3,}")
"""A planted secret: made of FAKE, so that no scanner takes it for a real one."""

every_adapter = pytest.mark.parametrize("adapter", adapters().values(), ids=lambda adapter: adapter.name)
every_sample = pytest.mark.parametrize("sample", sample_logs(), ids=lambda sample: sample.name, scope="module")
"""The tests of one sample run one after another, so that mostly one worker reads it."""


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
    """A lake with one sample in it, and what the run said."""

    lake: Path
    report: Report


@pytest.fixture(scope="session")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Callable[[SampleLog], Ingested]:
    """Reads a sample, once for all tests that only look at what came of it."""

    @functools.cache
    def once(name: str) -> Ingested:
        (sample,) = (sample for sample in sample_logs() if sample.name == name)
        lake = tmp_path_factory.mktemp("sample") / "lake"
        return Ingested(lake, ingest([sample.path], lake=lake, now=NOW, strict=True))

    return lambda sample: once(sample.name)


@every_sample
def test_planted_secrets_reach_no_table(sample: SampleLog, ingested: Callable[[SampleLog], Ingested]) -> None:
    planted = set(_FAKE.findall(sample.data().decode("utf-8", "replace")))
    lake, report = ingested(sample)
    written = repr([rows(lake, name) for name in ("rollouts", "events", "rejects", "sources")]) + repr(report)
    assert not {secret for secret in planted if secret in written}


@every_adapter
def test_the_samples_of_an_adapter_plant_faults(adapter: Adapter) -> None:
    logs = [sample.data() for sample in sample_logs() if sample.adapter.name == adapter.name]
    found = [read(data, adapter) for data in logs]
    assert _FAKE.search(b"".join(logs).decode("utf-8", "replace")), "a secret"
    assert any(reading.rejects for reading in found), "a torn line"
    parsed = [row for reading in found for row in reading.parsed]
    without_calls = not any(row.steps for row in parsed)
    assert without_calls or any("missing_result" in row.flags for row in parsed), "a missing result"


@every_sample
def test_golden(sample: SampleLog, ingested: Callable[[SampleLog], Ingested], pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--write-golden"):
        write(sample)
    found = json.loads(json.dumps(account(sample, ingested(sample).lake)))
    assert found == json.loads(golden_path(sample).read_text(encoding="utf-8"))


@every_sample
def test_rows_and_accounts_are_sound(sample: SampleLog, ingested: Callable[[SampleLog], Ingested]) -> None:
    lake, report = ingested(sample)
    for row in rows(lake):
        check_row(row)
    (file,) = rows(lake, "sources")
    ignored = json.loads(file["ignored"] or "{}")
    assert file["state"] in ("done", "growing")
    assert file["records_in"] == file["records_used"] + file["rejects"] + sum(ignored.values())
    assert file["rejects"] == len(rows(lake, "rejects"))
    assert file["rows"] >= len(rows(lake)) > 0 or file["rejects"] == file["records_in"]
    assert all(declared(sample.adapter, rule) for rule in ignored)
    assert report.to_json()["records_in"] == file["records_in"]


@every_adapter
def test_samples_read_again_elsewhere_and_backwards_change_nothing(adapter: Adapter, tmp_path: Path) -> None:
    paths = [sample.path for sample in sample_logs() if sample.adapter.name == adapter.name]
    lakes = [_ingested(paths, tmp_path / f"{name}", order) for name, order in (("a", list), ("b", _backwards))]
    once = said(lakes[0])
    assert once
    assert once == said(lakes[1])
    again = ingest([tmp_path / "a" / "logs"], lake=lakes[0], now=NOW, strict=True, reparse=True).to_json()
    assert (again["rows"]["added"], again["rows"]["replaced"], again["rows"]["removed"]) == (0, 0, 0)
    assert said(lakes[0]) == once


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
