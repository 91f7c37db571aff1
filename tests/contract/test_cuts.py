"""A file cut anywhere, or torn in one line, loses the one record that was hit and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etl import ingest
from etl.framing import LIMITS, Broken
from tests.contract.harness import Reading, SampleLog, check_row, every_sample, read, sample_logs, stored, whole
from tests.contract.junk import values
from tests.lakes import NOW, rows, said

CUTS, FEW_CUTS = 80, 12
"""Places at which each sample is cut, evenly spread; with `--thorough`, and without."""
PLACES = (0.02, 0.2, 0.4, 0.6, 0.8, 0.98)
"""Where in a record it is torn."""


def _tear(raw: bytes, place: float) -> bytes:
    """The beginning of a record, at least its brace and never all of it."""
    return raw[: min(max(1, int(len(raw) * place)), len(raw) - 1)]


@every_sample
def test_cut_at_many_places(sample: SampleLog, thorough: bool) -> None:
    data = sample.data()
    uncut = whole(sample)
    seen: set[str] = set()
    for end in range(0, len(data), max(1, len(data) // (CUTS if thorough else FEW_CUTS))):
        cut = read(data[:end], sample.adapter)
        more = cut.rejects - uncut.rejects
        assert more.total() == more["torn_tail"] <= 1, f"cut at byte {end}: {more}"
        assert len(cut.records) <= len(uncut.records)
        new = [row for row in cut.parsed if row.row_hash not in seen]
        for row in stored(new) if new else ():
            check_row(row)
        seen.update(row.row_hash for row in new)


@every_sample
def test_cut_inside_the_last_record(sample: SampleLog) -> None:
    """JSON ends in one torn record; what is left of another container may still be whole in its own terms."""
    data = sample.data()
    *_, last = sample.adapter.records(iter([data]), LIMITS)
    if isinstance(last, Broken):
        return
    assert last.offset is not None
    before = read(data[: last.offset], sample.adapter)
    is_json = data.startswith(last.raw, last.offset)
    for place in PLACES:
        torn = _tear(last.raw if is_json else data[last.offset :], place)
        cut = read(data[: last.offset] + torn, sample.adapter)
        if is_json:
            assert cut.said() == before.said()
            assert cut.rejects["torn_tail"] == 1
            assert set(cut.rejects - before.rejects) <= {"torn_tail"}
        else:
            assert (cut.rejects - before.rejects).total() <= 1


@every_sample
def test_one_torn_line_in_the_middle(sample: SampleLog) -> None:
    lines = [json.dumps(value, ensure_ascii=False).encode() for value in values(sample.name)]
    if len(lines) < 3:
        lines = lines * 3
    middle = len(lines) // 2
    without = _read_lines([*lines[:middle], *lines[middle + 1 :]], sample)
    for place in PLACES:
        torn = _read_lines([*lines[:middle], _tear(lines[middle], place), *lines[middle + 1 :]], sample)
        assert torn.rejects.total() == without.rejects.total() + 1, f"torn at {place}: {torn.rejects}"
        assert torn.said() == without.said(), f"torn at {place}"


@pytest.mark.parametrize("share", [0.4, pytest.param(0.9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sample", [s for s in sample_logs() if s.path.suffix in (".gz", ".zst")], ids=lambda s: s.name)
def test_a_compressed_file_cut_short_is_named_and_not_done(sample: SampleLog, share: float, tmp_path: Path) -> None:
    data = sample.path.read_bytes()
    log = tmp_path / sample.path.name
    log.write_bytes(data[: int(len(data) * share)])
    report = ingest([log], lake=tmp_path / "lake", now=NOW, format=sample.adapter.name, strict=True)
    (file,) = rows(tmp_path / "lake", "sources")
    assert (file["state"], [result.uri for result in report.failed()]) == ("failed", [str(log)])
    assert "truncated" in file["error"] or "broken" in file["error"]
    assert file["records_in"] == file["records_used"] + file["rejects"]
    log.write_bytes(data)
    ingest([log], lake=tmp_path / "lake", now=NOW, strict=True)
    ingest([sample.path], lake=tmp_path / "whole", now=NOW, strict=True)
    assert said(tmp_path / "lake") == said(tmp_path / "whole")
    assert rows(tmp_path / "lake", "rejects") == []


def _read_lines(lines: list[bytes], sample: SampleLog) -> Reading:
    return read(b"\n".join([*lines, b""]), sample.adapter)
